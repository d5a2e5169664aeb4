from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.talk.commands import (
    USAGE,
    Benchmark,
    Command,
    Explain,
    Misunderstood,
    Optimize,
    Stop,
    about,
    parse,
)
from daemon.talk.lines import NAMES, find_lines


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/optimize", Optimize()),
        (
            "/optimize op=rms_norm HW=h200 budget=2m",
            Optimize(op="rms_norm", hw="h200", budget=120.0),
        ),
        ("/benchmark sha=abcdef1 budget=90", Benchmark(sha="abcdef1", budget=90.0)),
        ("/stop", Stop()),
        ("/stop 0123abcd", Stop(job="0123abcd")),
        ("/stop job=0123abcd", Stop(job="0123abcd")),
        ("/kernel explain peers", Explain(topic="peers")),
        ("@kernelevolve explain", Explain()),
    ],
)
def test_a_command_has_typed_arguments(text: str, command: Command) -> None:
    assert parse(text) == command


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/optimise", "there is no command optimise; did you mean optimize?"),
        ("/kernel dance", "there is no command dance; there are optimize, retry"),
        ("/kernel", "it names no command; try help"),
        ("/optimize opp=x", "optimize has no opp; did you mean 'op'?"),
        ("/retry now=1", "retry has no now; remove it: there are none here"),
        ("/optimize everything", "everything is no argument of it"),
        ("/optimize op=x op=y", "op is given twice"),
        ("/stop abc 0123abcd", "0123abcd is no argument of it"),
        ("/optimize op=$(reboot)", "op=$(reboot) can't be: it is an operator's name"),
        ("/optimize op=--help", "op=--help can't be"),
        ("/optimize hw=../../etc", "hw=../../etc can't be"),
        ("/optimize budget=forever", "budget=forever can't be: it is a time, such as 90s"),
        ("/optimize budget=0", "budget=0 can't be"),
        ("/optimize budget=1e9", "budget=1e9 can't be"),
        ("/optimize budget=nan", "budget=nan can't be"),
        ("/optimize budget=\u0661\u0662", "can't be"),
        ("/stop please", "job=please can't be"),
        ("/explain love", "topic=love can't be: it is one of result"),
        ("/benchmark sha=HEAD", "sha=HEAD can't be"),
        ("/sto\u200dp", "characters that nobody sees"),
        ("/optimize op=rms\u202e_norm", "characters that nobody sees"),
        ("/status a b c d e f g h i", "takes no text"),
    ],
)
def test_what_is_wrong_is_told_with_what_would_be_right(text: str, why: str) -> None:
    found = parse(text)

    assert isinstance(found, Misunderstood)
    assert why in found.why


def test_each_command_has_a_name_a_usage_and_a_sentence() -> None:
    kinds = tuple(case.model_fields["kind"].default for case in get_args(Command))

    assert sorted(kinds) == sorted(NAMES) == sorted(USAGE)
    assert all(about(name) for name in NAMES)


@given(st.sampled_from(NAMES), st.text())
def test_every_line_that_is_found_is_either_a_command_or_told_why_not(name: str, rest: str) -> None:
    for line in find_lines(f"/{name} {rest}", me="kernelevolve[bot]"):
        assert isinstance(parse(line.text), (Misunderstood, *get_args(Command)))
