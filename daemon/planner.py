"""What a change of the registry makes to do: files of two revisions -> goals (pure)."""

from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Literal

from pydantic import Field, ValidationError

from operator_registry.diff import Goal, goals
from operator_registry.document import LARGEST_FILE_BYTES
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record, digest
from operator_registry.registry import Operator, Registry
from optimizer.store.rows import QueuedGoal

REGISTRY_ENTRIES = ("registry.yaml", "operators", "hardware", "models")
_DEPTHS = {"registry.yaml": 1, "operators": 3, "hardware": 2, "models": 2}
_SUFFIXES = frozenset({".yaml", ".yml", ".py"})
Pair = tuple[str, str]
"""Operator and hardware."""


class Work(Record):
    """All that a search of a goal needs: nobody reads the registry again for it."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    operator: Operator
    hardware: HardwareSpec
    minimum_gain: float
    budget_s: float
    revision: str
    """The registry's, where the goal arose."""
    shares: dict[str, float] = {}
    """By model, which share of its time the operator takes on this hardware."""


def registry_texts(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the registry's files among those of a revision, as `parse_registry` wants them."""
    found = {}
    for path, content in files.items():
        parts = PurePosixPath(path).parts
        if len(parts) == _DEPTHS.get(parts[0]) and PurePosixPath(path).suffix in _SUFFIXES:
            start = content[: LARGEST_FILE_BYTES + 1]  # enough to be told that it is too large
            found[path] = start.decode("utf-8", errors="surrogateescape")
    return found


def published_digests(files: Mapping[str, bytes]) -> dict[Pair, str]:
    """Return, by operator and hardware, for which version of the operator there is a kernel.

    Args:
        files: The ``operator.json`` files below ``kernels``, by path from there.
    """
    found = {}
    for path, content in files.items():
        parts = PurePosixPath(path).parts
        if len(parts) != 3 or parts[2] != "operator.json":  # noqa: PLR2004 - OPERATOR/HARDWARE/file
            continue
        try:
            found[parts[0], parts[1]] = Operator.from_json(content).digest
        except (ValidationError, SyntaxError, ValueError):
            continue  # a damaged folder is no kernel
    return found


def plan(
    before: Registry | None, after: Registry, *, published: Mapping[Pair, str]
) -> tuple[Goal, ...]:
    """Return the goals that a change makes.

    A registry that is seen for the first time makes a goal of everything but that for which it
    holds a kernel of the same version of the operator already.
    """
    found = goals(before, after)
    if before is not None:
        return found
    return tuple(g for g in found if published.get(pair(g)) != after.operators[g.operator].digest)


def pair(goal: Goal) -> Pair:
    """Return the goal's operator and hardware."""
    return (goal.operator, goal.hardware)


def queued(goal: Goal, registry: Registry, *, revision: str) -> QueuedGoal:
    """Return a goal as it stands in the queue; the same revision always makes the same one."""
    operator = registry.operators[goal.operator]
    hardware = registry.hardware[goal.hardware]
    work = Work(
        operator=operator,
        hardware=hardware,
        minimum_gain=registry.config.minimum_gain,
        budget_s=registry.config.budget_s,
        revision=revision,
        shares=_shares(goal, registry),
    )
    return QueuedGoal(
        key=digest(goal.operator, goal.hardware, operator.digest, hardware, revision),
        operator=goal.operator,
        hardware=goal.hardware,
        operator_digest=operator.digest,
        reasons=goal.reasons,
        share_of_time=goal.share_of_time,
        payload=work.to_json(),
    )


def _shares(goal: Goal, registry: Registry) -> dict[str, float]:
    shares: dict[str, float] = {}
    for name, model in sorted(registry.models.items()):
        uses = [use.share_of_time for use in model.uses if use.operator == goal.operator]
        if uses and goal.hardware in model.hardware:
            shares[name] = sum(uses)
    return shares
