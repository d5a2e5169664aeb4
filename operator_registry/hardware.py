"""A device's data-sheet limits, how to compile for it, and where its runners are."""

from typing import Literal

from pydantic import Field

from operator_registry.record import Record, Slug
from operator_registry.spec import DType, TargetName

Language = Literal["cpp", "triton"]


class Limits(Record):
    """What the data sheet promises; a measured time that beats it is a broken measurement."""

    dram_bandwidth_gb_s: float = Field(gt=0)
    dram_gb: float = Field(gt=0)
    last_level_cache_mb: float = Field(gt=0)
    peak_tflop_s: dict[DType, float] = {}
    multiprocessors: int | None = Field(default=None, gt=0)
    shared_memory_per_block_bytes: int | None = Field(default=None, gt=0)
    registers_per_multiprocessor: int | None = Field(default=None, gt=0)
    threads_per_multiprocessor: int | None = Field(default=None, gt=0)


class CompileTarget(Record):
    """What the compiler is told: ``x86-64-v3``, ``sm_90``, ``gfx942``."""

    arch: str
    warp_size: int = Field(default=1, ge=1)


class EnvironmentSpec(Record):
    """The environment that results are comparable in; empty means unconstrained."""

    image: str = ""
    torch: str = ""
    triton: str = ""
    driver: str = ""


class RunnerSpec(Record):
    """Labels by which the code host's runners of this device are found."""

    labels: tuple[str, ...] = ()


class HardwareSpec(Record):
    """A device, as its data sheet and its owners describe it."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    name: Slug
    summary: str = ""
    vendor: str
    target: TargetName
    compile: CompileTarget
    languages: tuple[Language, ...] = Field(min_length=1)
    limits: Limits
    environment: EnvironmentSpec = EnvironmentSpec()
    runner: RunnerSpec = RunnerSpec()
