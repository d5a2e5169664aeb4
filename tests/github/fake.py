"""A stateful GitHub of one repository on 127.0.0.1, over a real bare repository.

    with FakeGitHub(tmp_path) as github:
        github.api_url        # "http://127.0.0.1:PORT/api/v3": the REST API's (and GraphQL's) root
        github.git_url        # "http://127.0.0.1:PORT/octo/kernels.git", by git http-backend
        github.full_name      # "octo/kernels"

Who the program is: an App (`app_id`, `installation_id`, `private_key` as PEM, `bot` = its user
``kernelevolve[bot]``), or a person by a token (`make_token(login)`). The tokens of installations
live `quirks.token_life_s` by `clock`; `permissions` is what the App has; `expire_tokens()`.
`installation_token(**permissions)` hands one out without the App's key.

What people do (a login that nobody has joins; give rights by `set_role`):
    .set_role(login, "write")               .comment(number, login, body) -> id
    .edit_comment(id, body, login)          .delete_comment(id)
    .close(number, login)  .reopen(number, login)  .merge(number, login) -> sha
    .open_issue(login, title, body, labels=()) -> number      .edit_issue(number, login, body=…)
    .push(branch, files, login, base="main") -> sha           files: path -> text, bytes or None
    .delete_branch(branch, login)           .label(number, name, login)  .delete_label(name)
    .open_pull_request(login, branch, title="…", body="…") -> number   of a branch that is there
    .open_pull_request_from_fork(login, files, title="…", body="…") -> number
    .push_to_fork(number, files) -> sha
    .start_run(id)  .end_run(id, "success", {"result": {"out.json": b"…"}})     Actions' runners
    .rerequest_check(id, login)             .rename(login, new)
What is there: .world.{tickets,comments,labels,checks,statuses,runs,artifacts,users,teams,
protected,private}, `.git` (heads(), read(), log(), …), `.reactions(comment_id)` as
(login, content), `.pulls()`, `.issues()`.

`.clock` is a callable that returns seconds since 1970; set it to any other, such as a FakeClock.
`.requests` logs what came: method, path, query, body, status, the caller's login, the time.
`.deliveries` are the webhooks, signed by `hook_secret`, whether sent or not; they are posted to
`hook_url` once that is set (`drain_deliveries()` waits for it); `post_delivery(delivery, url)`
sends one by hand. `GET /app/hook/deliveries` and redelivery work. `.quirks` are
in `tests.github.quirks`.
`.impatient` are requests that came while a limit's wait was on. Every request and answer is held
against GitHub's own description (see `tests.github.contract`): what is not as it says stands in
`.violations`, and fails the test when the context ends.
"""

import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.github import (  # noqa: F401 - their routes enter the table
    routes_actions,
    routes_app,
    routes_checks,
    routes_issues,
    routes_pulls,
    routes_repository,
)
from tests.github.access import Access, app_key
from tests.github.contract import find_faults_of_delivery, find_violations, is_at_hand
from tests.github.front import API, Front
from tests.github.hooks import Hooks, post
from tests.github.limits import Limits, Logged
from tests.github.people import People
from tests.github.quirks import Quirks
from tests.github.repository import Repository
from tests.github.server import Server
from tests.github.state import Delivery, User
from tests.github.world import World

APP_PERMISSIONS = {
    "actions": "write",
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
}


class FakeGitHub(People):
    """See the module."""

    def __init__(  # noqa: PLR0913 - what a test may want to choose
        self,
        folder: Path,
        *,
        clock: Callable[[], float] = time.time,
        owner: str = "octo",
        name: str = "kernels",
        files: dict[str, str] | None = None,
        contract: bool = True,
    ) -> None:
        """Make the repository, with a first commit by its owner on ``main``.

        Args:
            folder: Where the repository is made.
            clock: Seconds since 1970.
            owner: Whose it is.
            name: The repository's.
            files: What its first commit holds.
            contract: Whether requests and answers are held against GitHub's description; without
                npm, which brings it, they are not.
        """
        self.clock = clock
        self._checks = contract and is_at_hand()
        self.hooks = Hooks(Quirks())
        world = World(
            folder=folder / "github",
            clock=lambda: self.clock(),  # noqa: PLW0108 - a test may set another
            quirks=self.hooks.quirks,
            name=name,
            owner=User(1, owner, role="admin"),
            bot=User(2, "kernelevolve[bot]", "Bot"),
            app_id=4242,
            installation_id=77,
            permissions=dict(APP_PERMISSIONS),
            hook_secret="hook secret",  # noqa: S106 - of a fake
            deliver=self._deliver,
        )
        super().__init__(world)
        self.access = Access(world)
        self.front = Front(world, self.access, self.lock, Limits(world.quirks))
        self.front.contract = find_violations if self._checks else None
        self._server: Server | None = None
        self.push("main", files or {"README.md": "# kernels\n"}, owner, message="first")
        world.deliveries.clear()

    def _deliver(self, delivery: Delivery) -> None:
        if self._checks:
            self.front.violations += find_faults_of_delivery(delivery)
        self.hooks.take(delivery)

    def __enter__(self) -> Self:
        """Start to serve."""
        self._server = Server(self.front.answer)
        self.world.base = self._server.url
        self.hooks.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop; fail where requests or answers were not as GitHub describes them."""
        self.hooks.stop()
        assert self._server
        self._server.close()
        if kind is None and self.front.violations:
            raise AssertionError("\n".join(dict.fromkeys(self.front.violations)))

    @property
    def api_url(self) -> str:
        return self.world.base + API

    @property
    def git_url(self) -> str:
        return f"{self.world.base}/{self.full_name}.git"

    @property
    def full_name(self) -> str:
        return self.world.full_name

    @property
    def git(self) -> Repository:
        return self.world.git

    @property
    def bot(self) -> User:
        return self.world.bot

    @property
    def app_id(self) -> int:
        return self.world.app_id

    @property
    def installation_id(self) -> int:
        return self.world.installation_id

    @property
    def private_key(self) -> str:
        return app_key()[0]

    @property
    def permissions(self) -> dict[str, str]:
        return self.world.permissions

    @property
    def quirks(self) -> Quirks:
        return self.world.quirks

    @property
    def requests(self) -> list[Logged]:
        return self.front.limits.requests

    @property
    def impatient(self) -> list[Logged]:
        return self.front.limits.impatient

    @property
    def violations(self) -> list[str]:
        """What was not as GitHub describes it: a test that asks amiss on purpose clears it."""
        return self.front.violations

    @property
    def deliveries(self) -> list[Delivery]:
        return self.world.deliveries

    @property
    def hook_secret(self) -> str:
        return self.world.hook_secret

    @property
    def hook_url(self) -> str | None:
        return self.world.hook_url

    @hook_url.setter
    def hook_url(self, url: str | None) -> None:
        self.world.hook_url = self.hooks.url = url

    def make_token(self, login: str) -> str:
        """Return a personal token of somebody."""
        return self.access.add_user_token(self.world.user(login))

    def installation_token(self, **permissions: str) -> str:
        """Return a token of the App's installation; with all that the App may by default."""
        return self.access.add_installation_token(permissions)[0]

    def expire_tokens(self) -> None:
        """Make every token so far useless."""
        self.access.revoke_all()

    def post_delivery(self, delivery: Delivery, url: str) -> int:
        """Send a webhook now and return the status of the answer."""
        return post(delivery, url)

    def drain_deliveries(self) -> None:
        """Wait until the webhooks so far are sent."""
        self.hooks.drain()
