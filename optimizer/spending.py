"""What a search costs: the seconds of devices and processors, tokens, money."""

from typing import Final, Literal, get_args

from pydantic import Field

from operator_registry.record import Record

Kind = Literal["device_s", "cpu_s", "tokens", "money_usd"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class Spending(Record):
    """What was spent."""

    device_s: float = Field(default=0.0, ge=0)
    """Seconds for which a device was leased."""
    cpu_s: float = Field(default=0.0, ge=0)
    """Seconds of processor time, of all processes."""
    tokens: int = Field(default=0, ge=0)
    """Of language models, prompts and answers together."""
    money_usd: float = Field(default=0.0, ge=0)

    def __add__(self, other: "Spending") -> "Spending":
        """Return the sum of both."""
        return Spending(
            device_s=self.device_s + other.device_s,
            cpu_s=self.cpu_s + other.cpu_s,
            tokens=self.tokens + other.tokens,
            money_usd=self.money_usd + other.money_usd,
        )

    def beyond(self, other: "Spending | None") -> "Spending":
        """Return what this has more than another; nothing where it has less."""
        if other is None:
            return self
        return Spending(
            device_s=max(0.0, self.device_s - other.device_s),
            cpu_s=max(0.0, self.cpu_s - other.cpu_s),
            tokens=max(0, self.tokens - other.tokens),
            money_usd=max(0.0, self.money_usd - other.money_usd),
        )


class Allowance(Record):
    """What may be spent; None for no limit."""

    device_s: float | None = Field(default=None, ge=0)
    cpu_s: float | None = Field(default=None, ge=0)
    tokens: int | None = Field(default=None, ge=0)
    money_usd: float | None = Field(default=None, ge=0)

    def find_excess(self, spent: Spending) -> Kind | None:
        """Return the first limit that is reached, by its field's name; None while all is well."""
        for name in KINDS:
            limit = getattr(self, name)
            if limit is not None and getattr(spent, name) >= limit:
                return name
        return None

    def left_after(self, spent: Spending) -> "Allowance":
        """Return what may still be spent once so much is."""
        limits = {name: getattr(self, name) for name in KINDS}
        return Allowance.model_validate(
            {
                name: None if limit is None else max(0, limit - getattr(spent, name))
                for name, limit in limits.items()
            }
        )
