"""What is being searched: goals, trials, leases. What is published lies in git, not here."""

from optimizer.store.goals import Goals
from optimizer.store.roles import Roles
from optimizer.store.rows import Confirmation, QueuedGoal, StoredGoal, Trial
from optimizer.store.searches import Searches

__all__ = ["Confirmation", "QueuedGoal", "Store", "StoredGoal", "Trial"]


class Store(Goals, Searches, Roles):
    """The database. Every method is one transaction; call `migrate` once after the start."""
