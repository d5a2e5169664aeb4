import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from daemon.cli.stop import heeding_signals

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_sets_the_event(number: signal.Signals) -> None:
    with heeding_signals() as stop:
        os.kill(os.getpid(), number)

        assert stop.wait(5)


def test_afterwards_signals_do_what_they_did() -> None:
    before = signal.getsignal(signal.SIGTERM)

    with heeding_signals():
        assert signal.getsignal(signal.SIGTERM) != before

    assert signal.getsignal(signal.SIGTERM) == before


def test_who_hangs_after_a_signal_is_cut_off() -> None:
    code = (
        "import os, signal, time; from daemon.cli.stop import heeding_signals\n"
        "with heeding_signals(deadline_s=0.2):\n"
        "    os.kill(os.getpid(), signal.SIGTERM)\n"
        "    time.sleep(60)\n"
        "    os._exit(7)"
    )

    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=False).returncode == 0
