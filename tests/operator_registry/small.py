"""A small registry, whole and sound, for tests to break in one place at a time."""

from collections.abc import Mapping

import pytest

from operator_registry.registry import RegistryError, parse_registry

Case = tuple[str, list[tuple[str, str]], list[tuple[str, str]]]
"""A file, the changes that break it, and for each fault: a text on its line, the gist."""

OPERATOR = "operators/cut/operator.yaml"
SOURCE = "operators/cut/reference.py"
DEVICE = "hardware/box.yaml"
MODEL = "models/ranker.yaml"
CONFIG = "registry.yaml"

FILES: Mapping[str, str] = {
    CONFIG: """\
schema: 1
hardware: [box]
budget_s: 30
""",
    OPERATOR: """\
schema: 1
name: cut
summary: Keeps the first elements of each segment.
owners: [somebody]
axes:
  segments: {min: 0, max: 4096, multiple_of: 2}
  bounds: {one_more_than: segments}
  elements: {sum_of: lengths}
  kept: {sum_of: kept_lengths, at_most: elements}
dtypes:
  T: [float32, bfloat16]
inputs:
  lengths: {shape: [segments], dtype: int64, values: {kind: lengths, low: 1, high: 9}}
  offsets: {shape: [bounds], dtype: int64, values: {kind: offsets, of: lengths}}
  x: {shape: [elements], dtype: T}
attributes:
  longest: {value: 4, min: 0, max: 9}
outputs:
  kept_lengths: {shape: [segments], dtype: int64}
  y: {shape: [kept], dtype: T}
reference: cut
equivalents: [by_mask]
precision:
  k: 0
workloads:
  - name: small
    sizes: {segments: 64}
    dtypes: {T: float32}
  - name: short
    sizes: {segments: 128}
    dtypes: {T: bfloat16}
    attributes: {longest: 2}
    targets: [cpu]
""",
    SOURCE: '''\
"""Cuts segments."""

import torch


def cut(lengths, offsets, x, longest):
    """Return the kept lengths and elements."""
    place = torch.arange(x.shape[0]) - offsets[:-1].repeat_interleave(lengths)
    return lengths.clamp(max=longest), x[place < longest]


def by_mask(lengths, offsets, x, *, longest=4):
    return cut(lengths, offsets, x, longest)
''',
    DEVICE: """\
schema: 1
name: box
vendor: any
target: cpu
compile: {arch: x86-64-v3}
languages: [cpp]
limits: {dram_bandwidth_gb_s: 20, dram_gb: 8, last_level_cache_mb: 8}
""",
    MODEL: """\
schema: 1
name: ranker
hardware: [box]
uses:
  - {operator: cut, workloads: [small], share_of_time: 0.5}
""",
}


def edited(path: str, *changes: tuple[str, str]) -> dict[str, str]:
    """The registry with texts of one file replaced; each must stand there exactly once."""
    text = FILES[path]
    for old, new in changes:
        assert text.count(old) == 1, (path, old)
        text = text.replace(old, new)
    return {**FILES, path: text}


def line_of(text: str, marker: str) -> int:
    """The line of the first occurrence of a marker."""
    return text[: text.index(marker)].count("\n") + 1


def faults_of(files: Mapping[str, str]) -> list[tuple[str, int, str]]:
    """Path, line and text of each fault of a registry that must have some."""
    with pytest.raises(RegistryError) as caught:
        parse_registry(files)
    return [(fault.path, fault.line, str(fault)) for fault in caught.value.faults]


def check_case(case: Case) -> None:
    """Exactly the expected faults are told. Texts on a line of a function are the source's."""
    path, changes, expected = case
    files = edited(path, *changes)

    found = faults_of(files)

    for marker, gist in expected:
        where = SOURCE if marker.startswith(("cut(", "by_mask(")) else path
        start = f"{where}:{line_of(files[where], marker)}: "
        assert [text for *_, text in found if text.startswith(start) and gist in text], found
    assert len(found) == len(expected), found
