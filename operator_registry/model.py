"""Which operators a model runs, at which workloads, with what share of its time."""

from typing import Literal

from pydantic import Field

from operator_registry.record import Identifier, Record, Slug


class Use(Record):
    """An operator inside a model."""

    operator: Identifier
    workloads: tuple[Slug, ...] = ()
    """Names of the operator's public workloads; empty for all."""
    share_of_time: float = Field(gt=0, le=1)


class ModelSpec(Record):
    """A model and the hardware that it is served or trained on."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Identifier
    summary: str = ""
    owners: tuple[str, ...] = ()
    hardware: tuple[Slug, ...] = Field(min_length=1)
    uses: tuple[Use, ...] = Field(min_length=1)
