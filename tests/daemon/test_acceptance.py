"""What a runner sends back is a stranger's word: a test for each way in which it may lie."""

from pathlib import Path

import pytest

from daemon.actions.acceptance import accept
from daemon.actions.parcel import ParcelError
from knowledge.evidence import Evidence, Interval
from optimizer.job import OptimizeRequest, OptimizeResult, VerifyResult
from tests.daemon.runners import result_of
from tests.daemon.test_jobs import make_request
from tests.makers import make_candidate


@pytest.fixture
def request_(tmp_path: Path) -> OptimizeRequest:
    return make_request("", tmp_path)


def forged(result: OptimizeResult, **changes: object) -> OptimizeResult:
    assert isinstance(result.evidence, Evidence)
    return result.model_copy(update={"evidence": result.evidence.model_copy(update=changes)})


def test_an_honest_result_is_taken(request_: OptimizeRequest) -> None:
    taken = accept(result_of(request_, 2.0), request_)

    assert isinstance(taken, OptimizeResult)
    assert taken.kernel_folder is not None
    assert taken.kernel_folder.is_relative_to(request_.out_folder)


def test_no_path_of_the_other_machine_is_believed(request_: OptimizeRequest) -> None:
    lie = result_of(request_, None).model_copy(update={"kernel_folder": Path("/etc")})

    taken = accept(lie, request_)

    assert isinstance(taken, OptimizeResult)
    assert taken.kernel_folder is None


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"operator_digest": "0" * 64}, "another version of the operator"),
        ({"operator": "softmax"}, "about softmax"),
        ({"hardware": "h200"}, "on h200"),
        ({"minimum_gain": 1.0}, "lower standard"),
        ({"alpha": 0.5}, "lower standard"),
        ({"ratio": Interval(low=1.0, estimate=1.01, high=1.02)}, "does not prove"),
        ({"library_only": True}, "library calls only"),
        ({"faults": ("page faults",)}, "can't be trusted"),
        ({"source_sha256": "0" * 64}, "the code is not the one"),
        ({"candidate": "0" * 64}, "plan.json is not the one"),
    ],
)
def test_evidence_that_does_not_prove_it_is_refused(
    changes: dict[str, object], why: str, request_: OptimizeRequest
) -> None:
    lie = forged(result_of(request_, 2.0), **changes)

    with pytest.raises(ParcelError, match=why):
        accept(lie, request_)

    assert not (request_.out_folder / request_.operator.name).exists()


def test_another_candidate_than_the_proven_one_is_refused(request_: OptimizeRequest) -> None:
    lie = result_of(request_, 2.0).model_copy(update={"candidate": make_candidate("other")})

    with pytest.raises(ParcelError, match="is not the one"):
        accept(lie, request_)


@pytest.mark.parametrize("missing", ["evidence", "candidate"])
def test_a_claim_without_its_proof_is_refused(missing: str, request_: OptimizeRequest) -> None:
    lie = result_of(request_, 2.0).model_copy(update={missing: None})

    with pytest.raises(ParcelError, match="without its evidence"):
        accept(lie, request_)


def test_the_result_of_another_search_is_refused(request_: OptimizeRequest) -> None:
    lie = result_of(request_, None).model_copy(update={"operator": "softmax"})

    with pytest.raises(ParcelError, match="softmax on cpu-x86-64-v3 was not asked for"):
        accept(lie, request_)


def test_the_result_of_another_task_is_refused(request_: OptimizeRequest) -> None:
    with pytest.raises(ParcelError, match="VerifyResult is no answer"):
        accept(VerifyResult(verifications=()), request_)
