import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.talk.lines import MOST_LINES, NAMES, find_lines, has_unseen, words_of

ME = "kernelevolve[bot]"


def texts(body: str) -> list[str]:
    return [line.text for line in find_lines(body, me=ME)]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("/stop", ("stop",)),
        ("/Stop", ("stop",)),
        ("/STOP", ("stop",)),
        ("/stop!", ("stop",)),
        ("so be it\r\n/retry\r\nthanks", ("retry",)),
        ("/optimize\u00a0op=rms_norm  hw=h200", ("optimize", "op=rms_norm", "hw=h200")),
        ("/kernel stop abcdef12", ("stop", "abcdef12")),
        ("@kernelevolve stop", ("stop",)),
        ("@kernelevolve[bot]: /stop", ("stop",)),
        ("/optimise", ("optimise",)),
    ],
)
def test_a_line_speaks_to_the_bot(body: str, words: tuple[str, ...]) -> None:
    (line,) = texts(body)

    assert words_of(line) == words


@pytest.mark.parametrize(
    "body",
    [
        "please /stop",
        "/retest",
        "/lgtm",
        "/cc @somebody",
        "/help/me.html",
        "/usr/bin/stop",
        "//stop",
        "/stop-it",
        "/ stop",
        "\uff0fstop",
        "/\u017ftop",
        "@somebody stop",
        "@kernelevolve thanks",
        "mail@kernelevolve stop",
    ],
)
def test_other_words_and_other_bots_are_left_alone(body: str) -> None:
    assert texts(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "```\n/stop\n```",
        "```sh\n/stop",
        "~~~\n```\n/stop\n~~~",
        "````\n```\n/stop\n````",
        "- ```\n/stop\n  ```",
        "    /stop",
        "\t/stop",
        "> /stop",
        "> so he said\n/stop",
        "<!-- /stop -->",
        "<!--\n/stop\n-->",
        "<!-- a --> <!-- b\n/stop\n-->",
        "<pre>\n/stop\n</pre>",
        "<details><code>\n/stop\n</code>",
        "<BLOCKQUOTE>\n\n/stop\n\n</BLOCKQUOTE>",
        "# /stop",
        "/stop\n===",
        "/stop\n---",
        "a\u2028/stop",
        "a\x0b/stop",
        "a\x85/stop",
    ],
)
def test_what_is_not_shown_as_a_plain_line_is_no_command(body: str) -> None:
    assert texts(body) == []


@pytest.mark.parametrize(
    "body",
    [
        "```\ncode\n```\n/stop",
        "use ```this``` or that\n/stop",
        "> quoted\n\n/stop",
        "<!-- hidden -->\n/stop",
        "`<!--` opens a comment\n/stop",
        "a <prefix> of it\n/stop",
        "- ```\n  code\n  ```\n/stop",
        "/stop\n-- \nBob",
    ],
)
def test_what_comes_after_code_and_quotes_counts(body: str) -> None:
    assert texts(body) == ["/stop"]


def test_a_line_keeps_its_number() -> None:
    assert [line.number for line in find_lines("a\n/stop\n\n/retry", me=ME)] == [2, 4]


def test_one_more_than_the_most_is_found_so_that_it_can_be_told() -> None:
    assert len(texts("/status\n" * 20)) == MOST_LINES + 1


def test_a_line_that_is_cut_off_is_no_line() -> None:
    body = "x" * 4075 + "\n/optimize budget=100000"

    assert texts(body) == []


def test_a_line_with_what_nobody_sees_is_found_and_known_for_it() -> None:
    (line,) = texts("/st\u200bop")

    assert has_unseen(line)


PIECES = (*"`~>-/ \n\t", "stop", "<pre>", "</pre>", "\n/stop", "<!--", "-->", "```")


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_each_line_found_stands_in_the_comment_at_its_start(body: str) -> None:
    lines = body.split("\n")

    for found in find_lines(body, me=ME):
        assert lines[found.number - 1].strip() == found.text
        assert lines[found.number - 1].startswith("/")


@given(st.text(), st.sampled_from(NAMES))
def test_whatever_is_quoted_in_a_fence_stays_quoted(inside: str, name: str) -> None:
    body = "``````\n" + inside.replace("`", "'") + f"\n/{name}\n``````"

    assert texts(body) == []
