"""What a counter tool's table says, and that a worker marks the one call that is counted."""

import shutil
from pathlib import Path

import pytest

from knowledge.profile import StallReason
from optimizer.evaluate import protocol as p
from optimizer.profilers.counters import count, find_counter_tool, read_counters

STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
HEAD = (
    "ID", "Kernel Name", "gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum",
    STALL.format("long_scoreboard"), STALL.format("wait"), STALL.format("selected"),
)  # fmt: skip


def table(*rows: tuple[str, ...], units: tuple[str, ...]) -> str:
    lines = [HEAD, ("", "", *units, "", "", ""), *rows]
    told = "\n".join(",".join(f'"{cell}"' for cell in line) for line in lines)
    return f"==PROF== Connected to process 7\n==PROF== Disconnected\n{told}\n"


NS = ("ns", "byte", "byte")


def test_bytes_over_time_are_the_bandwidth() -> None:
    text = table(("0", "k(float*)", "1,000", "3000000", "1000000", "6", "1", "3"), units=NS)

    (found,) = read_counters(text)

    assert found.kernel == "k"
    assert found.device_ms == pytest.approx(1e-3)
    assert found.dram_bytes == 4e6
    assert found.bandwidth_gb_s == pytest.approx(4000)


def test_units_are_heeded() -> None:
    row = ("0", "k", "1", "3", "1", "0", "0", "1")

    (found,) = read_counters(table(row, units=("usecond", "Mbyte", "Mbyte")))

    assert found.device_ms == pytest.approx(1e-3)
    assert found.dram_bytes == 4e6


def test_the_most_frequent_waits_come_first_and_work_is_none() -> None:
    text = table(("0", "k", "1", "1", "1", "6", "1", "3"), units=NS)

    (found,) = read_counters(text)

    assert found.stalls == (
        StallReason(reason="long_scoreboard", share=0.6),
        StallReason(reason="wait", share=0.1),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "==ERROR== no permission\n",
        table(units=NS),
        table(("0", "k", "n/a", "1", "1", "", "", ""), units=NS),
        table(("0", "k", "1", "1", "1", "", "", ""), units=("lightyear", "byte", "byte")),
    ],
)
def test_what_is_no_table_of_counts_has_none(text: str) -> None:
    assert read_counters(text) == ()


@pytest.fixture
def _counting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.usefixtures("_counting")
def test_without_the_tool_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")

    answer = p.CountAnswer.from_json(count(p.CountRequest(worker="a:b", messages=()).to_json()))

    assert find_counter_tool() == ()
    assert answer.counters == ()
    assert answer.fault.startswith("ncu failed")


@pytest.mark.usefixtures("_counting")
def test_what_the_tool_says_when_it_fails_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = tmp_path / "bin/ncu"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\necho '==ERROR== no permission to read counters'\nexit 1\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:/usr/bin:/bin")

    answer = p.CountAnswer.from_json(count(p.CountRequest(worker="a:b", messages=()).to_json()))

    assert find_counter_tool() == (tool.parent,)
    assert answer.fault == "ncu counted nothing: no permission to read counters"


@pytest.mark.usefixtures("_counting")
def test_the_worker_runs_under_the_tool(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in runs its command as the tool does; the worker says Hello in that process."""
    tool = tmp_path / "bin/ncu"
    tool.parent.mkdir()
    tool.write_text(
        '#!/bin/sh\nwhile [ "$1" != -P ]; do last="$1"; shift; done\nexec "$last" "$@"\n'
    )
    tool.chmod(0o755)
    python = shutil.which("python3") or ""
    monkeypatch.setenv("PATH", f"{tool.parent}:{Path(python).parent}:/usr/bin:/bin")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))
    hello = p.Hello(device="cpu", cache_bytes=0).to_json()
    drop = p.Count(case="none", set=0, subject=p.CANDIDATE).to_json()
    request = p.CountRequest(worker="optimizer.evaluate.worker:Worker", messages=(hello, drop))

    answer = p.CountAnswer.from_json(count(request.to_json()))

    assert answer.fault == "ncu counted nothing: KeyError: 'none'"
