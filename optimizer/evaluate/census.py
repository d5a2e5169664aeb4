"""How many processes and threads a child has, as its parent sees it from outside."""

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Census:
    """A process with all that it started."""

    processes: int
    threads: int

    def excess(self, before: "Census") -> int:
        """Return how many threads, those of new processes included, there are more than before."""
        return max(0, self.threads - before.threads)


def take_census(pid: int) -> Census:
    """Return what runs in a process and in all that it started; nothing where it has gone."""
    processes = threads = 0
    waiting = [str(pid)]
    while waiting:
        process = waiting.pop()
        tasks = _tasks(process)
        processes += bool(tasks)
        threads += len(tasks)
        for task in tasks:
            waiting += _children(process, task)
    return Census(processes, threads)


def _tasks(pid: str) -> list[str]:
    try:
        return os.listdir(f"/proc/{pid}/task")  # noqa: PTH208 - read at each sample: texts do
    except OSError:
        return []


def _children(pid: str, task: str) -> list[str]:
    try:
        with open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:  # noqa: PTH123
            return file.read().split()
    except OSError:
        return []
