"""Skips what this machine can't run, and gives tests a git remote of their own."""

import shutil
import subprocess
from pathlib import Path

import pytest


def _has_gpu() -> bool:
    return shutil.which("nvidia-smi") is not None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if _has_gpu():
        return
    for item in items:
        if "gpu" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="no accelerator on this machine"))


@pytest.fixture(scope="session")
def state(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Artefacts and compiled peers of every judge, so that peers are compiled once."""
    return tmp_path_factory.mktemp("judge")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    """A bare git repository with nothing in it."""
    path = tmp_path / "origin.git"
    subprocess.run(["git", "init", "--quiet", "--bare", "-b", "main", str(path)], check=True)
    return path
