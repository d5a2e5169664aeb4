"""A registry on the fake of GitHub, and the daemon's parts that look after it there."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from daemon.bot import open_store
from daemon.config.watch import ConfigWatch
from daemon.gate import Gate
from daemon.github.forge import GitHubForge
from daemon.settings import Settings
from daemon.watch import Changed, Watch
from daemon.workspace import Workspace
from operator_registry.registry import CATALOG
from optimizer.store import Store
from tests.daemon.origins import HERE
from tests.fakes import FakeClock
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_clock, open_forge

OWNER = "octo"
CONFIG = ".github/kernelevolve.yml"


@dataclass
class Hosted:
    """What a test looks at."""

    github: FakeGitHub
    host: GitHubForge
    workspace: Workspace
    store: Store
    config: ConfigWatch
    watch: Watch
    gate: Gate
    clock: FakeClock

    def push(self, files: dict[str, str | bytes | None], branch: str = "main") -> str:
        return self.github.push(branch, dict(files), OWNER)

    def look(self) -> None:
        """Look at the registry and its configuration, as a turn of the daemon begins."""
        seen = self.watch.look()
        self.config.look(seen.revision)
        if isinstance(seen, Changed):
            self.watch.accept(seen)


@contextmanager
def open_hosted(
    folder: Path, files: dict[str, str] | None = None, *, is_required: bool = False
) -> Iterator[Hosted]:
    """Serve a registry with one operator; `files` are added to it."""
    with FakeGitHub(folder, files=registry_files() | (files or {})) as github:
        clock = make_clock(github)
        host = open_forge(github, clock=clock)
        settings = Settings(state=folder / "state")

        def credentials() -> Mapping[str, str]:
            return host.client.git_configuration(github.git_url)

        workspace = Workspace(github.git_url, settings.state / "registry.git", credentials)
        with open_store(settings) as store:
            config = ConfigWatch(workspace, store, is_required=is_required)
            yield Hosted(
                github=github,
                host=host,
                workspace=workspace,
                store=store,
                config=config,
                watch=Watch(workspace, store, "", ""),
                gate=Gate(config, store, clock),
                clock=clock,
            )


def registry_files() -> dict[str, str]:
    """Return a registry of one operator and this machine's hardware."""
    paths = (
        f"hardware/{HERE}.yaml",
        "operators/gelu_bias/operator.yaml",
        "operators/gelu_bias/reference.py",
    )
    texts = {path: (CATALOG / path).read_text(encoding="utf-8") for path in paths}
    return {"registry.yaml": f"schema: 1\nhardware: [{HERE}]\nbudget_s: 1800\n", **texts}
