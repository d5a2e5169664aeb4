"""Where a wall around foreign code is missing, only this program's own proposers propose."""

from collections.abc import Sequence

import pytest

from optimizer.errors import WeakSandboxError
from optimizer.evaluate.guards import Guard
from optimizer.propose.proposer import ScriptedProposer
from optimizer.propose.trust import refuse_untrusted
from optimizer.propose.tuner import Tuner


def no_network() -> Sequence[Guard]:
    return (Guard.NETWORK,)


def test_a_foreign_proposer_is_refused_and_told_why() -> None:
    with pytest.raises(WeakSandboxError, match=r"network.*KERNELEVOLVE_ACCEPT_WEAK_SANDBOX"):
        refuse_untrusted([Tuner(), ScriptedProposer(())], missing=no_network)


def test_our_own_proposers_need_no_wall() -> None:
    refuse_untrusted([Tuner()], missing=no_network)


def test_where_no_wall_is_missing_everybody_may_propose() -> None:
    refuse_untrusted([ScriptedProposer(())], missing=tuple)
