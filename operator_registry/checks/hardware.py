"""Whether a device's spec agrees with itself, and whether the devices named are known."""

import re
from collections.abc import Collection, Iterator, Mapping

from operator_registry.fault import Finding, name_one_of
from operator_registry.hardware import HardwareSpec
from operator_registry.spec import TargetName

LANGUAGES: Mapping[TargetName, tuple[str, ...]] = {
    "cpu": ("cpp",),
    "cuda": ("triton",),
    "rocm": ("triton",),
}
ARCHITECTURES: Mapping[TargetName, tuple[str, str]] = {
    "cpu": (
        r"(?!native$)[a-z0-9][a-z0-9._+-]*",
        "x86-64-v3 (not `native`, which differs by machine)",
    ),
    "cuda": (r"sm_[0-9]{2,3}[a-z]?", "sm_90"),
    "rocm": (r"gfx[0-9a-f]{3,5}", "gfx942"),
}
"""For each target: what an architecture's name looks like, and an example."""


def check_hardware(spec: HardwareSpec, stem: str) -> Iterator[Finding]:
    """Yield what disagrees in a device's spec."""
    yield from check_stem(spec.name, stem)
    pattern, example = ARCHITECTURES[spec.target]
    if not re.fullmatch(pattern, spec.compile.arch):
        message = f"compile.arch {spec.compile.arch!r} is none of target {spec.target}"
        yield Finding(("compile", "arch"), message, f"write it like {example}")
    for place, language in enumerate(spec.languages):
        if language not in LANGUAGES[spec.target]:
            message = f"target {spec.target} does not run {language}"
            remedy = f"use {', '.join(LANGUAGES[spec.target])}"
            yield Finding(("languages", place), message, remedy)


def check_devices(
    names: Collection[str], hardware: Mapping[str, HardwareSpec | None]
) -> Iterator[Finding]:
    """Yield which names under `hardware` are unknown or stand twice."""
    seen: set[str] = set()
    for place, name in enumerate(names):
        if name not in hardware:
            message = f"hardware {name!r} is not known"
            remedy = f"{name_one_of(name, hardware)} (files in hardware/)"
            yield Finding(("hardware", place), message, remedy)
        if name in seen:
            yield Finding(("hardware", place), f"hardware {name!r} stands here again", "remove it")
        seen.add(name)


def check_stem(name: str, stem: str) -> Iterator[Finding]:
    """Yield that a file and what it holds go by two names, if they do."""
    if name != stem:
        message = f"name is {name!r}, but the file is {stem}.yaml"
        yield Finding(("name",), message, "give both the same name")
