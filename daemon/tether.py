"""Runs a job so that nothing of it outlives it: ``tether.py PARENT CORES PROGRAM ARGUMENT...``.

However the daemon ends, SIGKILL included, the kernel then ends the job: no trial goes on that
nobody waits for, and the next daemon finds the goal free. However the job ends, what it started
and left behind is killed, in whatever session it is: orphans of a job become children of this
process, a subreaper (prctl(2)). This file imports nothing of ours, so that a job starts as fast as
it would without it.
"""

import ctypes
import os
import signal
import sys
from pathlib import Path

_PR_SET_PDEATHSIG, _PR_SET_CHILD_SUBREAPER = 1, 36


def main(arguments: list[str]) -> None:
    """Tie this process to its parent and the program to this process; end as the program ends.

    The program is given some cores, as ``0,1``; an empty word gives it all that we have.
    """
    parent, cores, *command = arguments
    if cores:
        os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    prctl = ctypes.CDLL(None).prctl
    me = os.getpid()
    prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    prctl(_PR_SET_CHILD_SUBREAPER, 1)
    if os.getppid() != int(parent):  # it died before the line above
        return
    job = os.fork()
    if not job:
        prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() == me:
            os.execv(command[0], command)  # noqa: S606 - a list of arguments, no shell
        os._exit(1)
    signal.signal(signal.SIGTERM, lambda *_: os.kill(job, signal.SIGTERM))
    status = _wait_for(job)
    _kill_all_below(me)
    if os.WIFSIGNALED(status):
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(me, os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


def _wait_for(job: int) -> int:
    while True:
        pid, status = os.wait()
        if pid == job:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is gone, and its number is free
            return status


def _kill_all_below(me: int) -> None:
    while True:  # what a killed one leaves comes here in its turn
        for pid in _children(me):
            os.kill(pid, signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def _children(me: int) -> list[int]:
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:  # it ended while we looked
            continue
        if int(fields[1]) == me:
            found.append(int(folder.name))
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
