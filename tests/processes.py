"""What a test asks of processes that it started."""

import psutil


def is_running(pid: int) -> bool:
    """Tell whether a process runs; one that ended and waits to be read, a zombie, doesn't."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
