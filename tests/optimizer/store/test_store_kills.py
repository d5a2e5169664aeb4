"""What a SIGKILL leaves in the store."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from optimizer.store import Store

ROOT = Path(__file__).parents[3]
WRITER = """
import itertools, sys
from optimizer.store import Store, Trial
from tests.makers import make_candidate, make_evaluation

store = Store(sys.argv[1])
store.migrate()
search = store.open_search(
    "g", operator="scale", hardware="cpu", operator_digest="0" * 64, now=0
)
for number in itertools.count(len(store.trials(search)) + 1):
    candidate = make_candidate(str(number))
    trial = Trial(number=number, candidate=candidate, evaluation=make_evaluation(candidate),
                  fitness=1.0, spent_s=0.1)
    store.record(search, trial, now=number)
    print(number, flush=True)
"""


def run_and_kill(url: str, *, after_lines: int) -> int:
    """Return the number of the last trial that the killed writer knew to be recorded."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, url], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    assert writer.stdout is not None
    for _ in range(after_lines):
        writer.stdout.readline()
    time.sleep(after_lines % 3 * 0.003)
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split()
    writer.stdout.close()
    writer.wait()
    return int(rest[-1]) if rest else 0


@pytest.mark.drill
def test_a_killed_writer_loses_no_finished_trial_and_doubles_none(url: str) -> None:
    told = [run_and_kill(url, after_lines=lines) for lines in (1, 5, 9)]

    with Store(url) as store:
        search = store.open_search(
            "g", operator="scale", hardware="cpu", operator_digest="0" * 64, now=0
        )
        numbers = [trial.number for trial in store.trials(search)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= max(told)


def test_two_processes_may_make_the_tables_at_once(empty_url: str) -> None:
    code = "import sys; from optimizer.store import Store; Store(sys.argv[1]).migrate()"
    command = [sys.executable, "-c", code, empty_url]

    starts = [subprocess.Popen(command, cwd=ROOT) for _ in range(3)]

    assert [start.wait() for start in starts] == [0, 0, 0]
