"""The body of a real search's pull request as people see it: drawn, and checked for what broke."""

from collections.abc import Sequence
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from daemon.pulls.body import make_draft
from daemon.pulls.proposing import find_incumbent
from daemon.pulls.pull_request import Proposal, Site, find_marker
from optimizer.kernel import read_kernel
from tests.daemon.markdown_page import draw, find_browser, measure, to_html
from tests.daemon.proposals import HEAD

ROOT = Path(__file__).parents[2]
KERNELS = sorted(path.parent for path in (ROOT / "kernels").glob("*/*/dispatch.json"))
SITE = Site(web="https://github.example/o/r", hears_commands=True)
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
BROWSER = find_browser()


def make_proposal(folder: Path, *, incumbent: Path | None = None) -> Proposal:
    """Return the proposal of a published kernel, as its search made it."""
    kernel = read_kernel(folder)
    (variant,) = kernel.variants.values()
    return Proposal(
        variant.evidence,
        origin=variant.candidate.origin,
        note=variant.candidate.note,
        text=variant.candidate.code,
        incumbent=find_incumbent(incumbent, variant.evidence, lambda _: None)
        if incumbent
        else None,
        shares={"ads_ranker": 0.25},
        bandwidth_gb_s=kernel.hardware.limits.dram_bandwidth_gb_s,
        pictures=tuple(p.relative_to(folder).as_posix() for p in sorted(folder.rglob("*.svg"))),
    )


def body_of(proposal: Proposal) -> str:
    first = make_draft(proposal, head="b" * 40, base="main", site=SITE)
    old = find_marker(first.body)
    return make_draft(proposal, head=HEAD, base="main", old=old, site=SITE).body


@pytest.mark.parametrize("folder", KERNELS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_every_table_of_a_real_body_has_as_many_cells_in_each_row(folder: Path) -> None:
    widths = _widths(body_of(make_proposal(folder, incumbent=KERNELS[0])))

    assert len(widths) >= 6
    for rows in widths:
        assert len(set(rows)) == 1


@pytest.mark.parametrize("folder", KERNELS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_no_markdown_is_shown_as_text(folder: Path) -> None:
    blocks = MARKDOWN.parse(body_of(make_proposal(folder)))

    texts = [part.content for b in blocks for part in b.children or () if part.type == "text"]
    assert texts
    assert not [text for text in texts if "| ---" in text or "**" in text or "](" in text]


@pytest.mark.drill
@pytest.mark.skipif(BROWSER is None, reason="no browser here: apt-get install chromium")
@pytest.mark.parametrize("folder", KERNELS, ids=lambda p: f"{p.parent.name}-{p.name}")
def test_a_real_body_is_drawn_within_its_page(folder: Path, tmp_path: Path) -> None:
    assert BROWSER is not None
    proposal = make_proposal(folder, incumbent=KERNELS[0])
    place = f"{SITE.web}/blob/{HEAD}/{proposal.path}/"
    html = to_html(body_of(proposal), unfolded=True)
    html = html.replace(place, f"{folder.as_uri()}/").replace("?raw=true", "")

    draw(BROWSER, html, tmp_path / "body.png")
    told = measure(BROWSER, html, tmp_path / "body.html")

    assert (tmp_path / "body.png").stat().st_size > 50_000
    assert told["broken"] == 0
    assert told["images"] >= 1
    assert told["wide"] == 0


def _widths(body: str) -> Sequence[Sequence[int]]:
    tables: list[list[int]] = []
    for block in MARKDOWN.parse(body):
        if block.type == "table_open":
            tables.append([])
        elif block.type == "tr_open":
            tables[-1].append(0)
        elif block.type in {"th_open", "td_open"}:
            tables[-1][-1] += 1
    return tables
