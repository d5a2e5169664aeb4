"""The confirming run, end to end with few pairs: what stands in its evidence."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

import pytest

from knowledge.evidence import Evidence
from knowledge.outcome import Failed, Incorrect, TimedOut
from knowledge.verdict import judge
from operator_registry.hardware import HardwareSpec
from optimizer.audit import find_flaw
from optimizer.evaluate.evaluator import Evaluator
from optimizer.evaluate.samples import find_samples
from tests.makers import OPERATOR
from tests.optimizer.evaluate.bad import BAD, GOOD, make
from tests.optimizer.evaluate.conftest import EFFORT

pytestmark = pytest.mark.alone

ALPHA = 0.01


@pytest.fixture(scope="module")
def evidence(evaluator: Evaluator) -> Evidence:
    found = evaluator.confirm(GOOD, deadline_s=100, alpha=ALPHA, handed_back={"w1"})
    assert isinstance(found, Evidence), found
    return found


def test_every_public_workload_is_measured_in_every_pair(evidence: Evidence) -> None:
    assert [w.workload for w in evidence.workloads] == ["w0", "w1"]
    (pairs,) = {len(w.pair_ratios) for w in evidence.workloads}
    assert 1 <= pairs <= (EFFORT.pairs or 0)


def test_memory_of_both_sides_is_weighed(evidence: Evidence) -> None:
    for workload in evidence.workloads:
        input_and_output = 2 * 4 * workload.sizes["rows"]
        assert workload.peak_bytes is not None
        assert input_and_output <= workload.peak_bytes <= input_and_output + 64
        assert workload.workspace_bytes is not None
        assert workload.workspace_bytes <= 64
        (theirs,) = [p.peak_bytes for p in workload.peers if p.name == workload.best_peer]
        assert theirs is not None
        assert input_and_output <= theirs <= input_and_output + 64


def test_the_first_call_of_both_sides_is_timed(evidence: Evidence) -> None:
    for workload in evidence.workloads:
        (theirs_ms,) = [p.first_call_ms for p in workload.peers if p.name == workload.best_peer]
        assert theirs_ms is not None
        assert theirs_ms > 0
        assert workload.first_call_ms is not None
        assert workload.first_call_ms > 0


def test_many_seeds_and_all_distributions_are_checked(evidence: Evidence) -> None:
    assert evidence.checked_seeds >= 25
    assert set(evidence.distributions) == {"stated", "flat", "skewed", "hostile"}


def test_held_out_sizes_are_checked(evidence: Evidence) -> None:
    assert evidence.checked_sizes >= 20 + len(OPERATOR.spec.workloads)


def test_the_frozen_dispatch_is_heeded(evidence: Evidence) -> None:
    first, second = evidence.workloads

    assert first.served_by == GOOD.id
    assert second.served_by == "reference/eager"
    assert set(second.pair_ratios) == {1.0}


def test_the_run_says_how_it_was_made(evidence: Evidence) -> None:
    assert evidence.alpha == ALPHA
    assert evidence.candidate == GOOD.id
    assert evidence.operator_digest == OPERATOR.digest
    assert evidence.launched == ("scale",)
    assert evidence.resources[0].kernel == "scale"


def test_its_arithmetic_follows_from_the_raw_samples_that_were_kept(
    evidence: Evidence, state: Path
) -> None:
    samples = find_samples(state, evidence.samples_sha256)

    assert samples is not None
    assert find_flaw(evidence, samples) is None


def test_each_workload_shows_both_distributions(evidence: Evidence) -> None:
    row = evidence.workloads[0]

    assert len(row.quantiles_ms) == len(row.baseline_quantiles_ms) == 21
    assert list(row.quantiles_ms) == sorted(row.quantiles_ms)
    assert row.quantiles_ms[0] <= row.device_ms <= row.quantiles_ms[-1]


@pytest.mark.drill
def test_what_is_proven_is_built_from_source_whatever_lies_there(
    evaluator: Evaluator, evidence: Evidence, state: Path
) -> None:
    """A stale binary with a record that fits it is neither found nor run."""
    for record in state.glob("artefacts/*/artefact.json"):
        if evidence.source_sha256 in record.read_text():
            library = record.with_name("kernels.so")
            library.write_bytes(library.read_bytes() + b"stale")
            old = evidence.resources[0].artefact_sha256
            stale = hashlib.sha256(library.read_bytes()).hexdigest()
            record.write_text(record.read_text().replace(old, stale))

    again = evaluator.confirm(
        GOOD, deadline_s=0.01, alpha=ALPHA / 2, handed_back={"w1"}, earlier=[evidence]
    )

    assert isinstance(again, Evidence), again
    _is_pooled(evidence, again, state)
    assert stale not in {r.artefact_sha256 for r in again.resources}


def _is_pooled(first: Evidence, again: Evidence, state: Path) -> None:
    """A repeat goes on from all readings of the run before: the arithmetic holds over both."""
    before, after = first.workloads[0].pair_ratios, again.workloads[0].pair_ratios
    assert again.earlier_pairs == len(before)
    assert len(after) == len(before) + 1
    assert find_flaw(again, find_samples(state, again.samples_sha256)) is None


def test_what_went_on_beside_it_is_told(evidence: Evidence) -> None:
    assert evidence.conditions is not None
    assert min(evidence.conditions.load) >= 0
    assert evidence.conditions.input_sets == 4


def test_the_null_stands_beside_it(evidence: Evidence) -> None:
    assert len(evidence.null.pair_ratios) == len(evidence.workloads[0].pair_ratios)
    assert evidence.null.ratio.low <= evidence.null.ratio.estimate <= evidence.null.ratio.high


def test_peers_that_were_not_compared_with_are_named(evidence: Evidence) -> None:
    assert any("max-autotune" in line for line in evidence.not_tested)


def test_the_evidence_survives_json_and_can_be_judged(evidence: Evidence) -> None:
    again = Evidence.from_json(evidence.to_json())

    assert again == evidence
    assert judge(again) == judge(evidence)
    assert "Infinity" not in json.dumps(json.loads(evidence.to_json()))


@pytest.mark.drill
def test_a_short_deadline_ends_in_evidence_that_proves_nothing(
    evaluator: Evaluator, evidence: Evidence
) -> None:
    found = evaluator.confirm(GOOD, deadline_s=0.01, alpha=ALPHA, handed_back=())

    assert isinstance(found, Evidence)
    assert len(found.null.pair_ratios) == 1
    assert judge(found).kind == "unclear"
    assert found.seed != evidence.seed


@pytest.mark.parametrize(
    ("candidate", "kind"),
    [
        pytest.param(BAD["NaN"][2], Incorrect, id="incorrect"),
        pytest.param(BAD["infinite loop"][0], TimedOut, id="loop", marks=pytest.mark.drill),
        pytest.param(BAD["syntax error"][0], Failed, id="syntax", marks=pytest.mark.drill),
    ],
)
def test_a_candidate_that_fails_comes_back_as_its_outcome(
    evaluator: Evaluator, candidate: object, kind: type
) -> None:
    found = evaluator.confirm(candidate, deadline_s=60, alpha=ALPHA, handed_back=())  # type: ignore[arg-type] # parametrised

    assert isinstance(found, kind)


@pytest.mark.drill
def test_wrong_only_when_it_is_timed_is_still_wrong(evaluator: Evaluator) -> None:
    """After some right calls at a public size, it stops to compute."""
    lazy = make(
        "static int64_t calls = 0; if (rows == 64 && ++calls > 5) return; "
        "for (int64_t i = 0; i < rows; ++i) y[i] = x[i] * static_cast<T>(factor);"
    )

    found = evaluator.confirm(lazy, deadline_s=60, alpha=ALPHA, handed_back=())

    assert isinstance(found, Incorrect)


@pytest.mark.drill
def test_pairs_that_get_ready_side_by_side_are_measured_one_after_another(
    state: Path, host: HardwareSpec
) -> None:
    effort = replace(EFFORT, pairs=4, abreast=2)

    with Evaluator(OPERATOR, host, folder=state, effort=effort) as judge_:
        found = judge_.confirm(GOOD, deadline_s=100, alpha=ALPHA, handed_back={"w1"})

    assert isinstance(found, Evidence), found
    assert {len(w.pair_ratios) for w in found.workloads} == {4}
    assert find_flaw(found) is None
    # Of a pair that got ready beside others, first calls tell nothing.
    assert all(w.first_call_ms is not None for w in found.workloads)
