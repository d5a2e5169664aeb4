"""Whose candidates may run where the walls around foreign code are not all to be had."""

from collections.abc import Callable, Sequence
from typing import Final

from optimizer.errors import WeakSandboxError
from optimizer.evaluate.guards import Guard
from optimizer.propose.directive import Director
from optimizer.propose.proposer import Proposer
from optimizer.propose.synthesis.proposer import SynthesisProposer
from optimizer.propose.tuner import Tuner

OURS: Final = (SynthesisProposer, Tuner, Director)
"""What these offer is this program's own code, whoever picks it; all others' is foreign."""


def refuse_untrusted(
    proposers: Sequence[Proposer], *, missing: Callable[[], Sequence[Guard]]
) -> None:
    """Let only this program's own proposers through where a wall is missing.

    Args:
        proposers: Who would propose.
        missing: Finds the walls that can't be had; asked only where it matters.

    Raises:
        WeakSandboxError: A proposer is foreign, and a wall is missing.
    """
    foreign = [p for p in proposers if not isinstance(p, OURS)]
    if foreign and (walls := missing()):
        raise WeakSandboxError(type(foreign[0]).__name__, walls)
