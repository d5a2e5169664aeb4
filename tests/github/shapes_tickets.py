"""How GitHub writes issues, pull requests, comments and pushes as JSON."""

from typing import TYPE_CHECKING

from tests.github.repository import email_of
from tests.github.shapes import (
    association,
    label_json,
    node_id,
    repository_json,
    rollup_json,
    team_json,
    user_json,
)
from tests.github.state import Comment, Json, Pull, Ticket, User, iso

if TYPE_CHECKING:
    from tests.github.world import World


def comment_json(world: "World", comment: Comment) -> Json:
    url = f"{world.repo_url}/issues/comments/{comment.id}"
    ticket = world.tickets[comment.number]
    page = "pull" if ticket.pull else "issues"
    return {
        "id": comment.id,
        "node_id": node_id("IssueComment", comment.id),
        "url": url,
        "html_url": f"{world.page}/{page}/{comment.number}#issuecomment-{comment.id}",
        "issue_url": f"{world.repo_url}/issues/{comment.number}",
        "user": user_json(world, comment.user),
        "created_at": iso(comment.created_at),
        "updated_at": iso(comment.updated_at),
        "author_association": association(world, comment.user),
        "body": comment.body,
        "reactions": rollup_json(url, comment.reactions),
        "performed_via_github_app": world.app_json() if comment.via_app else None,
    }


def _common(world: "World", ticket: Ticket) -> Json:
    return {
        "number": ticket.number,
        "title": ticket.title,
        "body": ticket.body,
        "user": user_json(world, ticket.user),
        "state": ticket.state,
        "locked": False,
        "active_lock_reason": None,
        "assignee": None,
        "assignees": [],
        "milestone": None,
        "labels": [label_json(world, world.labels[name.lower()]) for name in ticket.labels],
        "created_at": iso(ticket.created_at),
        "updated_at": iso(ticket.updated_at),
        "closed_at": None if ticket.closed_at is None else iso(ticket.closed_at),
        "author_association": association(world, ticket.user),
        "comments_url": f"{world.repo_url}/issues/{ticket.number}/comments",
    }


def issue_json(world: "World", ticket: Ticket) -> Json:
    """Return an issue, or a pull request in the form of one."""
    url = f"{world.repo_url}/issues/{ticket.number}"
    page = f"{world.page}/{'pull' if ticket.pull else 'issues'}/{ticket.number}"
    made = _common(world, ticket) | {
        "id": ticket.id,
        "node_id": node_id("Issue", ticket.id),
        "url": url,
        "repository_url": world.repo_url,
        "labels_url": f"{url}/labels{{/name}}",
        "events_url": f"{url}/events",
        "html_url": page,
        "comments": sum(c.number == ticket.number for c in world.comments.values()),
        "closed_by": None if ticket.closed_by is None else user_json(world, ticket.closed_by),
        "reactions": rollup_json(url, ticket.reactions),
        "timeline_url": f"{url}/timeline",
        "performed_via_github_app": world.app_json() if ticket.via_app else None,
        "state_reason": None,
    }
    if ticket.pull:
        made["draft"] = ticket.pull.draft
        made["pull_request"] = {
            "url": f"{world.repo_url}/pulls/{ticket.number}",
            "html_url": page,
            "diff_url": f"{page}.diff",
            "patch_url": f"{page}.patch",
            "merged_at": None if ticket.pull.merged_at is None else iso(ticket.pull.merged_at),
        }
    return made


def _end(world: "World", branch: str, sha: str, fork: User | None = None) -> Json:
    owner = fork or world.owner
    return {
        "label": f"{owner.login}:{branch}",
        "ref": branch,
        "sha": sha,
        "user": user_json(world, owner),
        "repo": repository_json(world, fork),
    }


def pull_json(world: "World", ticket: Ticket, pull: Pull) -> Json:
    """Return a pull request as in a list."""
    url = f"{world.repo_url}/pulls/{ticket.number}"
    page = f"{world.page}/pull/{ticket.number}"
    issue = f"{world.repo_url}/issues/{ticket.number}"
    made = _common(world, ticket) | {
        "id": pull.id,
        "node_id": node_id("PullRequest", ticket.number),
        "url": url,
        "html_url": page,
        "diff_url": f"{page}.diff",
        "patch_url": f"{page}.patch",
        "issue_url": issue,
        "commits_url": f"{url}/commits",
        "review_comments_url": f"{url}/comments",
        "review_comment_url": f"{world.repo_url}/pulls/comments{{/number}}",
        "statuses_url": f"{world.repo_url}/statuses/{pull.head_sha}",
        "head": _end(world, pull.head, pull.head_sha, pull.fork),
        "base": _end(world, pull.base, pull.base_sha),
        "draft": pull.draft,
        "merged_at": None if pull.merged_at is None else iso(pull.merged_at),
        "merge_commit_sha": pull.merge_sha,
        "requested_reviewers": [user_json(world, user) for user in pull.reviewers],
        "requested_teams": [team_json(world, team) for team in pull.teams],
        "auto_merge": None,
    }
    links = {
        "self": url, "html": page, "issue": issue, "comments": made["comments_url"],
        "review_comments": made["review_comments_url"], "commits": made["commits_url"],
        "review_comment": made["review_comment_url"], "statuses": made["statuses_url"],
    }  # fmt: skip
    return made | {"_links": {name: {"href": link} for name, link in links.items()}}


def whole_pull_json(world: "World", ticket: Ticket, pull: Pull) -> Json:
    """Return a pull request as by its number, with what GitHub computes late."""
    changes = world.git.changes(pull.base_sha, pull.head_sha)
    known = pull.looks > world.quirks.mergeable_after_looks
    merges = world.git.merges(world.git.heads().get(pull.base, pull.base_sha), pull.head_sha)
    mergeable = merges if ticket.state == "open" and known else None
    return pull_json(world, ticket, pull) | {
        "merged": pull.merged_at is not None,
        "mergeable": mergeable,
        "rebaseable": mergeable,
        "mergeable_state": {None: "unknown", True: "clean", False: "dirty"}[mergeable],
        "merged_by": None if pull.merged_by is None else user_json(world, pull.merged_by),
        "comments": sum(c.number == ticket.number for c in world.comments.values()),
        "review_comments": 0,
        "maintainer_can_modify": False,
        "commits": len(world.git.log(pull.head_sha, pull.base_sha)),
        "additions": sum(change.additions for change in changes),
        "deletions": sum(change.deletions for change in changes),
        "changed_files": len(changes),
    }


def push_json(world: "World", branch: str, before: str | None, after: str | None, by: User) -> Json:
    """Return what a webhook says of a push; a branch that was not, or is not, is None."""
    zero = "0" * 40
    old = before if after and before and world.git.holds(after, before) else None
    commits = [] if after is None else world.git.log(after, old, most=20)
    listed = [
        {
            "id": c.sha,
            "tree_id": c.tree,
            "distinct": True,
            "message": c.message,
            "timestamp": c.date,
            "url": f"{world.page}/commit/{c.sha}",
            "author": {"name": c.author, "email": c.email, "username": c.author},
            "committer": {"name": c.author, "email": c.email, "username": c.author},
            "added": [],
            "removed": [],
            "modified": [],
        }
        for c in commits
    ]
    return {
        "ref": f"refs/heads/{branch}",
        "before": before or zero,
        "after": after or zero,
        "created": before is None,
        "deleted": after is None,
        "forced": bool(before and after and old is None),
        "base_ref": None,
        "compare": f"{world.page}/compare/{before}...{after}",
        "commits": listed,
        "head_commit": listed[-1] if listed else None,
        "pusher": {"name": by.login, "email": email_of(by.login)},
    }
