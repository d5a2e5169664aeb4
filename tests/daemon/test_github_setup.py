from pathlib import Path

import pytest

from daemon.bot import make_forge, make_workspace
from daemon.github.access import App, Token
from daemon.github.setup import find_origin, make_client
from daemon.settings import Settings, SettingsError, environment_of_jobs

OWN_SERVER = "https://git.example.org/api/v3"


def load(**changes: str) -> Settings:
    given = {"forge": "github", "github_repository": "octo/kernels", "github_token": "ghp_x"}
    given |= changes
    return Settings.load({f"KERNELEVOLVE_{name.upper()}": value for name, value in given.items()})


@pytest.mark.parametrize(
    ("api", "origin"),
    [
        ("https://api.github.com", "https://github.com/octo/kernels.git"),
        (OWN_SERVER, "https://git.example.org/octo/kernels.git"),
        ("https://api.octo.ghe.com", "https://octo.ghe.com/octo/kernels.git"),
    ],
)
def test_the_origin_follows_from_the_api_s_address(api: str, origin: str) -> None:
    assert find_origin(load(github_api=api)) == origin


@pytest.mark.parametrize(
    "registry",
    [
        "https://github.com/octo/kernels",
        "https://github.com/Octo/Kernels.git/",
        "git@github.com:octo/kernels.git",
        "ssh://git@github.com/octo/kernels.git",
    ],
)
def test_a_registry_that_is_the_same_repository_is_taken(registry: str) -> None:
    assert find_origin(load(registry=registry)) == registry


@pytest.mark.parametrize(
    "registry",
    [
        "https://evil.example.org/octo/kernels.git",
        "https://github.com.evil.org/octo/kernels.git",
        "https://github.com/octo/other.git",
        "http://github.com/octo/kernels.git",
        "https://github.com:8443/octo/kernels.git",
        "/srv/git/kernels.git",
    ],
)
def test_a_registry_elsewhere_never_sees_a_token(registry: str) -> None:
    with pytest.raises(SettingsError, match="is not the repository"):
        make_workspace(load(registry=registry))


def test_by_ssh_git_needs_no_token() -> None:
    assert make_workspace(load(registry="git@github.com:octo/kernels.git")).credentials is None
    assert make_workspace(load()).credentials is not None


def test_an_app_or_a_token_is_who_we_are(tmp_path: Path) -> None:
    key = str(tmp_path / "key.pem")
    app = load(github_app_id="7", github_private_key=key, github_token="")

    assert make_client(load()).access == Token("ghp_x")
    assert make_client(app).access == App(7, tmp_path / "key.pem")


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"github_token": ""}, "who we are"),
        ({"github_token": "", "github_app_id": "7"}, "GITHUB_PRIVATE_KEY"),
        ({"github_app_id": "7", "github_private_key": "/k"}, "remove one"),
        ({"github_repository": ""}, "OWNER/NAME"),
        ({"github_token": "ghp x"}, "no token has"),
        ({"github_token": "ghp\x0bx"}, "no token has"),
        ({"github_api": "http://git.example.org/api/v3"}, "only sent by https"),
    ],
)
def test_settings_that_can_not_be_say_what_to_set(changes: dict[str, str], told: str) -> None:
    settings = load(**changes)

    with pytest.raises(SettingsError, match=told) as error:
        make_client(settings)

    assert "ghp" not in str(error.value)
    with pytest.raises(SettingsError):
        make_workspace(settings)


@pytest.mark.parametrize(
    "repository", ["octo", "octo/", "octo/..", "octo/a b", "../x", "octo/k/x", "-o/k"]
)
def test_a_repository_is_an_owner_and_a_name(repository: str) -> None:
    with pytest.raises(SettingsError, match="GITHUB_REPOSITORY"):
        load(github_repository=repository)


@pytest.mark.parametrize("api", ["ftp://h", "https://user@h/api", "https://h/api?x=1", "h"])
def test_an_api_s_address_is_one(api: str) -> None:
    with pytest.raises(SettingsError, match="GITHUB_API"):
        load(github_api=api)


def test_a_token_is_shown_nowhere() -> None:
    settings = load()

    shown = f"{settings!r} {settings} {settings.model_dump_json()} {make_client(settings)!r}"

    assert "ghp_x" not in shown


def test_nothing_is_asked_before_it_is_needed() -> None:
    settings = load(github_api="http://127.0.0.1:9/api/v3")

    make_forge(settings, make_workspace(settings))


def test_a_job_learns_no_secret_of_ours() -> None:
    environment = {"KERNELEVOLVE_GITHUB_TOKEN": "ghp_x", "PATH": "/bin", "KERNELEVOLVE_STORE": "s"}

    assert environment_of_jobs(environment) == {"PATH": "/bin"}
