"""GitHub: implements `daemon.forge.CodeHost` for one repository.

Each part stands in a module of its own, and all of them on `github_client.GitHubClient`, which any
thread may use. Nothing is remembered here but who we are: git and GitHub hold the state.
"""

from daemon.github_actions import Actions
from daemon.github_checks import Checks
from daemon.github_pull_requests import PullRequests
from daemon.github_talk import Talk


class GitHubForge(PullRequests, Talk, Checks, Actions):
    """GitHub, for one repository; any thread may use it."""
