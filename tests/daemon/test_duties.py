from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from daemon.bot import open_bot
from daemon.duties import ANSWERS, COMMANDS, UPKEEP, make_lanes
from daemon.settings import Settings
from daemon.steward import Duty
from tests.daemon.origins import SCRIPTED, Origin


def lanes(settings: Settings) -> Mapping[str, Sequence[Duty]]:
    with open_bot(settings, jobs=SCRIPTED, is_stopped=lambda: False) as bot:
        return make_lanes(bot)


def github(folder: Path, **changes: object) -> Settings:
    """Return settings by which nobody is asked anything yet."""
    key = folder / "app.pem"
    key.write_text("a key")
    key.chmod(0o600)
    given = {
        "state": folder / "state",
        "forge": "github",
        "github_repository": "acme/kernels",
        "github_app_id": 7,
        "github_private_key": key,
        "listen": "127.0.0.1:0",
    }
    return Settings.model_validate(given | changes)


def names(found: Mapping[str, Sequence[Duty]], lane: str) -> list[str]:
    return [duty.name for duty in found[lane]]


def test_where_the_code_host_has_no_people_there_are_no_stewards(tmp_path: Path) -> None:
    assert lanes(Origin(tmp_path).settings) == {}


def test_people_are_answered_by_a_steward_that_does_nothing_else(tmp_path: Path) -> None:
    found = lanes(github(tmp_path))

    assert list(found) == [ANSWERS, COMMANDS, UPKEEP]
    assert names(found, ANSWERS) == ["intake", "stops", "acknowledgements"]


def test_what_was_acknowledged_is_said_before_the_daemon_ends(tmp_path: Path) -> None:
    found = lanes(github(tmp_path))

    assert [d.name for lane in found.values() for d in lane if d.at_the_end] == ["acknowledgements"]


def test_while_paused_nothing_runs_that_does_not_heed_it(tmp_path: Path) -> None:
    """The others' own tests show that they send only acknowledgements then."""
    upkeep = [duty for duty in lanes(github(tmp_path))[UPKEEP] if duty.while_paused]

    assert [duty.name for duty in upkeep] == ["configuration", "redelivery"]


def test_a_registry_without_a_configuration_is_asked_and_told_and_no_more(tmp_path: Path) -> None:
    upkeep = [duty for duty in lanes(github(tmp_path))[UPKEEP] if duty.while_on_hold]

    assert [duty.name for duty in upkeep] == [
        "configuration", "configuration notice", "registry check", "onboarding", "redelivery",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "changes",
    [
        {"listen": ""},
        {"github_app_id": None, "github_private_key": None, "github_token": "ghp_of_nobody"},
    ],
    ids=["no webhooks", "no App"],
)
def test_only_an_app_with_a_webhook_asks_for_what_was_missed(
    tmp_path: Path, changes: dict[str, object]
) -> None:
    assert "redelivery" in names(lanes(github(tmp_path)), UPKEEP)
    other = tmp_path / "other"
    other.mkdir()
    assert "redelivery" not in names(lanes(github(other, **changes)), UPKEEP)


def test_who_wants_no_onboarding_asks_nobody(tmp_path: Path) -> None:
    assert "onboarding" not in names(lanes(github(tmp_path, onboarding=False)), UPKEEP)
