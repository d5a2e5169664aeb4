"""A registry's origin in a temporary folder, and what people commit to it."""

import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from daemon.host import detect_host
from daemon.jobs import Jobs
from daemon.origin import Signature
from daemon.settings import Settings
from daemon.workspace import Workspace, make_origin
from operator_registry.registry import CATALOG

ME = Signature("me", "me@localhost", "2026-11-30T12:00:00+00:00")
SCRIPTED = Jobs((sys.executable, "-m", "tests.daemon.scripted_job"))
HERE = detect_host().cpu


@dataclass
class Origin:
    """A bare repository with a registry of the host's own hardware, without operators."""

    folder: Path
    hardware: tuple[str, ...] = (HERE,)
    budget_s: float = 20.0
    path: Path = field(init=False)
    git: Workspace = field(init=False)

    def __post_init__(self) -> None:
        """Make it."""
        self.path = self.folder / "origin.git"
        make_origin(self.path)
        self.git = Workspace(str(self.path), self.folder / "people.git")
        self._push(self.git.commit(None, "", self.first_files(), message="first", by=ME), None)

    @property
    def settings(self) -> Settings:
        return Settings(registry=str(self.path), state=self.folder / "state")

    @property
    def head(self) -> str:
        return self.git.find_heads().branches["main"]

    def first_files(self) -> dict[str, bytes]:
        names = ", ".join(self.hardware)
        files = {
            "registry.yaml": f"schema: 1\nhardware: [{names}]\nbudget_s: {self.budget_s}\n".encode()
        }
        for name in self.hardware:
            files[f"hardware/{name}.yaml"] = (CATALOG / "hardware" / f"{name}.yaml").read_bytes()
        return files

    def add_operator(self, script: str | None = None, *, name: str = "gelu_bias") -> str:
        """Commit an operator of the catalogue; its summary is what a scripted job is to do."""
        folder = CATALOG / "operators" / name
        spec = (folder / "operator.yaml").read_text(encoding="utf-8")
        if script is not None:
            spec = re.sub(r"(?m)^summary:.*$", f"summary: '{script}'", spec)
        files = {"operator.yaml": spec, "reference.py": (folder / "reference.py").read_text()}
        return self.commit(f"operators/{name}", files)

    def add_cheap_operator(self) -> str:
        """Commit an operator with one form and one small size: its peers are measured soon."""
        folder = CATALOG / "operators" / "gelu_bias"
        spec = (folder / "operator.yaml").read_text(encoding="utf-8")
        start, _ = spec.split("equivalents:")
        spec = (
            f"{start}workloads:\n"
            "  - {name: r128-c512, sizes: {rows: 128, cols: 512}, dtypes: {T: float32}}\n"
        )
        files = {"operator.yaml": spec, "reference.py": (folder / "reference.py").read_text()}
        return self.commit("operators/gelu_bias", files)

    def commit(self, folder: str, files: dict[str, str]) -> str:
        """Put these files in the place of a folder, as a commit on the branch ``main``."""
        head = self.git.fetch("main")
        content = {name: text.encode() for name, text in files.items()}
        return self._push(self.git.commit(head, folder, content, message=folder, by=ME), head)

    def merge(self, branch: str) -> str:
        head = self.git.fetch("main")
        return self._push(self.git.fetch(branch), head)

    def branches(self) -> set[str]:
        return set(self.git.find_heads().branches)

    def run_git(self, *arguments: str) -> str:
        done = subprocess.run(
            ["git", *arguments], cwd=self.path, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def _push(self, sha: str, expected: str | None) -> str:
        self.git.push("main", sha, expected=expected)
        return sha
