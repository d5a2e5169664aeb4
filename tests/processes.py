"""What a test asks of processes that it started."""

from itertools import takewhile

import psutil


def is_running(pid: int) -> bool:
    """Tell whether a process runs; one that ended and waits to be read, a zombie, doesn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def runs_module(process: psutil.Process, module: str) -> bool:
    """Tell whether a process is ``python -m MODULE`` itself, not what only starts one."""
    words = process.cmdline()
    options = list(takewhile(lambda word: word.startswith("-"), words[1:]))
    return options[-1:] == ["-m"] and words[len(options) + 1] == module
