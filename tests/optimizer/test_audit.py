"""Evidence whose numbers follow from each other, and one edited number that does not."""

from dataclasses import replace
from pathlib import Path

import pytest

from knowledge.evidence import Evidence, Interval, NullRun, PeerRow, WorkloadEvidence
from knowledge.roofline import memory_bound_ms
from optimizer.audit import find_flaw
from optimizer.evaluate import summary
from optimizer.evaluate.peers import EAGER
from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.samples import RawSamples, find_samples, keep_samples
from optimizer.evaluate.summary import TWIN, Measured, Pair, Reading
from optimizer.evaluate.workbench import JUDGE_VERSION
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

ALPHA = 0.01
WEIGHTS = {"w0": 1.0, "w1": 2.0}
CANDIDATE_ID = make_candidate().id


def read(ms: float) -> Reading:
    return Reading(device_ms=ms, call_ms=1.1 * ms, faults=0, parent_ms=1.2 * ms)


def make_pair(number: int) -> Pair:
    drift = 1 + 0.01 * number
    sides = {CANDIDATE: 0.5 * drift, EAGER: 1.0 + 0.02 * number, TWIN: 1.0 + 0.015 * number}
    return {
        workload: {
            name: [read(ms * (1 + 0.001 * i)) for i in range(7)] for name, ms in sides.items()
        }
        for workload in WEIGHTS
    }


PAIRS = [make_pair(number) for number in range(12)]


def describe(workload: str) -> WorkloadEvidence:
    sizes = {"rows": 64}
    measured = Measured(
        workload=workload, sizes=sizes, dtypes={"T": "float32"}, weight=WEIGHTS[workload],
        roofline_ms=memory_bound_ms(OPERATOR.spec, sizes, HARDWARE, dtypes={"T": "float32"}),
        impossible_below_ms=0, handed_back=False, error=0, reference_error=0,
    )  # fmt: skip
    return summary.describe_workload(
        PAIRS, measured, served_by=CANDIDATE_ID, figure="device_ms", workloads=2
    )


@pytest.fixture(scope="module")
def evidence() -> Evidence:
    rows = tuple(map(describe, WEIGHTS))
    twins = dict.fromkeys(WEIGHTS, EAGER)
    return make_evidence(make_candidate()).model_copy(
        update={
            "judge_version": JUDGE_VERSION,
            "alpha": ALPHA,
            "workloads": rows,
            "ratio": summary.describe_ratio(rows, alpha=ALPHA),
            "versus_eager": summary.versus(rows, EAGER, "device_ms"),
            "null": summary.describe_null(PAIRS, twins, WEIGHTS, figure="device_ms", alpha=ALPHA),
        }
    )


def edited(evidence: Evidence, **changes: object) -> Evidence:
    first, *rest = evidence.workloads
    return evidence.model_copy(update={"workloads": (first.model_copy(update=changes), *rest)})


def test_what_the_judge_wrote_has_no_flaw(evidence: Evidence) -> None:
    assert find_flaw(evidence) is None


@pytest.mark.parametrize("field", ["pair_ms", "baseline_pair_ms", "pair_ratios"])
@pytest.mark.parametrize("factor", [0.999, 1.1, -1.0, float("nan")])
def test_one_edited_number_of_a_pair_is_noticed(
    evidence: Evidence, field: str, factor: float
) -> None:
    first, *rest = getattr(evidence.workloads[0], field)

    assert find_flaw(edited(evidence, **{field: (first * factor, *rest)})) is not None


def test_a_pair_that_is_left_out_is_noticed(evidence: Evidence) -> None:
    row = evidence.workloads[0]
    shorter = {
        name: getattr(row, name)[1:] for name in ("pair_ms", "baseline_pair_ms", "pair_ratios")
    }

    assert find_flaw(edited(evidence, **shorter)) is not None


@pytest.mark.parametrize("end", ["low", "estimate", "high"])
def test_an_edited_interval_is_noticed(evidence: Evidence, end: str) -> None:
    better = evidence.ratio.model_copy(update={end: getattr(evidence.ratio, end) * 1.001})

    assert find_flaw(evidence.model_copy(update={"ratio": better})) is not None


def test_an_edited_interval_of_a_workload_is_noticed(evidence: Evidence) -> None:
    ratio = evidence.workloads[0].ratio

    assert find_flaw(edited(evidence, ratio=ratio.model_copy(update={"low": ratio.low + 0.01})))


def test_an_edited_null_is_noticed(evidence: Evidence) -> None:
    null = NullRun(
        pair_ratios=evidence.null.pair_ratios, ratio=Interval(low=0.99, estimate=1, high=1.01)
    )

    assert find_flaw(evidence.model_copy(update={"null": null})) is not None


def test_another_time_than_the_pairs_is_noticed(evidence: Evidence) -> None:
    assert find_flaw(edited(evidence, device_ms=0.1)) is not None


def test_a_gain_over_eager_that_is_made_up_is_noticed(evidence: Evidence) -> None:
    assert find_flaw(evidence.model_copy(update={"versus_eager": 100.0})) is not None


def test_a_peer_that_is_faster_than_itself_is_noticed(evidence: Evidence) -> None:
    row = evidence.workloads[0]
    peer = PeerRow(name="reference/eager", device_ms=1, call_ms=1)

    handed = edited(evidence, served_by=peer.name, pair_ratios=(2.0,) * len(row.pair_ratios))

    assert find_flaw(handed) is not None


def test_an_older_judges_estimates_are_computed_again_but_not_its_ends(evidence: Evidence) -> None:
    older = evidence.model_copy(update={"judge_version": "1"})
    narrow = older.ratio.model_copy(update={"low": older.ratio.estimate})
    higher = older.ratio.model_copy(update={"estimate": 3.0})

    assert find_flaw(older.model_copy(update={"ratio": narrow})) is None
    assert find_flaw(older.model_copy(update={"ratio": higher})) is not None


def test_raw_samples_are_found_again_under_their_hash(tmp_path: Path) -> None:
    name = keep_samples(tmp_path, PAIRS)

    found = find_samples(tmp_path, name)

    assert isinstance(found, RawSamples)
    assert found.column(0, "w0", CANDIDATE, name="device_ms") == [
        r.device_ms for r in PAIRS[0]["w0"][CANDIDATE]
    ]
    assert find_samples(tmp_path, "0" * 64) is None


def test_raw_samples_agree_with_the_evidence(evidence: Evidence, tmp_path: Path) -> None:
    samples = find_samples(tmp_path, keep_samples(tmp_path, PAIRS))

    assert find_flaw(evidence, samples) is None


def test_one_edited_sample_is_noticed_by_its_hash(tmp_path: Path) -> None:
    name = keep_samples(tmp_path, PAIRS)
    (path,) = tmp_path.rglob(name)
    path.write_text(path.read_text().replace("0.5,", "0.4,", 1))

    with pytest.raises(ValueError, match="was changed after"):
        find_samples(tmp_path, name)


def test_other_samples_than_the_evidences_are_noticed(evidence: Evidence, tmp_path: Path) -> None:
    slower = [replace(reading, device_ms=9.0) for reading in PAIRS[0]["w0"][CANDIDATE]]
    other = [{**PAIRS[0], "w0": {**PAIRS[0]["w0"], CANDIDATE: slower}}, *PAIRS[1:]]
    samples = find_samples(tmp_path, keep_samples(tmp_path, other))

    assert find_flaw(evidence, samples) == "w0: the medians of candidate are not its samples'"
