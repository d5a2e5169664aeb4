"""How a job that is asked to stop ends; each in a process of its own."""

import signal
import subprocess
import sys
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
START = """
import subprocess, sys, time
from optimizer.stop import Stop, StoppedError
"""
CHILD = 'child = subprocess.Popen(["sleep", "60"], start_new_session=True)\n'


def start(code: str) -> tuple[subprocess.Popen[str], str]:
    """Start a process and return it with its first line."""
    process = subprocess.Popen(
        [sys.executable, "-c", START + code], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    return process, process.stdout.readline().strip()


def stop(process: subprocess.Popen[str]) -> str:
    process.send_signal(signal.SIGTERM)
    out, _ = process.communicate(timeout=30)
    return out.strip()


def is_gone(pid: int) -> bool:
    """Return whether a process has ended; in a container nobody may have reaped it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_job_between_trials_sees_that_it_is_asked() -> None:
    process, _ = start("""
with Stop() as stopped:
    print("up", flush=True)
    while not stopped():
        time.sleep(0.01)
    print("ended", flush=True)
""")

    assert stop(process) == "ended"


def test_a_job_that_is_busy_is_unwound() -> None:
    process, _ = start("""
try:
    with Stop(grace_s=0.1) as stopped:
        print("up", flush=True)
        try:
            time.sleep(60)
        except Exception:
            print("swallowed", flush=True)
except StoppedError:
    print("unwound", flush=True)
""")

    assert stop(process) == "unwound"


def test_no_child_outlives_its_job() -> None:
    process, child = start(f"""
with Stop() as stopped:
    {CHILD.strip()}
    print(child.pid, flush=True)
    while not stopped():
        time.sleep(0.01)
""")

    stop(process)

    assert is_gone(int(child))


def test_a_job_that_will_not_unwind_is_cut_off_with_its_children() -> None:
    process, child = start(f"""
with Stop(grace_s=0.1, unwind_s=0.1) as stopped:
    {CHILD.strip()}
    print(child.pid, flush=True)
    while True:
        try:
            time.sleep(60)
        except StoppedError:
            pass
""")

    stop(process)

    assert process.returncode == 1
    assert is_gone(int(child))
