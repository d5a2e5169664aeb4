"""What people may ask for in comments, with typed arguments. Pure; the README has the table."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from daemon.talk.lines import NAMES, find_near, has_unseen, words_of
from operator_registry.fault import name_one_of
from operator_registry.record import Identifier, Record, Slug

_TIME = re.compile(r"^(\d{1,6})(s|m|h)?$", re.ASCII)
_UNIT_S = MappingProxyType({"s": 1.0, "m": 60.0, "h": 3600.0})
_MOST_ARGUMENTS = 8


def _seconds(text: object) -> object:
    if not isinstance(text, str):
        return text
    if (found := _TIME.match(text)) is None:
        msg = "no time"  # before pydantic takes 1e9 or nan for one
        raise ValueError(msg)
    return float(found[1]) * _UNIT_S[found[2] or "s"]


Budget = Annotated[float, BeforeValidator(_seconds), Field(gt=0, allow_inf_nan=False)]
"""Seconds."""
Sha = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{7,64}$")]
JobName = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{8,64}$")]
Topic = Literal["result", "peers", "proof", "search", "queue"]


class Optimize(Record):
    """Search anew."""

    kind: Literal["optimize"] = "optimize"
    op: Identifier | None = None
    """The pull request's unless given."""
    hw: Slug | None = None
    budget: Budget | None = None


class Retry(Record):
    """Run the last job that failed once more."""

    kind: Literal["retry"] = "retry"


class Benchmark(Record):
    """Measure the pull request's kernel again, at the very commit that it had when this came."""

    kind: Literal["benchmark"] = "benchmark"
    budget: Budget | None = None
    sha: Sha | None = None
    """What the head must be."""


class Verify(Record):
    """Check and measure the pull request's kernel again, with new seeds."""

    kind: Literal["verify"] = "verify"
    budget: Budget | None = None
    sha: Sha | None = None


class Stop(Record):
    """End what is queued or runs here."""

    kind: Literal["stop"] = "stop"
    job: JobName | None = None
    """How its name begins; all of them here unless given."""


class Explain(Record):
    """Tell how it came to that."""

    kind: Literal["explain"] = "explain"
    topic: Topic = "result"


class Status(Record):
    """Bring the status comment up to date."""

    kind: Literal["status"] = "status"


class Rebase(Record):
    """Put the pull request's commit on top of its base."""

    kind: Literal["rebase"] = "rebase"


class Reopen(Record):
    """Take back the no that closing the pull request was."""

    kind: Literal["reopen"] = "reopen"


class Hold(Record):
    """Leave the pull request as it is, and search nothing for it."""

    kind: Literal["hold"] = "hold"


class Unhold(Record):
    """Go on where it was held."""

    kind: Literal["unhold"] = "unhold"


class Help(Record):
    """Show the commands."""

    kind: Literal["help"] = "help"


Command = (
    Optimize | Retry | Benchmark | Verify | Stop | Explain | Status | Rebase | Reopen | Hold
    | Unhold | Help
)  # fmt: skip


@dataclass(frozen=True)
class Misunderstood:
    """A line that speaks to the program and is no command."""

    why: str
    """In words of ours and of the line: it is a stranger's text."""


_COMMANDS: Mapping[str, type[Command]] = MappingProxyType(
    {
        "optimize": Optimize, "retry": Retry, "benchmark": Benchmark, "verify": Verify,
        "stop": Stop, "explain": Explain, "status": Status, "rebase": Rebase, "reopen": Reopen,
        "hold": Hold, "unhold": Unhold, "help": Help,
    }
)  # fmt: skip
_FIRST = MappingProxyType({"stop": "job", "explain": "topic"})
"""Which argument needs no key."""
_FORMS = MappingProxyType(
    {
        "op": "an operator's name, such as rms_norm",
        "hw": "a hardware's name, such as h200",
        "budget": "a time, such as 90s, 5m or 1h",
        "sha": "the beginning of a commit's hash, seven digits at least",
        "job": "the beginning of a job's name, eight digits at least",
        "topic": "one of result, peers, proof, search, queue",
    }
)
USAGE = MappingProxyType(
    {
        "optimize": "optimize [op=OPERATOR] [hw=HARDWARE] [budget=TIME]",
        "retry": "retry",
        "benchmark": "benchmark [budget=TIME] [sha=COMMIT]",
        "verify": "verify [budget=TIME] [sha=COMMIT]",
        "stop": "stop [JOB]",
        "explain": "explain [TOPIC]",
        "status": "status",
        "rebase": "rebase",
        "reopen": "reopen",
        "hold": "hold",
        "unhold": "unhold",
        "help": "help",
    }
)
"""How each is written, without the slash: with one, our own texts would be commands."""


def about(name: str) -> str:
    """Return what a command does, in a sentence."""
    return (_COMMANDS[name].__doc__ or "").strip()


def parse(text: str) -> Command | Misunderstood:
    """Return what a line of `find_lines` asks for."""
    if has_unseen(text):
        return Misunderstood("the line holds characters that nobody sees; type it by hand")
    words = words_of(text)
    if not words:
        return Misunderstood("it names no command; try help")
    name, *arguments = words
    kind = _COMMANDS.get(name)
    if kind is None:
        meant = find_near(name)
        remedy = f"did you mean {meant}?" if meant else f"there are {', '.join(NAMES)}"
        return Misunderstood(f"there is no command {name}; {remedy}")
    given = _split(name, tuple(kind.model_fields)[1:], arguments)
    if isinstance(given, Misunderstood):
        return given
    try:
        # Values are texts; what they stand for is the fields' affair.
        return kind.model_validate(given)
    except ValidationError as error:
        return Misunderstood("; ".join(_explain(error, given)))


def _split(
    name: str, keys: tuple[str, ...], arguments: list[str]
) -> dict[str, Any] | Misunderstood:
    given: dict[str, Any] = {}
    if len(arguments) > _MOST_ARGUMENTS:
        return Misunderstood(f"{name} takes no text beside its arguments: {USAGE[name]}")
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            key, value = _FIRST.get(name, ""), argument
            if not key or key in given:
                return Misunderstood(f"{argument} is no argument of it: {USAGE[name]}")
        key = key.lower()
        if key not in keys:
            return Misunderstood(f"{name} has no {key}; {name_one_of(key, keys)}")
        if key in given:
            return Misunderstood(f"{key} is given twice")
        given[key] = value
    return given


def _explain(error: ValidationError, given: Mapping[str, object]) -> Iterator[str]:
    for fault in error.errors():
        key = str(fault["loc"][0])
        yield f"{key}={given[key]} can't be: it is {_FORMS[key]}"
