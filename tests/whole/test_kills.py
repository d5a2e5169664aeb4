"""Real SIGKILLs of ``kernelevolve serve`` before the fake of GitHub."""

import random
import time
from pathlib import Path

import pytest

from optimizer.store import Store
from tests.github.accounts import find_doubled, find_lost, is_quiet
from tests.github.stage import OPERATOR, OWNER, WRITER, Stage, operator_files
from tests.github.test_command_drill import Real, serving, wait

pytestmark = pytest.mark.drill
KILLS = 20
_LATEST_S = 3.0
_CONFIG = """\
version: 1
limits: {commands_per_hour: 1000, commits_per_hour: 1000, pull_requests_per_hour: 1000}
"""


def act(stage: Stage, issue: int, number: int) -> None:
    """Do something as people do: a version of the operator, or a command."""
    script = f"trial 1; sleep 0.3; better {2 + number / 10}"
    pulls = [pull for pull in stage.own_pulls() if pull.state == "open"]
    if number % 4 == 0:
        files = operator_files(script, version=number)
        stage.github.push("main", files, OWNER)
    elif number % 4 == 1 and pulls:
        stage.github.comment(pulls[-1].number, WRITER, f"/optimize budget={number}s")
    elif number % 4 == 2:
        stage.github.comment(issue, WRITER, f"/optimize op={OPERATOR}\n/status")
    elif pulls and number > KILLS // 2:
        stage.github.merge(pulls[-1].number, OWNER)
    else:
        stage.github.comment(issue, WRITER, "/explain queue")


def test_killed_twenty_times_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    moments = random.Random(4)  # noqa: S311 - moments, not secrets
    with Real(tmp_path, config=_CONFIG) as stage:
        issue = stage.github.open_issue(OWNER, "Faster, please")
        with serving(stage) as log:
            wait(lambda: "configuration holds" in log.read_text(), log)
        for number in range(KILLS):
            act(stage, issue, number)
            with serving(stage):
                time.sleep(_LATEST_S * moments.random())
        with Store(stage.settings.store_url) as store, serving(stage) as log:
            wait(lambda: is_quiet(store) and not [*find_lost(stage.github, store)], log, most_s=240)
            time.sleep(2 * _LATEST_S)
            assert [*find_lost(stage.github, store)] == []
            assert store.commands()
        assert [*find_doubled(stage.github)] == []
        assert stage.own_pulls()
