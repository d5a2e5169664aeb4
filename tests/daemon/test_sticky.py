from hypothesis import given
from hypothesis import strategies as st

from daemon.forge import Comment, Person
from daemon.talk.commands import USAGE
from daemon.talk.lines import NAMES, find_lines
from daemon.talk.sticky import JobRow, Row, find_own, render_status, status_marker

ME, SOMEBODY = Person(id=2, login="kernelevolve[bot]", is_bot=True), Person(id=7, login="wendy")
ROW = Row(at=0.0, who="wendy", text="/status", state="done", told="up to date")


def comment(comment_id: int, author: Person, body: str) -> Comment:
    return Comment(
        id=comment_id, number=1, author=author, body=body, created_at="x", updated_at="x"
    )


def render(*rows: Row, notices: tuple[str, ...] = (), jobs: tuple[JobRow, ...] = ()) -> str:
    return render_status(rows, jobs, notices=notices, is_request=True)


def test_it_is_found_by_its_marker_and_its_author() -> None:
    marker = status_marker(1)
    spoof = comment(1, SOMEBODY, f"{marker}\nall is well")
    quoted = comment(2, ME, f"see {marker} there")
    own = comment(3, ME, f"{marker}\ntable")

    assert find_own([spoof, quoted, own], marker, ME) == own
    assert find_own([spoof, quoted], marker, ME) is None
    assert find_own([own], status_marker(11), ME) is None


def test_it_has_a_row_a_command_and_a_row_a_job() -> None:
    job = JobRow("0123abcd", "scale on h200", "number 1 in the queue")

    body = render(ROW, jobs=(job,))

    assert "| 01-01 00:00 | `wendy` | `/status` | done | up to date |" in body
    assert "| `0123abcd` | scale on h200 | number 1 in the queue |" in body


def test_old_commands_are_counted_and_not_shown() -> None:
    body = render(*[ROW] * 14)

    assert body.count("`wendy`") == 10
    assert "4 earlier commands" in body


def test_a_notice_stands_on_top() -> None:
    assert render(ROW, notices=("", "on hold")).splitlines()[2] == "> **Note:** on hold"


def test_it_lists_every_command() -> None:
    assert all(f"`/{USAGE[name]}`" in render() for name in NAMES)


@given(st.text(), st.text(), st.text())
def test_texts_of_strangers_neither_ping_nor_break_the_table_nor_command(
    who: str, text: str, told: str
) -> None:
    hostile = Row(at=0.0, who=who, text=f"@octo {text}", state="done", told=f"@octo {told}")

    body = render(hostile, notices=(told,))

    (row,) = [line for line in body.splitlines() if line.startswith("| 01-01")]
    assert row.count("|") == 6
    assert body.count("@octo") == 1  # in a code span, which pings nobody
    assert find_lines(body, me=ME.login) == ()
