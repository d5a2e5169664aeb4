"""Foreign code runs in a process that can always be killed.

The foreign functions are Python's own, so that a child can import them from anywhere.
"""

import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from optimizer.evaluate.guards import ALL_UP, Guard, Guards, without
from optimizer.evaluate.sandbox import (
    Child,
    ChildDiedError,
    ChildRaisedError,
    ChildTimedOutError,
    Limits,
    call,
    start,
)

EXEC = "builtins:exec"
SHORT = Limits(wall_s=20.0)


@pytest.fixture
def child() -> Iterator[Child]:
    with start("builtins:eval") as child:
        yield child


def test_a_call_returns_what_the_function_returns() -> None:
    assert call("posixpath:basename", "/a/b") == "b"


def test_a_long_text_travels_both_ways() -> None:
    text = "ä" * 3_000_000

    assert call("posixpath:normpath", text) == text


def test_a_child_answers_many_messages(child: Child) -> None:
    assert [child.ask(f"{n} + 1", deadline_s=20) for n in range(3)] == ["1", "2", "3"]


def test_a_class_keeps_its_state_between_messages() -> None:
    with start("collections:Counter") as child, pytest.raises(ChildRaisedError):
        child.ask("x", deadline_s=20)  # an instance was made; a Counter can't be called


def test_an_exception_leaves_the_child_alive(child: Child) -> None:
    with pytest.raises(ChildRaisedError, match="division by zero") as raised:
        child.ask("1 / 0", deadline_s=20)

    assert raised.value.name == "ZeroDivisionError"
    assert child.ask("1 + 1", deadline_s=20) == "2"


def test_an_endless_loop_is_killed_at_its_deadline() -> None:
    began = time.monotonic()

    with pytest.raises(ChildTimedOutError):
        call(EXEC, "while True: pass", limits=Limits(wall_s=0.5))

    assert time.monotonic() - began < 20


def test_ignoring_sigterm_helps_nobody() -> None:
    code = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nwhile True: pass"

    with pytest.raises(ChildTimedOutError):
        call(EXEC, code, limits=Limits(wall_s=0.5))


def test_an_exit_is_told_with_its_code() -> None:
    with pytest.raises(ChildDiedError) as died:
        call(EXEC, "import os; os._exit(3)", limits=SHORT)

    assert died.value.exit_code == 3


def test_a_segmentation_fault_is_told_by_name() -> None:
    with pytest.raises(ChildDiedError, match="SIGSEGV"):
        call(EXEC, "import ctypes; ctypes.string_at(0)", limits=SHORT)


def test_last_words_are_kept() -> None:
    with pytest.raises(ChildDiedError, match="farewell"):
        call(EXEC, "import os; print('farewell', flush=True); os._exit(1)", limits=SHORT)


def test_memory_beyond_the_limit_is_refused() -> None:
    with pytest.raises(ChildRaisedError, match="MemoryError"):
        call(EXEC, "bytearray(100 << 30)", limits=SHORT)


def test_a_file_beyond_the_limit_is_refused() -> None:
    limits = Limits(wall_s=20, file_bytes=1000)

    with pytest.raises(ChildRaisedError, match="File too large"):
        call(EXEC, "f = open('f', 'wb'); f.write(bytes(2000)); f.close()", limits=limits)


def test_a_flood_of_output_neither_blocks_nor_is_kept() -> None:
    code = "import os\nfor _ in range(100_000): print('x' * 100)\nos._exit(1)"

    with pytest.raises(ChildDiedError) as died:
        call(EXEC, code, limits=SHORT)

    assert len(died.value.stderr) < 10_000


@pytest.mark.parametrize("guards", [ALL_UP, without([Guard.PROCESSES])], ids=["walled", "not"])
def test_what_the_child_started_ends_with_it(guards: Guards) -> None:
    """Also what left its group, and where there is no process namespace to end it."""
    mark = uuid.uuid4().hex
    limits = Limits(wall_s=20.0, environment={"MINE": mark}, guards=guards)
    code = "str(__import__('subprocess').Popen(['sleep', '1000'], start_new_session=True).pid)"

    call("builtins:eval", code, limits=limits)

    assert not [p for p in psutil.process_iter() if _is_marked(p, mark)]


def test_secrets_in_the_environment_do_not_reach_the_child(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")

    assert "secret" not in call("builtins:eval", "dict(__import__('os').environ)")


def test_the_scratch_folder_goes_with_the_child(child: Child) -> None:
    scratch = Path(child.ask("__import__('os').getcwd()", deadline_s=20))

    child.kill()

    assert not scratch.exists()


def test_a_killed_child_can_be_killed_again_but_not_asked(child: Child) -> None:
    child.kill()
    child.kill()

    with pytest.raises(ChildDiedError):
        child.ask("1", deadline_s=1)


def test_damaged_answers_end_the_child() -> None:
    """Foreign code can write on the socket: what comes is read with suspicion."""
    write = "os.write(fd, b'\\xff' * 64)"
    code = f"import os\nfor fd in range(3, 200):\n try: {write}\n except OSError: pass"

    with pytest.raises(ChildDiedError):
        call(EXEC, code, limits=SHORT)


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        return process.environ().get("MINE") == mark
    except (psutil.Error, OSError):  # it has ended, or is the kernel's own
        return False
