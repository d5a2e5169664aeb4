"""A language model, whatever serves it: what it is asked, what it says, and what it costs.

That a model is busy or talks nonsense is data: a search meets it every day and goes on.
"""

from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import AfterValidator, Field

from operator_registry.record import Record, digest

MILLION = 1_000_000
MOST_TOKENS = 10_000_000
"""No exchange takes so many; a server that says so is wrong."""
OUR_NAMES = frozenset({"synthesis", "tuner", "person", "warm start"})
Mode = Literal["write", "direct", "both"]


def refuse_our_names(name: str) -> str:
    """Refuse a name under which a model's kernels would pass for this program's own."""
    if name.strip().lower() in OUR_NAMES:
        msg = f"a model can't be called {name}: that is a proposer of this program"
        raise ValueError(msg)
    return name


class ModelSettings(Record):
    """Which model proposes, where it is served, and what it may cost."""

    url: str = Field(pattern=r"^https?://[^\s@?#]+$")
    """Of an endpoint that talks as OpenAI's does, such as ``http://127.0.0.1:8080/v1``."""
    name: Annotated[str, AfterValidator(refuse_our_names)] = Field(min_length=1, max_length=200)
    """As the endpoint calls the model; candidates name it as their origin."""
    key_file: Path | None = None
    """A file with the endpoint's key alone. Only the path travels."""
    mode: Mode = "both"
    """``write``: it writes kernels. ``direct``: it picks among this program's own moves."""
    temperature: float = Field(default=0.6, ge=0, le=2)
    reply_tokens: int = Field(default=8192, ge=16, le=1_000_000)
    """A reply has no more."""
    prompt_tokens: int = Field(default=24_000, ge=500, le=1_000_000)
    """A prompt has no more."""
    timeout_s: float = Field(default=90.0, gt=0)
    """How long a question may take, all attempts together; a quarter of a short search's time."""
    at_once: int = Field(default=2, ge=1, le=64)
    """So many questions are put at the same time."""
    usd_in: float = Field(default=0.0, ge=0)
    """For a million tokens of prompts."""
    usd_out: float = Field(default=0.0, ge=0)
    """For a million tokens of replies."""
    search_tokens: int | None = Field(default=None, gt=0)
    """What one search may take, restarts included, whatever else allows more."""
    search_usd: float | None = Field(default=5.0, gt=0)


class Message(Record):
    """One turn of a conversation."""

    role: Literal["system", "user", "assistant"]
    text: str


class Question(Record):
    """What a model is asked."""

    model: str
    messages: tuple[Message, ...] = Field(min_length=1)
    most_tokens: int = Field(gt=0)
    """The reply is cut there."""
    temperature: float
    seed: int
    form: str = ""
    """A JSON Schema that the reply must keep to, as JSON; empty for free text."""

    @property
    def key(self) -> str:
        """Return what names the question; how long the reply may be is no part of it."""
        return digest(self.model_copy(update={"most_tokens": 1}))

    @property
    def bytes(self) -> int:
        """Return the size of its text in UTF-8."""
        return sum(len(m.text.encode()) for m in self.messages) + len(self.form.encode())


class Usage(Record):
    """Tokens of an exchange."""

    prompt_tokens: int = Field(ge=0, le=MOST_TOKENS)
    reply_tokens: int = Field(ge=0, le=MOST_TOKENS)
    told: bool = True
    """The server's own count; otherwise the most that it can have been."""

    @property
    def tokens(self) -> int:
        """Return both together."""
        return self.prompt_tokens + self.reply_tokens


class Answered(Record):
    """The model said something."""

    kind: Literal["answered"] = "answered"
    text: str
    complete: bool = True
    """False where the reply was cut: at its most tokens, or because it would not end."""
    usage: Usage | None = None
    """As the server counted; None where it does not."""


class Unanswered(Record):
    """The model said nothing that can be used."""

    kind: Literal["unanswered"] = "unanswered"
    why: Literal["busy", "broken", "silent", "garbled", "away", "refused"]
    detail: str = ""
    retry_after_s: float | None = None
    """What the server asks to wait."""
    charged: bool = False
    """Whether the model may have worked on it."""

    @property
    def passes(self) -> bool:
        """Return whether asking again may help."""
        return self.why != "refused"


Said = Annotated[Answered | Unanswered, Field(discriminator="kind")]


class Model(Protocol):
    """Answers questions, one at a time or several from several threads."""

    def ask(self, question: Question, *, within_s: float) -> Answered | Unanswered:
        """Return what the model said to a question, at one attempt.

        Args:
            question: What it is asked.
            within_s: How long that may take.
        """
        ...
