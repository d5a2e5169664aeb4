"""What may stand behind an option: a time, a part, a number, an amount."""

import argparse
import re
from typing import Final

_BUDGET: Final = re.compile(r"^(\d+(?:\.\d+)?)(ms|s|m|h)?$")
_UNIT_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_SHARD: Final = re.compile(r"^([1-9]\d*)/([1-9]\d*)$")
_COUNT: Final = re.compile(r"^[1-9]\d{0,17}$", re.ASCII)
_AMOUNT: Final = re.compile(r"^\d{1,12}(\.\d{1,12})?$", re.ASCII)


def seconds_of(text: str) -> float:
    """Return a time in seconds.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    found = _BUDGET.match(text)
    seconds = float(found[1]) * _UNIT_S[found[2] or "s"] if found else 0.0
    if seconds <= 0:
        msg = f"{text!r} is no time; write for example 60s or 2m"
        raise argparse.ArgumentTypeError(msg)
    return seconds


def count_of(text: str) -> int:
    """Return a number of things, one at least.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not _COUNT.match(text):
        msg = f"{text!r} is no number of things; write for example 100"
        raise argparse.ArgumentTypeError(msg)
    return int(text)


def amount_of(text: str) -> float:
    """Return an amount above zero.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    if not _AMOUNT.match(text) or float(text) == 0:
        msg = f"{text!r} is no amount; write for example 1.5"
        raise argparse.ArgumentTypeError(msg)
    return float(text)


def shard_of(text: str) -> tuple[int, int]:
    """Return which part of how many.

    Raises:
        argparse.ArgumentTypeError: It is none.
    """
    found = _SHARD.match(text)
    if not found or int(found[1]) > int(found[2]):
        msg = f"{text!r} is no part; write for example 1/4"
        raise argparse.ArgumentTypeError(msg)
    return int(found[1]), int(found[2])
