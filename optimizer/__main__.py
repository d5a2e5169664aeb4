"""One job: ``python -m optimizer TASK < request.json`` writes its events as JSON lines.

The last line is a `ResultEvent` or an `ErrorEvent`; a job that was stopped before it had a result
ends without one. Exit codes: 0 a result, 1 a machine's error, 2 misuse.
"""

import os
import sys
from typing import IO

from pydantic import ValidationError

from optimizer.errors import OptimizerError
from optimizer.events import tell_lines
from optimizer.job import ErrorEvent, ResultEvent
from optimizer.stop import Stop, StoppedError
from optimizer.tasks import TASKS

STOPPED = 3
"""Exit code of a job that was stopped before it had a result."""


def main(arguments: list[str]) -> int:
    """Run one job; return its exit code."""
    if len(arguments) != 1 or arguments[0] not in TASKS:
        sys.stderr.write(f"usage: python -m optimizer {'|'.join(TASKS)} < request.json\n")
        return 2
    task = TASKS[arguments[0]]
    tell = tell_lines(_own_output())
    try:
        request = task.request.from_json(sys.stdin.read())
    except ValidationError as error:
        tell(ErrorEvent(error="ValidationError", message=str(error)))
        return 2
    try:
        with Stop() as stopped:
            tell(ResultEvent(result=task.run(request, tell, stopped)))
    except StoppedError:
        return STOPPED
    except (OptimizerError, OSError) as error:
        tell(ErrorEvent(error=type(error).__name__, message=str(error)))
        return 1
    return 0


def _own_output() -> IO[str]:
    """Return the standard output for events alone: what else writes there goes to the errors."""
    events = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return events


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
