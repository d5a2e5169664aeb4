"""The order of imports and the doors to the world, as the design states them."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ORDER = ("operator_registry", "knowledge", "optimizer", "daemon")
MODULES = sorted(
    path
    for package in ORDER
    for path in (ROOT / package).rglob("*.py")
    if "catalog" not in path.parts
)
DOORS = {
    "cryptography": {"optimizer/signing.py"},
    "optuna": {"optimizer/landscapes/tpe.py"},
    "openai": {"optimizer/propose/llm.py"},
    "httpx2": {"optimizer/propose/llm.py"},
    "github": {"daemon/github/client.py"},
    "git": {"daemon/workspace.py", "daemon/git_trees.py"},
    "psycopg": set(),  # SQLAlchemy's affair
    "apscheduler": {"daemon/schedule.py"},
    "ray": {"optimizer/runners/ray.py"},
    "starlette": {"daemon/web/server.py"},
    "uvicorn": {"daemon/web/server.py"},
    "prometheus_client": {"daemon/web/metrics.py"},
    "sqlite3": {"knowledge/full_text.py", "optimizer/store/engine.py"},  # there for a type
}
"""Which modules may import a part of the world."""
TORCH_FREE = (
    "operator_registry.registry", "operator_registry.diff", "operator_registry.workloads",
    "knowledge.evidence", "knowledge.verdict", "knowledge.library", "knowledge.diagnosis",
    "optimizer.store", "optimizer.kernel", "optimizer.job", "daemon.cli.main",
)  # fmt: skip


@cache
def parse(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module


def needed(path: Path) -> set[str]:
    """Return what a module imports when it runs, not what its annotations alone name."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    return set(imported(tree))


@cache
def roots(path: Path) -> set[str]:
    return {name.split(".")[0] for name in imported(parse(path))}


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_run_one_way(path: Path) -> None:
    package = path.relative_to(ROOT).parts[0]
    above = set(ORDER[ORDER.index(package) + 1 :])

    assert not roots(path) & (above | {"kernels", "tests"})


@pytest.mark.parametrize("library", DOORS)
def test_each_part_of_the_world_has_one_door(library: str) -> None:
    users = {str(path.relative_to(ROOT)) for path in MODULES if library in roots(path)}

    assert users <= DOORS[library]


def test_the_database_engine_is_opened_in_the_store_only() -> None:
    users = {path.relative_to(ROOT).parts[:2] for path in MODULES if "sqlalchemy" in roots(path)}

    assert users <= {("optimizer", "store")}


def test_only_settings_reads_the_environment() -> None:
    readers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv"}
    }

    # The child starter copies an allow-list of variables for the process it is about to start;
    # processes of other programs are asked for theirs through psutil.
    # The red team plants a secret there, for cheats to look for.
    assert readers <= {
        "daemon/settings.py",
        "optimizer/evaluate/sandbox.py",
        "optimizer/evaluate/sweeping.py",
        "optimizer/redteam/bait.py",
    }


def test_only_the_command_line_prints() -> None:
    printers = {
        str(path.relative_to(ROOT))
        for path in MODULES
        for node in ast.walk(parse(path))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "print"
    }

    assert printers <= {"daemon/cli/main.py"}


def test_what_needs_no_torch_does_not_import_it() -> None:
    code = (
        "import importlib, sys\n"
        f"for module in {TORCH_FREE}:\n"
        "    importlib.import_module(module)\n"
        "    if 'torch' in sys.modules: sys.exit(f'{module} imports torch')\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=False, capture_output=True, text=True
    )

    assert not done.stderr


def test_a_job_without_a_model_imports_no_client_of_one() -> None:
    code = "import optimizer.tasks, sys; sys.exit('openai' in sys.modules)"

    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False)

    assert done.returncode == 0


@pytest.mark.parametrize("package", ORDER)
def test_no_package_imports_in_a_circle(package: str) -> None:
    """At run time, that is: two types of which each holds the other must name each other."""
    files = [path for path in MODULES if path.relative_to(ROOT).parts[0] == package]
    names = {module_name(path): path for path in files}
    graph = {name: needed(path) & names.keys() - {name} for name, path in names.items()}

    while free := [name for name, needs in graph.items() if not needs]:
        graph = {name: needs - set(free) for name, needs in graph.items() if name not in free}

    assert not graph


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
