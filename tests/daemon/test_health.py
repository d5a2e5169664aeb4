from daemon.web.health import Health
from tests.fakes import FakeClock


def test_a_loop_that_is_heard_of_is_alive() -> None:
    clock = FakeClock()
    health = Health(clock)
    health.expect("work", within_s=10)
    clock.now_s = 9
    health.beat("work")
    clock.now_s = 18

    assert health.report(paused=False).alive


def test_a_loop_that_is_silent_too_long_is_not() -> None:
    clock = FakeClock()
    health = Health(clock)
    health.expect("work", within_s=10)
    health.expect("mail", within_s=100)
    clock.now_s = 11

    report = health.report(paused=False)

    assert not report.alive
    assert (report.loops["work"].silent_s, report.loops["mail"].silent_s) == (11, 11)


def test_a_loop_that_nobody_waits_for_does_not_count() -> None:
    clock = FakeClock()
    health = Health(clock)
    health.beat("work")
    clock.now_s = 1e6

    assert health.report(paused=False).alive


def test_a_fault_is_told_by_name_alone_until_it_is_over() -> None:
    health = Health(FakeClock())
    health.fail("outbox", "token ghs_secret is refused")

    assert health.report(paused=False).faults == ("outbox",)
    assert "ghs_secret" not in health.report(paused=False).to_json()
    assert health.recover("outbox")
    assert health.report(paused=False).faults == ()


def test_the_same_fault_is_news_once() -> None:
    health = Health(FakeClock())

    assert health.fail("outbox", "no network")
    assert not health.fail("outbox", "no network")
    assert health.fail("outbox", "no disk")
    assert not health.recover("intake")


def test_faults_do_not_make_the_process_worth_a_restart() -> None:
    health = Health(FakeClock())
    health.fail("outbox", "no network")

    assert health.report(paused=True).alive
    assert health.report(paused=True).paused
