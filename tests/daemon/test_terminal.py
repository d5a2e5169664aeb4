import io
import json
from collections.abc import Sequence
from typing import get_args

import pytest
from rich.console import Console

from daemon.cli.search_report import show_evaluation, show_optimization, show_verification
from daemon.cli.terminal import PHASES, Terminal
from daemon.jobs import Progress
from daemon.pulls.publish import Opened
from knowledge.evidence import Better
from knowledge.outcome import Counterexample, Failed, Incorrect, Outcome, Passed, TimedOut
from optimizer.job import (
    CannotRun,
    EvaluateResult,
    NotReproduced,
    OptimizeResult,
    PhaseEvent,
    Reproduced,
    TrialEvent,
    Verification,
    VerifyResult,
)
from tests.makers import make_candidate, make_evaluation, make_evidence


def make_terminal(*, live: bool = False) -> Terminal:
    return Terminal(
        out=Console(file=io.StringIO(), width=200),
        err=Console(file=io.StringIO(), width=200, force_terminal=live),
    )


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def make_trial(number: int, *, best: float = 1.5, outcome: str = "passed") -> TrialEvent:
    return TrialEvent(
        number=number,
        candidate="c" * 64,
        origin="tuner",
        note="wider",
        outcome=outcome,
        detail="" if outcome == "passed" else "y[3] is nan",
        fitness=best if outcome == "passed" else 0.0,
        best=best,
        seconds_left=30.0,
    )


def follow(events: Sequence[Progress], *, live: bool) -> str:
    terminal = make_terminal(live=live)
    with terminal.progress("gelu_bias") as take:
        for event in events:
            take(event)
    assert printed(terminal.out) == ""
    return printed(terminal.err)


def test_progress_is_plain_lines_where_there_is_no_terminal() -> None:
    events = (PhaseEvent(phase="search", seconds_left=60), make_trial(1), make_trial(2, best=2.0))

    said = follow(events, live=False).splitlines()

    assert said[0] == "gelu_bias: searching (60 s)"
    assert said[1] == "gelu_bias: trial 1 passed, 1.50x, best 1.50x: wider, 30 s left"
    assert "best 2.00x" in said[2]


def test_every_phase_has_its_words() -> None:
    assert set(get_args(PhaseEvent.model_fields["phase"].annotation)) == set(PHASES)


def test_plain_lines_tell_what_is_new_and_not_every_trial() -> None:
    said = follow([make_trial(n) for n in range(1, 41)], live=False).splitlines()

    assert len(said) == 3


def test_progress_on_a_terminal_shows_trials_the_best_and_the_time_left() -> None:
    events = (make_trial(1), make_trial(2, outcome="incorrect"))

    said = follow(events, live=True)

    assert "2 trials, 1 passed" in said
    assert "best 1.50x" in said
    assert "s left" in said
    assert "y[3] is nan" in said


def test_a_record_for_scripts_is_json() -> None:
    terminal = make_terminal()

    terminal.tell(Opened(number=3))

    assert json.loads(printed(terminal.out)) == {"kind": "opened", "number": 3}


def test_a_text_is_printed_as_it_is() -> None:
    terminal = make_terminal()

    terminal.say("a[bold]b :smile:")

    assert printed(terminal.out) == "a[bold]b :smile:\n"


def test_a_win_names_the_peer_the_ratio_and_where_the_kernel_is() -> None:
    terminal = make_terminal()
    evidence = make_evidence(make_candidate(), 2.0)
    result = OptimizeResult.model_validate(
        {
            "operator": "scale",
            "hardware": "cpu-x86-64-v3",
            "message": "finished",
            "verdict": Better(),
            "evidence": evidence,
            "kernel_folder": "kernels/scale",
            "trials": 3,
            "outcomes": {"passed": 2, "timed_out": 1},
        }
    )

    show_optimization(result, terminal)

    said = printed(terminal.out)
    assert "3 trials" in said
    assert "1 timed out" in said
    assert "reference/eager" in said
    assert "2.00x" in said
    assert "kernelevolve verify kernels/scale" in said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (Passed(times=()), "no such device to time"),
        (Failed(stage="build", log="error: x"), "Failed in build:\nerror: x"),
        (TimedOut(stage="run", deadline_s=5), "still busy after 5 s"),
        (
            Incorrect(
                reason="values",
                counterexample=Counterexample(
                    output="y", index=(1, 2), got="nan", wanted="1.0", sizes={"rows": 3}, seed=7
                ),
            ),
            "y[1, 2] is nan, wanted 1.0, where rows = 3; seed 7",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_trial_says_how_it_ended(outcome: Outcome, said: str) -> None:
    terminal = make_terminal()
    evaluation = make_evaluation(make_candidate(), outcome)

    show_evaluation(EvaluateResult(evaluation=evaluation, fitness=0.0), terminal)

    assert said in printed(terminal.out)


@pytest.mark.parametrize(
    ("finding", "said"),
    [
        (Reproduced(), "reproduced at 9 sizes with new seeds, 2.10x now (2.00x published)"),
        (NotReproduced(reason="slower"), "not reproduced: slower"),
        (CannotRun(reason="no GPU"), "can't be run here: no GPU"),
    ],
    ids=["reproduced", "not_reproduced", "cannot_run"],
)
def test_a_verification_says_what_it_found(
    finding: Reproduced | NotReproduced | CannotRun, said: str
) -> None:
    terminal = make_terminal()
    verification = Verification(
        variant="v",
        candidate="c",
        finding=finding,
        ratio=2.1,
        published_ratio=2.0,
        checked_sizes=9,
        at="2026-11-30T12:00:00Z",
    )

    show_verification(VerifyResult(verifications=(verification,)), terminal)

    assert said in printed(terminal.out)
