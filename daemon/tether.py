"""Starts a program that dies with its parent: ``python tether.py PARENT PROGRAM ARGUMENT...``.

However the daemon ends, SIGKILL included, the kernel then ends the job: no trial goes on that
nobody waits for, and the next daemon finds the goal free. This file imports nothing of ours, so
that a job starts as fast as it would without it.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Tie this process to its parent, then become the program."""
    parent, *command = arguments
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() == int(parent):  # else it died before the line above
        os.execv(command[0], command)  # noqa: S606 - a list of arguments, no shell


if __name__ == "__main__":
    main(sys.argv[1:])
