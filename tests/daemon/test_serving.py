"""``kernelevolve serve``: a real process, its loops and its server."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from daemon.bot import open_bot, open_store
from daemon.pause import pause, resume
from daemon.serving import make_site
from daemon.web.metrics import Metrics
from optimizer.errors import StoreError
from optimizer.store import Store
from tests.daemon.origins import SCRIPTED, Origin
from tests.daemon.web_client import Client

ROOT = Path(__file__).parents[2]
PATIENCE_S = 30.0


@dataclass
class Daemon:
    """A ``serve`` that runs, with what it logs."""

    process: subprocess.Popen[bytes]
    log: Path
    origin: Origin
    _port: int = field(default=0, init=False)

    @property
    def web(self) -> Client:
        if not self._port:
            self.until(lambda: "listening" in self.events())
            said = self.log.read_text(encoding="utf-8")
            self._port = int(re.findall(r'"port": (\d+)', said)[0])
        return Client(self._port)

    def events(self) -> list[str]:
        lines = self.log.read_text(encoding="utf-8").splitlines()
        return [json.loads(line)["event"] for line in lines if line.startswith("{")]

    def until(self, condition: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE_S
        while not condition():
            assert self.process.poll() is None, self.log.read_text(encoding="utf-8")
            assert time.monotonic() < end, self.log.read_text(encoding="utf-8")
            time.sleep(0.02)

    def stop(self) -> float:
        """Stop it as a service manager does; return how long that took in seconds."""
        began = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(15)
        return time.monotonic() - began


@contextmanager
def serving(origin: Origin, **settings: str) -> Iterator[Daemon]:
    given = {
        "REGISTRY": str(origin.path),
        "STATE": str(origin.settings.state),
        "LOG": "json",
        "LISTEN": "127.0.0.1:0",
        "INTERVAL_S": "1",
    }
    mine = {f"KERNELEVOLVE_{name}": value for name, value in (given | settings).items()}
    log = origin.folder / "serve.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.daemon.scripted_cli", "serve"],
            cwd=ROOT,
            env=os.environ | mine,
            stdout=file,
            stderr=file,
        )
    try:
        yield Daemon(process, log, origin)
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


def test_it_tells_how_it_is_until_it_is_stopped(origin: Origin) -> None:
    with serving(origin) as daemon:
        health = daemon.web.ask("GET", "/healthz")
        ready = daemon.web.ask("GET", "/readyz")
        figures = daemon.web.ask("GET", "/metrics")
        took_s = daemon.stop()

    assert json.loads(health.text)["alive"] is True
    assert list(json.loads(health.text)["loops"]) == ["work"]
    assert (ready.status, figures.status) == (200, 200)
    assert "kernelevolve_goals_waiting 0.0" in figures.text.splitlines()
    assert (daemon.process.returncode, took_s < 5) == (0, True)
    assert daemon.events()[-1] == "daemon stopped"


def test_goals_that_end_are_counted(origin: Origin) -> None:
    origin.add_operator("better 2.0")
    with serving(origin) as daemon:
        daemon.until(lambda: "goal ended" in daemon.events())
        wanted = 'kernelevolve_goals_ended_total{verdict="better"} 1.0'
        daemon.until(lambda: wanted in daemon.web.ask("GET", "/metrics").text)


def test_an_origin_that_is_away_is_a_fault_and_no_reason_to_restart(origin: Origin) -> None:
    with serving(origin) as daemon:
        daemon.until(lambda: daemon.web.ask("GET", "/readyz").status == 200)
        origin.path.rename(origin.path.with_suffix(".away"))
        daemon.until(lambda: '"faults":["work"]' in daemon.web.ask("GET", "/healthz").text)
        assert daemon.web.ask("GET", "/healthz").status == 200
        origin.path.with_suffix(".away").rename(origin.path)
        daemon.until(lambda: '"faults":[]' in daemon.web.ask("GET", "/healthz").text)


def test_a_pause_stops_what_runs_and_holds_until_it_is_ended(
    origin: Origin, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 1.5; better 2.0")
    with serving(origin) as daemon, open_store(origin.settings) as store:
        daemon.until(notes.exists)
        pause(store, "a hot day")
        daemon.until(lambda: "search handed back" in daemon.events())
        paused = daemon.web.ask("GET", "/healthz").text
        started = daemon.events().count("search started")
        time.sleep(1.5)
        assert daemon.events().count("search started") == started
        resume(store)
        daemon.until(lambda: "goal ended" in daemon.events())

    assert '"paused":true' in paused
    assert "hot day" not in paused  # strangers may read it


def test_a_pause_outlives_the_process(origin: Origin) -> None:
    with open_store(origin.settings) as store:
        pause(store, "")
    origin.add_operator("better 2.0")

    with serving(origin) as daemon:
        daemon.until(lambda: '"paused":true' in daemon.web.ask("GET", "/healthz").text)
        daemon.until(lambda: "registry read" in daemon.events())
        time.sleep(1.5)
        assert "search started" not in daemon.events()


def test_a_stop_with_a_search_under_way_takes_less_than_ten_seconds(
    origin: Origin, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    origin.add_operator(f"note {notes}; sleep 60; better 2.0")
    with serving(origin) as daemon:
        daemon.until(notes.exists)
        assert daemon.web.ask("GET", "/readyz").status == 200
        took_s = daemon.stop()

    assert (daemon.process.returncode, took_s < 10) == (0, True)
    assert "search handed back" in daemon.events()


def test_a_database_that_is_away_is_told_of_and_no_reason_to_restart(
    origin: Origin, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: Store, key: str) -> str:
        raise StoreError(key)

    with open_bot(origin.settings, jobs=SCRIPTED, is_stopped=lambda: False) as bot:
        stop = threading.Event()
        site = make_site(bot, Metrics(bot.store, bot.health, clock=time.time), None, stop)
        assert site.is_ready()
        with monkeypatch.context() as away:
            away.setattr(Store, "recall", fail)
            assert (site.find_health().alive, site.find_health().faults) == (True, ("store",))
            assert not site.is_ready()
        stop.set()
        assert not site.is_ready()


def github(secrets: Path | str) -> dict[str, str]:
    return {
        "REGISTRY": "",
        "FORGE": "github",
        "GITHUB_REPOSITORY": "acme/kernels",
        "GITHUB_TOKEN": "ghp_of_nobody",
        "WEBHOOK_SECRETS": str(secrets),
    }


@pytest.mark.parametrize("content", [None, "", "short", "one long enough for it\n" * 3], ids=str)
def test_without_a_secret_that_protects_it_does_not_start(
    origin: Origin, tmp_path: Path, content: str | None
) -> None:
    secrets = tmp_path / "secrets"
    if content is not None:
        secrets.write_text(content, encoding="utf-8")

    with serving(origin, **github("" if content is None else secrets)) as daemon:
        daemon.process.wait(30)

    assert daemon.process.returncode == 2
    assert "KERNELEVOLVE_WEBHOOK_SECRETS" in daemon.log.read_text(encoding="utf-8")
    assert "listening" not in daemon.events()


def test_an_address_that_is_taken_is_said_so(origin: Origin, tmp_path: Path) -> None:
    with serving(origin) as first:
        taken = str(first.web.port)
        other = Origin(tmp_path / "other")
        with serving(other, LISTEN=f"127.0.0.1:{taken}") as second:
            second.process.wait(30)

    assert second.process.returncode == 1
    assert "in use" in second.log.read_text(encoding="utf-8")
