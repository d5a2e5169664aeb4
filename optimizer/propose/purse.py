"""What may still be spent on a model: no question is put that could cost more than is left."""

import threading
from dataclasses import dataclass, field
from typing import Final

from optimizer.propose.model import MILLION, ModelSettings, Usage
from optimizer.spending import Allowance, Spending

LEAST_REPLY: Final = 16
"""A shorter reply holds nothing; then nothing is asked."""


@dataclass(frozen=True)
class Hold:
    """What is put aside for an exchange until its cost is known."""

    prompt_tokens: int
    reply_tokens: int

    @property
    def usage(self) -> Usage:
        """Return it as if all of it was used."""
        return Usage(prompt_tokens=self.prompt_tokens, reply_tokens=self.reply_tokens, told=False)


@dataclass
class Purse:
    """Counts what a search spends on a model. Any thread may ask."""

    settings: ModelSettings
    spent: Spending = field(default_factory=Spending)
    """In all, what earlier processes spent on the search too."""
    _left: Allowance = field(default_factory=Allowance, init=False)
    _since: dict[str, Spending] = field(default_factory=dict, init=False)
    _held: list[Hold] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def open(self, left: Allowance) -> None:
        """Take in what the search says is left at this moment."""
        with self._lock:
            known = self.spent
            self._left = Allowance(
                tokens=None if left.tokens is None else known.tokens + left.tokens,
                money_usd=None if left.money_usd is None else known.money_usd + left.money_usd,
            )

    def hold(self, prompt_tokens: int, wanted: int) -> Hold | None:
        """Return what an exchange may take, the reply `wanted` at most; None where too little.

        Args:
            prompt_tokens: The most that the prompt can have.
            wanted: The tokens of the reply.
        """
        with self._lock:
            least = min(LEAST_REPLY, wanted)
            granted = min(wanted, self._by_tokens(prompt_tokens), self._by_money(prompt_tokens))
            if granted < least:
                return None
            hold = Hold(prompt_tokens, granted)
            self._held.append(hold)
            return hold

    def settle(self, hold: Hold, usage: Usage | None, *, source: str) -> Spending:
        """Count what an exchange took instead of what was held; nothing for None."""
        cost = Spending() if usage is None else self.cost(usage)
        with self._lock:
            self._held.remove(hold)
            self.spent += cost
            self._since[source] = self._since.get(source, Spending()) + cost
        return cost

    def take(self, source: str) -> Spending:
        """Return what a source spent since this was asked last."""
        with self._lock:
            return self._since.pop(source, Spending())

    def cost(self, usage: Usage) -> Spending:
        """Return what an exchange costs."""
        money = self._usd(usage.prompt_tokens, usage.reply_tokens)
        return Spending(tokens=usage.tokens, money_usd=money)

    def _usd(self, prompt_tokens: int, reply_tokens: int) -> float:
        settings = self.settings
        return (prompt_tokens * settings.usd_in + reply_tokens * settings.usd_out) / MILLION

    def _by_tokens(self, prompt_tokens: int) -> int:
        limits = [n for n in (self.settings.search_tokens, self._left.tokens) if n is not None]
        held = sum(hold.usage.tokens for hold in self._held)
        left = min(limits, default=None)
        if left is None:
            return self.settings.reply_tokens
        return left - self.spent.tokens - held - prompt_tokens

    def _by_money(self, prompt_tokens: int) -> int:
        limits = [n for n in (self.settings.search_usd, self._left.money_usd) if n is not None]
        if not limits or not self.settings.usd_in + self.settings.usd_out:
            return self.settings.reply_tokens
        held = sum(self._usd(hold.prompt_tokens, hold.reply_tokens) for hold in self._held)
        left = min(limits) - self.spent.money_usd - held - self._usd(prompt_tokens, 0)
        if left < 0 or not self.settings.usd_out:
            return -1 if left < 0 else self.settings.reply_tokens
        return int(min(self.settings.reply_tokens, left * MILLION / self.settings.usd_out))
