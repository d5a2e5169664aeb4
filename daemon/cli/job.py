"""The command `job`: what a runner of the code host does with a request that the daemon sent it."""

import sys
from argparse import Namespace
from pathlib import Path
from tempfile import TemporaryDirectory

from daemon.actions.parcel import (
    LONGEST_INPUTS,
    Answer,
    Parcel,
    ParcelError,
    SearchParcel,
    fingerprint,
    lay_out,
    unpack,
)
from daemon.cli.arguments import MisuseError
from daemon.cli.stop import heeding_signals
from daemon.cli.terminal import Terminal
from daemon.jobs import JobError, JobRefusedError, Jobs, Progress
from daemon.logs import configure_logs, find_log
from daemon.settings import Settings, SettingsError
from optimizer.errors import OptimizerError
from optimizer.job import (
    ErrorEvent,
    OptimizeRequest,
    OptimizeResult,
    PhaseEvent,
    ResultEvent,
    VerifyRequest,
)

MISUSE = (MisuseError, SettingsError)
FAULTS = (OptimizerError, OSError)
_STOPPED = "Stopped"
log = find_log(__name__)


def run(args: Namespace, terminal: Terminal) -> int:
    """Do what a request asks and write the answer: 0 with a result, 1 with an error.

    The request is a stranger's: it names no path, no database and no setting of this machine, and
    what it holds is run as any candidate is, behind the walls.
    """
    settings = Settings.load()
    configure_logs(settings.log, sys.stderr)
    packed = _read(args.file)
    try:
        end = _do(unpack(packed), settings)
    except ParcelError as error:
        end = ErrorEvent(error=type(error).__name__, message=str(error))
    answer = Answer(request=fingerprint(packed), end=end)
    args.out.write_text(answer.to_json(), encoding="utf-8")
    if isinstance(end, ErrorEvent):
        terminal.complain(f"kernelevolve: {end.message}")
        return 1
    terminal.say(f"the answer: {args.out}")
    return 0


def _read(file: Path) -> str:
    try:
        with file.open("rb") as opened:
            return opened.read(LONGEST_INPUTS + 1).decode(errors="replace")
    except FileNotFoundError as error:
        msg = f"there is no {file}; it is the text that the daemon sent as `request`"
        raise MisuseError(msg) from error


def _do(parcel: Parcel, settings: Settings) -> ResultEvent | ErrorEvent:
    with (
        TemporaryDirectory(prefix="kernelevolve-job-") as folder,
        heeding_signals() as stop,
    ):
        request = localize(parcel, settings, Path(folder))
        try:
            result = Jobs().run(
                parcel.task, request, on_progress=_tell, keep_going=lambda: not stop.is_set()
            )
        except JobRefusedError as error:
            return ErrorEvent(error=error.error, message=error.message)
        except JobError as error:
            return ErrorEvent(error=type(error).__name__, message=str(error))
    if result is None or (isinstance(result, OptimizeResult) and result.message == "stopped"):
        return ErrorEvent(error=_STOPPED, message="stopped before there was a result")
    return ResultEvent(result=result)


def localize(parcel: Parcel, settings: Settings, folder: Path) -> OptimizeRequest | VerifyRequest:
    """Return the request with this machine's own folders, database and rules in it."""
    artefacts = settings.state / "artefacts"
    if isinstance(parcel, SearchParcel):
        known = parcel.incumbent
        return OptimizeRequest(
            operator=parcel.operator,
            hardware=parcel.hardware,
            goal_key=parcel.goal_key,
            store_url=settings.store_url,
            state_folder=artefacts,
            out_folder=folder / "kernels",
            budget_s=parcel.budget_s,
            minimum_gain=parcel.minimum_gain,
            alpha=parcel.alpha,
            incumbent_folder=lay_out(known, folder / "incumbent") if known else None,
            accept_weak_sandbox=settings.accept_weak_sandbox,
        )
    return VerifyRequest(
        kernel_folder=lay_out(parcel.kernel, folder / "kernel"),
        state_folder=artefacts,
        budget_s=parcel.budget_s,
        trusted_keys=settings.trusted or parcel.trusted_keys,
    )


def _tell(event: Progress) -> None:
    if isinstance(event, PhaseEvent):
        log.info("job phase", phase=event.phase, detail=event.detail)
    else:
        log.info("trial ended", number=event.number, outcome=event.outcome, best=event.best)
