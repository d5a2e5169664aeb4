"""How much memory a daemon takes with a thousand open goals. The margin is wide."""

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from daemon.bot import open_store
from operator_registry.registry import CATALOG
from tests.daemon.origins import Origin

pytestmark = [pytest.mark.drill, pytest.mark.timeout(580)]
ROOT = Path(__file__).parents[2]
GOALS = 1000
MOST_MB = 400


def add_operators(origin: Origin) -> None:
    folder = CATALOG / "operators" / "gelu_bias"
    spec = (folder / "operator.yaml").read_text(encoding="utf-8")
    source = (folder / "reference.py").read_text(encoding="utf-8")
    files = {}
    for number in range(GOALS):
        named = re.sub(r"(?m)^name:.*$", f"name: gelu_bias_{number}", spec)
        files[f"gelu_bias_{number}/operator.yaml"] = named
        files[f"gelu_bias_{number}/reference.py"] = source
    origin.commit("operators", files)


def memory_mb(process: int, *, what: str) -> float:
    """Return the memory of a process in MB: ``VmRSS`` now, ``VmHWM`` at its peak."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(re.findall(rf"^{what}:\s+(\d+) kB$", status, re.MULTILINE)[0]) / 1e3


def test_a_daemon_with_a_thousand_open_goals_is_small(tmp_path: Path) -> None:
    origin = Origin(tmp_path, hardware=("h200",))
    add_operators(origin)
    environment = {
        **os.environ,
        "KERNELEVOLVE_REGISTRY": str(origin.path),
        "KERNELEVOLVE_STATE": str(origin.settings.state),
        "KERNELEVOLVE_INTERVAL_S": "1",
    }
    code = "import sys; from daemon.cli.main import main; sys.exit(main())"
    with (tmp_path / "log").open("w") as log:
        daemon = subprocess.Popen(
            [sys.executable, "-c", code, "serve"], cwd=ROOT, env=environment, stderr=log
        )
    try:
        with open_store(origin.settings) as store:
            end_s = time.monotonic() + 400
            while len(store.pending_goals()) < GOALS and time.monotonic() < end_s:
                assert daemon.poll() is None, (tmp_path / "log").read_text()
                time.sleep(1)
        time.sleep(20)  # some turns with all of them held
        now_mb = memory_mb(daemon.pid, what="VmRSS")
        peak_mb = memory_mb(daemon.pid, what="VmHWM")
        maps = Path(f"/proc/{daemon.pid}/maps").read_text(encoding="ascii")
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(60)
    print(f"resident: {now_mb:.0f} MB, at its peak {peak_mb:.0f} MB")  # noqa: T201 - by `pytest -s`
    assert "libtorch" not in maps
    assert peak_mb < MOST_MB
