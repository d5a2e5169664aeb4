"""The commands on published kernels: verify, sign, key."""

from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from daemon.cli.arguments import MisuseError
from daemon.cli.search import FAULTS, run_job, tell_stopped
from daemon.cli.search import MISUSE as OTHER_MISUSE
from daemon.cli.search_report import show_verification, show_verifications
from daemon.cli.terminal import Terminal
from daemon.jobs import JobError
from daemon.settings import Settings
from optimizer.job import NotReproduced, Reproduced, VerifyRequest, VerifyResult
from optimizer.kernel_page import sign_kernel
from optimizer.signing import new_key, public_key

__all__ = ["FAULTS", "MISUSE", "make_key", "show_key", "sign", "verify"]
MISUSE = (*OTHER_MISUSE,)


def verify(args: Namespace, terminal: Terminal) -> int:
    """Replay a published kernel with new seeds, or every one below a folder."""
    if args.all:
        return _verify_all(args, terminal)
    if not (args.folder / "dispatch.json").exists():
        msg = f"{args.folder} holds no dispatch.json; name a folder like kernels/OPERATOR/HARDWARE"
        raise MisuseError(msg)
    result = _replay(args.folder, args, terminal)
    if result is None:
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        show_verification(result, terminal)
    return 0 if all(isinstance(v.finding, Reproduced) for v in result.verifications) else 1


def _verify_all(args: Namespace, terminal: Terminal) -> int:
    """Replay each kernel; 1 where one does not stand. What can't be run here is told, no more."""
    folders = sorted(path.parent for path in args.folder.glob("*/*/dispatch.json"))
    if not folders:
        msg = f"{args.folder} holds no OPERATOR/HARDWARE/dispatch.json; name a folder like kernels"
        raise MisuseError(msg)
    found: dict[str, VerifyResult] = {}
    broken = False
    for folder in folders:
        name = folder.relative_to(args.folder).as_posix()
        try:
            result = _replay(folder, args, terminal)
        except JobError as error:
            terminal.complain(f"{name}: {error}")
            broken = True
            continue
        if result is None:
            return tell_stopped(terminal)
        found[name] = result
    if terminal.as_json:
        terminal.tell({name: result.model_dump(mode="json") for name, result in found.items()})
    else:
        show_verifications(found, terminal)
    return 1 if broken or _fallen(list(found.values())) else 0


def _fallen(results: Sequence[VerifyResult]) -> bool:
    """Return whether a kernel no longer stands."""
    return any(isinstance(v.finding, NotReproduced) for r in results for v in r.verifications)


def _replay(folder: Path, args: Namespace, terminal: Terminal) -> VerifyResult | None:
    """Return what came of one folder; None where the command was stopped."""
    settings = Settings.load()
    request = VerifyRequest(
        kernel_folder=folder.absolute(),
        state_folder=settings.state / "artefacts",
        record=args.record,
        trusted_keys=settings.trusted,
        **({"budget_s": args.budget} if args.budget else {}),
    )
    result = run_job("verify", request, str(folder), terminal)
    return result if isinstance(result, VerifyResult) else None


def sign(args: Namespace, terminal: Terminal) -> int:
    """Sign a kernel's folder with the key of the settings."""
    key = Settings.load().signing_key
    if key is None:
        msg = "there is no key to sign with; make one: kernelevolve key new FILE"
        raise MisuseError(msg)
    signer = sign_kernel(args.folder, key)
    terminal.say(f"{args.folder}: signed with the key {signer}")
    return 0


def make_key(args: Namespace, terminal: Terminal) -> int:
    """Make a signing key and say how it is used."""
    signer = new_key(args.file)
    file = args.file.absolute()
    terminal.say(f"public key: {signer}")
    terminal.say(f"to sign with it:    KERNELEVOLVE_SIGNING_KEY={file}")
    terminal.say(f"to ask for it:      KERNELEVOLVE_TRUSTED_KEYS={signer}")
    return 0


def show_key(args: Namespace, terminal: Terminal) -> int:
    """Show the public key of the settings' key."""
    key = Settings.load().signing_key
    if key is None:
        terminal.say("unsigned: KERNELEVOLVE_SIGNING_KEY is not set")
        return 1
    terminal.say(public_key(key))
    return 0
