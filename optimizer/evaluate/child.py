"""The entry of a child process: builds its walls, then answers one message after the other.

Started by `optimizer.evaluate.sandbox` only:
``python -m optimizer.evaluate.child SOCKET STATUS TERMS NAME``.
"""

import importlib
import json
import socket
import sys
import traceback
from collections.abc import Callable
from typing import Any

from optimizer.evaluate import frames
from optimizer.evaluate.walls import enter
from optimizer.evaluate.walls_terms import Terms


def main(argv: list[str]) -> int:
    """Answer messages until the parent closes the socket."""
    descriptor, status, terms, name = argv
    stream = socket.socket(fileno=int(descriptor))
    stream.set_inheritable(False)
    enter(Terms.from_json(terms), status=int(status))
    # Imported at once, so that several children of a judge start side by side.
    answer = Answerer(name)
    while (message := frames.receive(stream)) is not None:
        stream.sendall(frames.encode(json.dumps(answer(message))))
    return 0


class Answerer:
    """Answers messages by a function, or by the error with which it can't be imported."""

    def __init__(self, name: str) -> None:
        self._function: Callable[[str], str] | None = None
        self._told: dict[str, str] = {}
        try:
            self._function = find_function(name)
        except Exception as error:  # noqa: BLE001 - as below
            self._told = _told(error)

    def __call__(self, message: str) -> dict[str, str]:
        """Return the function's value, or the error that it raised."""
        if self._function is None:
            return self._told
        try:
            return {"value": self._function(message)}
        except Exception as error:  # noqa: BLE001 - whatever foreign code raises is an answer
            return _told(error)


def find_function(name: str) -> Callable[[str], str]:
    """Return what ``package.module:name`` names; of a class, a new instance (it keeps state)."""
    module, _, attribute = name.partition(":")
    found: Any = getattr(importlib.import_module(module), attribute)
    made: Callable[[str], str] = found() if isinstance(found, type) else found
    return made


def _told(error: Exception) -> dict[str, str]:
    trace = "".join(traceback.format_exception(error))
    return {"error": type(error).__name__, "log": trace[-8000:]}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
