"""What foreign code tries in order to get out, from a candidate's process and from a build's.

Each attempt is contained, leaves nothing behind, and the next child is none the worse for it.
"""

import os
import socket
import uuid
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from operator_registry.hardware import HardwareSpec
from optimizer.evaluate.building import Builder
from optimizer.evaluate.process import Place
from optimizer.evaluate.sandbox import (
    ChildDiedError,
    ChildRaisedError,
    ChildTimedOutError,
    Limits,
    call,
)
from optimizer.targets.target import Build, Instance

EXEC, EVAL = "builtins:exec", "builtins:eval"
SHORT_S = 1.5
MEGABYTE = 1 << 20
MARK = "KERNELEVOLVE_ESCAPE"


@pytest.fixture(params=["candidate", "build"])
def limits(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Limits]:
    """The limits of a candidate's process and of a build's; nothing may be left behind them."""
    mark = uuid.uuid4().hex
    shared = tmp_path / "shared"
    shared.mkdir()
    place = Place("cpu", threads=1, cache_bytes=0, folder=tmp_path / "state", shared=shared)
    (tmp_path / "built").mkdir()
    mine = {
        "candidate": place.limits,
        "build": Limits(write=(tmp_path / "built",)),
    }[request.param]
    yield replace(mine, wall_s=20.0, environment={**mine.environment, MARK: mark})
    assert not marked(mark)
    assert call(EVAL, "1 + 1") == "2"


def marked(mark: str) -> list[psutil.Process]:
    """Return the processes on this machine that carry a mark in their environment."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def test_it_reads_no_secret_in_an_environment(
    limits: Limits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither in its own nor in any other process's."""
    monkeypatch.setenv("GITHUB_TOKEN", "hush-hush")
    code = (
        "import glob\n"
        f"for path in [*glob.glob('/proc/*/environ'), '/proc/{os.getpid()}/environ']:\n"
        " try: read = open(path, 'rb').read()\n except OSError: continue\n"
        " assert b'hush' not in read, path"
    )

    call(EXEC, code, limits=limits)


def test_it_reads_no_file_of_the_user(limits: Limits, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("hush-hush", encoding="utf-8")

    with pytest.raises(ChildRaisedError, match=r"FileNotFoundError|PermissionError"):
        call(EVAL, f"open({str(secret)!r}).read()", limits=limits)


@pytest.mark.parametrize("family", ["AF_INET", "AF_UNIX"])
def test_it_reaches_no_server(limits: Limits, family: str) -> None:
    kind = getattr(socket, family)
    with socket.socket(kind) as server:
        server.bind(("127.0.0.1", 0) if kind == socket.AF_INET else f"\0{uuid.uuid4().hex}")
        server.listen()
        code = f"import socket; socket.socket(socket.{family}).connect({server.getsockname()!r})"

        with pytest.raises(ChildRaisedError, match=r"ConnectionRefused|PermissionError|Errno 97"):
            call(EXEC, code, limits=limits)


def test_it_writes_nothing_outside_its_scratch(limits: Limits, tmp_path: Path) -> None:
    name = f"escaped-{uuid.uuid4().hex}"
    here = Path(__file__).resolve().parents[3]
    system = ("/", "/etc", "/usr/lib", "/tmp", "/dev/shm")  # noqa: S108 - the machine's own
    mine = (tmp_path, tmp_path / "state", tmp_path / "shared")
    outside = [*map(Path, system), Path.home(), here, here / "optimizer", *mine]
    code = (
        f"import os\nfor folder in {[str(path) for path in outside]!r}:\n"
        f" try: os.makedirs(folder, exist_ok=True); open(folder + '/{name}', 'w').write('x')\n"
        " except OSError: pass"
    )

    call(EXEC, code, limits=limits)

    assert [folder for folder in outside if (folder / name).exists()] == []


def test_it_switches_nothing_of_the_machine(limits: Limits) -> None:
    """Who is root outside owns the files by which the kernel is set up."""
    code = "open('/proc/sys/kernel/core_pattern', 'w')"

    with pytest.raises(ChildRaisedError, match=r"Read-only|PermissionError"):
        call(EVAL, code, limits=limits)


def test_it_sees_only_its_own_processes(limits: Limits) -> None:
    code = "[int(name) for name in __import__('os').listdir('/proc') if name.isdecimal()]"

    assert len(eval(call(EVAL, code, limits=limits))) <= 2  # noqa: S307 - numbers


@pytest.mark.parametrize(
    "pid", ["os.getppid()", str(os.getpid()), "-1"], ids=["parent", "judge", "all"]
)
def test_it_signals_nobody(limits: Limits, pid: str) -> None:
    code = f"import os\ntry: os.kill({pid}, 9)\nexcept OSError: pass"

    call(EXEC, code, limits=limits)  # a judge that was hit would say nothing any more


@pytest.mark.parametrize("pid", [1, os.getpid()], ids=["first", "judge"])
def test_it_traces_nobody(limits: Limits, pid: int) -> None:
    code = (
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        f"assert libc.ptrace(16, {pid}, 0, 0) == -1\nassert ctypes.get_errno() == 1\n"
        f"assert libc.process_vm_readv({pid}, 0, 0, 0, 0, 0) == -1"
    )

    call(EXEC, code, limits=limits)


def test_a_fork_bomb_ends_with_its_deadline(limits: Limits) -> None:
    code = "import os, time\nwhile True:\n try: os.fork()\n except OSError: time.sleep(0.01)"

    with pytest.raises((ChildTimedOutError, ChildDiedError)):
        call(EXEC, code, limits=replace(limits, processes=32, wall_s=SHORT_S))


def test_its_processes_are_counted(limits: Limits) -> None:
    code = "import os, time\nfor _ in range(1000):\n if not os.fork(): time.sleep(60)"

    with pytest.raises((ChildRaisedError, ChildDiedError), match=r"BlockingIO|Resource|processes"):
        call(EXEC, code, limits=replace(limits, processes=32))


def test_it_fills_no_more_than_its_scratch(limits: Limits) -> None:
    code = "f = open('f', 'wb')\nfor _ in range(1000): f.write(bytes(1 << 20)); f.flush()"

    with pytest.raises(ChildRaisedError, match="No space left"):
        call(EXEC, code, limits=replace(limits, scratch_bytes=16 * MEGABYTE))


def test_many_files_are_bounded_too(limits: Limits, tmp_path: Path) -> None:
    """What is written into the judge's folders is not bounded by the size of one file."""
    folder = tmp_path / "filled"
    folder.mkdir()
    code = (
        f"import os\nfor n in range(1000):\n f = open('{folder}/' + str(n), 'wb')\n"
        " f.write(bytes(1 << 20)); f.flush(); os.fsync(f.fileno())"
    )

    with pytest.raises(ChildDiedError, match="it wrote") as died:
        call(EXEC, code, limits=replace(limits, write=(folder,), disk_bytes=64 * MEGABYTE))

    assert not died.value.was_killed  # by somebody else, that is: it is not tried again


def test_a_flood_of_output_ends_with_its_deadline(limits: Limits) -> None:
    code = "import sys\nwhile True: sys.stdout.write('x' * 65536)"

    with pytest.raises(ChildTimedOutError):
        call(EXEC, code, limits=replace(limits, wall_s=SHORT_S))


def test_ignored_signals_do_not_lengthen_its_deadline(limits: Limits) -> None:
    code = (
        "import os, signal\nfor s in set(signal.Signals) - {9, 19}:\n"
        " signal.signal(s, signal.SIG_IGN)\nif not os.fork(): os.setsid()\nwhile True: pass"
    )

    with pytest.raises(ChildTimedOutError):
        call(EXEC, code, limits=replace(limits, wall_s=SHORT_S))


@pytest.mark.parametrize("flags", ["MAP_PRIVATE", "MAP_SHARED"])
def test_it_takes_no_more_memory_than_it_may(limits: Limits, flags: str) -> None:
    code = (
        f"import mmap, time\nheld = []\nwhile len(held) < 100:\n"
        f" held.append(mmap.mmap(-1, 1 << 25, mmap.{flags}))\n"
        " held[-1].write(bytes(1 << 25))\n time.sleep(0.01)\ntime.sleep(60)"
    )

    with pytest.raises(
        (ChildRaisedError, ChildDiedError), match=r"allocate memory|MemoryError|hold"
    ):
        call(EXEC, code, limits=replace(limits, memory_bytes=400 * MEGABYTE))


def test_memory_without_a_name_counts_as_well(limits: Limits) -> None:
    code = "import os; os.memfd_create('hidden')"

    with pytest.raises(ChildRaisedError, match="not implemented"):
        call(EXEC, code, limits=limits)


def test_a_source_includes_no_file_of_the_user(host: HardwareSpec, tmp_path: Path) -> None:
    """A compiler quotes what it can't read: its log goes to whoever wrote the source."""
    (tmp_path / "secret").write_text("hush_hush\n", encoding="utf-8")
    code = f'#include "{tmp_path}/secret"\nextern "C" void KERNEL(f)(float* x) {{ x[0] = 1; }}\n'
    builder = Builder(host, tmp_path / "artefacts", limits=Limits())

    (outcome,) = builder.build(
        [Build(code=code, instances=(Instance(kernel="f", types=("*fp32",)),))]
    )
    builder.close()

    assert outcome.kind == "failed"  # type: ignore[union-attr]
    assert "hush" not in outcome.log  # type: ignore[union-attr]
    assert list((tmp_path / "artefacts").iterdir()) == []
