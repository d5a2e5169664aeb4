"""Device code and a launch plan that might be better."""

import ast
import re
from typing import Final, Literal, Self

from pydantic import Field, model_validator

from operator_registry.record import Record, digest
from optimizer.plan import Plan

RUN: Final = "run"
"""The name of the function that is the host side of code in ``host: python``."""
Tunable = int
Choice = dict[str, Tunable]
_LARGEST: Final = 2**63 - 1
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_CPP_TUNABLES = re.compile(r"^//\s*TUNABLES\s*=\s*(\{.*\})\s*$", re.MULTILINE)


class CandidateError(ValueError):
    """The code's TUNABLES can't be read, or a choice is not among them."""


class Candidate(Record):
    """A candidate: code, plan and one choice for each tunable.

    Code states its tunables as a literal that is parsed, never run: in Triton a module-level
    ``TUNABLES = {"BLOCK": (1024, 2048)}``, in C++ a line ``// TUNABLES = {"BLOCK": (4, 8)}``.

    Its host side is the plan, or the code's own Python function `run` (`host_python`): then the
    plan is in ``python`` and declares what is launched.
    """

    schema_version: Literal[1] = Field(default=1, alias="schema")
    code: str = ""
    """Empty in a ``plan.json``, whose code stands in the file beside it."""
    plan: Plan
    chosen: Choice = {}
    parent: str | None = None
    """The id of the candidate that this one was made from."""
    mate: str | None = None
    """The id of the second candidate, where this one crosses two."""
    origin: str
    """Who proposed it: ``synthesis``, ``tuner``, ``person`` or a model's name."""
    note: str = ""
    """One line: what was done and why."""
    host: Literal["plan", "python"] = Field(default="plan")

    @model_validator(mode="after")
    def _has_one_host_side(self) -> Self:
        if (self.host == "python") != (self.plan.language == "python"):
            msg = f"host: {self.host} has a plan in {self.plan.language}"
            raise ValueError(msg)
        return self

    @property
    def id(self) -> str:
        """Return the hash of code, plan and chosen tunables."""
        chosen = ",".join(f"{k}={v}" for k, v in sorted(self.chosen.items()))
        return digest(self.code, self.plan, chosen)


def load_tunables(code: str, *, language: str) -> dict[str, tuple[Tunable, ...]]:
    """Return the tunables that the code states, each with its admitted values.

    Raises:
        CandidateError: TUNABLES is there but is no literal dict of names to tuples of integers.
    """
    try:
        literal = _cpp_literal(code) if language == "cpp" else _python_literal(code)
        if literal is None:
            return {}
        value = ast.literal_eval(literal)
        return {_name(k): tuple(_tunable(v) for v in vs) for k, vs in value.items()}
    except (
        ValueError, SyntaxError, TypeError, AttributeError, RecursionError, MemoryError,
    ) as error:  # fmt: skip
        msg = f"TUNABLES is no literal dict of names to tuples of integers: {error}"
        raise CandidateError(msg) from error


def _name(key: object) -> str:
    if not isinstance(key, str) or not _NAME.fullmatch(key):
        msg = f"{str(key)[:80]!r} is no name"
        raise ValueError(msg)
    return key


def _tunable(value: object) -> Tunable:
    if type(value) is not int or abs(value) > _LARGEST:
        msg = "a value is no integer of 64 bits"
        raise TypeError(msg)
    return value


def _cpp_literal(code: str) -> str | None:
    found = _CPP_TUNABLES.search(code)
    return found.group(1) if found else None


def _python_literal(code: str) -> str | None:
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError):
        return None
    for node in tree.body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == "TUNABLES"
        ):
            return ast.unparse(node.value)
    return None
