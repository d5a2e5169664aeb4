"""A kind of cheat: hostile text, its honest twin, and which guards stand against it.

A kind is a file ``corpus/TARGET/FORM/NAME.toml``; TARGET is ``cpu``, ``cuda`` or ``any``.
"""

import difflib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

from pydantic import ValidationError

from operator_registry.record import Record
from optimizer.candidate import Candidate
from optimizer.evaluate.guards import Guard
from optimizer.plan import Plan
from optimizer.redteam.operators import OPERATORS, declared_plan, default_plan
from optimizer.redteam.rows import ROWS

Target = Literal["cpu", "cuda"]
Form = Literal["plan", "python"]
TARGETS: Final[tuple[Target, ...]] = ("cpu", "cuda")
FORMS: Final[tuple[Form, ...]] = ("plan", "python")
CORPUS: Final = Path(__file__).parent / "corpus"
MOST_LINES: Final = 10
"""How many lines a cheat and its honest twin may differ by."""
_LANGUAGES: Final[Mapping[Target, Literal["cpp", "triton"]]] = {"cpu": "cpp", "cuda": "triton"}


class CorpusError(ValueError):
    """A file of the corpus is no kind."""

    def __init__(self, file: Path, reason: str) -> None:
        super().__init__(f"{file}: {reason}")


class Text(Record):
    """What a candidate is made of."""

    code: str
    plan: Plan | None = None
    """The operator's own plan where there is none."""


class Kind(Record):
    """A cheat beside its honest twin."""

    name: str
    target: Target
    form: Form
    summary: str
    """What the cheat does, in a line."""
    rows: tuple[str, ...]
    """Of the catalogue of exploits; none for an escape that is in no row."""
    guard: Guard
    """The guard that stops it."""
    beside: tuple[Guard, ...] = ()
    """Further guards that stop it as well: taken down with it, to show that it works."""
    operator: str = "scale"
    by: Literal["evaluate", "confirm"] = "evaluate"
    """Which of the judge's two verbs must see through it."""
    pays: Literal["output", "time"] = "output"
    """What is not earned: that an output passes, or that a time is short."""
    share: float = 0.5
    """Of its twin's time: what the judge must believe at most, for a cheat with time to pay."""
    cheat: Text
    twin: Text

    @property
    def id(self) -> str:
        """Return the name with what it was made for."""
        return f"{self.target}/{self.form}/{self.name}"

    @property
    def down(self) -> frozenset[Guard]:
        """Return the guards without which the cheat works."""
        return frozenset({self.guard, *self.beside})

    @property
    def differing_lines(self) -> int:
        """Return how many lines of the cheat are not in its twin, or the other way if more."""
        mine, honest = self._lines(self.cheat), self._lines(self.twin)
        found = list(difflib.ndiff(honest, mine))
        return max(sum(line.startswith(sign) for line in found) for sign in "+-")

    def candidate(self, text: Text, *, bait: Mapping[str, str]) -> Candidate:
        """Return a candidate that the judge can be given.

        Args:
            text: The cheat, or the twin.
            bait: What stands for each ``@NAME@`` in it.
        """
        code = text.code
        for name, value in bait.items():
            code = code.replace(f"@{name}@", value)
        return Candidate(
            code=code,
            plan=self._plan(text),
            origin="redteam",
            note=self.id,
            host=self.form,
        )

    def _plan(self, text: Text) -> Plan:
        if text.plan is not None:
            return text.plan
        if self.form == "python":
            return declared_plan(self.operator, self.target)
        return default_plan(self.operator, _LANGUAGES[self.target])

    def _lines(self, text: Text) -> list[str]:
        plan = self._plan(text)
        parts = (*plan.let.items(), *plan.buffers.items(), *plan.steps)
        return [*text.code.splitlines(), *map(str, parts)]


def load_corpus(target: Target, folder: Path = CORPUS) -> tuple[Kind, ...]:
    """Return all kinds for a target, by form and name.

    Raises:
        CorpusError: A file is no kind.
    """
    return tuple(
        kind
        for form in FORMS
        for name in sorted(_files(target, form, folder))
        for kind in [_load(_files(target, form, folder)[name], target, form)]
    )


def by_guard(kinds: Sequence[Kind]) -> dict[Guard, list[Kind]]:
    """Return for each guard the kinds that it must stop."""
    return {guard: [kind for kind in kinds if kind.guard is guard] for guard in Guard}


def _files(target: Target, form: Form, folder: Path) -> dict[str, Path]:
    return {
        file.stem: file
        for place in ("any", target)
        for file in (folder / place / form).glob("*.toml")
    }


def _load(file: Path, target: Target, form: Form) -> Kind:
    try:
        fields = tomllib.loads(file.read_text(encoding="utf-8"))
        kind = Kind.model_validate({**fields, "name": file.stem, "target": target, "form": form})
    except (ValidationError, tomllib.TOMLDecodeError) as error:
        raise CorpusError(file, str(error)) from error
    for fault in _faults(kind):
        raise CorpusError(file, fault)
    return kind


def _faults(kind: Kind) -> Iterator[str]:
    if unknown := sorted(set(kind.rows) - ROWS.keys()):
        yield f"rows that the catalogue lacks: {', '.join(unknown)}"
    if kind.operator not in OPERATORS:
        yield f"no operator {kind.operator}; there are {', '.join(OPERATORS)}"
    elif kind.differing_lines > MOST_LINES:
        yield f"differs from its twin by {kind.differing_lines} lines; {MOST_LINES} are allowed"
    if kind.guard in kind.beside:
        yield f"{kind.guard} stands beside itself"
