"""Published kernels that are not what their evidence says, replayed by the real judge."""

from pathlib import Path

import pytest

from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate
from optimizer.job import NotReproduced, VerifyRequest
from optimizer.kernel import make_kernel
from optimizer.kernel_page import write_kernel
from optimizer.tasks import run_verify
from tests.makers import OPERATOR, make_evidence
from tests.optimizer.evaluate.bad import LOOP, RIGHT, make

pytestmark = [pytest.mark.drill, pytest.mark.alone]
WRONG_AT_ONE = make(LOOP + RIGHT + " if (rows > 613) y[613] += static_cast<T>(1);")


def publish(folder: Path, candidate: Candidate, host: HardwareSpec) -> Path:
    """Publish a candidate with made-up evidence, all of whose hashes and sums fit."""
    evidence = make_evidence(candidate, 2.0, 2.0).model_copy(update={"hardware": host.name})
    write_kernel(folder, make_kernel(OPERATOR, host, candidate=candidate, evidence=evidence))
    return folder


def test_a_kernel_that_is_wrong_at_one_index_is_not_reproduced(
    host: HardwareSpec, tmp_path: Path, state: Path
) -> None:
    folder = publish(tmp_path / "kernel", WRONG_AT_ONE, host)
    request = VerifyRequest(kernel_folder=folder, state_folder=state)

    (found,) = run_verify(request, lambda event: None, lambda: False).verifications

    assert isinstance(found.finding, NotReproduced), found.finding
    assert found.finding.reason.startswith("incorrect: ")
    assert found.signature == "unsigned"
