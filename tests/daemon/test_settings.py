from pathlib import Path

import pytest

from daemon.settings import Settings, SettingsError, read_secrets


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


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("127.0.0.1:8080", ("127.0.0.1", 8080)),
        ("[::1]:80", ("::1", 80)),
        ("localhost:0", ("localhost", 0)),
        ("", None),
    ],
)
def test_the_address_to_listen_at_is_a_host_and_a_port(
    text: str, found: tuple[str, int] | None
) -> None:
    assert Settings.load({"KERNELEVOLVE_LISTEN": text}).listen_at == found


@pytest.mark.parametrize(
    "text", ["8080", "host:", ":80", "ho st:80", "::1:80", "host:80/path", "host:70000"]
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match="KERNELEVOLVE_LISTEN"):
        Settings.load({"KERNELEVOLVE_LISTEN": text})


def test_secrets_stand_in_a_file_one_or_two_of_them(tmp_path: Path) -> None:
    file = tmp_path / "secrets"
    file.write_text("the new one of 2026\n\n  the old one of 2025\n", encoding="utf-8")

    assert read_secrets(file) == (b"the new one of 2026", b"the old one of 2025")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "0 lines with a secret"),
        (" \n\n", "0 lines with a secret"),
        ("short", "shorter than 16"),
        ("one that is long enough\nx", "shorter than 16"),
        ("one that is long enough\n" * 3, "3 lines"),
    ],
)
def test_secrets_that_protect_nothing_are_refused(tmp_path: Path, text: str, why: str) -> None:
    file = tmp_path / "secrets"
    file.write_text(text, encoding="utf-8")

    with pytest.raises(SettingsError, match=why):
        read_secrets(file)


def test_no_secret_is_no_secret(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="KERNELEVOLVE_WEBHOOK_SECRETS is not set"):
        read_secrets(None)
    with pytest.raises(SettingsError, match="No such file"):
        read_secrets(tmp_path / "missing")


def test_there_is_no_model_unless_one_is_named() -> None:
    assert Settings.load({"KERNELEVOLVE_LLM_TEMPERATURE": "0.2"}).model is None


def test_a_model_is_what_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = Settings.load(
        {
            "KERNELEVOLVE_LLM_URL": "http://127.0.0.1:8080/v1",
            "KERNELEVOLVE_LLM_MODEL": "tiny",
            "KERNELEVOLVE_LLM_KEY_FILE": "key",
            "KERNELEVOLVE_LLM_MODE": "direct",
            "KERNELEVOLVE_LLM_MAX_TOKENS": "100",
            "KERNELEVOLVE_LLM_USD_OUT": "15",
            "KERNELEVOLVE_LLM_SEARCH_TOKENS": "100000",
        }
    )

    model = settings.model
    assert model is not None
    assert (model.name, model.mode, model.key_file) == ("tiny", "direct", tmp_path / "key")
    assert (model.reply_tokens, model.usd_out, model.search_tokens) == (100, 15.0, 100_000)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"URL": "http://h/v1"}, "both or neither"),
        ({"MODEL": "tiny"}, "both or neither"),
        ({"URL": "http://me:word@h/v1", "MODEL": "tiny"}, "KERNELEVOLVE_LLM_URL"),
        ({"URL": "http://h/v1", "MODEL": "synthesis"}, "KERNELEVOLVE_LLM_MODEL"),
        ({"URL": "http://h/v1", "MODEL": "tiny", "MODE": "rule"}, "KERNELEVOLVE_LLM_MODE"),
    ],
)
def test_a_model_that_can_not_be_is_an_error(given: dict[str, str], told: str) -> None:
    with pytest.raises(SettingsError, match=told):
        Settings.load({f"KERNELEVOLVE_LLM_{name}": value for name, value in given.items()})
