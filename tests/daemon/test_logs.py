import io
import json
import logging

from daemon.logs import configure_logs, find_log


def test_machines_get_one_json_object_a_line() -> None:
    stream = io.StringIO()
    configure_logs("auto", stream)

    find_log("daemon.test").info("trial ended", outcome="passed", took_s=1.5)

    line = json.loads(stream.getvalue())
    assert line["event"] == "trial ended"
    assert (line["outcome"], line["took_s"], line["level"]) == ("passed", 1.5, "info")


def test_people_get_a_line_that_reads() -> None:
    stream = io.StringIO()
    configure_logs("text", stream)

    find_log("daemon.test").info("trial ended", outcome="passed")

    assert "trial ended" in stream.getvalue()
    assert "outcome=passed" in stream.getvalue()


def test_warnings_of_libraries_come_in_the_same_form() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)

    logging.getLogger("apscheduler").warning("run was missed")

    assert json.loads(stream.getvalue())["event"] == "run was missed"


def test_an_exception_is_one_line_too() -> None:
    stream = io.StringIO()
    configure_logs("json", stream)

    try:
        msg = "no disk"
        raise OSError(msg)  # noqa: TRY301 - the traceback is what is tested
    except OSError:
        find_log("daemon.test").exception("cycle failed")

    line = json.loads(stream.getvalue())
    assert line["exception"][0]["exc_value"] == "no disk"
