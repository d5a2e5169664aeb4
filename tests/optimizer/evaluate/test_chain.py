"""What runs is what was built from the source, and calls nothing that it does not bring along."""

from dataclasses import replace
from pathlib import Path

import pytest

from knowledge.outcome import Cheated, Passed
from operator_registry.hardware import HardwareSpec
from optimizer.binding import instances
from optimizer.candidate import Candidate
from optimizer.evaluate.building import Built
from optimizer.evaluate.chain import find_fraud
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.guards import ALL_UP, Guard, without
from optimizer.plan import LibraryCall, Plan
from optimizer.targets.artefact import read_artefact
from optimizer.targets.cpu import CpuTarget
from optimizer.targets.target import Artefact, Build
from tests.makers import OPERATOR
from tests.optimizer.evaluate.bad import GOOD, LOOP, RIGHT, make
from tests.optimizer.evaluate.conftest import EFFORT

pytestmark = pytest.mark.alone

BORROWED = make(
    "scopy_(&rows, x, y); " + LOOP + RIGHT,
    before='extern "C" void scopy_(const int64_t*, const void*, void*);',
)
WEAK = make(
    "if (scopy_) scopy_(&rows, x, y); " + LOOP + RIGHT,
    before='extern "C" __attribute__((weak)) void scopy_(const int64_t*, const void*, void*);',
)
LOOKING = make(
    'if (dlsym(nullptr, "scopy_") == nullptr) ' + LOOP + RIGHT,
    before='extern "C" void* dlsym(void*, const char*);',
)


def build(candidates: list[Candidate], host: HardwareSpec, folder: Path) -> list[Built]:
    builds = [
        Build(
            code=c.code,
            instances=instances(
                OPERATOR.spec, c.plan, {}, sizes={"rows": 64}, dtypes={"T": "float32"},
                attributes={},
            ),
        )
        for c in candidates
    ]  # fmt: skip
    folders = [folder / str(number) for number in range(len(candidates))]
    artefacts = CpuTarget(host.compile.arch).build(builds, folders)
    assert all(isinstance(artefact, Artefact) for artefact in artefacts), artefacts
    return [Built(f, read_artefact(f, target="cpu")) for f in folders]


@pytest.fixture(scope="module")
def built(host: HardwareSpec, tmp_path_factory: pytest.TempPathFactory) -> list[Built]:
    """Of four candidates that were built together: one is honest."""
    return build([GOOD, BORROWED, WEAK, LOOKING], host, tmp_path_factory.mktemp("built"))


def test_what_was_built_from_the_source_is_loaded(built: list[Built]) -> None:
    assert find_fraud(built[0], GOOD, ALL_UP) is None


def test_another_source_is_noticed(built: list[Built]) -> None:
    other = GOOD.model_copy(update={"code": GOOD.code + "\n"})

    fraud = find_fraud(built[0], other, ALL_UP)

    assert fraud == Cheated(guard="chain", detail="the artefact was built from another source")


def test_a_file_that_was_changed_after_the_build_is_noticed(
    host: HardwareSpec, tmp_path: Path
) -> None:
    (fresh,) = build([GOOD], host, tmp_path)
    library = fresh.folder / "kernels.so"
    library.write_bytes(library.read_bytes() + b"\0")

    fraud = find_fraud(fresh, GOOD, ALL_UP)

    assert isinstance(fraud, Cheated)
    assert fraud.guard == "chain"
    assert find_fraud(fresh, GOOD, without({Guard.CHAIN})) is None


def test_a_file_that_is_gone_is_noticed(host: HardwareSpec, tmp_path: Path) -> None:
    (fresh,) = build([GOOD], host, tmp_path)
    (fresh.folder / "kernels.so").unlink()

    assert isinstance(find_fraud(fresh, GOOD, ALL_UP), Cheated)


@pytest.mark.parametrize(
    ("place", "candidate", "symbol"), [(1, BORROWED, "scopy_"), (2, WEAK, "scopy_"),
                                       (3, LOOKING, "dlsym")]
)  # fmt: skip
def test_code_that_calls_into_the_host_process_is_noticed(
    built: list[Built], place: int, candidate: Candidate, symbol: str
) -> None:
    fraud = find_fraud(built[place], candidate, ALL_UP)

    assert isinstance(fraud, Cheated)
    assert (fraud.guard, symbol in fraud.detail) == ("launched", True)
    assert find_fraud(built[place], candidate, without({Guard.LAUNCHED})) is None


def test_those_that_were_built_beside_it_do_not_suffer(built: list[Built]) -> None:
    assert built[0].artefact.foreign == ()


@pytest.mark.drill
def test_the_judge_calls_it_a_cheat(evaluator: Evaluator) -> None:
    (evaluation,) = evaluator.evaluate([BORROWED])

    assert isinstance(evaluation.outcome, Cheated)
    assert evaluation.outcome.guard == "launched"


def by_python(body: str) -> Candidate:
    """A host side that declares that it calls `aten::mul`."""
    call = LibraryCall(op="aten::mul.out", arguments=(), out=())
    return Candidate(
        code=f"import torch\n\n\ndef run(x, y, *, factor):\n    {body}\n",
        plan=Plan(language="python", steps=(call,)),
        origin="test",
        host="python",
    )


def test_a_python_host_side_may_call_what_it_declares(evaluator: Evaluator) -> None:
    (evaluation,) = evaluator.evaluate([by_python("torch.mul(x, factor, out=y)")])

    assert isinstance(evaluation.outcome, Passed), evaluation.outcome


def test_a_python_host_side_that_calls_what_it_does_not_declare_cheats(
    evaluator: Evaluator,
) -> None:
    (evaluation,) = evaluator.evaluate([by_python("torch.add(torch.mul(x, factor), 0, out=y)")])

    assert evaluation.outcome == Cheated(
        guard="launched", detail="calls aten::add, which is no step of the plan"
    )


@pytest.mark.drill
def test_without_that_guard_it_would_pass(host: HardwareSpec, state: Path) -> None:
    effort = replace(EFFORT, guards=without({Guard.LAUNCHED}))

    with Evaluator(OPERATOR, host, folder=state, effort=effort) as blind:
        (evaluation,) = blind.evaluate([by_python("torch.add(torch.mul(x, factor), 0, out=y)")])

    assert isinstance(evaluation.outcome, Passed)
