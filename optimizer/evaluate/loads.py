"""How a worker loads what a candidate brings."""

from pathlib import Path

from optimizer.evaluate import protocol as p
from optimizer.evaluate.host_build import SOURCE
from optimizer.host_python import Run, load_run
from optimizer.targets import make_target
from optimizer.targets.target import KernelTable


def load_kernels(load: p.LoadCandidate) -> KernelTable:
    """Return a candidate's kernels, compiled or, where they can't run, interpreted."""
    if load.interpreted is not None:
        # Only here: it imports Triton, which takes a while and is of no use elsewhere.
        from optimizer.targets.interpreter import InterpreterTable  # noqa: PLC0415

        return InterpreterTable(load.interpreted)
    return make_target(load.hardware).load(Path(load.folder))


def load_host_run(load: p.LoadCandidate, code: str) -> Run:
    """Return the function of a host side in Python, its kernels interpreted where they must be."""
    if load.interpreted is not None:
        from optimizer.targets.interpreter import load_interpreted_run  # noqa: PLC0415 - as above

        return load_interpreted_run(code)
    return load_run(code, SOURCE)
