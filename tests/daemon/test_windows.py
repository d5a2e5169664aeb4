from datetime import UTC, datetime, timedelta

import pytest
from apscheduler.triggers.cron import CronTrigger
from hypothesis import given
from hypothesis import strategies as st

from daemon.config.windows import WindowError, is_open, parse_cron

BERLIN = "Europe/Berlin"
HOURS = ("21", "23", "05", "06")


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def opens(cron: str, zone: str, when: str) -> bool:
    return is_open([(cron, zone)], at(when))


def test_without_windows_it_is_always_open() -> None:
    assert is_open([], 0.0)


def test_one_open_window_is_enough() -> None:
    windows = [("* 3 * * *", "UTC"), ("* 4 * * *", "UTC")]

    assert is_open(windows, at("2026-11-30T04:59"))
    assert not is_open(windows, at("2026-11-30T05:00"))


def test_hours_are_those_of_the_zone() -> None:
    assert opens("* 20-23 * * *", BERLIN, "2026-11-30T19:00")  # 20:00 there
    assert not opens("* 20-23 * * *", BERLIN, "2026-11-30T18:59")


def test_hours_go_round_midnight() -> None:
    found = {hour: opens("* 22-5 * * *", "UTC", f"2026-11-30T{hour}:30") for hour in HOURS}

    assert found == {"21": False, "23": True, "05": True, "06": False}


@pytest.mark.parametrize("sunday", ["sun", "0", "7", "sat-sun"])
def test_sunday_has_two_numbers_and_a_name(sunday: str) -> None:
    assert opens(f"* * * * {sunday}", "UTC", "2026-11-29T12:00")
    assert not opens(f"* * * * {sunday}", "UTC", "2026-11-30T12:00")


def test_in_spring_the_hour_that_is_left_out_never_opens() -> None:
    """Clocks in Berlin go from 02:00 to 03:00 on 2027-03-28, at 01:00 UTC."""
    minutes = [at("2027-03-28T00:00") + 60 * minute for minute in range(180)]

    assert not any(is_open([("* 2 * * *", BERLIN)], minute) for minute in minutes)
    assert is_open([("* 3 * * *", BERLIN)], at("2027-03-28T01:00"))


def test_in_autumn_the_hour_that_comes_twice_is_open_twice() -> None:
    """Clocks in Berlin go from 03:00 back to 02:00 on 2026-10-25, at 01:00 UTC."""
    minutes = [at("2026-10-24T23:00") + 60 * minute for minute in range(240)]

    assert sum(is_open([("* 2 * * *", BERLIN)], minute) for minute in minutes) == 120


@pytest.mark.parametrize(
    ("cron", "wrong"),
    [
        ("* * * *", "has 4 fields"),
        ("60 * * * *", "'60' is no minute"),
        ("* 24 * * *", "'24' is no hour"),
        ("* * 0 * *", "'0' is no day of the month"),
        ("* * * 13 *", "'13' is no month"),
        ("* * * * funday", "or sun, mon"),
        ("*/0 * * * *", "'0' is no minute"),
        ("- * * * *", "'' is no minute"),
        ("1,,2 * * * *", "'' is no minute"),
        ("\u0661 * * * *", "is no minute"),
        ("9" * 50 + " * * * *", "is no minute"),
    ],
)
def test_what_is_no_expression_is_said_to_be_none(cron: str, wrong: str) -> None:
    with pytest.raises(WindowError, match=wrong):
        parse_cron(cron)


NUMBERS = st.integers(0, 59)


@given(
    minute=st.one_of(
        st.just("*"),
        st.integers(1, 30).map("*/{}".format),
        NUMBERS.map(str),
        st.tuples(NUMBERS, NUMBERS).map(lambda ab: f"{min(ab)}-{max(ab)}"),
        st.lists(NUMBERS, min_size=1, max_size=3).map(lambda ns: ",".join(map(str, ns))),
    ),
    hour=st.integers(0, 23),
    weekday=st.sampled_from(["*", "mon", "tue-fri", "sat,sun"]),
    after=st.integers(0, 60 * 24 * 14),
)
def test_it_opens_when_another_reader_of_cron_says_so(
    minute: str, hour: int, weekday: str, after: int
) -> None:
    when = datetime(2026, 11, 30, tzinfo=UTC) + timedelta(minutes=after)
    cron = f"{minute} {hour} * * {weekday}"
    trigger = CronTrigger.from_crontab(cron, timezone=UTC)

    assert is_open([(cron, "UTC")], when.timestamp()) == (
        trigger.get_next_fire_time(None, when) == when
    )


@given(st.text(max_size=40))
def test_any_other_text_is_a_window_error_or_a_window(text: str) -> None:
    try:
        fields = parse_cron(text)
    except WindowError:
        return
    assert len(fields) == 5
    assert all(fields)
