"""What must be true at the code host and in the store, whatever has happened. Read alone."""

from collections import Counter
from collections.abc import Collection, Iterator
from itertools import pairwise

from daemon.pulls.pull_request import find_marker
from daemon.talk.lines import find_lines
from optimizer.store import OPEN_STATES, Store
from tests.github.fake import FakeGitHub
from tests.github.stage import BRANCH

_ENDS = frozenset({"+1", "-1", "hooray", "confused"})


def find_doubled(github: FakeGitHub, asked_again: Collection[int] = ()) -> Iterator[str]:
    """Yield what the daemon did twice: pull requests for a goal, words to people, issues.

    Args:
        github: Where.
        asked_again: Pull requests of which a person took the no back.
    """
    bot = github.bot.id
    pulls = [p for p in github.pulls() if p.user.id == bot]
    opened = Counter(p.pull.head for p in pulls if p.state == "open" and p.pull)
    yield from (f"{branch}: {n} are open" for branch, n in opened.items() if n > 1)
    for earlier, later in pairwise(pulls):
        one, other = find_marker(earlier.body or ""), find_marker(later.body or "")
        refused = earlier.pull and earlier.pull.merged_at is None and not (one and one.retired)
        same = one and other and one.operator_digest == other.operator_digest
        if refused and same and earlier.number not in asked_again:
            yield f"#{later.number} although #{earlier.number} was a no"
    comments = [c for c in github.world.comments.values() if c.user.id == bot]
    lines = ((c.number, line) for c in comments for line in c.body.splitlines())
    markers = Counter(said for said in lines if said[1].startswith("<!-- kernelevolve"))
    yield from (f"#{number}: {n} of {m}" for (number, m), n in markers.items() if n > 1)
    yield from (f"no marker: {c.body}" for c in comments if "<!-- kernelevolve" not in c.body)
    titles = Counter(t.title for t in github.issues() if t.user.id == bot)
    yield from (f"{n} issues {title}" for title, n in titles.items() if n > 1)


def find_undone(github: FakeGitHub, theirs: Collection[str]) -> Iterator[str]:
    """Yield which commits of people's on the daemon's branch are not there any more."""
    head = github.git.heads().get(BRANCH)
    if head is not None:
        yield from (f"{sha} is gone" for sha in theirs if not github.git.holds(head, sha))
    elif any(p.state == "open" for p in github.pulls() if p.user.id == github.bot.id):
        yield f"{BRANCH} is gone"


def is_quiet(store: Store) -> bool:
    """Return whether the daemon has nothing more to do."""
    backlog = store.backlog()
    return not (backlog.deliveries or backlog.commands or backlog.effects or store.pending_goals())


def find_lost(github: FakeGitHub, store: Store) -> Iterator[str]:
    """Yield what people or goals still wait for, once all is well and the daemon had its time."""
    if not is_quiet(store):
        yield f"{store.backlog()} {store.pending_goals()}"
    for effect in store.given_up_effects():
        yield f"given up: {effect.key}: {effect.error}"
    known = {(c.comment_id, c.line): c for c in store.commands()}
    bot = github.bot
    for comment in github.world.comments.values():
        if comment.user.id == bot.id:
            continue
        signs = {what for who, what in github.reactions(comment.id) if who == bot.login}
        for line in find_lines(comment.body, me=bot.login):
            command = known.get((comment.id, line.number))
            if command is None or command.state in OPEN_STATES:
                yield f"{comment.user.login}: {line.text}: {command}"
            elif not _ENDS & signs:
                yield f"no sign of an end: {command}"
