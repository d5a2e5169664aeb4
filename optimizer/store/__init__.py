"""What is being searched: goals, trials, leases. What is published lies in git, not here."""

from optimizer.store.goals import Goals
from optimizer.store.mail import Mail
from optimizer.store.roles import Roles
from optimizer.store.rows import (
    OPEN_STATES,
    URGENT,
    Backlog,
    CommandState,
    Confirmation,
    Delivery,
    Effect,
    NewCommand,
    QueuedGoal,
    StoredCommand,
    StoredEffect,
    StoredGoal,
    StoredSearch,
    Trial,
)
from optimizer.store.searches import Searches

__all__ = [
    "OPEN_STATES",
    "URGENT",
    "Backlog",
    "CommandState",
    "Confirmation",
    "Delivery",
    "Effect",
    "NewCommand",
    "QueuedGoal",
    "Store",
    "StoredCommand",
    "StoredEffect",
    "StoredGoal",
    "StoredSearch",
    "Trial",
]


class Store(Goals, Searches, Roles, Mail):
    """The database. Every method is one transaction; call `migrate` once after the start."""
