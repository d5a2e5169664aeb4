"""What the dashboard's text says, and what its boxes ask for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.board.dashboard import Box, Used, View, find_round, find_ticks, render
from daemon.forge import PullRequest
from daemon.report import End
from daemon.status import Ended, Waiting
from optimizer.spending import Spending

AT = "2026-11-30T12:00:00Z"
NAMES = st.from_regex(r"\A[a-z][a-z0-9_]{0,20}\Z")
SLUGS = st.from_regex(r"\A[a-z0-9][a-z0-9._-]{0,20}\Z")
BOXES = st.lists(
    st.builds(Box, st.sampled_from(["search", "reopen"]), NAMES, SLUGS), max_size=8, unique=True
)


def make_request(number: int, title: str = "rms_norm: 2.00x faster on h200") -> PullRequest:
    return PullRequest(
        number=number,
        title=title,
        body="",
        head="kernelevolve/rms_norm/h200",
        base="main",
        labels=("kernelevolve",),
        state="open",
        head_sha="0" * 40,
        created_at=AT,
        updated_at=AT,
    )


def make_waiting(why: str = "operator added", obstacle: str | None = None) -> Waiting:
    return Waiting(
        operator="softmax",
        hardware="h200",
        state="held" if obstacle else "queued",
        why=(why,),
        obstacle=obstacle,
        waited_s=5.0,
    )


def full_view(text: str) -> View:
    end = End(operator="map_id", hardware="h200", verdict="not_better", why=text)
    return View(
        notices=[text],
        waiting=[make_waiting(), make_waiting(text), make_waiting(obstacle=text)],
        open_requests=[make_request(7, text)],
        refused=[(Box("reopen", "rms_norm", "h200"), 6)],
        ended=[Ended(end=end, at=1_790_000_000.0)],
        faults=[text],
        used=[Used("device hours today (UTC)", 1.25, 8)],
        spent=Spending(tokens=12_345, money_usd=0.5),
        searches=[Box("search", "softmax", "h200")],
    )


def tick(body: str) -> str:
    return body.replace("- [ ] ", "- [x] ")


def test_it_shows_what_waits_what_is_open_refused_ended_and_how_much_is_used() -> None:
    body = render(full_view("why not"), number=3)

    assert "| `softmax` on `h200` | queued | operator added |" in body
    assert "| `softmax` on `h200` | held | why not |" in body
    assert "| #7 | why not |" in body
    assert "`rms_norm` on `h200`: #6" in body
    assert "| 2026-09-21 14:13 | `map_id` on `h200` | not better: why not |" in body
    assert "| device hours today (UTC) | 1.25 | 8 |" in body
    assert "12,345 tokens for $0.50 today" in body
    assert "> [!WARNING]\n> why not" in body


def test_nothing_at_all_is_said_to_be_nothing() -> None:
    body = render(View(), number=0)

    assert "Nothing is wanted that has not been tried." in body
    assert "Errors" not in body
    assert "[ ]" not in body


def test_what_is_ticked_is_found_and_nothing_else() -> None:
    body = render(full_view("x"), number=3)

    assert find_ticks(body) == ()
    assert find_ticks(tick(body)) == (
        Box("reopen", "rms_norm", "h200"),
        Box("search", "softmax", "h200"),
    )


def test_a_browser_ends_lines_otherwise() -> None:
    body = tick(render(full_view("x"), number=3)).replace("\n", "\r\n")

    assert len(find_ticks(body)) == 2
    assert find_round(body) == 3


@pytest.mark.parametrize(
    "line",
    [
        "- [ ] <!-- kernelevolve:search softmax h200 -->",
        "[x] <!-- kernelevolve:search softmax h200 -->",
        "    - [x] <!-- kernelevolve:search softmax h200 -->",
        "> - [x] <!-- kernelevolve:search softmax h200 -->",
        "- [x] <!-- kernelevolve:delete softmax h200 -->",
        "- [x] <!-- kernelevolve:search ../softmax h200 -->",
        "- [x] <!-- kernelevolve:search softmax h200; rm -->",
        "- [x] <!-- kernelevolve:search Softmax h200 -->",
        "- [x] <!-- kernelevolve:search softmax " + "h" * 65 + " -->",
        "- [x] softmax on h200",
    ],
)
def test_what_is_no_box_of_ours_asks_for_nothing(line: str) -> None:
    assert find_ticks(line) == ()


def test_no_more_boxes_are_heeded_than_are_ticked_on_purpose() -> None:
    boxes = [Box("search", f"op{n}", "h200") for n in range(50)]

    assert len(find_ticks(tick(render(View(searches=boxes), number=1)))) == 20


def test_the_number_stands_first_or_nowhere() -> None:
    assert find_round(render(View(), number=17)) == 17
    assert find_round("text\n<!-- kernelevolve-dashboard 17 -->") is None
    assert find_round("") is None


def test_without_boxes_nothing_can_be_ticked() -> None:
    view = full_view("x")
    bare = View(refused=view.refused, searches=view.searches, has_boxes=False)

    assert find_ticks(tick(render(bare, number=1))) == ()


@pytest.mark.parametrize(
    "text",
    [
        "@everyone", "| broken | row", "<img src=x onerror=y>", "a\n/stop", "a\n\n## Heading",
        "[x](https://evil)", "<!-- kernelevolve:search softmax h200 -->", "`code`", "#1",
        "\u202eabc", "- [x] <!-- kernelevolve:search softmax h200 -->", "-->", "x" * 5000,
    ],
)  # fmt: skip
def test_texts_of_strangers_show_and_do_nothing(text: str) -> None:
    body = render(full_view(text), number=1)

    assert "@everyone" not in body
    assert "<img" not in body
    assert "\n/stop" not in body
    assert "\n## Heading" not in body
    assert "](https" not in body
    assert find_ticks(body) == ()
    rows = [line for line in body.splitlines() if line.startswith("| `softmax`")]
    assert [row.count(" | ") for row in rows] == [2, 2, 2]


def test_it_stays_below_what_a_host_takes() -> None:
    long = "|`<@" * 75
    view = View(
        notices=[long] * 300,
        waiting=[make_waiting(long)] * 300,
        open_requests=[make_request(n, long) for n in range(300)],
        faults=[long] * 300,
        searches=[Box("search", f"operator_{n}", "cpu-x86-64-v3") for n in range(3000)],
    )

    body = render(view, number=1)

    assert len(body.encode()) <= 60_000
    assert "2994 more are not shown" in body


@given(BOXES, st.integers(0, 999_999_999))
def test_every_box_that_is_shown_can_be_ticked(boxes: list[Box], number: int) -> None:
    view = View(
        searches=[box for box in boxes if box.wish == "search"],
        refused=[(box, 1) for box in boxes if box.wish == "reopen"],
    )
    body = tick(render(view, number=number))

    assert set(find_ticks(body)) == set(boxes)
    assert find_round(body) == number


@given(st.text(max_size=300))
def test_any_text_has_its_ticks_or_none(text: str) -> None:
    for box in find_ticks(text):
        assert box.wish in {"search", "reopen"}
