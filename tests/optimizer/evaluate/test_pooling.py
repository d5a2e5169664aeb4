"""The readings that a repeated confirming run goes on from."""

from pathlib import Path

from optimizer.evaluate.protocol import CANDIDATE
from optimizer.evaluate.samples import find_samples, keep_samples, read_pairs
from optimizer.evaluate.summary import TWIN, Reading

PAIRS = [
    {"w": {CANDIDATE: [Reading(1, 1.1, 0, 1.2, 0.01, 1)], TWIN: [Reading(2, 2.1, 3, 2.2)]}},
    {"w": {CANDIDATE: [Reading(1.5, 1.6, 0, 1.7), Reading(1, 1, 0, 1)], TWIN: []}},
]


def test_readings_come_back_as_they_were_taken(tmp_path: Path) -> None:
    name = keep_samples(tmp_path, PAIRS)
    raw = find_samples(tmp_path, name)

    assert raw is not None
    assert read_pairs(raw) == PAIRS
