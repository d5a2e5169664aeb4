"""What every `Runner` promises."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

import pytest

from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Passed
from operator_registry.registry import CATALOG, load_registry
from optimizer.candidate import Candidate
from optimizer.evaluate.evaluator import JUDGE_VERSION, Effort
from optimizer.runners.access import RayAccess
from optimizer.runners.local import LocalRunner
from optimizer.runners.post import JudgeRequest
from optimizer.runners.ray import local_cluster
from optimizer.runners.remote import RemoteRunner
from optimizer.runners.runner import Runner
from optimizer.targets import host_cpu_arch
from tests.fakes import FakeRunner
from tests.makers import OPERATOR, make_candidate, make_passed

pytestmark = pytest.mark.alone

GOOD = make_candidate("good")
BROKEN = GOOD.model_copy(update={"code": "no code at all"})
FAILED = Failed(stage="screen", log="the plan launches scale, but the code has no KERNEL(scale)")


def make_fake(folder: Path) -> Runner:
    def find(candidate: Candidate) -> Passed | Failed:
        return make_passed(0.5) if candidate == GOOD else FAILED

    def confirm(candidate: Candidate) -> Evidence | Failed:
        found = FakeRunner().confirm_one(candidate)
        return found if candidate == GOOD and isinstance(found, Evidence) else FAILED

    return FakeRunner(try_one=find, confirm_one=confirm)


def make_local(folder: Path) -> LocalRunner:
    host = load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]
    effort = Effort(measure_s=0.05, pairs=2, pair_s=0.1)
    return LocalRunner(OPERATOR, host, folder=folder, effort=effort)


@contextmanager
def make_ray(folder: Path) -> Iterator[Runner]:
    """Be a runner on a cluster of this machine, with one logical device."""
    host = load_registry(CATALOG).hardware[f"cpu-{host_cpu_arch()}"]
    asked = JudgeRequest(
        operator=OPERATOR,
        hardware=host,
        judge_version=JUDGE_VERSION,
        effort={"measure_s": 0.05, "pairs": 2, "pair_s": 0.1},
    )
    with local_cluster({f"{host.name}/slot0": 1}) as cluster:
        (device,) = cluster.devices()
        posts = cluster.at(RayAccess.from_json(device.access))
        with RemoteRunner(posts, asked, samples=folder) as runner:
            yield runner


MAKERS: Mapping[str, Callable[[Path], AbstractContextManager[Runner]]] = {
    "fake": lambda folder: nullcontext(make_fake(folder)),
    "local": make_local,
    "ray": make_ray,
}
SLOW = ("ray",)
"""A cluster takes seconds to start."""
CASES = [pytest.param(name, marks=pytest.mark.drill) if name in SLOW else name for name in MAKERS]


@pytest.fixture(scope="module", params=CASES)
def runner(request: pytest.FixtureRequest, state: Path) -> Iterator[Runner]:
    with MAKERS[request.param](state) as runner:
        yield runner


def test_each_candidate_gets_its_evaluation_in_order(runner: Runner) -> None:
    done = runner.evaluate([BROKEN, GOOD, BROKEN])

    assert [e.candidate for e in done] == [BROKEN.id, GOOD.id, BROKEN.id]
    assert [e.outcome.kind for e in done] == ["failed", "passed", "failed"]


def test_nothing_asked_is_nothing_done(runner: Runner) -> None:
    assert list(runner.evaluate([])) == []


def test_each_evaluation_is_told_as_well_as_returned(runner: Runner) -> None:
    told: list[object] = []

    done = runner.evaluate([BROKEN, GOOD], on_done=told.append)

    assert told == list(done)


def test_what_is_only_foreseen_is_not_tried(runner: Runner) -> None:
    done = runner.evaluate([BROKEN], ahead=[GOOD])

    assert [e.candidate for e in done] == [BROKEN.id]


def test_results_hold_in_the_runners_environment(runner: Runner) -> None:
    (evaluation,) = runner.evaluate([GOOD])

    assert evaluation.environment == runner.environment
    assert evaluation.operator_digest == OPERATOR.digest


def test_a_sound_candidate_is_confirmed_with_evidence_of_itself(runner: Runner) -> None:
    found = runner.confirm(GOOD, deadline_s=60, alpha=0.01, handed_back=())

    assert isinstance(found, Evidence)
    assert found.candidate == GOOD.id
    assert found.operator_digest == OPERATOR.digest


def test_a_bad_candidate_is_confirmed_as_its_outcome(runner: Runner) -> None:
    found = runner.confirm(BROKEN, deadline_s=60, alpha=0.01, handed_back=())

    assert found == FAILED
