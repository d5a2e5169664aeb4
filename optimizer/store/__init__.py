"""What is being searched: goals, trials, leases, devices. What is published lies in git."""

from optimizer.store.alike import Alike, Tested
from optimizer.store.devices import Devices
from optimizer.store.goals import Goals
from optimizer.store.graph import Graph
from optimizer.store.ledger import Ledger
from optimizer.store.mail import Mail
from optimizer.store.needs import Needs
from optimizer.store.roles import Roles
from optimizer.store.rows import (
    OPEN_STATES,
    URGENT,
    Backlog,
    CommandState,
    Confirmation,
    Cost,
    Delivery,
    Effect,
    NewCommand,
    NewDevice,
    QueuedGoal,
    StoredCommand,
    StoredDevice,
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
    "Cost",
    "Delivery",
    "Effect",
    "NewCommand",
    "NewDevice",
    "QueuedGoal",
    "Store",
    "StoredCommand",
    "StoredDevice",
    "StoredEffect",
    "StoredGoal",
    "StoredSearch",
    "Tested",
    "Trial",
]


class Store(Goals, Searches, Graph, Ledger, Alike, Needs, Roles, Devices, Mail):
    """The database. Every method is one transaction; call `migrate` once after the start."""
