from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.bot import open_store
from daemon.config.file import BotConfig, Ceilings, Limits
from daemon.config.watch import ConfigWatch, load_ceilings
from daemon.settings import SettingsError
from daemon.workspace import Workspace
from tests.daemon.origins import ME, Origin


@pytest.fixture
def origin(tmp_path: Path) -> Origin:
    return Origin(tmp_path)


@pytest.fixture
def watch(origin: Origin, tmp_path: Path) -> Iterator[ConfigWatch]:
    with open_store(origin.settings) as store:
        yield ConfigWatch(Workspace(str(origin.path), tmp_path / "clone.git"), store)


def test_a_registry_without_configuration_has_the_defaults(watch: ConfigWatch) -> None:
    watch.run()

    assert watch.in_force() == BotConfig()
    assert watch.find_hold() is None
    assert watch.is_there() is False


def test_nothing_may_be_done_before_the_first_look(watch: ConfigWatch) -> None:
    assert watch.in_force().pause
    assert watch.is_there() is None


def test_the_configuration_of_the_base_branch_holds(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_run: true\n"})

    watch.run()

    assert watch.in_force() == BotConfig(dry_run=True)


def test_that_of_another_branch_never_does(origin: Origin, watch: ConfigWatch) -> None:
    head = origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_run: true\n"})
    free = origin.git.commit(head, ".github", {}, message="free", by=ME)
    origin.git.push("evil", free, expected=None)

    watch.run()

    assert watch.in_force().dry_run


def test_a_broken_one_leaves_the_last_good_one_in_force(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_run: true\n"})
    watch.run()
    origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_rum: false\n"})

    watch.run()

    assert watch.in_force() == BotConfig(dry_run=True)
    assert watch.find_faults() == (
        ".github/kernelevolve.yml:2: unknown key dry_rum; did you mean 'dry_run'?",
    )


def test_where_none_was_ever_good_nothing_is_done(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_rum: true\n"})

    watch.run()

    assert watch.in_force().pause
    assert watch.find_hold() == ".github/kernelevolve.yml is broken, and none before it was good"


def test_one_that_is_mended_holds_and_its_faults_are_forgotten(
    origin: Origin, watch: ConfigWatch
) -> None:
    origin.commit(".github", {"kernelevolve.yml": ""})
    watch.run()
    origin.commit(".github", {"kernelevolve.yml": "version: 1\n"})

    watch.run()

    assert (watch.find_faults(), watch.in_force()) == ((), BotConfig())


def test_one_that_is_removed_holds_no_longer(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_run: true\n"})
    watch.run()
    origin.commit(".github", {})

    watch.run()

    assert watch.in_force() == BotConfig()


def test_it_outlives_the_process(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\ndry_run: true\n"})
    watch.run()

    again = ConfigWatch(watch.workspace, watch.memory)

    assert again.in_force() == BotConfig(dry_run=True)


def test_a_pause_has_its_reason(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\npause: true\n"})

    watch.run()

    assert watch.in_force() == BotConfig(pause=True)
    assert watch.find_hold() == ".github/kernelevolve.yml says `pause: true`"


def test_a_registry_that_must_have_one_waits_for_it(watch: ConfigWatch) -> None:
    asking = ConfigWatch(watch.workspace, watch.memory, is_required=True)

    asking.run()

    assert asking.find_hold() == "there is no .github/kernelevolve.yml yet"
    assert asking.in_force().pause


def test_a_ceiling_can_not_be_exceeded(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yml": "version: 1\nlimits: {open_pull_requests: 99}\n"})
    ceilings = Ceilings(limits=Limits(open_pull_requests=2))
    capped = ConfigWatch(watch.workspace, watch.memory, ceilings=ceilings)

    capped.run()

    assert capped.in_force().limits.open_pull_requests == 2


def test_the_other_usual_ending_is_told_not_passed_over(origin: Origin, watch: ConfigWatch) -> None:
    origin.commit(".github", {"kernelevolve.yaml": "version: 1\n"})

    watch.run()

    assert watch.find_faults() == (
        ".github/kernelevolve.yaml:1: is not read under this name; rename it to kernelevolve.yml",
    )


def test_ceilings_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "ceilings.yml"
    path.write_text("version: 1\nlimits: {search_minutes: 5}\n")

    assert load_ceilings(path) == Ceilings(limits=Limits(search_minutes=5))
    assert load_ceilings(None) == Ceilings()


def test_a_file_that_is_away_is_an_error_of_the_settings(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="KERNELEVOLVE_CEILINGS"):
        load_ceilings(tmp_path / "nowhere.yml")
