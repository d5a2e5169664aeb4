"""The daemon's own forge, as it speaks to the fake of GitHub, at no one's pace."""

from pathlib import Path

from daemon.github.access import Access, App, Token
from daemon.github.client import GitHubClient
from daemon.github.forge import GitHubForge
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub

NOW = 1_790_000_000.0


def make_clock(github: FakeGitHub) -> FakeClock:
    """Give the fake a clock that a sleep sets on, and return it."""
    clock = FakeClock(NOW)
    github.clock = clock
    return clock


def make_app(github: FakeGitHub, folder: Path) -> App:
    """Return the App that is installed there, its key in a file."""
    key = folder / "app.pem"
    key.write_text(github.private_key, encoding="ascii")
    key.chmod(0o600)
    return App(github.app_id, key, github.installation_id)


def make_client(
    github: FakeGitHub, access: Access | None = None, *, clock: FakeClock | None = None
) -> GitHubClient:
    """Return a client whose waits take no time; by the App where nothing else is said."""
    clock = clock or make_clock(github)

    def sleep(seconds: float) -> None:
        assert clock
        clock.now_s += seconds

    return GitHubClient(
        repository=github.full_name,
        access=access or make_app(github, github.world.folder),
        api=github.api_url,
        clock=clock,
        sleep=sleep,
    )


def open_forge(
    github: FakeGitHub, access: Access | None = None, *, clock: FakeClock | None = None
) -> GitHubForge:
    """Return the forge; see `make_client`."""
    return GitHubForge(make_client(github, access, clock=clock))


def make_person(github: FakeGitHub, login: str = "machine") -> Token:
    """Return the token of somebody who may write."""
    github.set_role(login, "write")
    return Token(github.make_token(login))
