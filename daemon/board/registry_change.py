"""What a proposed change of a registry would start and cost: two revisions -> words (pure)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from daemon.agenda import in_order
from daemon.config.file import BotConfig, changes
from daemon.forge import Conclusion
from daemon.markdown import bullets, code, plain, table
from operator_registry.diff import Goal, goals
from operator_registry.fault import Fault
from operator_registry.registry import Registry

_MOST_ROWS = 100
_LONGEST_TEXT_BYTES = 60_000


@dataclass(frozen=True)
class Side:
    """One revision: what its files hold, and what is wrong with them."""

    registry: Registry | None
    config: BotConfig | None
    """As it is in force, below the host's ceilings; None where it is broken."""
    faults: tuple[Fault, ...] = ()


@dataclass(frozen=True)
class Judged:
    """What is shown beside the commit."""

    conclusion: Conclusion
    title: str
    summary: str
    text: str = ""


def judge_change(before: Side, after: Side) -> Judged:
    """Return whether a change may be merged, and what it would start and cost."""
    if after.faults or after.registry is None or after.config is None:
        return _refuse(after.faults)
    config = after.config
    found = goals(before.registry, after.registry)
    budget_s = after.registry.config.budget_s
    ordered = in_order(found, kernels=(), budget_s=budget_s)
    started = [goal for goal in ordered if config.selects(goal.hardware)]
    passed_over = len(ordered) - len(started)
    return Judged(
        conclusion="success",
        title=_count(len(started), "search"),
        summary="\n\n".join(_summary(started, passed_over, budget_s, before, after)),
        text=_goals(started),
    )


def _refuse(faults: Sequence[Fault]) -> Judged:
    listed = sorted(faults, key=lambda fault: (fault.path, fault.line))
    return Judged(
        conclusion="failure",
        title=_count(len(listed), "fault"),
        summary="It can't be read like this, and would leave what holds now in force: merged, it "
        "starts nothing.",
        text=_fit(
            f"{code(f'{fault.path}:{fault.line}')} {plain(_words(fault))}" for fault in listed
        ),
    )


def _summary(
    started: Sequence[Goal], passed_over: int, budget_s: float, before: Side, after: Side
) -> Iterator[str]:
    config = after.config or BotConfig()
    if started:
        hours, daily = len(started) * budget_s / 3600, config.limits.device_hours_per_day
        days = f"; at {daily:.3g} a day, {hours / daily:.3g} days" if 0 < daily < hours else ""
        yield (
            f"Merged, it starts {_count(len(started), 'search')} of {budget_s / 60:.3g} minutes "
            f"at the most: {hours:.3g} device hours{days}."
        )
    else:
        yield "Merged, it starts no search: nothing changes that a kernel depends on."
    if passed_over:
        yield f"{_count(passed_over, 'goal')} would wait: the configuration selects other hardware."
    if before.config is not None and (differs := changes(before.config, config)):
        rows = ((code(key), code(was), code(now)) for key, was, now in differs)
        yield "The configuration in force would change:"
        yield table(("key", "was", "would be"), rows)
    listed = after.registry.config.hardware if after.registry else ()
    if not any(map(config.selects, listed)):
        yield "The configuration selects none of the registry's hardware: nothing is searched."
    if config.pause:
        yield "Everything would be paused."


def _goals(started: Sequence[Goal]) -> str:
    if not started:
        return ""
    rows = [
        (
            code(goal.operator),
            code(goal.hardware),
            f"{100 * goal.share_of_time:.3g} %" if goal.share_of_time else "",
            plain("; ".join(goal.reasons)),
        )
        for goal in started[:_MOST_ROWS]
    ]
    left = len(started) - len(rows)
    more = f"\n\n{left} more." if left else ""
    return table(("operator", "hardware", "share of a model's time", "why"), rows) + more


def _fit(items: Iterator[str]) -> str:
    """Return a list that a check can hold."""
    listed: list[str] = []
    room = _LONGEST_TEXT_BYTES
    for item in items:
        room -= len(item.encode()) + 3
        if room < 0 or len(listed) == _MOST_ROWS:
            return bullets([*listed, "and more"])
        listed.append(item)
    return bullets(listed)


def _words(fault: Fault) -> str:
    return f"{fault.message}; {fault.remedy}"


def _count(number: int, what: str) -> str:
    plural = f"{what}es" if what.endswith("ch") else f"{what}s"
    return f"{number or 'no'} {what if number == 1 else plural}"
