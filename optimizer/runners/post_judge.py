"""The judge that a device's host keeps for others: the local one, in folders of its own."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from pydantic import TypeAdapter

from optimizer.errors import RunnerError
from optimizer.evaluate.evaluator import JUDGE_VERSION, Effort
from optimizer.runners.local import LocalRunner
from optimizer.runners.post import JudgeRequest
from optimizer.store.artefacts import Artefacts

_EFFORT = TypeAdapter(Effort)
FOLDER = Path("~/.cache/kernelevolve/judge")
"""Of the user that the host's workers run as; may be deleted while none does."""


class HostJudge(LocalRunner):
    """The judge itself, with what it keeps at hand for who asks by hash."""

    def __init__(self, request: JudgeRequest, folder: Path) -> None:
        """Look at the machine.

        Raises:
            RunnerError: Nothing of this hardware can be run or checked here.
        """
        super().__init__(
            request.operator,
            request.hardware,
            folder=folder,
            minimum_gain=request.minimum_gain,
            effort=_EFFORT.validate_python(request.effort),
        )
        self._folder = folder

    def find_samples(self, name: str) -> bytes | None:
        """Return the raw samples of a confirming run; None where they are not here."""
        return Artefacts(self._folder).find(name)


@contextmanager
def open_judge(request: JudgeRequest) -> Iterator[HostJudge]:
    """Be the judge of this host.

    Raises:
        RunnerError: Nothing of this hardware can be run here, or this is another judge.
    """
    if request.judge_version != JUDGE_VERSION:
        msg = (
            f"this host has judge {JUDGE_VERSION}, and {request.judge_version} was asked for; "
            "install the same version of kernelevolve on all hosts"
        )
        raise RunnerError(msg)
    # Who carries our words may have told OpenMP to use one core; results hold for all that we have.
    torch.set_num_threads(len(os.sched_getaffinity(0)))
    with HostJudge(request, FOLDER.expanduser()) as judge:
        yield judge
