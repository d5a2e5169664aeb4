"""Two daemons of one store: one works, the other takes over when the first is gone."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.bot import make_forge, make_workspace
from daemon.role import RoleTakenError, hold_role
from optimizer.store import Store
from tests.daemon.origins import HERE, Origin

ROOT = Path(__file__).parents[2]
LEASE_S = 6.0


@dataclass
class Two:
    """The daemons, each with a state folder of its own, as on two machines."""

    origin: Origin
    started: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        return f"sqlite:///{self.origin.folder / 'store.sqlite'}"

    def start(self, name: str) -> None:
        environment = {
            **os.environ,
            "KERNELEVOLVE_REGISTRY": str(self.origin.path),
            "KERNELEVOLVE_STATE": str(self.origin.folder / name),
            "KERNELEVOLVE_STORE": self.url,
            "KERNELEVOLVE_LEASE_S": str(LEASE_S),
            "KERNELEVOLVE_INTERVAL_S": "1",
        }
        with (self.origin.folder / f"{name}.log").open("wb") as log:
            self.started[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.daemon.scripted_cli", "serve", "--stand-by"],
                cwd=ROOT, env=environment, stdout=log, stderr=log,
            )  # fmt: skip

    def says(self, name: str, phrase: str) -> bool:
        return phrase in (self.origin.folder / f"{name}.log").read_text(errors="replace")

    def end(self, name: str, number: int) -> int:
        self.started[name].send_signal(number)
        return self.started[name].wait(15)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Two]:
    two = Two(Origin(tmp_path))
    with Store(two.url) as store:
        store.migrate()
    yield two
    for process in two.started.values():
        process.kill()
        process.wait()


def wait_until(condition: Callable[[], bool], *, within_s: float = 60) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < within_s, "it never came to be"
        time.sleep(0.05)
    return time.monotonic() - began


def verdicts(url: str) -> dict[str, str | None]:
    with Store(url) as store:
        return {goal.operator: goal.verdict for goal in store.finished_goals(limit=100)}


@pytest.mark.drill
def test_the_stand_by_takes_over_and_does_nothing_twice(two: Two) -> None:
    notes = two.origin.folder / "notes"
    two.origin.add_operator("better 2.0", name="softmax")
    two.start("first")
    wait_until(lambda: verdicts(two.url) == {"softmax": "better"})
    two.start("second")
    wait_until(lambda: two.says("second", "standing by"))
    two.origin.add_operator(f"note {notes}; sleep 3; better 2.0")
    wait_until(notes.exists)
    assert not two.says("second", "daemon started")

    two.end("first", signal.SIGKILL)
    took_s = wait_until(lambda: two.says("second", "daemon started"))
    wait_until(lambda: len(verdicts(two.url)) == 2)
    wait_until(lambda: two.says("second", "goal ended"))

    assert took_s < LEASE_S + 10  # the rest is for a busy machine to start the second's loops
    assert verdicts(two.url) == {"softmax": "better", "gelu_bias": "better"}
    settings = two.origin.settings
    shown = make_forge(settings, make_workspace(settings)).pull_requests()
    assert sorted(p.head for p in shown) == [
        f"kernelevolve/{name}/{HERE}" for name in ("gelu_bias", "softmax")
    ]
    # One search was begun twice, as its first daemon was killed; both had the same goal.
    assert len(set(notes.read_text().splitlines())) == 1
    assert two.end("second", signal.SIGTERM) == 0


@pytest.mark.drill
def test_a_holder_that_was_away_too_long_ends(two: Two) -> None:
    two.start("first")
    wait_until(lambda: two.says("first", "daemon started"))
    two.start("second")
    wait_until(lambda: two.says("second", "standing by"))

    two.started["first"].send_signal(signal.SIGSTOP)
    wait_until(lambda: two.says("second", "daemon started"))
    two.started["first"].send_signal(signal.SIGCONT)

    assert two.started["first"].wait(30) == 1
    assert two.says("first", "another process is the scheduler now")
    assert two.started["second"].poll() is None


@pytest.mark.drill
def test_a_stand_by_can_be_told_to_stop(two: Two) -> None:
    two.start("first")
    wait_until(lambda: two.says("first", "daemon started"))
    two.start("second")
    wait_until(lambda: two.says("second", "standing by"))

    assert two.end("second", signal.SIGTERM) == 0


def test_a_stand_by_waits_until_the_lease_has_ended(tmp_path: Path) -> None:
    now = [0.0]
    waits: list[float] = []
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        store.take_lease("scheduler", "elsewhere", ttl_s=100, now=0)

        def wait() -> bool:
            waits.append(now[0])
            now[0] += 30
            return True

        with hold_role(store, tmp_path, clock=lambda: now[0], wait=wait):
            assert waits == [0, 30, 60, 90]


def test_who_waits_no_more_is_told_who_has_the_role(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        with (
            hold_role(store, tmp_path, clock=lambda: 0.0),
            pytest.raises(RoleTakenError),
            hold_role(store, tmp_path, clock=lambda: 0.0, wait=lambda: False),
        ):
            pass
