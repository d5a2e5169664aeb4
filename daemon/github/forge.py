"""GitHub: implements `daemon.forge.CodeHost` for one repository.

Each part stands in a module of its own, and all of them on `client.GitHubClient`, which any
thread may use. Nothing is remembered here but who we are: git and GitHub hold the state.
"""

from daemon.github.checks import Checks
from daemon.github.pull_requests import PullRequests
from daemon.github.talk import Talk
from daemon.github.workflows import Actions


class GitHubForge(PullRequests, Talk, Checks, Actions):
    """GitHub, for one repository; any thread may use it."""
