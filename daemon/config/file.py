"""``.github/kernelevolve.yml``: what a registry's owners want of the bot. Text -> record (pure)."""

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Any, Literal
from zoneinfo import available_timezones

from pydantic import ConfigDict, Field

from daemon.config.windows import WindowError, is_open, parse_cron
from operator_registry.document import Node
from operator_registry.fault import Finding, name_one_of
from operator_registry.reading import AnyRecord, Reading, read_record
from operator_registry.record import Record

CONFIG_PATH = ".github/kernelevolve.yml"
Asker = Literal["read", "triage", "write", "maintain", "admin"]
"""The least that a person must be allowed to do in the repository, to be heard."""
Writer = Literal["write", "maintain", "admin"]
_LEVELS: tuple[Asker, ...] = ("read", "triage", "write", "maintain", "admin")
_LOGIN = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})"
_TEXTS = (
    (
        "hardware",
        re.compile(r"^[a-z0-9*?._-]{1,64}\Z"),
        "a hardware's name; * and ? stand for what may differ",
    ),
    ("labels", re.compile(r"^[^\s,@<>`][^,@<>`\x00-\x1f]{0,49}\Z"), "50 characters, no comma"),
    (
        "reviewers",
        re.compile(rf"^{_LOGIN}(/[a-z0-9][a-z0-9_.-]{{0,99}})?\Z"),
        "a login, or a team as org/team, without @",
    ),
)
"""Lists of texts, what each text must be, and that in words."""


class Window(Record):
    """When searches may start: each minute that a cron expression names."""

    cron: str
    """Five fields; ``* 20-5 * * mon-fri`` is every weekday's night."""
    timezone: str = "UTC"
    """A name of the IANA database, such as ``Europe/Berlin``."""


class Limits(Record):
    """How much the bot may do."""

    open_pull_requests: int = Field(default=10, ge=0)
    """At any time."""
    pull_requests_per_hour: int = Field(default=4, ge=0)
    commits_per_hour: int = Field(default=12, ge=0)
    """Pushes to branches of the bot's."""
    device_hours_per_day: float = Field(default=24.0, ge=0)
    """Of searches and re-verifications, by the calendar of UTC."""
    search_minutes: float = Field(default=60.0, ge=0)
    """The longest search that a person may ask for without `maintain`."""
    commands_per_hour: int = Field(default=20, ge=0)
    """Of one person; `/stop` is not counted."""


class Thresholds(Record):
    """Which proven kernels are worth a pull request."""

    minimum_gain: float = Field(default=1.0, ge=1)
    """The proven ratio that is asked for; ``registry.yaml`` asks for one as well."""
    largest_regression: float = Field(default=0.02, ge=0, le=0.02)
    """By which share one public workload may be slower at the worst; more the judge never takes."""


class Permissions(Record):
    """What a person must be allowed to do in the repository, command by command.

    What costs device time or changes a pull request can't be had for less than `write`.
    """

    help: Asker = "read"
    status: Asker = "read"
    explain: Asker = "read"
    optimize: Writer = "write"
    retry: Writer = "write"
    benchmark: Writer = "write"
    verify: Writer = "write"
    stop: Writer = "write"
    rebase: Writer = "write"
    reopen: Writer = "write"
    hold: Writer = "write"
    unhold: Writer = "write"


class BotConfig(Record):
    """A registry's configuration, with the defaults of what it leaves out."""

    model_config = ConfigDict(json_schema_extra={"required": ["version"]})

    version: Literal[1] = 1
    pause: bool = False
    """True: nothing is searched, and nothing written but answers to `/stop` and `/status`."""
    dry_run: bool = False
    """True: kernels are searched for and proven, but neither branch nor pull request is made."""
    hardware: tuple[str, ...] = ("*",)
    """Which of the hardware in ``registry.yaml`` is worked on: names, with ``*`` and ``?``."""
    windows: tuple[Window, ...] = ()
    """When searches may start; always, where there is none."""
    limits: Limits = Limits()
    thresholds: Thresholds = Thresholds()
    labels: tuple[str, ...] = ()
    """On each pull request, beside the bot's own."""
    reviewers: tuple[str, ...] = ()
    """People and ``org/team``s, beside an operator's owners."""
    permissions: Permissions = Permissions()

    def selects(self, hardware: str) -> bool:
        """Return whether a hardware is worked on."""
        return any(fnmatchcase(hardware, pattern) for pattern in self.hardware)

    def is_open(self, now: float) -> bool:
        """Return whether searches may start at a time, in seconds since 1970."""
        return is_open(((window.cron, window.timezone) for window in self.windows), now)


class Ceilings(Record):
    """What the bot's own host sets: a configuration can't go beyond it."""

    version: Literal[1] = 1
    dry_run: bool = False
    limits: Limits = Limits()
    """Only the keys that are given limit anything."""
    permissions: Permissions = Permissions()


Configured = Callable[[], BotConfig]
"""The configuration in force, asked anew each time."""


@lru_cache(maxsize=32)
def read_config(text: str, path: str = CONFIG_PATH) -> Reading[BotConfig]:
    """Return the configuration that a file holds, and every fault in it."""
    reading = _read(BotConfig, text, path)
    return reading.with_findings(() if reading.record is None else _check(reading.record))


def read_ceilings(text: str, path: str) -> Reading[Ceilings]:
    """Return the ceilings that a file holds, and every fault in it."""
    return _read(Ceilings, text, path)


def cap(config: BotConfig, ceilings: Ceilings) -> BotConfig:
    """Return the configuration with nothing in it beyond the ceilings."""
    ours, theirs = ceilings.limits, config.limits
    limits = {key: min(getattr(ours, key), getattr(theirs, key)) for key in ours.model_fields_set}
    permissions = {
        name: max(
            getattr(config.permissions, name),
            getattr(ceilings.permissions, name),
            key=_LEVELS.index,
        )
        for name in Permissions.model_fields
    }
    return config.model_copy(
        update={
            "dry_run": config.dry_run or ceilings.dry_run,
            "limits": theirs.model_copy(update=limits),
            "permissions": Permissions(**permissions),
        }
    )


def describe(config: BotConfig) -> dict[str, str]:
    """Return each key that is no mapping, by its place in the file, with its value in words."""
    return dict(_leaves(config.model_dump(mode="json"), ""))


def changes(was: BotConfig, now: BotConfig) -> tuple[tuple[str, str, str], ...]:
    """Return what differs: the key, what it was and what it is, in words."""
    before, after = describe(was), describe(now)
    return tuple((key, before[key], after[key]) for key in after if before[key] != after[key])


def day_of(now: float) -> str:
    """Return the day of a time in UTC, by which device hours are counted."""
    return f"{datetime.fromtimestamp(now, UTC):%Y-%m-%d}"


def _leaves(value: Any, where: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - of any record
    if isinstance(value, dict):
        for key, member in value.items():
            yield from _leaves(member, f"{where}.{key}" if where else str(key))
    else:
        yield where, _words(value)


def _words(value: object) -> str:
    match value:
        case []:
            return "none"
        case list():
            return ", ".join(_words(member) for member in value)
        case {"cron": cron, "timezone": zone}:
            return f"{cron} ({zone})"
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _read(kind: type[AnyRecord], text: str, path: str) -> Reading[AnyRecord]:
    reading = read_record(kind, path, text)
    return reading.with_findings(() if reading.root is None else _unversioned(reading.root))


def _unversioned(root: Node) -> Iterator[Finding]:
    if root.child("version") is None:
        yield Finding((), "version is missing", "add `version: 1`")


def _check(config: BotConfig) -> Iterator[Finding]:
    """Yield what a class can't tell."""
    for number, window in enumerate(config.windows):
        try:
            parse_cron(window.cron)
        except WindowError as error:
            what = "write for example `* 20-5 * * mon-fri`"
            yield Finding(("windows", number, "cron"), f"windows[{number}].cron: {error}", what)
        zones = available_timezones()
        if window.timezone not in zones:
            message = f"windows[{number}].timezone: there is no zone {window.timezone!r}"
            remedy = name_one_of(window.timezone, zones)
            yield Finding(("windows", number, "timezone"), message, remedy)
    for key, pattern, words in _TEXTS:
        for number, text in enumerate(getattr(config, key)):
            if not pattern.match(text):
                yield Finding((key, number), f"{key}[{number}] is {text!r}", f"use {words}")
