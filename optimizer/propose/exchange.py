"""What was asked and what was said, kept so that a search can be looked at and told again.

A folder holds ``exchanges.jsonl``, a line an exchange, and ``texts/HASH``: a text lies there once,
however often it was said, and a line names it by its SHA-256. ``begun.jsonl`` has a line for each
exchange from before it began, so that one which a crash cut off is counted too.
"""

import hashlib
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar

from pydantic import Field, StringConstraints, ValidationError

from operator_registry.record import Record
from optimizer.propose.model import Answered, Message, Question, Said, Unanswered, Usage
from optimizer.spending import Spending

LINES: Final = "exchanges.jsonl"
BEGUN: Final = "begun.jsonl"
TEXTS: Final = "texts"
Hash = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class Line(Record):
    """An exchange as it lies in the file: its texts by their hashes."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    key: Hash
    """`Question.key`."""
    roles: tuple[Literal["system", "user", "assistant"], ...]
    texts: tuple[Hash, ...]
    form: Hash
    model: str
    most_tokens: int
    temperature: float
    seed: int
    said: Said
    """An answer's text is its hash."""
    counted: Usage | None = None
    """What it is charged for; None for nothing."""
    money_usd: float = Field(default=0.0, ge=0)
    latency_s: float = Field(ge=0)
    source: str
    """The proposer that asked."""
    begun: str = ""
    """The `Begun.id` that this ends."""


class Begun(Record):
    """An exchange that is about to begin, and the most that it may cost."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    id: str
    cost: Spending
    source: str


AnyLine = TypeVar("AnyLine", Line, Begun)


class Exchange(Record):
    """A question, what was said to it, and what that cost."""

    question: Question
    said: Said
    counted: Usage | None = None
    money_usd: float = Field(default=0.0, ge=0)
    latency_s: float = Field(ge=0)
    source: str = ""


@dataclass
class Journal:
    """Writes and reads the exchanges of a search. Any thread may write."""

    folder: Path
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def begin(self, cost: Spending, *, source: str) -> str:
        """Write down that an exchange begins which may cost so much; return its id."""
        begun = Begun(id=uuid.uuid4().hex, cost=cost, source=source)
        self._append(BEGUN, begun)
        return begun.id

    def record(self, exchange: Exchange, *, begun: str = "") -> None:
        """Append an exchange: the one that was begun under an id."""
        question, said = exchange.question, exchange.said
        if isinstance(said, Answered):
            said = said.model_copy(update={"text": self._keep(said.text)})
        line = Line(
            key=question.key,
            roles=tuple(message.role for message in question.messages),
            texts=tuple(self._keep(message.text) for message in question.messages),
            form=self._keep(question.form),
            model=question.model,
            most_tokens=question.most_tokens,
            temperature=question.temperature,
            seed=question.seed,
            said=said,
            counted=exchange.counted,
            money_usd=exchange.money_usd,
            latency_s=exchange.latency_s,
            source=exchange.source,
            begun=begun,
        )
        self._append(LINES, line)

    def exchanges(self) -> Iterator[Exchange]:
        """Yield what was recorded, in order; what a crash or a hand damaged is passed over."""
        for line in self._read(LINES, Line):
            said = line.said
            try:
                if isinstance(said, Answered):
                    said = said.model_copy(update={"text": self._text(said.text)})
                messages = tuple(
                    Message(role=role, text=self._text(text))
                    for role, text in zip(line.roles, line.texts, strict=True)
                )
                question = Question(
                    model=line.model,
                    messages=messages,
                    most_tokens=line.most_tokens,
                    temperature=line.temperature,
                    seed=line.seed,
                    form=self._text(line.form),
                )
            except (OSError, ValueError):
                continue
            yield Exchange(
                question=question,
                said=said,
                counted=line.counted,
                money_usd=line.money_usd,
                latency_s=line.latency_s,
                source=line.source,
            )

    def spent(self) -> Spending:
        """Return what all exchanges cost; see `spent_by_source`."""
        return sum(self.spent_by_source().values(), Spending())

    def spent_by_source(self) -> dict[str, Spending]:
        """Return what all exchanges cost by source, those of earlier processes too.

        One that was begun and has no end is counted as the most that it could cost.
        """
        total: dict[str, Spending] = defaultdict(Spending)
        ended: set[str] = set()
        for line in self._read(LINES, Line):
            tokens = line.counted.tokens if line.counted else 0
            total[line.source] += Spending(tokens=tokens, money_usd=line.money_usd)
            ended.add(line.begun)
        for begun in self._read(BEGUN, Begun):
            if begun.id not in ended:
                total[begun.source] += begun.cost
        return dict(total)

    def _append(self, name: str, line: Record) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._lock, path.open("ab") as file:
            # A line that a crash cut off must not swallow the next one.
            torn = file.tell() > 0 and not _ends_well(path)
            file.write(b"\n" * torn + line.to_json().encode() + b"\n")

    def _read(self, name: str, kind: type[AnyLine]) -> Iterator[AnyLine]:
        path = self.folder / name
        if not path.exists():
            return
        with path.open("rb") as file:
            for text in file:
                try:
                    yield kind.from_json(text)
                except ValidationError:
                    continue

    def _keep(self, text: str) -> str:
        content = text.encode()
        name = hashlib.sha256(content).hexdigest()
        path = self.folder / TEXTS / name
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            half = path.with_suffix(f".{threading.get_ident()}")
            half.write_bytes(content)
            half.replace(path)
        return name

    def _text(self, name: str) -> str:
        """Return a text; ValueError where it is not the one that was named."""
        content = (self.folder / TEXTS / name).read_bytes()
        if hashlib.sha256(content).hexdigest() != name:
            msg = f"{name} is not what was recorded"
            raise ValueError(msg)
        return content.decode()


@dataclass
class ReplayedModel:
    """Says again what was said to the same questions, in the same order; asks nobody."""

    journal: Journal
    _said: dict[str, deque[Answered | Unanswered]] = field(init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        """Read the journal."""
        self._said = defaultdict(deque)
        for exchange in self.journal.exchanges():
            self._said[exchange.question.key].append(exchange.said)

    def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
        """See `Model.ask`; a question that was never put is refused."""
        with self._lock:
            said = self._said.get(question.key)
            if said:
                return said.popleft()
        return Unanswered(why="refused", detail="this was never asked")


def _ends_well(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, 2)
        return file.read() == b"\n"
