"""How GitHub writes users, repositories, issues and pull requests as JSON."""

import base64
from typing import TYPE_CHECKING
from urllib.parse import quote

from tests.github.repository import Commit
from tests.github.state import ROLES, Json, Label, Reaction, User, iso

if TYPE_CHECKING:
    from tests.github.world import World

_USER_URLS = (
    "followers", "subscriptions", "organizations", "repos", "received_events",
)  # fmt: skip
_USER_TEMPLATES = {
    "following_url": "/following{/other_user}",
    "gists_url": "/gists{/gist_id}",
    "starred_url": "/starred{/owner}{/repo}",
    "events_url": "/events{/privacy}",
}
_REPOSITORY_URLS = {
    "archive_url": "/{archive_format}{/ref}", "assignees_url": "/assignees{/user}",
    "blobs_url": "/git/blobs{/sha}", "branches_url": "/branches{/branch}",
    "collaborators_url": "/collaborators{/collaborator}", "comments_url": "/comments{/number}",
    "commits_url": "/commits{/sha}", "compare_url": "/compare/{base}...{head}",
    "contents_url": "/contents/{+path}", "contributors_url": "/contributors",
    "deployments_url": "/deployments", "downloads_url": "/downloads", "events_url": "/events",
    "forks_url": "/forks", "git_commits_url": "/git/commits{/sha}",
    "git_refs_url": "/git/refs{/sha}", "git_tags_url": "/git/tags{/sha}", "hooks_url": "/hooks",
    "issue_comment_url": "/issues/comments{/number}", "issue_events_url": "/issues/events{/number}",
    "issues_url": "/issues{/number}", "keys_url": "/keys{/key_id}", "labels_url": "/labels{/name}",
    "languages_url": "/languages", "merges_url": "/merges",
    "milestones_url": "/milestones{/number}",
    "notifications_url": "/notifications{?since,all,participating}", "pulls_url": "/pulls{/number}",
    "releases_url": "/releases{/id}", "stargazers_url": "/stargazers",
    "statuses_url": "/statuses/{sha}", "subscribers_url": "/subscribers",
    "subscription_url": "/subscription", "tags_url": "/tags", "teams_url": "/teams",
    "trees_url": "/git/trees{/sha}",
}  # fmt: skip


def node_id(kind: str, number: int) -> str:
    return base64.b64encode(f"{kind}:{number}".encode()).decode()


def user_json(world: "World", user: User) -> Json:
    url = f"{world.api}/users/{quote(user.login)}"
    is_bot = user.kind == "Bot"
    page = f"apps/{user.login.removesuffix('[bot]')}" if is_bot else user.login
    made = {f"{name}_url": f"{url}/{name}" for name in _USER_URLS}
    made |= {name: url + rest for name, rest in _USER_TEMPLATES.items()}
    return made | {
        "login": user.login,
        "id": user.id,
        "node_id": node_id("User", user.id),
        "avatar_url": f"{world.web}/avatars/{user.id}",
        "gravatar_id": "",
        "url": url,
        "html_url": f"{world.web}/{page}",
        "type": user.kind,
        "site_admin": False,
        "user_view_type": "public",
    }


def whole_user_json(world: "World", user: User) -> Json:
    numbers = (
        "public_repos",
        "public_gists",
        "followers",
        "following",
        "private_gists",
        "total_private_repos",
        "owned_private_repos",
        "disk_usage",
        "collaborators",
    )
    texts = ("name", "company", "location", "email", "hireable", "bio", "twitter_username")
    made = user_json(world, user) | dict.fromkeys(numbers, 0) | dict.fromkeys(texts)
    times = dict.fromkeys(("created_at", "updated_at"), iso(world.born))
    return made | times | {"blog": "", "two_factor_authentication": True}


def repository_json(world: "World", owner: User | None = None) -> Json:
    """Return the repository, or somebody's fork of it, with all that the longest form has."""
    fork = owner is not None
    owner = owner or world.owner
    full = f"{owner.login}/{world.name}"
    number = 1_000_000 + owner.id
    made: Json = {
        name: f"{world.api}/repos/{full}{rest}" for name, rest in _REPOSITORY_URLS.items()
    }
    made |= dict.fromkeys(("has_projects", "has_wiki", "has_pages", "has_discussions"), False)
    made |= dict.fromkeys(("disabled", "is_template"), False)
    made |= dict.fromkeys(("has_downloads", "has_issues", "has_pull_requests"), True)
    made |= dict.fromkeys(("homepage", "language", "mirror_url", "license", "description"))
    counts = ("forks", "stargazers", "watchers", "open_issues", "network", "subscribers")
    made |= {f"{name}_count": 0 for name in counts}
    made |= {"forks": 0, "watchers": 0, "open_issues": 0, "size": 1, "topics": []}
    made |= dict.fromkeys(("created_at", "updated_at", "pushed_at"), iso(world.born))
    return made | {
        "id": number,
        "node_id": node_id("Repository", number),
        "name": world.name,
        "archived": world.quirks.archived,
        "full_name": full,
        "private": world.private,
        "visibility": "private" if world.private else "public",
        "owner": user_json(world, owner),
        "html_url": f"{world.web}/{full}",
        "fork": fork,
        "url": f"{world.api}/repos/{full}",
        "clone_url": f"{world.web}/{full}.git",
        "git_url": f"git:127.0.0.1/{full}.git",
        "ssh_url": f"git@127.0.0.1:{full}.git",
        "svn_url": f"{world.web}/{full}",
        "default_branch": "main",
        "allow_forking": True,
        "web_commit_signoff_required": False,
        "permissions": {
            "admin": False,
            "maintain": False,
            "push": True,
            "triage": True,
            "pull": True,
        },
    }


def association(world: "World", user: User) -> str:
    """Return what GitHub's bodies say of somebody: a hint, and with private members a wrong one."""
    if user.id == world.owner.id:
        return "OWNER"
    has_rights = ROLES.index(user.role) >= ROLES.index("triage")
    if world.quirks.associations_mislead:
        return "NONE" if has_rights else "MEMBER"
    return "COLLABORATOR" if has_rights else "NONE"


def label_json(world: "World", label: Label) -> Json:
    return {
        "id": label.id,
        "node_id": node_id("Label", label.id),
        "url": f"{world.repo_url}/labels/{quote(label.name)}",
        "name": label.name,
        "color": label.color,
        "default": False,
        "description": label.description,
    }


def reaction_json(world: "World", reaction: Reaction) -> Json:
    return {
        "id": reaction.id,
        "node_id": node_id("Reaction", reaction.id),
        "user": user_json(world, reaction.user),
        "content": reaction.content,
        "created_at": iso(reaction.created_at),
    }


def rollup_json(url: str, reactions: list[Reaction]) -> Json:
    names = ("+1", "-1", "laugh", "hooray", "confused", "heart", "rocket", "eyes")
    counts: Json = {name: sum(r.content == name for r in reactions) for name in names}
    return counts | {"url": f"{url}/reactions", "total_count": len(reactions)}


def team_json(world: "World", slug: str) -> Json:
    number = sum(slug.encode())
    url = f"{world.api}/teams/{number}"
    return {
        "id": number,
        "node_id": node_id("Team", number),
        "name": slug,
        "slug": slug,
        "description": None,
        "privacy": "closed",
        "notification_setting": "notifications_enabled",
        "permission": "pull",
        "url": url,
        "html_url": f"{world.web}/orgs/{world.owner.login}/teams/{slug}",
        "members_url": f"{url}/members{{/member}}",
        "repositories_url": f"{url}/repos",
        "type": "organization",
        "organization_id": world.owner.id,
        "parent": None,
    }


def commit_json(world: "World", commit: Commit) -> Json:
    url = f"{world.repo_url}/commits/{commit.sha}"
    person = {"name": commit.author, "email": commit.email, "date": commit.date}
    user = world.users.get(commit.author.lower())
    git_url = f"{world.repo_url}/git"
    return {
        "sha": commit.sha,
        "node_id": node_id("Commit", int(commit.sha[:8], 16)),
        "url": url,
        "html_url": f"{world.page}/commit/{commit.sha}",
        "comments_url": f"{url}/comments",
        "commit": {
            "url": f"{git_url}/commits/{commit.sha}",
            "author": person,
            "committer": person,
            "message": commit.message,
            "comment_count": 0,
            "tree": {"sha": commit.tree, "url": f"{git_url}/trees/{commit.tree}"},
        },
        "author": None if user is None else user_json(world, user),
        "committer": None if user is None else user_json(world, user),
        "parents": [
            {
                "sha": parent,
                "url": f"{world.repo_url}/commits/{parent}",
                "html_url": f"{world.page}/commit/{parent}",
            }
            for parent in commit.parents
        ],
    }
