import io
import json
import logging

import pytest

from daemon.logs import configure_logs, find_log, without_secrets

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"
SECRETS = (
    "ghs_16C7e42F292c6912E7710c838347Ae178B4a",
    "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
    "github_pat_11ABCDEFG0abcdefghijkl_mnop",
    "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiI0MjQyIn0.c2lnbmF0dXJl",
    "eC1hY2Nlc3MtdG9rZW46Z2hzX3NlY3JldA==",
    KEY,
)


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

    logging.getLogger("asyncio").warning("run was missed")

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


@pytest.mark.parametrize("secret", SECRETS)
def test_a_secret_is_masked_wherever_it_stands(secret: str) -> None:
    for format_ in ("json", "text"):
        stream = io.StringIO()
        configure_logs(format_, stream)
        try:
            raise OSError(secret)  # noqa: TRY301 - the traceback is what is tested
        except OSError:
            find_log("daemon.test").exception(f"said {secret}", env={"A": [secret]}, b=secret)
        logging.getLogger("urllib3").warning("sent %s", {"Authorization": f"Bearer {secret}"})

        told = stream.getvalue()
        assert told.count("[removed]") >= 5
        assert secret not in told
        assert "MIIE" not in told


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Authorization: Bearer abcdefghijkl", "Authorization: Bearer [removed]"),
        (
            "https://x-access-token:abc@github.com/o/r",
            "https://x-access-token:[removed]@github.com/o/r",
        ),
        ("the token is not taken; see kernelevolve github doctor", None),
        ("operator gelu_bias at 0177fec7a1b2", None),
    ],
)
def test_what_is_no_secret_stays(text: str, shown: str | None) -> None:
    assert without_secrets(text) == (text if shown is None else shown)
