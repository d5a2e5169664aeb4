"""The whole path: a push to the registry, a search, a pull request, a command, an update, a merge.

Each quirk of the code host is turned on by some run; every request and answer is held against
GitHub's own description.
"""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest

from daemon.jobs import Jobs
from daemon.pulls.pull_request import find_marker
from tests.daemon.origins import HERE, Origin
from tests.github.accounts import find_doubled, find_lost
from tests.github.quirks import Fault, FaultKind, Quirks
from tests.github.stage import BRANCH, OPERATOR, OWNER, WRITER, InstantJobs, Stage

PATH = f"kernels/{OPERATOR}/{HERE}"
_MOST_ROUNDS = 60
Weather = Callable[[Quirks], None]


def setting(**changes: object) -> Weather:
    def change(quirks: Quirks) -> None:
        for name, value in changes.items():
            setattr(quirks, name, value)

    return change


def failing(
    kind: FaultKind, *, at: str = "", times: int = 2, retry_after_s: int | None = None
) -> Weather:
    def change(quirks: Quirks) -> None:
        for method in ("GET", "POST", "PATCH", "PUT"):
            quirks.faults.append(Fault(kind, method, at, times, retry_after_s, slow_s=0.2))

    return change


_API = "^/repos"
"""Git's own requests have other limits, of which nobody is told."""
GOOD: dict[str, Weather] = {"a good day": setting()}
BAD: dict[str, Weather] = {
    "pages of two": setting(most_per_page=2),
    "nobody knows at first whether it can be merged": setting(mergeable_after_looks=2),
    "what is new is not there yet": setting(hidden_looks=2),
    "lists lag behind": setting(stale_lists=2),
    "no ETags": setting(etags=False),
    "tokens that end soon": setting(token_life_s=320.0),
    "a small quota": setting(requests_per_hour=60),
    "few writes a minute, 403": setting(writes_per_minute=3, secondary_status=403),
    "few writes a minute, 429": setting(writes_per_minute=3, secondary_status=429),
    "few writes a minute, no Retry-After": setting(writes_per_minute=3, says_retry_after=False),
    "few writes an hour": setting(writes_per_hour=12),
    "every second webhook is lost": setting(drop_deliveries_every=2),
    "every webhook is lost": setting(drop_deliveries_every=1),
    "every webhook comes twice": setting(double_deliveries_every=1),
    "webhooks overtake each other": setting(reorder_deliveries=True),
    "associations mislead": setting(associations_mislead=True),
    "addresses lead elsewhere": setting(foreign_urls=True),
    "pages shift while they are read": setting(shifted_pages=True, most_per_page=2),
    "a plan without drafts": setting(knows_drafts=False),
    "few points a minute": setting(points_per_minute=60),
    "archived for a while": setting(archived=True),
    "suspended for a while": setting(suspended=True),
    "502 before": failing("502 before"),
    "502 after the effect": failing("502 after"),
    "502 after a pull request is there": failing("502 after", at="/pulls$"),
    "502 after a push is there": failing("502 after", at="receive-pack"),
    "502 after a comment is there": failing("502 after", at="/comments$"),
    "the line is cut before": failing("hangs up before"),
    "the line is cut after": failing("hangs up after"),
    "500": failing("500"),
    "503": failing("503"),
    "401": failing("401", times=1),
    "404": failing("404"),
    "403, a secondary limit": failing("403 secondary", at=_API, times=1),
    "403 with Retry-After": failing("403 secondary", at=_API, times=1, retry_after_s=90),
    "429": failing("429", at=_API, times=1),
    "429 with Retry-After": failing("429", at=_API, times=1, retry_after_s=90),
    "403, the quota": failing("403 primary", at=_API, times=1, retry_after_s=600),
    "a page of HTML": failing("html"),
    "slow": failing("slow"),
}


def wait(stage: Stage, condition: Callable[[], bool]) -> None:
    """Let the daemon work until something is so; an hour or so at most."""
    for number in range(_MOST_ROUNDS):
        stage.github.drain_deliveries()
        stage.turn()
        stage.round(pass_s=3.0 if number < 10 else 120.0)
        if condition():
            return
    faults = stage.bot.health.report(paused=False).faults
    raise AssertionError((faults, stage.store.pending_goals(), stage.commands()))


def walk(stage: Stage) -> None:
    github, jobs = stage.github, stage.jobs
    assert isinstance(jobs, InstantJobs)

    stage.push_operator("better 2.0")
    wait(stage, lambda: bool(stage.own_pulls()) and not stage.store.pending_goals())
    (pull,) = stage.own_pulls()
    assert (pull.pull and pull.pull.head, pull.title) == (
        BRANCH,
        f"{OPERATOR}: 2.00x faster on {HERE}",
    )
    wait(stage, lambda: "kernelevolve" in pull.labels)
    wait(
        stage, lambda: any(c.name.startswith("kernelevolve") for c in github.world.checks.values())
    )

    jobs.ratio = 3.0
    comment = github.comment(pull.number, WRITER, "Please look again.\n\n/optimize budget=30s")
    wait(stage, lambda: "hooray" in stage.reactions(comment))
    assert "eyes" in stage.reactions(comment)
    assert "3.00x" in pull.title
    marker = find_marker(pull.body or "")
    assert marker is not None
    assert [past.what for past in marker.history] == ["proposed", "replaced"]
    assert github.git.git("rev-list", "--count", f"main..{BRANCH}") == "1"

    github.merge(pull.number, OWNER)
    wait(stage, lambda: BRANCH not in github.git.heads())
    assert "evidence.json" in github.git.git("ls-tree", "--name-only", "main", f"{PATH}/")
    again = github.comment(pull.number, WRITER, "/optimize budget=40s")
    wait(stage, lambda: "hooray" in stage.reactions(again))
    assert [p.number for p in stage.own_pulls()] == [pull.number]


@pytest.mark.parametrize(
    "weather",
    [*GOOD, *(pytest.param(name, marks=pytest.mark.drill) for name in BAD)],
)
def test_from_a_push_to_a_merged_kernel(tmp_path: Path, weather: str) -> None:
    with Stage(tmp_path, jobs=InstantJobs()) as stage, stage.listening():
        stage.round()
        quirks = stage.github.quirks
        (GOOD | BAD)[weather](quirks)
        if quirks.archived or quirks.suspended:
            stage.push_operator("better 2.0")
            stage.turn()
            stage.rounds(3, pass_s=61)
            quirks.archived = quirks.suspended = False

        walk(stage)

        stage.github.quirks.faults.clear()
        stage.github.drain_deliveries()
        stage.rounds(3, pass_s=61)
        assert list(find_doubled(stage.github)) == []
        assert list(find_lost(stage.github, stage.store)) == []
        assert stage.github.impatient == []


def test_every_quirk_is_turned_on_by_some_whole_path() -> None:
    turned: set[str] = set()
    kinds: set[str] = set()
    for change in BAD.values():
        quirks, usual = Quirks(), Quirks()
        change(quirks)
        names = (field.name for field in fields(Quirks))
        turned |= {name for name in names if getattr(quirks, name) != getattr(usual, name)}
        kinds |= {fault.kind for fault in quirks.faults}

    assert turned == {field.name for field in fields(Quirks)}
    assert kinds == set(FaultKind.__args__)  # type: ignore[attr-defined] # of a Literal


@pytest.mark.drill
def test_a_real_search_ends_in_main(tmp_path: Path) -> None:
    cheap = Origin(tmp_path / "cheap")
    cheap.add_cheap_operator()
    files = cheap.git.files(cheap.git.fetch("main"), "operators", under=[OPERATOR])
    with Stage(tmp_path, jobs=Jobs()) as stage:
        stage.round()
        stage.github.push("main", {f"operators/{n}": text for n, text in files.items()}, OWNER)
        stage.turn()
        (goal,) = stage.store.finished_goals(limit=10)
        if goal.verdict != "better":  # a busy machine proves nothing, and then there is nothing
            assert stage.own_pulls() == []
            return
        (pull,) = stage.own_pulls()
        comment = stage.github.comment(pull.number, WRITER, "/verify budget=20s")
        wait(stage, lambda: bool({"+1", "confused"} & set(stage.reactions(comment))))
        stage.github.merge(pull.number, OWNER)
        wait(stage, lambda: BRANCH not in stage.github.git.heads())
        assert "evidence.json" in stage.github.git.git("ls-tree", "--name-only", "main", f"{PATH}/")
