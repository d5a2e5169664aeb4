"""The parts that speak to GitHub, as the settings say."""

import stat
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from daemon.forge import ForgeError
from daemon.github.access import Access, App, Token
from daemon.github.client import GitHubClient
from daemon.origin import OriginUnavailableError
from daemon.settings import Settings, SettingsError

_HERE = frozenset({"127.0.0.1", "::1", "localhost"})
_OTHERS = stat.S_IRWXG | stat.S_IRWXO
_OWN_SERVER = "/api/v3"


def make_client(settings: Settings) -> GitHubClient:
    """Return what asks GitHub; nothing is asked yet.

    Raises:
        SettingsError: The settings do not say whom, or as whom, or would give a secret away.
    """
    _require_repository(settings)
    api = urlsplit(settings.github_api)
    if api.scheme != "https" and api.hostname not in _HERE:
        msg = f"KERNELEVOLVE_GITHUB_API={settings.github_api}: a token is only sent by https"
        raise SettingsError(msg)
    return GitHubClient(
        repository=settings.github_repository,
        access=_make_access(settings),
        api=settings.github_api,
    )


def find_origin(settings: Settings) -> str:
    """Return the address that git reaches the repository at.

    Raises:
        SettingsError: The registry that is set is another one than GitHub's repository.
    """
    _require_repository(settings)
    api = urlsplit(settings.github_api)
    host = api.netloc.removeprefix("api.")
    path = api.path.rstrip("/").removesuffix(_OWN_SERVER)
    derived = f"{api.scheme}://{host}{path}/{settings.github_repository}.git"
    if not settings.registry or _same(settings.registry, derived):
        return settings.registry or derived
    msg = (
        f"KERNELEVOLVE_REGISTRY={settings.registry} is not the repository that "
        f"KERNELEVOLVE_GITHUB_REPOSITORY and KERNELEVOLVE_GITHUB_API name; leave it away: "
        f"it is {derived}"
    )
    raise SettingsError(msg)


def make_credentials(settings: Settings, origin: str) -> Callable[[], Mapping[str, str]] | None:
    """Return what lets git into the origin; None where ssh does.

    Raises:
        SettingsError: See `make_client`.
    """
    if urlsplit(origin).scheme not in {"http", "https"}:
        return None
    client = make_client(settings)

    def credentials() -> Mapping[str, str]:
        try:
            return client.git_configuration(origin)
        except ForgeError as error:
            raise OriginUnavailableError(origin, str(error)) from error

    return credentials


def is_readable_by_others(file: Path) -> bool:
    """Return whether other people of this machine may read or change a file."""
    return bool(file.stat().st_mode & _OTHERS)


def _require_repository(settings: Settings) -> None:
    if not settings.github_repository:
        msg = "KERNELEVOLVE_GITHUB_REPOSITORY is not set; set it to OWNER/NAME"
        raise SettingsError(msg)


def _make_access(settings: Settings) -> Access:
    token = settings.github_token.get_secret_value().strip()
    match (settings.github_app_id, settings.github_private_key, token):
        case (None, None, "") | (int(), None, "") | (None, Path(), ""):
            msg = (
                "who we are on GitHub is not set: set KERNELEVOLVE_GITHUB_APP_ID and "
                "KERNELEVOLVE_GITHUB_PRIVATE_KEY, or KERNELEVOLVE_GITHUB_TOKEN"
            )
            raise SettingsError(msg)
        case (int() as app_id, Path() as key, ""):
            return App(app_id, key, settings.github_installation_id)
        case (None, None, _):
            return Token(_checked(token))
        case _:
            msg = "KERNELEVOLVE_GITHUB_TOKEN and an App are set: remove one of them"
            raise SettingsError(msg)


def _checked(token: str) -> str:
    if not (token.isascii() and token.isprintable()) or " " in token:
        msg = "KERNELEVOLVE_GITHUB_TOKEN holds signs that no token has"
        raise SettingsError(msg)
    return token


def _same(origin: str, derived: str) -> bool:
    bare = urlsplit(origin).scheme == "http" != urlsplit(derived).scheme
    return not bare and _place(origin) == _place(derived)


def _place(origin: str) -> tuple[str, str]:
    """Return the host, with its port, and the path of an address, ssh's short form too."""
    if origin.startswith("git@") and "://" not in origin:
        host, _, path = origin.removeprefix("git@").partition(":")
    else:
        parts = urlsplit(origin)
        host, path = parts.netloc.rpartition("@")[2], parts.path
        if parts.scheme == "ssh":
            host = parts.hostname or ""
    return host.lower(), path.strip("/").removesuffix(".git").lower()
