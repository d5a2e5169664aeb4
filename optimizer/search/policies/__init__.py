"""Which node to grow next."""

from collections.abc import Callable, Mapping
from typing import Final

from optimizer.search.policies.evolutionary import Evolutionary
from optimizer.search.policies.greedy import Greedy
from optimizer.search.policies.mcts import Mcts
from optimizer.search.policies.uniform import Uniform
from optimizer.search.policy import Policy

POLICIES: Final[Mapping[str, Callable[[int], Policy]]] = {
    "greedy": Greedy,
    "mcts": Mcts,
    "evolutionary": Evolutionary,
    "random": Uniform,
}
"""All policies by name; each is made from its seed."""
