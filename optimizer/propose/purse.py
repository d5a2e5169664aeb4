"""What may still be spent on a model: no question is put that could cost more than is left."""

import threading
from dataclasses import dataclass, field
from typing import Final, Literal

from optimizer.propose.model import MILLION, MOST_TOKENS, ModelSettings, Usage
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
    owed: dict[str, Spending] = field(default_factory=dict)
    """What of that the search's ledger does not know yet, by source; `take` tells it."""
    _left: Allowance = field(default_factory=Allowance, init=False)
    _held: list[Hold] = field(default_factory=list, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def open(self, left: Allowance) -> None:
        """Take in what the search says is left at this moment."""
        with self._lock:
            owed = sum(self.owed.values(), Spending())
            tokens = self.spent.tokens - owed.tokens
            usd = self.spent.money_usd - owed.money_usd
            self._left = Allowance(
                tokens=None if left.tokens is None else max(0, tokens) + left.tokens,
                money_usd=None if left.money_usd is None else max(0.0, usd) + left.money_usd,
            )

    @property
    def left_tokens(self) -> int | None:
        """Return how many tokens of prompts could still be paid for; None for no limit."""
        with self._lock:
            tokens = self._limit("tokens", self.settings.search_tokens)
            usd = self._limit("money_usd", self.settings.search_usd)
            price = self.settings.usd_in
            by_money = usd * MILLION / price if usd is not None and price else None
            limits = [n for n in (tokens, by_money) if n is not None]
            return max(0, int(min(*limits, MOST_TOKENS))) if limits else None

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
            self.owed[source] = self.owed.get(source, Spending()) + cost
        return cost

    def take(self, source: str) -> Spending:
        """Return what a source spent since this was asked last."""
        with self._lock:
            return self.owed.pop(source, Spending())

    def cost(self, usage: Usage) -> Spending:
        """Return what an exchange costs."""
        money = self._usd(usage.prompt_tokens, usage.reply_tokens)
        return Spending(tokens=usage.tokens, money_usd=money)

    def _usd(self, prompt_tokens: int, reply_tokens: int) -> float:
        settings = self.settings
        return (prompt_tokens * settings.usd_in + reply_tokens * settings.usd_out) / MILLION

    def _by_tokens(self, prompt_tokens: int) -> int:
        """Return the most tokens that a reply can have, whatever it costs."""
        left = self._limit("tokens", self.settings.search_tokens)
        return self.settings.reply_tokens if left is None else int(left) - prompt_tokens

    def _by_money(self, prompt_tokens: int) -> int:
        """Return the most tokens of a reply that can be paid for."""
        settings = self.settings
        left = self._limit("money_usd", settings.search_usd)
        if left is None or not settings.usd_in + settings.usd_out:
            return settings.reply_tokens
        left -= self._usd(prompt_tokens, 0)
        if left < 0:
            return -1
        if not settings.usd_out:
            return settings.reply_tokens
        return int(min(settings.reply_tokens, left * MILLION / settings.usd_out))

    def _limit(self, name: Literal["tokens", "money_usd"], own: float | None) -> float | None:
        """Return what is left of a kind beside what is held; None for no limit."""
        limits = [n for n in (own, getattr(self._left, name)) if n is not None]
        if not limits:
            return None
        taken = (self.spent, *(self.cost(hold.usage) for hold in self._held))
        return float(min(limits) - sum(getattr(each, name) for each in taken))
