from hypothesis import given
from hypothesis import strategies as st

from daemon.github.limiter import LONGEST_BACKOFF_S, SHORTEST_BACKOFF_S, Limiter, Window


def send(limiter: Limiter, now: float, *, writes: bool = True, urgent: bool = False) -> float:
    """Send as soon as the limiter lets us, and return when that was."""
    at = limiter.free_at(now, writes=writes, urgent=urgent)
    limiter.note(at, writes=writes)
    return at


@given(
    wishes=st.lists(
        st.tuples(st.floats(0, 30), st.booleans(), st.booleans()), min_size=1, max_size=300
    )
)
def test_no_window_ever_sees_more_than_its_limit(wishes: list[tuple[float, bool, bool]]) -> None:
    limiter, now, sent = Limiter(), 1000.0, []
    for pause_s, writes, urgent in wishes:
        now = send(limiter, now + pause_s, writes=writes, urgent=urgent)
        sent.append((now, writes))

    written = [at for at, writes in sent if writes]
    for span_s, most in ((1, 1), (60, 60), (3600, 400)):
        for start in written:
            assert sum(start <= at < start + span_s for at in written) <= most
    for start, _ in sent:
        points = sum(5 if w else 1 for at, w in sent if start <= at < start + 60)
        assert points <= 900


def test_writes_are_a_second_apart_and_reads_are_not() -> None:
    limiter = Limiter()
    now, writes = 0.0, []
    for _ in range(3):
        now = send(limiter, now)
        writes.append(now)

    reads = [send(limiter, 10.0, writes=False) for _ in range(3)]

    assert writes == [0.0, 1.0, 2.0]
    assert reads == [10.0, 10.0, 10.0]


def test_what_is_urgent_has_a_reserve_that_updates_never_use_up() -> None:
    limiter, now = Limiter(), 0.0
    while limiter.free_at(now, writes=True) <= now + 5:
        now = send(limiter, now)

    assert limiter.free_at(now + 1, writes=True, urgent=True) == now + 1
    assert limiter.free_at(now + 1, writes=True) > now + 5


def test_the_hour_s_reserve_is_kept_as_well() -> None:
    limiter, now = Limiter(), 0.0
    for _ in range(340):
        now = send(limiter, now)

    assert limiter.free_at(now + 1, writes=True) == 3600.0
    assert limiter.free_at(now + 1, writes=True, urgent=True) == now + 1


def test_nothing_at_all_is_sent_before_the_host_wants_it() -> None:
    limiter = Limiter()

    until = limiter.note_refusal(100.0, retry_at=700.0)

    assert until == 700.0
    assert limiter.free_at(101.0, writes=False) == 700.0
    assert limiter.free_at(101.0, writes=True, urgent=True) == 700.0
    assert limiter.free_at(701.0, writes=True) == 701.0


def test_without_a_word_on_when_the_waits_double_from_a_minute() -> None:
    limiter, now, waits = Limiter(), 0.0, []
    for _ in range(9):
        until = limiter.note_refusal(now, retry_at=None)
        waits.append(until - now)
        now = until

    assert waits[:4] == [60, 120, 240, 480]
    assert waits[0] == SHORTEST_BACKOFF_S
    assert waits[-1] == LONGEST_BACKOFF_S


def test_after_an_answer_the_next_refusal_is_a_first_one() -> None:
    limiter = Limiter()
    limiter.note_refusal(0.0, retry_at=None)

    limiter.note_answer()

    assert limiter.note_refusal(100.0, retry_at=None) == 160.0


def test_a_shorter_wait_does_not_end_a_longer_one() -> None:
    limiter = Limiter()
    limiter.note_refusal(0.0, retry_at=1000.0)

    assert limiter.note_refusal(0.0, retry_at=10.0) == 1000.0


def test_an_absurd_wait_is_cut_to_a_day() -> None:
    assert Limiter().note_refusal(0.0, retry_at=1e12) == 86400.0


def test_a_clock_that_is_set_back_does_not_silence_us_for_longer() -> None:
    limiter = Limiter()
    limiter.note_refusal(1_000_000.0, retry_at=1_000_100.0)
    send(limiter, 1_000_100.0)

    assert limiter.free_at(500.0, writes=True) <= 601.0


def test_a_window_frees_its_places_one_by_one() -> None:
    window = Window(most=2, span_s=10)
    window.note(0.0)
    window.note(4.0)

    assert window.free_at(5.0) == 10.0
    assert window.free_at(5.0, count=2) == 14.0
