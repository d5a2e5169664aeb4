import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from daemon.markdown import code, details, fenced, plain, table

TROUBLE = "ab1 .-_*`#|&:;~<>[]()!+=\\@$\tghwGHW/?\n"
RENDERER = MarkdownIt("commonmark").enable(["table", "strikethrough"])


@given(st.text(alphabet=TROUBLE))
@example("12) b")
@example("- - -")
@example("&#45;")
def test_no_text_does_anything_in_markdown(text: str) -> None:
    inert = plain(text)

    for place in (inert, f"- {inert}", f"| a |\n| --- |\n| {inert} |"):
        blocks = RENDERER.parse(place)
        parts = [part for block in blocks for part in block.children or ()]
        assert {part.type for part in parts} <= {"text", "text_special"}
        assert "".join(part.content for part in parts).removeprefix("a") in {
            " ".join(text.split()), " ".join(text.split()).removeprefix("a")
        }  # fmt: skip
        kinds = {block.type.removesuffix("_open") for block in blocks if block.nesting >= 0}
        assert kinds <= {
            "paragraph", "inline", "bullet_list", "list_item",
            "table", "thead", "tbody", "tr", "th", "td",
        }  # fmt: skip


@pytest.mark.parametrize("text", ["@team", "#12", "GH-12", "www.a.example", "http://a", ":tada:"])
def test_what_github_would_link_or_ping_is_broken(text: str) -> None:
    assert "&#" in plain(text)


def test_harmless_text_stays_as_it_was() -> None:
    text = "fused/compile-default on r256-c1024 (call_ms): 1.5x, 10 % slower"

    assert plain(text) == text


@given(st.text())
def test_a_code_span_stays_one_span_in_one_cell(text: str) -> None:
    shown = code(text)

    assert shown.count("`") == 2
    assert not set(shown) & set("|\n\r")


def test_direction_marks_and_invisible_characters_are_dropped() -> None:
    assert plain("a\u202eb\u200bc\x00d") == "abcd"


def test_a_table_has_a_rule_below_its_header() -> None:
    assert table(("a", "b"), [("1", "2")]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"


@given(st.text(alphabet="`~a \n\t|<>"))
@example("```\n</details>\n/stop")
def test_no_code_breaks_out_of_its_block(text: str) -> None:
    blocks = RENDERER.parse(f"{fenced('diff', text)}\n\nafter")

    assert [block.type for block in blocks] == [
        "fence", "paragraph_open", "inline", "paragraph_close",
    ]  # fmt: skip


def test_what_is_folded_is_still_markdown() -> None:
    html = RENDERER.render(details("more", table(("a", "b"), [("x", "1")], numbers={1})))

    assert html.startswith("<details>\n<summary>more</summary>\n<table>")
    assert '<td style="text-align:right">1</td>' in html
