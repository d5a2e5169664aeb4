"""Weeks of the daemon's life in minutes: nothing that it holds may grow."""

import gc
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import pytest

from daemon.web.server import Site, serving
from tests.github.stage import WRITER, Stage

pytestmark = [pytest.mark.drill, pytest.mark.timeout(580)]
CYCLES = 2000
_WARM = 400
"""After so many every kind of work was done often enough for caches and pools to be full."""
_EVERY = 20
_MOST_GROWTH = 0.03
"""Of resident memory: the fake code host lives in this process and keeps what is said on it."""


@dataclass(frozen=True)
class Sample:
    """What the process held between two cycles."""

    children: int
    descriptors: int
    threads: int
    resident_bytes: int


def take_sample() -> Sample:
    gc.collect()
    me = psutil.Process()
    return Sample(
        children=len(me.children(recursive=True)),
        descriptors=me.num_fds(),
        threads=me.num_threads(),
        resident_bytes=me.memory_info().rss,
    )


def site(stage: Stage) -> Site:
    health = stage.bot.health
    return Site(
        reception=stage.reception,
        find_health=lambda: health.report(paused=False),
        is_ready=lambda: True,
        render_metrics=stage.work.metrics.render,
    )


def live(stage: Stage, cycle: int) -> None:
    """Be a minute of the daemon's life, in which people do something now and then."""
    if cycle == 0:
        stage.push_operator("better 2.0")
    if cycle % 50 == 1:
        number = stage.own_pulls()[0].number
        stage.github.comment(number, WRITER, "/optimize" if cycle % 200 == 1 else "/status")
    if cycle % 10 == 0:
        stage.github.push("notes", {"notes.md": f"{cycle}\n"}, WRITER)
    stage.turn()
    stage.round(pass_s=20.0)
    stage.github.drain_deliveries()
    # The fake's own diaries are no part of the daemon.
    stage.github.requests.clear()
    stage.github.deliveries.clear()


def test_what_it_holds_stays_the_same_over_two_thousand_cycles(tmp_path: Path) -> None:
    samples: list[Sample] = []
    with Stage(tmp_path) as stage, serving(site(stage), "127.0.0.1", 0) as port:
        stage.github.hook_url = f"http://127.0.0.1:{port}/webhook"
        for cycle in range(CYCLES):
            live(stage, cycle)
            if cycle % _EVERY == 0:
                samples.append(take_sample())
        assert stage.bot.health.report(paused=False).faults == ()
        assert stage.store.backlog().deliveries == 0
        assert len(stage.own_pulls()) == 1
        assert [command.state for command in stage.commands()] == ["done"] * (CYCLES // 50)

    early, late = halves(samples[_WARM // _EVERY :])
    assert {sample.children for sample in samples} == {0}
    assert max(s.descriptors for s in late) <= max(s.descriptors for s in early)
    assert max(s.threads for s in late) <= max(s.threads for s in early)
    before, after = (median(s.resident_bytes for s in half) for half in (early, late))
    assert after < before * (1 + _MOST_GROWTH)


def halves(samples: Sequence[Sample]) -> tuple[Sequence[Sample], Sequence[Sample]]:
    return samples[: len(samples) // 2], samples[len(samples) // 2 :]
