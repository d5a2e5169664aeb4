import threading
import time

from daemon.github.turns import Turns


def test_one_has_the_turn_at_a_time_and_those_who_wait_have_it_in_order() -> None:
    turns, seen = Turns(), []

    def take(name: str, *, urgent: bool = False) -> None:
        with turns.turn(urgent=urgent):
            seen.append(f"{name} begins")
            time.sleep(0.01)
            seen.append(f"{name} ends")

    threads = []
    with turns.turn():
        for name, urgent in (("one", False), ("two", False), ("ack", True), ("three", False)):
            threads.append(threading.Thread(target=take, args=[name], kwargs={"urgent": urgent}))
            threads[-1].start()
            time.sleep(0.05)  # so that they come in this order
    for thread in threads:
        thread.join()

    order = ("ack", "one", "two", "three")
    assert seen == [f"{name} {what}" for name in order for what in ("begins", "ends")]


def test_who_has_it_again_and_again_lets_others_have_it_between() -> None:
    turns, mine = Turns(), []
    taken, stop = threading.Event(), threading.Event()

    def hog() -> None:
        while not stop.is_set():
            with turns.turn():
                mine.append(1)
                taken.set()
                time.sleep(0.005)

    thread = threading.Thread(target=hog)
    thread.start()
    taken.wait()
    for _ in range(5):
        before = len(mine)
        with turns.turn():
            assert len(mine) <= before + 2
    stop.set()
    thread.join()


def test_an_error_gives_the_turn_back() -> None:
    turns = Turns()

    try:
        with turns.turn():
            raise OSError  # noqa: TRY301 - it is what is tested
    except OSError:
        pass

    with turns.turn():
        assert True
