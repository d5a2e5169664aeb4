from pathlib import Path

import pytest

from daemon.settings import Settings, SettingsError


def test_the_state_folder_follows_the_desktop_convention() -> None:
    settings = Settings.load({"XDG_STATE_HOME": "/var/lib/me"})

    assert settings.state == Path("/var/lib/me/kernelevolve")


def test_the_database_lies_in_the_state_folder_unless_a_url_says_otherwise() -> None:
    own = Settings.load({"KERNELEVOLVE_STATE": "/s"})
    shared = Settings.load({"KERNELEVOLVE_STATE": "/s", "KERNELEVOLVE_STORE": "postgresql://db/k"})

    assert own.store_url == "sqlite:////s/store.sqlite"
    assert shared.store_url == "postgresql://db/k"


def test_a_misspelt_setting_is_an_error_that_names_the_known_ones() -> None:
    with pytest.raises(SettingsError, match=r"REGISTY: no such setting.*_REGISTRY"):
        Settings.load({"KERNELEVOLVE_REGISTY": "x"})


def test_a_value_that_cannot_be_is_an_error_that_shows_it() -> None:
    with pytest.raises(SettingsError, match="KERNELEVOLVE_INTERVAL_S=often"):
        Settings.load({"KERNELEVOLVE_INTERVAL_S": "often"})


@pytest.mark.parametrize("folder", ["../up", "/root", "a/../b", "-x"])
def test_the_registry_folder_stays_inside_the_repository(folder: str) -> None:
    with pytest.raises(SettingsError, match="KERNELEVOLVE_FOLDER"):
        Settings.load({"KERNELEVOLVE_FOLDER": folder})


def test_the_local_forge_keeps_its_records_beside_a_local_origin(tmp_path: Path) -> None:
    origin = tmp_path / "origin.git"
    origin.mkdir()

    settings = Settings.load({"KERNELEVOLVE_REGISTRY": str(origin)})

    assert settings.forge_folder == tmp_path / "origin.git.forge"


def test_an_empty_variable_is_no_setting() -> None:
    assert Settings.load({"KERNELEVOLVE_LOG": ""}).log == "auto"


def test_a_relative_path_of_the_origin_is_taken_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    here = Settings.load({"KERNELEVOLVE_REGISTRY": "registry.git"})
    there = Settings.load({"KERNELEVOLVE_REGISTRY": "https://example.org/registry.git"})

    assert here.registry == str(tmp_path / "registry.git")
    assert there.registry == "https://example.org/registry.git"
