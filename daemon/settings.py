"""How this installation is set up. The one module that reads the environment."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)

from optimizer.propose.model import Mode, ModelSettings, refuse_our_names

PREFIX = "KERNELEVOLVE_"
LogFormat = Literal["auto", "json", "text"]
_FILES = frozenset(
    {"ceilings", "github_private_key", "llm_key_file", "signing_key", "webhook_secrets"}
)
_LAST_PORT = 65535
_SHORTEST_SECRET = 16
_MOST_SECRETS = 2


class SettingsError(Exception):
    """The environment holds a setting that can't be; the message names it and says what can."""


class Settings(BaseModel):
    """All settings. Each is read from ``KERNELEVOLVE_`` and its name in capitals."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    registry: str = ""
    """The registry's git origin: a URL, or the path of a repository."""
    folder: str = Field(default="", pattern=r"^([A-Za-z0-9_][A-Za-z0-9._-]*/?)*$")
    """Where ``registry.yaml`` lies in that repository; empty for its root."""
    base: str = ""
    """The branch that pull requests go to; empty for the origin's own default."""
    state: Path
    """Everything that must outlive the process: database, clone, artefacts, kernels."""
    store: str = ""
    """URL of the database; empty for SQLite in the state folder."""
    artefacts_gb: float = Field(default=20.0, gt=0)
    """So much may be kept of builds, samples and records; what was used least lately goes first."""
    forge: Literal["local", "github"] = "local"
    github_repository: str = Field(
        default="", pattern=r"^([A-Za-z0-9][A-Za-z0-9_-]*/\.*[A-Za-z0-9_-][A-Za-z0-9._-]*)?$"
    )
    """``owner/name`` of the registry's repository on GitHub."""
    github_api: str = Field(default="https://api.github.com", pattern=r"^https?://[^\s@?#]+$")
    """The address of GitHub's API; an own server's is ``https://HOST/api/v3``."""
    github_app_id: int | None = Field(default=None, gt=0)
    """The GitHub App that we are; None where we are a person, by a token."""
    github_private_key: Path | None = None
    """The file with the App's private key."""
    github_installation_id: int | None = Field(default=None, gt=0)
    """Which installation of the App we are; where it is None, GitHub is asked for it."""
    github_token: SecretStr = SecretStr("")
    """A person's or a machine's token, in place of an App."""
    actions_workflow: str = Field(default="", pattern=r"^([A-Za-z0-9_][A-Za-z0-9_.-]*\.ya?ml)?$")
    """The workflow that searches where this machine lacks the hardware; empty for none."""
    actions_at_once: int = Field(default=4, ge=1, le=256)
    """So many of its runs are waited for at once."""
    cpus: int = Field(default=1, ge=1, le=64)
    """How many devices this machine's cores make, each with its own share of them."""
    ray: str = ""
    """The address of a Ray cluster whose hosts have devices; empty for none."""
    lease_s: float = Field(default=120.0, ge=3)
    """Who is the scheduler and says nothing for so long has lost that role to a stand-by."""
    ceilings: Path | None = None
    """A file with what no configuration may go beyond; see `daemon.config.file.Ceilings`."""
    onboarding: bool = True
    """Ask a registry without configuration by a pull request first; not with the local forge."""
    interval_s: float = Field(default=60.0, ge=1)
    """`serve` looks at the registry once in so many seconds."""
    listen: str = Field(default="", pattern=r"^(([A-Za-z0-9.-]+|\[[0-9a-fA-F:.]+\]):\d{1,5})?$")
    """Where `serve` listens, as ``host:port``; empty for nowhere."""
    webhook_secrets: Path | None = None
    """The file with the webhook's secret; two lines with two while it is changed."""
    warm_start: float = Field(default=0.1, ge=0, le=1)
    """The probability with which a kernel proven for the like is tried first in a new search."""
    log: LogFormat = "auto"
    """``auto``: colours on a terminal, JSON lines otherwise."""
    signing_key: Path | None = None
    """The private key that kernels are signed with; see ``kernelevolve key new``."""
    trusted_keys: str = Field(default="", pattern=r"^([0-9a-f]{64}(,[0-9a-f]{64})*)?$")
    """Public keys in hex, by commas. Where there are some, `verify` asks for one's signature."""
    accept_weak_sandbox: bool = False
    """Let foreign proposers' candidates run where `doctor` misses a wall around foreign code."""
    llm_url: str = Field(default="", pattern=r"^(https?://[^\s@?#]+)?$")
    """Where a language model is served that talks as OpenAI's do; empty for none."""
    llm_model: Annotated[str, AfterValidator(refuse_our_names)] = Field(default="", max_length=200)
    """As that endpoint calls it; candidates that it writes bear this name."""
    llm_key_file: Path | None = None
    """The file with the endpoint's key alone; jobs get its path, never the key."""
    llm_mode: Mode = "both"
    """``write``: it writes kernels. ``direct``: it picks among our own moves."""
    llm_temperature: float = Field(default=0.6, ge=0, le=2)
    llm_max_tokens: int = Field(default=8192, ge=16, le=1_000_000)
    """Of a reply."""
    llm_prompt_tokens: int = Field(default=24_000, ge=500, le=1_000_000)
    """Of a prompt: what is least important is left out."""
    llm_timeout_s: float = Field(default=90.0, gt=0)
    llm_at_once: int = Field(default=2, ge=1, le=64)
    """So many questions are put at the same time."""
    llm_usd_in: float = Field(default=0.0, ge=0)
    """What a million tokens of prompts cost."""
    llm_usd_out: float = Field(default=0.0, ge=0)
    """What a million tokens of replies cost."""
    llm_search_tokens: int | None = Field(default=None, gt=0)
    """A search takes no more of the model, restarts included."""
    llm_search_usd: float = Field(default=5.0, gt=0)
    author_name: str = Field(default="kernelevolve", min_length=1)
    author_email: str = Field(default="kernelevolve@localhost", min_length=1)

    @field_validator("listen")
    @classmethod
    def _name_a_port(cls, listen: str) -> str:
        if listen and int(listen.rpartition(":")[2]) > _LAST_PORT:
            msg = f"ports end at {_LAST_PORT}"
            raise ValueError(msg)
        return listen

    @model_validator(mode="after")
    def _name_a_model_and_its_place(self) -> Self:
        if bool(self.llm_url) != bool(self.llm_model):
            msg = f"{PREFIX}LLM_URL and {PREFIX}LLM_MODEL are set both or neither"
            raise ValueError(msg)
        return self

    @property
    def model(self) -> ModelSettings | None:
        """Return the language model that proposes in searches; None for none."""
        if not self.llm_url:
            return None
        return ModelSettings(
            url=self.llm_url,
            name=self.llm_model,
            key_file=self.llm_key_file,
            mode=self.llm_mode,
            temperature=self.llm_temperature,
            reply_tokens=self.llm_max_tokens,
            prompt_tokens=self.llm_prompt_tokens,
            timeout_s=self.llm_timeout_s,
            at_once=self.llm_at_once,
            usd_in=self.llm_usd_in,
            usd_out=self.llm_usd_out,
            search_tokens=self.llm_search_tokens,
            search_usd=self.llm_search_usd,
        )

    @property
    def store_url(self) -> str:
        """Return the database's URL."""
        return self.store or f"sqlite:///{self.state / 'store.sqlite'}"

    @property
    def listen_at(self) -> tuple[str, int] | None:
        """Return the host and port to listen at; None for nowhere."""
        host, _, port = self.listen.rpartition(":")
        return (host.strip("[]"), int(port)) if host else None

    @property
    def takes_webhooks(self) -> bool:
        """Return whether the code host sends us what happens; otherwise we ask, and only that."""
        return bool(self.listen) and self.forge != "local"

    @property
    def trusted(self) -> tuple[str, ...]:
        """Return the public keys that are trusted; none where any kernel is taken as it is."""
        return tuple(filter(None, self.trusted_keys.split(",")))

    @property
    def forge_folder(self) -> Path:
        """Return where the local forge keeps its records: beside the origin, if that is here."""
        origin = Path(self.registry.removeprefix("file://"))
        if self.registry and origin.is_dir():
            return origin.resolve().with_name(f"{origin.resolve().name}.forge")
        return self.state / "forge"

    @classmethod
    def load(cls, environment: Mapping[str, str] | None = None) -> Self:
        """Return the settings that the environment holds.

        Raises:
            SettingsError: A setting is unknown, or its value can't be.
        """
        environment = os.environ if environment is None else environment
        given = {
            name.removeprefix(PREFIX).lower(): value
            for name, value in environment.items()
            if name.startswith(PREFIX) and value
        }
        given.setdefault("state", str(_default_state(environment)))
        given["state"] = _absolute(given["state"])
        for name in _FILES & given.keys():
            given[name] = _absolute(given[name])
        if _is_path(given.get("registry", "")):
            # git works in the clone's folder, where a relative path would lead elsewhere.
            given["registry"] = _absolute(given["registry"])
        try:
            return cls.model_validate(given)
        except ValidationError as error:
            raise SettingsError(_explain(error)) from error


def environment_of_jobs(
    environment: Mapping[str, str] | None = None, *, gpu: str = ""
) -> dict[str, str]:
    """Return the variables that a job may know: all but ours, as tokens are among those.

    Args:
        environment: This process's, unless given.
        gpu: The one that CUDA shall show to the job; all that it shows us, where that is empty.
    """
    environment = os.environ if environment is None else environment
    known = {name: value for name, value in environment.items() if not name.startswith(PREFIX)}
    return known | ({"CUDA_VISIBLE_DEVICES": gpu} if gpu else {})


def read_secrets(file: Path | None) -> tuple[bytes, ...]:
    """Return the webhook's secrets.

    Raises:
        SettingsError: There is no such file, or what it holds would protect nothing.
    """
    name = f"{PREFIX}WEBHOOK_SECRETS"
    if file is None:
        msg = f"{name} is not set: webhooks are not taken from whoever sends one; write a secret "
        raise SettingsError(msg + "into a file and name it there")
    try:
        secrets = tuple(filter(None, map(bytes.strip, file.read_bytes().splitlines())))
    except OSError as error:
        msg = f"{name}={file}: {error.strerror}"
        raise SettingsError(msg) from error
    if not 1 <= len(secrets) <= _MOST_SECRETS:
        msg = f"{name}={file}: it has {len(secrets)} lines with a secret; write one, or two"
        raise SettingsError(msg)
    if min(map(len, secrets)) < _SHORTEST_SECRET:
        msg = f"{name}={file}: a secret is shorter than {_SHORTEST_SECRET} signs; make a new one"
        raise SettingsError(msg)
    return secrets


def _default_state(environment: Mapping[str, str]) -> Path:
    home = environment.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "kernelevolve"


def _is_path(origin: str) -> bool:
    return bool(origin) and ":" not in origin


def _absolute(path: str) -> str:
    return str(Path(path).expanduser().absolute())


def _explain(error: ValidationError) -> str:
    known = ", ".join(PREFIX + name.upper() for name in Settings.model_fields)
    lines = []
    for fault in error.errors():
        if not fault["loc"]:  # of several settings together
            lines.append(fault["msg"])
            continue
        name = PREFIX + str(fault["loc"][0]).upper()
        if fault["type"] == "extra_forbidden":
            lines.append(f"{name}: no such setting; there are {known}")
        else:
            lines.append(f"{name}={fault['input']}: {fault['msg']}")
    return "\n".join(lines)
