"""A language model that picks among this program's own moves, so that a small one helps too.

What it answers chooses; it writes nothing that runs.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError
from optimizer.propose.caller import LEAST_PROMPT, Caller, Wish
from optimizer.propose.fence import one_line
from optimizer.propose.model import Answered
from optimizer.propose.prompt import Part, Rank, assemble, node_parts, task_parts
from optimizer.propose.proposer import NodeContext
from optimizer.propose.reply import find_objects
from optimizer.propose.rules import PICKING
from optimizer.propose.synthesis.proposer import SynthesisProposer
from optimizer.propose.tuner import Tuner
from optimizer.spending import Spending

_MOST_MOVES: Final = 16
"""More than these a small model does not tell apart."""
_NOTE: Final = 140
_TOKENS_A_MOVE: Final = 16
_MORE_TOKENS: Final = 64
_SEEDS: Final = 1 << 31
_LONGEST: Final = 20_000
_NUMBER: Final = re.compile(r"(?<![\w.-])\d{1,3}(?!\w|\.\d)")


@dataclass
class Director:
    """Has a model pick children of a node among those that the synthesiser and the tuner offer."""

    operator: Operator
    hardware: HardwareSpec
    caller: Caller
    sources: Sequence[SynthesisProposer | Tuner]
    counts: Counter[str] = field(default_factory=Counter, init=False)
    """Proposals: `made` and `failed`."""

    @property
    def name(self) -> str:
        """Return the origin of what it picks; see `Named` and `Spender`."""
        return f"{self.caller.settings.name} (picks)"

    def take_spending(self) -> Spending:
        """See `Spender.take_spending`."""
        return self.caller.purse.take(self.name)

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`; where there is one move only, nobody is asked.

        Raises:
            ProposalError: The model is away, or it answers with what is not on the list.
            OSError: What was said can't be written down.
        """
        moves = self._moves(node)
        if not moves or count < 1:
            return ()
        if len(moves) == 1:
            return tuple(moves)
        self.caller.purse.open(node.left)
        if self.caller.prompt_tokens < LEAST_PROMPT:
            return ()
        answers = self.caller.ask([self._wish(node, moves, count)], source=self.name)
        if not answers:
            return ()
        said = answers[0]
        if not isinstance(said, Answered):
            self.counts["failed"] += 1
            msg = f"{self.name}: no answer: {said.why} {said.detail}"
            raise ProposalError(msg)
        picked = read_picks(said.text, moves=len(moves), most=count)
        if not picked:
            self.counts["failed"] += 1
            msg = f"{self.name}: the answer names no move of the list"
            raise ProposalError(msg)
        self.counts["made"] += len(picked)
        return tuple(self._credited(moves[number - 1]) for number in picked)

    def _moves(self, node: NodeContext) -> list[Candidate]:
        """Return the moves, those of all sources in turn."""
        offers = [list(source.propose(node, _MOST_MOVES)) for source in self.sources]
        turns = [
            offer[place] for place in range(_MOST_MOVES) for offer in offers if place < len(offer)
        ]
        return list({move.id: move for move in turns}.values())[:_MOST_MOVES]

    def _wish(self, node: NodeContext, moves: Sequence[Candidate], count: int) -> Wish:
        most = min(count, len(moves))
        listed = "\n".join(f"{n}. {_describe(move)}" for n, move in enumerate(moves, start=1))
        parts = [
            *task_parts(self.operator, self.hardware),
            *node_parts(node, self.operator, self.hardware),
            Part(Rank.MOVES, f"# Moves\n{listed}"),
        ]
        closing = f"Pick {most} of the moves 1 to {len(moves)}. Reply with JSON alone."
        messages = assemble(
            PICKING,
            parts,
            closing,
            gauge=self.caller.gauge,
            most_tokens=self.caller.prompt_tokens,
        )
        return Wish(
            messages,
            seed=node.seed % _SEEDS,
            form=make_form(len(moves), most),
            most_tokens=_MORE_TOKENS + _TOKENS_A_MOVE * most,
        )

    def _credited(self, move: Candidate) -> Candidate:
        note = f"picked: {move.origin}: {move.note}"
        return move.model_copy(update={"origin": self.name, "note": note})


def make_form(moves: int, most: int) -> str:
    """Return the JSON Schema of an answer that picks at most so many of the moves."""
    numbers = {"type": "integer", "enum": list(range(1, moves + 1))}
    picks = {"type": "array", "items": numbers, "minItems": 1, "maxItems": most}
    schema = {
        "type": "object",
        "properties": {"moves": picks},
        "required": ["moves"],
        "additionalProperties": False,
    }
    return json.dumps(schema)


def read_picks(text: str, *, moves: int, most: int) -> tuple[int, ...]:
    """Return the numbers that an answer picks, none twice; none where one is not on the list."""
    text = text[:_LONGEST]
    named = next((o["moves"] for o in find_objects(text) if "moves" in o), None)
    if named is None:
        named = [int(number) for number in _NUMBER.findall(text)] if "{" not in text else []
    if isinstance(named, int):
        named = [named]
    if not isinstance(named, list) or not named:
        return ()
    numbers = [each for each in named if type(each) is int and 1 <= each <= moves]
    if len(numbers) < len(named):
        return ()
    return tuple(dict.fromkeys(numbers))[:most]


def _describe(move: Candidate) -> str:
    return one_line(f"{move.origin}: {move.note or 'another choice'}", longest=_NOTE)
