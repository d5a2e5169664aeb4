"""The forge and the receiver against a GitHub and a validator that others wrote.

What emulate lacks it answers with 404; what the forge sent is validated all the same.
"""

import base64
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest
import requests

from daemon.forge import Check, ForgeRefusedError, NotThereError, PullRequestDraft
from daemon.github.access import PERMISSIONS, App
from daemon.github.client import GitHubClient
from daemon.github.forge import GitHubForge
from daemon.web.health import Health
from daemon.web.metrics import Metrics
from daemon.web.server import Reception, Site, serving
from daemon.web.webhooks import Addressee
from optimizer.store import Store
from tests.fakes import FakeClock
from tests.github.outside import APP_ID, HOOK_SECRET, INSTALLATION_ID, Emulated, emulating

pytestmark = pytest.mark.drill
DRAFT = PullRequestDraft(title="Faster", body="By 2x", head="work", base="main", labels=("fast",))
ALL = {name: level for grants in PERMISSIONS.values() for name, level in grants.items()}


@dataclass
class Bench:
    github: Emulated
    store: Store

    def open_forge(self, *, installation_id: int | None = INSTALLATION_ID) -> GitHubForge:
        access = App(APP_ID, self.github.private_key, installation_id)
        clock = FakeClock(time.time())  # so that waits for our own limits take no time

        def sleep(seconds: float) -> None:
            clock.now_s += seconds

        api = self.github.api
        return GitHubForge(GitHubClient("octo/kernels", access, api, clock=clock, sleep=sleep))

    def delivered(self) -> list[tuple[str, str | None]]:
        found = self.store.unhandled_deliveries(limit=1000)
        return [(one.event, json.loads(one.body).get("action")) for one in found]

    def wait_for(self, event: str, action: str) -> None:
        ends_at = time.monotonic() + 10
        while (event, action) not in self.delivered():
            assert time.monotonic() < ends_at, f"{event} {action} did not come"
            time.sleep(0.05)


@contextmanager
def receiving(store: Store) -> Iterator[str]:
    """Serve the real receiver and yield the address of its webhook."""
    health = Health(time.monotonic)
    site = Site(
        Reception(
            addressee=Addressee((HOOK_SECRET.encode(),), "octo/kernels", INSTALLATION_ID),
            inbox=store,
            clock=time.time,
            on_delivery=lambda _: None,
        ),
        find_health=lambda: health.report(paused=False),
        is_ready=lambda: True,
        render_metrics=Metrics(store, health, clock=time.time).render,
    )
    with serving(site, "127.0.0.1", 0) as port:
        yield f"http://127.0.0.1:{port}/webhook"


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    folder = tmp_path_factory.mktemp("emulate")
    with Store(f"sqlite:///{folder / 'store.sqlite'}") as store:
        store.migrate()
        with receiving(store) as webhook, emulating(folder, ALL, webhook) as github:
            github.push("work", "a.txt", base64.b64encode(b"fast").decode())
            yield Bench(github, store)


def test_the_forge_works_on_a_github_of_others(bench: Bench) -> None:
    forge = bench.open_forge(installation_id=None)

    made = forge.open_pull_request(DRAFT)
    bench.wait_for("pull_request", "opened")
    changed = forge.update_pull_request(made.number, DRAFT.model_copy(update={"title": "More"}))
    bare = forge.update_pull_request(made.number, DRAFT.model_copy(update={"labels": ()}))
    comment = forge.add_comment(made.number, "hello")
    forge.edit_comment(comment.id, "measured")
    bench.github.comment(made.number, "/status")
    bench.wait_for("issue_comment", "created")
    issue = forge.open_issue("Board", "nothing", ("board",))
    closed = forge.update_issue(issue.number, title="Board", body="still", state="closed")
    check = Check(
        name="kernelevolve / verify", head_sha=made.head_sha, status="in_progress",
        title="Running", summary="soon", external_id="job-1",
    )  # fmt: skip
    forge.show_check(check)
    done = {"status": "completed", "conclusion": "success"}
    forge.show_check(check.model_copy(update=done))

    assert (changed.title, changed.labels, bare.labels) == ("More", ("fast",), ())
    assert forge.pull_requests(head="work")[0].number == made.number
    assert forge.pull_request(made.number).head_sha == made.head_sha
    assert [c.body for c in forge.comments_on(made.number)] == ["measured", "/status"]
    assert comment.author.is_bot
    assert forge.issues(label="board") == (closed,)
    assert (forge.permission("octo"), forge.permission("ann")) == ("admin", "none")
    assert (forge.file("README.md", ref="main") or "").startswith("# kernels")
    assert forge.file("nothing", ref="main") is None
    assert forge.close_pull_request(made.number).state == "closed"
    assert forge.reopen_pull_request(made.number).state == "open"
    with pytest.raises(ForgeRefusedError):
        forge.open_pull_request(DRAFT.model_copy(update={"head": "nowhere"}))


def test_what_is_lacking_there_was_well_asked_for(bench: Bench) -> None:
    forge = bench.open_forge()
    number = forge.open_issue("Gaps", "", ("gaps",)).number
    comment = forge.add_comment(number, "hello")

    for ask in (
        lambda: forge.react(comment.id, "eyes"),
        lambda: forge.comments(since="2026-01-01T00:00:00Z"),
        lambda: forge.ask_for_review(number, ("ann", "octo/team")),
        lambda: forge.dispatch("search.yml", ref="main", inputs={"tag": "t"}),
        lambda: forge.workflow_runs("search.yml"),
        lambda: forge.cancel_run(1),
        lambda: forge.artefact(1, "result"),
    ):
        with pytest.raises(NotThereError):
            ask()


def test_prism_sees_what_is_wrong(bench: Bench) -> None:
    """Else no violation would mean nothing."""
    recorder, url = bench.github.recorder, f"{bench.github.api}/repos/octo/kernels"
    good = len(recorder.seen)

    requests.post(f"{url}/check-runs", json={"name": "n", "status": "sleeping"}, timeout=20)
    requests.get(f"{url}/pulls?state=ajar", timeout=20)
    requests.get(f"{bench.github.api}/nonsense", timeout=20)

    bad = recorder.seen[good:]
    del recorder.seen[good:]
    assert [bool(seen.violations) for seen in bad] == [True, True, True]


def test_no_request_violates_githubs_description(bench: Bench) -> None:
    """The last test: it looks at what all of the others sent."""
    seen = bench.github.recorder.seen

    assert len(seen) > 40
    assert [(s.method, s.path, s.violations) for s in seen if s.violations] == []
