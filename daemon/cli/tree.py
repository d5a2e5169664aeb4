"""The command that draws a search's tree."""

from argparse import Namespace

from daemon.bot import open_store
from daemon.cli.arguments import MisuseError
from daemon.cli.terminal import Terminal
from daemon.settings import Settings, SettingsError
from optimizer.errors import OptimizerError
from optimizer.events import explain
from optimizer.search.outline import clip, draw, find_best_path
from optimizer.search.tree import Node, Tree
from optimizer.search.tree_svg import tree_svg
from optimizer.store import Store, StoredSearch

MISUSE = (MisuseError, SettingsError)
FAULTS = (OptimizerError, OSError)
_LISTED = 10


def show_tree(args: Namespace, terminal: Terminal) -> int:
    """Draw the tree of a search: its best path, what was tried beside it, and why it ended so."""
    with open_store(Settings.load()) as store:
        search = _find(store, args.search)
        tree = Tree(store.trials(search.id))
    best = f"best {tree.best.fitness:.2f}x in trial {tree.best.trial.number}" if tree.best else ""
    title = f"{search.operator} on {search.hardware}: {len(tree)} trials"
    title = f"{title}, {best or 'none was timed'}"
    if args.svg is not None:
        args.svg.write_text(tree_svg(tree, title=title), encoding="utf-8")
    if terminal.as_json:
        terminal.tell(_json(search, tree))
        return 0
    terminal.say(f"{title} (search {search.id}, goal {clip(search.goal_key)})")
    for line in draw(tree, rows=args.rows):
        terminal.say(line.text, style="bold green" if line.best else "")
    if args.svg is not None:
        terminal.say(f"the picture: {args.svg}")
    return 0


def _find(store: Store, wanted: str) -> StoredSearch:
    """Return the one search that is meant.

    Raises:
        MisuseError: There is none, or there are several.
    """
    found = store.find_searches(wanted)
    if not found:
        latest = ", ".join(s.goal_key for s in store.find_searches("")[:_LISTED])
        msg = f"no search has the id or a goal that begins with {wanted!r}; the latest are: "
        raise MisuseError(msg + (latest or "none"))
    exact = [s for s in found if wanted in {str(s.id), s.goal_key}]
    if len(found) > 1 and not exact:
        keys = ", ".join(f"{s.id} ({s.goal_key})" for s in found[:_LISTED])
        msg = f"{wanted!r} may be any of {len(found)} searches: {keys}"
        raise MisuseError(msg)
    return next(iter(exact or found))


def _json(search: StoredSearch, tree: Tree) -> dict[str, object]:
    best = {node.place for node in find_best_path(tree)}
    return {
        **search.model_dump(mode="json"),
        "nodes": [_node(node, on_best_path=node.place in best) for node in tree.nodes],
    }


def _node(node: Node, *, on_best_path: bool) -> dict[str, object]:
    candidate, outcome = node.trial.candidate, node.trial.evaluation.outcome
    return {
        "number": node.trial.number,
        "candidate": node.id,
        "parent": node.parent.trial.number if node.parent else None,
        "mate": node.mate.trial.number if node.mate else None,
        "origin": candidate.origin,
        "note": candidate.note,
        "outcome": outcome.kind,
        "detail": explain(outcome),
        "fitness": node.fitness,
        "generation": node.generation,
        "on_best_path": on_best_path,
    }
