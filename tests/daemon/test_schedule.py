import threading
from collections.abc import Callable

from daemon.schedule import run_every


def run_until(turns: int, turn: Callable[[int], None], *, interval_s: float) -> list[int]:
    """Run on another thread, as a signal would stop it, and return the turns that were made."""
    made: list[int] = []
    stop = threading.Event()

    def counted() -> None:
        made.append(len(made) + 1)
        if made[-1] >= turns:
            stop.set()
        turn(made[-1])

    run_every(counted, interval_s, stop=stop)
    return made


def test_the_first_turn_is_made_at_once() -> None:
    assert run_until(1, lambda _: None, interval_s=3600) == [1]


def test_turns_follow_each_other() -> None:
    assert run_until(3, lambda _: None, interval_s=0.01)[:3] == [1, 2, 3]


def test_a_turn_that_fails_does_not_end_the_clock() -> None:
    def fail(_: int) -> None:
        msg = "no disk"
        raise OSError(msg)

    assert run_until(2, fail, interval_s=0.01)[:2] == [1, 2]


def test_the_turn_that_runs_is_waited_for() -> None:
    ended: list[int] = []
    begun = threading.Event()

    def slow(number: int) -> None:
        begun.set()
        threading.Event().wait(0.2)
        ended.append(number)

    assert run_until(1, slow, interval_s=3600) == ended


def test_there_are_never_two_turns_at_a_time() -> None:
    running: list[int] = []
    most: list[int] = []

    def slow(number: int) -> None:
        running.append(number)
        most.append(len(running))
        threading.Event().wait(0.05)
        running.remove(number)

    run_until(3, slow, interval_s=0.01)

    assert max(most) == 1


def test_who_is_woken_makes_a_turn_before_its_time() -> None:
    made: list[int] = []
    stop, wake = threading.Event(), threading.Event()

    def turn() -> None:
        made.append(1)
        if len(made) == 2:
            stop.set()
        wake.set()

    run_every(turn, 3600, stop=stop, wake=wake)

    assert len(made) == 2


def test_a_turn_that_fails_is_told_of() -> None:
    faults: list[str] = []
    stop = threading.Event()

    def turn() -> None:
        stop.set()
        msg = "no disk"
        raise OSError(msg)

    run_every(turn, 3600, stop=stop, on_fault=faults.append)

    assert faults == ["turn failed"]
