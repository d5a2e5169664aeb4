"""Bytes under their hash, and the cap that they are kept under."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path

import pytest

from optimizer.store import Confirmation, Store
from optimizer.store.artefacts import FRESH, Artefacts
from optimizer.store.collecting import BUILDS, GRACE_S, collect
from tests.makers import OPERATOR, make_candidate, make_profiled

ROOT = Path(__file__).parents[3]
NOW = 1e9
OLD = NOW - GRACE_S - 1
KILOBYTE = 1000


@pytest.fixture
def artefacts(tmp_path: Path) -> Artefacts:
    return Artefacts(tmp_path)


def put_used(artefacts: Artefacts, content: bytes, used_at: float) -> str:
    """Keep some bytes that were used last at a time."""
    name = artefacts.put(content)
    (path,) = artefacts.folder.glob(f"??/{name}")
    os.utime(path, (used_at, used_at))
    return name


def test_bytes_are_found_under_their_hash(artefacts: Artefacts) -> None:
    name = artefacts.put(b"a trace")

    assert name == sha256(b"a trace").hexdigest() == artefacts.put(b"a trace")
    assert artefacts.find(name) == b"a trace"
    assert artefacts.find("0" * 64) is None


def test_bytes_that_were_changed_are_not_handed_out(artefacts: Artefacts) -> None:
    name = artefacts.put(b"a trace")
    (path,) = artefacts.folder.glob(f"??/{name}")
    path.write_bytes(b"another")

    with pytest.raises(ValueError, match="was changed after"):
        artefacts.find(name)


def test_what_was_used_least_lately_goes_until_the_cap_holds(artefacts: Artefacts) -> None:
    names = [
        put_used(artefacts, sign * KILOBYTE, OLD - age)
        for sign, age in ((b"a", 3), (b"b", 2), (b"c", 1))
    ]

    found = collect(artefacts, cap_bytes=2 * KILOBYTE, needed=(), now=NOW)

    assert [artefacts.find(name) is not None for name in names] == [False, True, True]
    assert (found.removed, found.removed_bytes, found.kept_bytes) == (1, KILOBYTE, 2 * KILOBYTE)


def test_reading_is_using(artefacts: Artefacts) -> None:
    first, second = (
        put_used(artefacts, b"a" * KILOBYTE, OLD - 2),
        put_used(artefacts, b"b" * KILOBYTE, OLD - 1),
    )
    artefacts.find(first)

    collect(artefacts, cap_bytes=KILOBYTE, needed=(), now=time.time() + 2 * GRACE_S)

    assert artefacts.find(second) is None
    assert artefacts.find(first) is not None


def test_what_is_needed_stays_whatever_the_cap(artefacts: Artefacts) -> None:
    needed, other = (
        put_used(artefacts, b"a" * KILOBYTE, OLD - 2),
        put_used(artefacts, b"b" * KILOBYTE, OLD - 1),
    )

    found = collect(artefacts, cap_bytes=0, needed={needed}, now=NOW)

    assert artefacts.find(needed) is not None
    assert artefacts.find(other) is None
    assert found.needed_bytes == found.kept_bytes == KILOBYTE


def test_what_was_used_lately_stays_whatever_the_cap(artefacts: Artefacts) -> None:
    name = put_used(artefacts, b"a" * KILOBYTE, NOW - 1)

    assert collect(artefacts, cap_bytes=0, needed=(), now=NOW).removed == 0
    assert artefacts.find(name) is not None


def test_a_build_goes_as_a_whole(artefacts: Artefacts) -> None:
    build = artefacts.state / BUILDS / "some-build"
    build.mkdir(parents=True)
    (build / "kernel.so").write_bytes(b"x" * KILOBYTE)
    os.utime(build, (OLD, OLD))

    found = collect(artefacts, cap_bytes=0, needed=(), now=NOW)

    assert found.removed_bytes == KILOBYTE
    assert list((artefacts.state / BUILDS).iterdir()) == []


def test_what_the_killed_left_is_swept_away(artefacts: Artefacts) -> None:
    name = put_used(artefacts, b"a" * KILOBYTE, NOW)
    half = artefacts.folder / name[:2] / f"{FRESH}half"
    half.write_bytes(b"half of it")
    os.utime(half, (OLD, OLD))
    gone = artefacts.state / BUILDS / ".gone-some-build"
    gone.mkdir(parents=True)
    (gone / "kernel.so").write_bytes(b"x")

    collect(artefacts, cap_bytes=10 * KILOBYTE, needed=(), now=NOW)

    assert not half.exists()
    assert not gone.exists()
    assert artefacts.find(name) is not None


def contents(seed: int) -> list[bytes]:
    """Return the same hundred contents in an order of their own."""
    numbers = sorted(range(100), key=lambda number: sha256(f"{seed} {number}".encode()).digest())
    return [str(number).encode() * KILOBYTE for number in numbers]


def put_many(state: Path, seed: int) -> None:
    for content in contents(seed):
        name = Artefacts(state).put(content)
        assert Artefacts(state).find(name) == content


def test_what_is_put_again_while_it_is_collected_is_there(artefacts: Artefacts) -> None:
    for content in contents(0):
        put_used(artefacts, content, time.time() - 2 * GRACE_S)
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=put_many, args=(artefacts.state, seed)) for seed in (1, 2)]
    for writer in writers:
        writer.start()

    removed = 0
    while any(writer.is_alive() for writer in writers):
        cap_bytes = sum(len(content) for content in contents(0)) // 2
        removed += collect(artefacts, cap_bytes=cap_bytes, needed=(), now=time.time()).removed

    assert [writer.exitcode for writer in writers] == [0, 0]
    assert all(artefacts.find(sha256(content).hexdigest()) for content in contents(0))


WRITER = """
import itertools, sys
from pathlib import Path
from optimizer.store.artefacts import Artefacts

for number in itertools.count():
    name = Artefacts(Path(sys.argv[1])).put(str(number).encode() * 100_000)
    print(name, flush=True)
"""


def test_a_killed_writer_leaves_whole_files_only(artefacts: Artefacts) -> None:
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(artefacts.state)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert writer.stdout is not None
    for _ in range(20):
        writer.stdout.readline()
    writer.send_signal(signal.SIGKILL)
    writer.stdout.close()
    writer.wait()

    kept = [path.name for path in artefacts.folder.glob("??/[!.]*")]
    assert len(kept) >= 20
    assert all(artefacts.find(name) for name in kept)


def test_open_searches_and_evidence_say_what_is_needed(store: Store) -> None:
    def open_search(key: str) -> int:
        return store.open_search(
            key, operator="scale", hardware="cpu", operator_digest=OPERATOR.digest, now=0
        )

    ended, going, candidate = open_search("g"), open_search("h"), make_candidate()
    evidence = make_profiled(candidate)
    store.need_artefact(ended, "1" * 64)
    store.need_artefact(going, "2" * 64)
    proof = Confirmation(number=1, candidate=candidate.id, alpha=0.1, result=evidence, spent_s=1)
    store.record_confirmation(ended, candidate, proof, now=1)

    store.finish_search(ended, result="", now=2)

    assert store.needed_artefacts() == {"2" * 64, evidence.samples_sha256}
