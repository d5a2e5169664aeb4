"""A language model that writes kernels, asked once more where a reply can't be used."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Final

import structlog

from knowledge.outcome import Passed
from operator_registry.hardware import HardwareSpec
from operator_registry.registry import Operator
from optimizer.candidate import Candidate
from optimizer.errors import ProposalError
from optimizer.propose.caller import LEAST_PROMPT, Caller, Wish
from optimizer.propose.documents import find_documents
from optimizer.propose.fence import fence
from optimizer.propose.gauge import weigh
from optimizer.propose.model import Answered, Message, Unanswered
from optimizer.propose.prompt import assemble, node_parts, task_parts
from optimizer.propose.proposer import NodeContext
from optimizer.propose.reply import Unusable, read_reply
from optimizer.propose.rules import writing_rules
from optimizer.spending import Spending

log = structlog.get_logger()
_ECHO: Final = 6_000
"""Characters of a reply, and of what was wrong with it, that are shown to the model again."""
_FAULT: Final = 600
_FOR_REPAIR: Final = 0.125
"""The part of a prompt's tokens that is kept free, so that a reply can be asked for again."""
_FRAME: Final = 32
"""Tokens for what a chat template puts around the turns."""
_SEEDS: Final = 1 << 31
_TWISTS: Final = (
    "Take the approach that you think is the fastest.",
    "Take an approach that others would hardly think of first.",
    "Move less memory: fuse, recompute, or keep values in registers.",
    "Change the order of the computation or the algorithm itself.",
    "Use the widest loads and the most parallelism that the device has.",
)
"""Questions that are put at the same time differ by one of these."""
_CUT: Final = "the reply was cut off before its end: be shorter, give the blocks first"


@dataclass
class Writer:
    """Has a model write children of a node."""

    operator: Operator
    hardware: HardwareSpec
    caller: Caller
    regions: Sequence[str] = ()
    """The kinds of the operator's regions, by which documents are found."""
    counts: Counter[str] = field(default_factory=Counter, init=False)
    """Proposals: `made`, of them `repaired`, `failed`, and `repeated` what was tried already."""

    repairs: ClassVar[bool] = True
    """It is told why a kernel failed; see `Repairer`."""

    @property
    def name(self) -> str:
        """Return the model's name, the origin of what it writes; see `Named` and `Spender`."""
        return self.caller.settings.name

    def take_spending(self) -> Spending:
        """See `Spender.take_spending`."""
        return self.caller.purse.take(self.name)

    def propose(self, node: NodeContext, count: int) -> Sequence[Candidate]:
        """See `Proposer.propose`; no more at a time than questions may be put together.

        Raises:
            ProposalError: The model is away, or no reply holds a kernel.
            OSError: What was said can't be written down.
        """
        self.caller.purse.open(node.left)
        if self.caller.prompt_tokens < LEAST_PROMPT:
            return ()
        wishes = [
            self._wish(node, number) for number in range(min(count, self.caller.settings.at_once))
        ]
        answers = self.caller.ask(wishes, source=self.name)
        read = [self._read(said, node) for said in answers]
        made = self._repair(wishes, answers, read, node)
        fresh: dict[str, Candidate] = {}
        for candidate in made:
            if candidate.id in node.tried or candidate.id in fresh:
                self.counts["repeated"] += 1
            else:
                fresh[candidate.id] = candidate
        if answers and not made:
            faults = [each.reason for each in read if isinstance(each, Unusable)]
            msg = f"{self.name}: {faults[0] if faults else 'no kernel'}"
            raise ProposalError(msg)
        return tuple(fresh.values())[:count]

    def _wish(self, node: NodeContext, number: int) -> Wish:
        rules = writing_rules(self.hardware.languages)
        documents = find_documents(node, self.operator, self.hardware, regions=self.regions)
        parts = [
            *task_parts(self.operator, self.hardware),
            *node_parts(node, self.operator, self.hardware, documents=documents),
        ]
        twist = _TWISTS[(node.seed + number) % len(_TWISTS)]
        device = self.hardware.name
        closing = f"# Your task\n{_task(node)} for this operator on {device}. {twist}"
        messages = assemble(
            rules,
            parts,
            closing,
            gauge=self.caller.gauge,
            most_tokens=int(self.caller.prompt_tokens * (1 - _FOR_REPAIR)),
        )
        return Wish(messages, seed=(node.seed + number) % _SEEDS)

    def _read(self, said: Answered | Unanswered, node: NodeContext) -> Candidate | Unusable:
        if isinstance(said, Unanswered):
            return Unusable(f"no answer: {said.why} {said.detail}".strip())
        try:
            read = read_reply(
                said.text, parent=node.candidate, hardware=self.hardware, origin=self.name
            )
        except Exception as error:  # a search must outlive whatever a model says
            log.exception("a reply can't be read", proposer=self.name)
            return Unusable(f"the reply can't be read: {type(error).__name__}")
        if isinstance(read, Unusable):
            return read if said.complete else Unusable(_CUT)
        mate = node.mate.candidate.id if node.mate else None
        return read[0].model_copy(update={"mate": mate})

    def _repair(
        self,
        wishes: Sequence[Wish],
        answers: Sequence[Answered | Unanswered],
        read: Sequence[Candidate | Unusable],
        node: NodeContext,
    ) -> list[Candidate]:
        """Return what was made, those that went wrong once asked for again."""
        again = [
            self._again(wish, said, fault)
            for wish, said, fault in zip(wishes, answers, read, strict=False)
            if isinstance(said, Answered) and isinstance(fault, Unusable)
        ]
        second = [self._read(said, node) for said in self._ask_again(again)]
        made = [each for each in (*read, *second) if isinstance(each, Candidate)]
        repaired = sum(isinstance(each, Candidate) for each in second)
        failed = len(read) - len(made)
        self.counts.update(made=len(made), repaired=repaired, failed=failed)
        if failed:
            faults = [each.reason for each in (*read, *second) if isinstance(each, Unusable)]
            log.info("proposals failed", model=self.name, failed=failed, last=faults[-1])
        return made

    def _ask_again(self, wishes: Sequence[Wish]) -> Sequence[Answered | Unanswered]:
        return self.caller.ask(wishes, source=self.name) if wishes else ()

    def _again(self, wish: Wish, said: Answered, fault: Unusable) -> Wish:
        """Return the question once more, with as much of the reply as there is room for."""
        told = fence("what was wrong with your reply", fault.reason, longest=_FAULT)
        closing = f"That can't be used.\n{told}\nReply again, in full, in the form asked for."
        taken = sum(weigh(m.text) for m in wish.messages) + weigh(closing)
        echo = self._fitting(said.text[-_ECHO:], taken)
        return Wish(
            (
                *wish.messages,
                Message(role="assistant", text=echo or "(nothing)"),
                Message(role="user", text=closing),
            ),
            seed=wish.seed,
        )

    def _fitting(self, text: str, taken: float) -> str:
        """Return as much of a text's end as a prompt takes beside what is in it."""
        most = self.caller.settings.prompt_tokens - _FRAME
        while text and self.caller.gauge.estimate(taken + weigh(text)) > most:
            text = text[len(text) // 4 + 1 :]
        return text


def _task(node: NodeContext) -> str:
    if node.candidate is None:
        return "Write a kernel"
    if node.mate is not None:
        return "Put the best of both kernels together into one"
    if isinstance(node.outcome, Passed):
        return "Write a faster, correct kernel"
    return "Repair the kernel"
