"""Why a child process gave no answer.

ChildError                the child did not answer
├── ChildTimedOutError    it was still busy at the deadline, and was killed
├── ChildDiedError        it exited, or a signal ended it
└── ChildRaisedError      the function raised; the child is well
"""

import contextlib
import signal

from optimizer.errors import OptimizerError


class ChildError(OptimizerError):
    """The child did not answer."""


class ChildTimedOutError(ChildError):
    """The child was still busy at its deadline and was killed."""

    def __init__(self, deadline_s: float) -> None:
        super().__init__(f"no answer within {deadline_s:g} s")
        self.deadline_s = deadline_s


class ChildDiedError(ChildError):
    """The child exited or was ended by a signal."""

    def __init__(self, exit_code: int, stderr: str, *, excess: bool = False) -> None:
        self.exit_code = exit_code
        """Negative for the number of a signal, as `subprocess` has it."""
        self.excess = excess
        """Whether its watch ended it, because it took too much."""
        self.stderr = stderr
        super().__init__(f"{self.how}\n{stderr}".strip())

    @property
    def was_killed(self) -> bool:
        """Return whether it was ended by a signal that nobody can heed: from outside, as a rule."""
        return self.exit_code == -signal.SIGKILL and not self.excess

    @property
    def how(self) -> str:
        """Return how it ended, in words."""
        if self.exit_code < 0:
            with contextlib.suppress(ValueError):
                return f"ended by {signal.Signals(-self.exit_code).name}"
        return f"exited with code {self.exit_code}"


class ChildRaisedError(ChildError):
    """The function raised an exception; the child lives on and can be asked again."""

    def __init__(self, name: str, log: str) -> None:
        super().__init__(log)
        self.name = name
        """The exception's class."""
        self.log = log
