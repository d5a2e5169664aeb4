"""The pull request by which a registry's owners are asked whether, and how, the bot may work."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Protocol

from daemon.agenda import in_order
from daemon.config.file import CONFIG_PATH, BotConfig
from daemon.config.watch import ConfigWatch
from daemon.forge import ForgeRefusedError, PullRequest, PullRequestDraft
from daemon.logs import find_log
from daemon.markdown import code, table
from daemon.marks import Marks
from daemon.origin import BranchMovedError, Heads, Signature
from daemon.pause import find_pause
from daemon.pulls.pull_request import LABELS
from daemon.talk.wishes import answer_wish, find_wish
from operator_registry.diff import goals
from operator_registry.json_schema import make_schema
from operator_registry.registry import Registry

log = find_log(__name__)
BRANCH = "kernelevolve/configure"
TITLE = "Configure kernelevolve"
SCHEMA_PATH = ".github/kernelevolve.schema.json"
_MOST_ROWS = 100


class Host(Protocol):
    """What the code host is asked: a part of `daemon.forge.CodeHost`."""

    def pull_requests(self, *, head: str | None = None) -> tuple[PullRequest, ...]:
        """Return the pull requests of every state, newest first."""
        ...

    def open_pull_request(self, draft: PullRequestDraft) -> PullRequest:
        """Open a pull request."""
        ...

    def reopen_pull_request(self, number: int) -> PullRequest:
        """Open a closed one again."""
        ...


class Repository(Protocol):
    """The git side: `daemon.workspace.Workspace`."""

    def find_heads(self) -> Heads:
        """Return the origin's branches."""
        ...

    def fetch(self, branch: str) -> str:
        """Bring a branch into the clone and return its head."""
        ...

    def tree(self, revision: str, path: str) -> str | None:
        """Return the hash of what is at a path."""
        ...

    def add(self, base: str, files: Mapping[str, bytes], *, message: str, by: Signature) -> str:
        """Return a commit on top of `base` with these files beside all that it holds."""
        ...

    def push(self, branch: str, sha: str, *, expected: str | None) -> None:
        """Move a branch of the origin."""
        ...


@dataclass(frozen=True)
class Onboarding:
    """Opens the pull request once; closed, it stays so until a person asks for it again."""

    host: Host
    repository: Repository
    marks: Marks
    config: ConfigWatch
    find_registry: Callable[[], Registry | None]
    clock: Callable[[], float]
    name: str
    email: str

    def run(self) -> None:
        """Ask, where nobody has been asked yet.

        Raises:
            ForgeError: The code host can't be asked now, or refuses.
            WorkspaceError: The origin can't be reached now.
        """
        if self.config.is_there() is not False or find_pause(self.marks) is not None:
            return
        requests = [p for p in self.host.pull_requests(head=BRANCH) if not p.from_fork]
        if any(request.state == "open" for request in requests):
            return
        if requests and find_wish(self.marks, "reopen", BRANCH) is None:
            return  # closed, or its file was removed again: both are a no
        told = self._reopen(requests) or self._open()
        log.info("configuration asked for", told=told)
        answer_wish(self.marks, "reopen", BRANCH, told, well=True)

    def _reopen(self, requests: Sequence[PullRequest]) -> str | None:
        if not requests or requests[0].state != "closed":
            return None
        try:
            number = self.host.reopen_pull_request(requests[0].number).number
        except ForgeRefusedError:
            return None  # its branch is gone
        return f"pull request #{number} is open again"

    def _open(self) -> str:
        heads = self.repository.find_heads()
        base = self.config.base or heads.default
        base_sha = self.repository.fetch(base)
        self._push(base_sha, heads.branches.get(BRANCH))
        registry = self.find_registry()
        draft = PullRequestDraft(
            title=TITLE, body=make_body(registry), head=BRANCH, base=base, labels=LABELS
        )
        return f"pull request #{self.host.open_pull_request(draft).number} asks for it"

    def _push(self, base_sha: str, remote: str | None) -> None:
        if remote is not None:
            self.repository.fetch(BRANCH)
            if self.repository.tree(remote, CONFIG_PATH) is not None:
                return  # pushed before a kill, and perhaps edited since
            raise BranchMovedError(BRANCH)
        at = datetime.fromtimestamp(self.clock(), UTC).isoformat()
        message = f"{TITLE}\n\nEverything in it is what holds without it.\n"
        by = Signature(self.name, self.email, at)
        sha = self.repository.add(base_sha, make_files(), message=message, by=by)
        self.repository.push(BRANCH, sha, expected=None)


def make_files() -> dict[str, bytes]:
    """Return the files that are proposed, by path."""
    schema = json.dumps(make_schema(BotConfig), indent=2) + "\n"
    return {
        CONFIG_PATH: PROPOSED.encode(),
        SCHEMA_PATH: schema.encode(),
    }


def make_body(registry: Registry | None) -> str:
    """Return what the pull request says: what merging it starts, and what that costs."""
    return "\n\n".join((_INTRODUCTION, "### What it found", _preview(registry), _ANSWERS)) + "\n"


def _preview(registry: Registry | None) -> str:
    if registry is None:
        return (
            "The registry has faults, or there is none yet, so that nothing would start. "
            f"{code('kernelevolve registry validate')} says what is wrong."
        )
    found = in_order(goals(None, registry), kernels=(), budget_s=registry.config.budget_s)
    hours = len(found) * registry.config.budget_s / 3600
    counts = (
        f"Operators: {len(registry.operators)}, hardware that is searched for: "
        f"{len(set(registry.config.hardware))}, models: {len(registry.models)}. "
        f"Merged, it starts {len(found)} searches at the most, of {registry.config.budget_s:g} "
        f"seconds each: {hours:.3g} device hours."
    )
    rows = [
        (
            code(goal.operator),
            code(goal.hardware),
            f"{100 * goal.share_of_time:.3g} %" if goal.share_of_time else "",
        )
        for goal in found[:_MOST_ROWS]
    ]
    left = len(found) - len(rows)
    more = f"\n\n{left} more." if left else ""
    listed = table(("operator", "hardware", "share of a model's time"), rows) + more
    return f"{counts}\n\n{listed}" if rows else counts


_INTRODUCTION = (
    "A program wrote this. It searches for faster kernels for the operators of this registry, "
    "proves each win against the best that PyTorch has, and opens a pull request for it.\n\n"
    f"It does nothing before there is a {code(CONFIG_PATH)} on this branch. The one proposed here "
    "holds the defaults, all of them in comments: change what you like before you merge."
)
_ANSWERS = (
    "### Your answer\n\n"
    "Merge this, and it begins. Close this, and it does nothing and does not ask again; a comment "
    f"with {code('/reopen')} here asks anew. {code('dry_run: true')} lets it search and prove "
    f"without proposing anything, {code('pause: true')} stops it at any time."
)
PROPOSED = f"""\
# yaml-language-server: $schema={PurePosixPath(SCHEMA_PATH).name}
# What the bot may do here. Everything in comments is what holds without it.
# `kernelevolve config check` finds faults before a push.
version: 1

# pause: false # true: nothing is searched, and nothing written but answers to /stop and /status
# dry_run: false # true: kernels are searched for and proven, but not proposed

# hardware: ["*"] # which of registry.yaml's is worked on; * and ? stand for what may differ
# windows: [] # when searches may start; empty: always
#   - {{cron: "* 20-5 * * mon-fri", timezone: Europe/Berlin}} # minute hour day month weekday

# limits:
#   open_pull_requests: 10
#   pull_requests_per_hour: 4
#   commits_per_hour: 12
#   device_hours_per_day: 24
#   search_minutes: 60 # the longest search that a person may ask for without `maintain`
#   commands_per_hour: 20 # of one person

# thresholds:
#   minimum_gain: 1 # the proven ratio that is asked for, beside registry.yaml's
#   largest_regression: 0.02 # by which share one public workload may be slower at the worst

# labels: [] # on each pull request, beside the bot's own
# reviewers: [] # people and org/teams, beside an operator's owners

# permissions: # what a person must be allowed to do here; what costs is never below write
#   help: read
#   status: read
#   explain: read
#   optimize: write
#   retry: write
#   benchmark: write
#   verify: write
#   stop: write
#   rebase: write
#   reopen: write
#   hold: write
#   unhold: write
"""
