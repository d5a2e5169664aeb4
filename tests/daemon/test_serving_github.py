"""``kernelevolve serve`` as a process before the fake of GitHub, by the real clock."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from daemon.bot import open_store
from daemon.pause import pause, resume
from daemon.settings import Settings
from tests.daemon.origins import Origin
from tests.daemon.test_serving import Daemon, serving
from tests.github.fake import FakeGitHub
from tests.github.stage import CONFIG, OPERATOR, WRITER, operator_files
from tests.processes import runs_module

pytestmark = pytest.mark.drill
SECRET = "a secret that is long enough"  # noqa: S105 - of a fake


@dataclass
class Hosted:
    """A daemon and the code host that it works for."""

    daemon: Daemon
    github: FakeGitHub
    settings: Settings

    def reactions(self, comment_id: int) -> list[str]:
        return [content for _, content in self.github.reactions(comment_id)]

    def ask(self, words: str, *, number: int | None = None) -> tuple[int, float]:
        """Have a person write a command; return its number and how long its eyes took."""
        number = number or self.github.open_issue(WRITER, "a question")
        began = time.monotonic()
        comment = self.github.comment(number, WRITER, words)
        self.daemon.until(lambda: "eyes" in self.reactions(comment))
        return comment, time.monotonic() - began

    def jobs(self) -> list[psutil.Process]:
        """Return the searches that run."""
        below = psutil.Process(self.daemon.process.pid).children(recursive=True)
        return [child for child in below if runs_module(child, "tests.daemon.scripted_job")]


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    files = {name: text.decode() for name, text in Origin(tmp_path / "other").first_files().items()}
    with FakeGitHub(tmp_path, files=files | {CONFIG: "version: 1\n"}) as github:
        github.world.hook_secret = SECRET
        github.set_role(WRITER, "write")
        yield github


@contextmanager
def hosted(github: FakeGitHub, folder: Path, *, webhooks: bool) -> Iterator[Hosted]:
    origin = Origin(folder / "other2")
    key, secrets = folder / "app.pem", folder / "hook_secrets"
    key.write_text(github.private_key)
    key.chmod(0o600)
    secrets.write_text(SECRET)
    given = {
        "REGISTRY": "",
        "FORGE": "github",
        "GITHUB_REPOSITORY": github.full_name,
        "GITHUB_API": github.api_url,
        "GITHUB_APP_ID": str(github.app_id),
        "GITHUB_INSTALLATION_ID": str(github.installation_id),
        "GITHUB_PRIVATE_KEY": str(key),
        "WEBHOOK_SECRETS": str(secrets),
    }
    with serving(origin, **given) as daemon:
        if webhooks:
            github.hook_url = f"http://127.0.0.1:{daemon.web.port}/webhook"
        daemon.until(lambda: "registry read" in daemon.events())
        daemon.until(lambda: "configuration holds" in daemon.events())
        yield Hosted(daemon, github, origin.settings)
    github.hook_url = None


@pytest.mark.parametrize("webhooks", [True, False], ids=["told", "by looking"])
def test_a_command_is_acknowledged_within_five_seconds(
    github: FakeGitHub, tmp_path: Path, *, webhooks: bool
) -> None:
    with hosted(github, tmp_path, webhooks=webhooks) as here:
        _, first_s = here.ask("/status")
        _, second_s = here.ask("/status")
        took_s = here.daemon.stop()

    assert max(first_s, second_s) < 5.0
    assert (here.daemon.process.returncode, took_s < 9) == (0, True)
    assert "duty failed" not in here.daemon.events()


def test_a_search_that_is_stopped_by_a_comment_is_gone_within_ten_seconds(
    github: FakeGitHub, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    with hosted(github, tmp_path, webhooks=True) as here:
        github.push("main", operator_files(f"note {notes}; sleep 60; better 2.0"), WRITER)
        here.daemon.until(notes.exists)
        (job,) = here.jobs()
        with open_store(here.settings) as store:
            (goal,) = store.pending_goals()
        began = time.monotonic()
        here.ask(f"/stop {goal.key[:8]}")
        here.daemon.until(lambda: not job.is_running())
        took_s = time.monotonic() - began

    assert took_s < 10.0
    # That a turn lasts longer than the clock's interval is no news.
    assert not [event for event in here.daemon.events() if "skipped" in event]


def test_while_paused_a_question_is_answered_and_nothing_else_is_written(
    github: FakeGitHub, tmp_path: Path
) -> None:
    with hosted(github, tmp_path, webhooks=True) as here, open_store(here.settings) as store:
        pause(store, "a hot day")
        asked = github.open_issue(WRITER, "a question")
        here.ask("/status", number=asked)
        wanted = github.open_issue(WRITER, "a wish")
        comment = github.comment(wanted, WRITER, f"/optimize op={OPERATOR}")
        github.push("main", operator_files("better 2.0"), WRITER)
        time.sleep(8.0)
        assert [p for p in github.pulls() if p.user.id == github.bot.id] == []
        resume(store)
        here.daemon.until(lambda: len(github.pulls()) == 1)
        here.daemon.until(lambda: "eyes" in here.reactions(comment))
