"""The command that drafts a hardware's file: ``kernelevolve hardware detect``."""

from argparse import Namespace

from daemon.cli.arguments import MisuseError
from daemon.cli.terminal import Terminal
from daemon.hardware.draft import Draft
from daemon.hardware.gpu import draft_gpu
from daemon.hardware.processor import draft_processor
from daemon.host import detect_host
from optimizer.errors import OptimizerError
from optimizer.targets.driver import open_driver

MISUSE = (MisuseError,)
FAULTS = (OptimizerError, OSError)


def detect(args: Namespace, terminal: Terminal) -> int:
    """Print or write a draft for this machine: its first GPU, else its processor."""
    gpus = detect_host().gpus
    draft = draft_processor() if args.cpu or not gpus else draft_gpu(gpus[0], open_driver())
    _write(draft, args, terminal)
    return 0


def _write(draft: Draft, args: Namespace, terminal: Terminal) -> None:
    if args.out is None:
        terminal.say(draft.to_yaml().rstrip())
        return
    if args.out.exists():
        msg = f"{args.out} is there already; name another file, or move it away"
        raise MisuseError(msg)
    args.out.write_text(draft.to_yaml(), encoding="utf-8")
    left = "look at what is derived" if draft.is_complete else "fill in what is marked FILL IN"
    terminal.say(f"{args.out}: {draft.name}; {left}, then: kernelevolve registry validate")
