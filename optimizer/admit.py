"""The task that probes operators, each in an oracle of its own, on this machine's processor."""

import secrets
from collections.abc import Callable

from optimizer.errors import RunnerError
from optimizer.evaluate.admission import admit
from optimizer.evaluate.cases import CaseMaker
from optimizer.evaluate.draws import SEED_BITS
from optimizer.evaluate.memory import SharedFolder
from optimizer.evaluate.process import Place
from optimizer.events import Tell
from optimizer.job import AdmitRequest, AdmitResult, PhaseEvent

_THREADS = 2


def admit_all(request: AdmitRequest, *, tell: Tell, stopped: Callable[[], bool]) -> AdmitResult:
    """Return what the probes found of each operator; of those probed so far when it is stopped."""
    admissions, failures = [], []
    shared = SharedFolder()
    request.state_folder.mkdir(parents=True, exist_ok=True)
    place = Place(
        device="cpu", threads=_THREADS, cache_bytes=0, folder=request.state_folder,
        shared=shared.path,
    )  # fmt: skip
    try:
        for operator in request.operators:
            if stopped():
                break
            tell(PhaseEvent(phase="check", detail=operator.name))
            maker = CaseMaker(operator, place, shared)
            try:
                seed = secrets.randbits(SEED_BITS)
                admissions.append(admit(maker, request.hardware.target, seed=seed))
            except RunnerError as error:
                failures.append(str(error).splitlines()[0])
            finally:
                maker.close()
    finally:
        shared.close()
    return AdmitResult(admissions=tuple(admissions), failures=tuple(failures))
