"""Every payload of @octokit/webhooks-examples, as it is and changed, goes through the receiver."""

import json
import time
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import pytest

from daemon.config.file import BotConfig
from daemon.talk.intake import Intake
from daemon.web.health import Health
from daemon.web.metrics import Metrics
from daemon.web.server import Reception, Site, serving
from daemon.web.webhooks import EVENTS, Addressee
from optimizer.store import Store
from tests.daemon.web_client import SECRET, Client
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_clock, open_forge
from tests.github.npm import unpack
from tests.github.state import Json

pytestmark = pytest.mark.drill
PACKAGE, FILE = "@octokit/webhooks-examples@7.6.1", "api.github.com/index.json"
REPOSITORY = "Codertocat/Hello-World"


@dataclass(frozen=True)
class Example:
    event: str
    payload: Json

    @property
    def of_ours(self) -> bool:
        named = str((self.payload.get("repository") or {}).get("full_name", ""))
        return named.lower() == REPOSITORY.lower()

    @property
    def wanted(self) -> bool:
        actions = EVENTS.get(self.event)
        if actions is None or not self.of_ours:
            return False
        return not actions or self.payload.get("action") in actions

    def with_changes(self, **changes: object) -> "Example":
        return Example(self.event, deepcopy(self.payload) | changes)


@dataclass
class Bench:
    store: Store
    client: Client
    examples: list[Example]
    folder: Path

    def send(self, example: Example) -> int:
        self.client.event = example.event
        return self.client.deliver(json.dumps(example.payload).encode()).status

    def take_in(self) -> None:
        """Let the daemon's own intake look at all that was delivered, until nothing is awaited."""
        with FakeGitHub(self.folder / f"host-{time.monotonic_ns()}") as github:
            clock = make_clock(github)
            forge = open_forge(github, clock=clock)
            clock.now_s = time.time()
            intake = Intake(forge, self.store, BotConfig, clock)
            while True:
                before = len(self.store.unhandled_deliveries(limit=10_000))
                intake.run()
                clock.now_s += 61
                if not before:
                    break


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    listed = json.loads((unpack(PACKAGE, FILE) / FILE).read_text(encoding="utf-8"))
    examples = [Example(kind["name"], payload) for kind in listed for payload in kind["examples"]]
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.migrate()
        health = Health(time.monotonic)
        site = Site(
            Reception(Addressee((SECRET,), REPOSITORY), store, time.time, lambda _: None),
            find_health=lambda: health.report(paused=False),
            is_ready=lambda: True,
            render_metrics=Metrics(store, health, clock=time.time).render,
        )
        with serving(site, "127.0.0.1", 0) as port:
            yield Bench(store, Client(port), examples, tmp_path)


def kept(store: Store) -> list[Example]:
    found = store.unhandled_deliveries(limit=10_000)
    return [Example(one.event, json.loads(one.body)) for one in found]


@pytest.mark.parametrize("ours", [False, True], ids=["as it is", "as of our repository"])
def test_every_example_is_taken_or_left_by_its_kind(bench: Bench, *, ours: bool) -> None:
    change = {"repository": {"full_name": REPOSITORY}} if ours else {}
    examples = [Example(e.event, _merged(e.payload, change)) for e in bench.examples]

    told = [bench.send(example) for example in examples]

    wanted = [example for example in examples if example.wanted]
    assert len(examples) > 300
    assert told == [202 if example.wanted else 204 for example in examples]
    assert sorted(map(str, kept(bench.store))) == sorted(map(str, wanted))
    assert not ours or {example.event for example in wanted} == set(EVENTS)


def test_a_delivery_is_a_hint_and_never_a_command(bench: Bench) -> None:
    """The bodies say `/stop`; nobody has written that on the host, so that nothing is done."""
    for example in bench.examples:
        if example.event == "issue_comment":
            comment = example.payload["comment"] | {"body": "/stop\n/optimize\n"}
            bench.send(example.with_changes(comment=comment, action="created"))

    bench.take_in()

    assert kept(bench.store) == []
    assert bench.store.commands() == ()
    assert bench.store.due_effects(now=1e12) == ()


@pytest.mark.parametrize(
    "change",
    [
        {"issue": {"pull_request": {"url": "https://api.github.com/x"}}},
        {"sender": {"type": "Bot", "login": "eve[bot]"}},
        {"comment": {"author_association": "NONE"}},
        {"comment": {"user": None}},
        {"comment": {"id": "1; DROP TABLE deliveries"}},
        {"comment": None},
        {"issue": None},
        {"action": "deleted"},
        {"action": ["created"]},
        {"action": None},
        {"installation": {"id": 10**400}},
        {"repository": None},
        {"repository": {"full_name": "eve/Hello-World"}},
        {"pull_request": {"head": {"repo": {"fork": True, "full_name": "eve/Hello-World"}}}},
        {"extra": {"nested": [[[[{}]]]]}},
    ],
    ids=lambda change: json.dumps(change)[:60],
)
def test_changed_examples_are_answered_and_harmless(bench: Bench, change: Json) -> None:
    for example in bench.examples:
        if example.event in EVENTS:
            told = bench.send(Example(example.event, _merged(example.payload, change)))
            assert told in {202, 204}, (example.event, told)

    bench.take_in()

    assert kept(bench.store) == []
    assert bench.store.commands() == ()


def test_the_same_payload_under_another_number_does_nothing_more(bench: Bench) -> None:
    example = next(e for e in bench.examples if e.wanted)

    told = [bench.send(example) for _ in range(3)]
    bench.take_in()

    assert told == [202, 202, 202]
    assert bench.store.commands() == ()


def _merged(whole: Json, change: Json) -> Json:
    """Return a payload with some of its parts, at any depth, put in the place of others."""
    made = deepcopy(whole)
    for name, value in change.items():
        old = made.get(name)
        both = isinstance(value, dict) and isinstance(old, dict)
        made[name] = _merged(old or {}, value) if both else value
    return made
