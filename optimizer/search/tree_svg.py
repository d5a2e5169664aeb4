"""A search's tree as a picture: trials from left to right, the faster the higher."""

import math
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from optimizer.search.outline import clip, describe, find_best_path, pick_shown
from optimizer.search.tree import Node, Tree

MOST: Final = 2000
"""Nodes in a picture; of more the fittest are drawn."""
_WIDTH, _HEIGHT, _EDGE, _LANE = 960, 540, 56, 36
"""In pixels; the lane below is for what was not timed."""
_COLOURS: Final = ("#1b7f4d", "#3b6fb6", "#b3541e", "#7a4fa3", "#8a7a1f", "#4d8a8f")
_PALE, _DARK = "#c9d0d6", "#333333"
_TICKS: Final = (1, 1.25, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def tree_svg(tree: Tree, *, title: str) -> str:
    """Return an SVG with each trial as a point, and a line from what it was made from.

    The path to the best is bold; hollow points failed; the steps are the best so far. Speed is on
    a logarithmic scale. The same tree gives the same bytes.
    """
    shown = pick_shown(tree, rows=MOST)
    scale = _Scale(tree)
    origins = sorted({node.trial.candidate.origin for node in shown})
    colours = {name: _COLOURS[i % len(_COLOURS)] for i, name in enumerate(origins)}
    lines = [
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" '
            f'font-family="sans-serif" font-size="12" fill="{_DARK}">'
        ),
        f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
        f'<text x="{_EDGE}" y="22" font-size="14">{_told(title)}</text>',
        *_axes(tree, scale),
        *_edges(tree, shown, scale),
        *_steps(tree, scale),
        *(_point(node, scale, colours[node.trial.candidate.origin]) for node in shown),
        *_legend(colours),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


class _Scale:
    """Where a trial and a speed lie."""

    def __init__(self, tree: Tree) -> None:
        speeds = [node.fitness for node in tree.ranked] or [1.0]
        self.low, self.high = min(*speeds, 1.0) / 1.05, max(*speeds, 1.0) * 1.05
        self.trials = max(len(tree), 2)

    def x(self, place: int) -> float:
        return round(_EDGE + (_WIDTH - 2 * _EDGE) * place / (self.trials - 1), 1)

    def y(self, fitness: float) -> float:
        if fitness <= 0:
            return _HEIGHT - _EDGE - _LANE / 2
        share = math.log(fitness / self.low) / math.log(self.high / self.low)
        return round(_HEIGHT - _EDGE - _LANE - (_HEIGHT - 2 * _EDGE - _LANE) * share, 1)


def _axes(tree: Tree, scale: _Scale) -> Iterator[str]:
    for tick in _ticks(scale.low, scale.high):
        y = scale.y(tick)
        dashes = "" if math.isclose(tick, 1) else ' stroke-dasharray="2 4"'
        yield (
            f'<line x1="{_EDGE}" y1="{y}" x2="{_WIDTH - _EDGE}" y2="{y}" stroke="{_PALE}"{dashes}/>'
        )
        yield f'<text x="{_EDGE - 6}" y="{y + 4}" text-anchor="end">{tick:g}x</text>'
    y = scale.y(0)
    yield f'<text x="{_EDGE - 6}" y="{y + 4}" text-anchor="end">none</text>'
    yield (
        f'<text x="{_WIDTH / 2}" y="{_HEIGHT - 18}" text-anchor="middle">'
        f"trials, 1 to {len(tree)}</text>"
    )


def _ticks(low: float, high: float) -> list[float]:
    """Return at most about eight round speeds within a span."""
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    ticks = [tick * 10.0**decade for decade in decades for tick in _TICKS[:-1]]
    within = [tick for tick in ticks if low <= tick <= high]
    return within[:: -(-len(within) // 8) or 1]


def _edges(tree: Tree, shown: Sequence[Node], scale: _Scale) -> Iterator[str]:
    best = {node.place for node in find_best_path(tree)}
    bold: list[str] = []
    for node in shown:
        for parent, dashes in ((node.parent, ""), (node.mate, ' stroke-dasharray="3 3"')):
            if parent is None:
                continue
            on_path = node.place in best and parent is node.parent
            style = f'stroke="{_DARK}" stroke-width="2"' if on_path else f'stroke="{_PALE}"'
            line = (
                f'<line x1="{scale.x(parent.place)}" y1="{scale.y(parent.fitness)}" '
                f'x2="{scale.x(node.place)}" y2="{scale.y(node.fitness)}" {style}{dashes}/>'
            )
            if on_path:
                bold.append(line)
            else:
                yield line
    yield from bold


def _steps(tree: Tree, scale: _Scale) -> Iterator[str]:
    corners: list[str] = []
    before = 0.0
    for place, best in enumerate(tree.curve):
        if best > before:
            corners += [f"{scale.x(place)},{scale.y(before)}"] if before else []
            corners.append(f"{scale.x(place)},{scale.y(best)}")
            before = best
    if corners:
        corners.append(f"{scale.x(len(tree) - 1)},{scale.y(before)}")
        yield f'<polyline points="{" ".join(corners)}" fill="none" stroke="#1b7f4d66"/>'


def _point(node: Node, scale: _Scale, colour: str) -> str:
    fill = colour if node.passed else "white"
    return (
        f'<circle cx="{scale.x(node.place)}" cy="{scale.y(node.fitness)}" r="3.5" fill="{fill}" '
        f'stroke="{colour}"><title>{_told(describe(node))}</title></circle>'
    )


def _legend(colours: dict[str, str]) -> Iterator[str]:
    for at, (name, colour) in enumerate(colours.items()):
        x = _EDGE + 140 * at
        yield f'<circle cx="{x}" cy="38" r="3.5" fill="{colour}"/>'
        yield f'<text x="{x + 8}" y="42">{_told(name)}</text>'


def _told(text: str) -> str:
    return escape(clip(text))
