"""Git over HTTP with a token: it gets in, and nothing of the token stays anywhere."""

from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.github.setup import make_credentials
from daemon.origin import (
    BranchMovedError,
    OriginUnavailableError,
    Signature,
    environment_with,
)
from daemon.settings import Settings
from daemon.workspace import Workspace
from tests.github.fake import FakeGitHub

ME = Signature("me", "me@localhost", "2026-11-30T12:00:00+00:00")


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as github:
        github.world.private = True
        yield github


@pytest.fixture
def workspace(github: FakeGitHub, tmp_path: Path) -> Workspace:
    key = tmp_path / "app.pem"
    key.write_text(github.private_key, encoding="ascii")
    settings = Settings.load(
        {
            "KERNELEVOLVE_FORGE": "github",
            "KERNELEVOLVE_GITHUB_REPOSITORY": github.full_name,
            "KERNELEVOLVE_GITHUB_API": github.api_url,
            "KERNELEVOLVE_GITHUB_APP_ID": str(github.app_id),
            "KERNELEVOLVE_GITHUB_PRIVATE_KEY": str(key),
        }
    )
    credentials = make_credentials(settings, github.git_url)
    return Workspace(github.git_url, tmp_path / "clone.git", credentials)


def make_commit(workspace: Workspace, content: bytes = b"new") -> str:
    head = workspace.fetch("main")
    return workspace.commit(head, "a", {"file": content}, message="m", by=ME)


def test_a_private_repository_is_fetched_and_pushed_to(
    github: FakeGitHub, workspace: Workspace
) -> None:
    sha = make_commit(workspace)

    workspace.push("kernelevolve/x/cpu", sha, expected=None)

    assert github.git.heads()["kernelevolve/x/cpu"] == sha
    assert workspace.find_heads().branches["kernelevolve/x/cpu"] == sha


def test_a_commit_of_somebody_else_is_not_overwritten(
    github: FakeGitHub, workspace: Workspace
) -> None:
    ours = make_commit(workspace)
    workspace.push("work", ours, expected=None)
    theirs = github.push("work", {"file": "theirs"}, "ada")

    with pytest.raises(BranchMovedError):
        workspace.push("work", make_commit(workspace, b"newer"), expected=ours)

    assert github.git.heads()["work"] == theirs


def test_without_a_token_git_does_not_get_in(github: FakeGitHub, tmp_path: Path) -> None:
    with pytest.raises(OriginUnavailableError):
        Workspace(github.git_url, tmp_path / "other.git").find_heads()


def test_a_token_that_git_can_not_have_is_an_origin_that_is_away(
    github: FakeGitHub, workspace: Workspace
) -> None:
    github.permissions["contents"] = "read"

    with pytest.raises(OriginUnavailableError, match="gives no token"):
        workspace.find_heads()


def test_the_token_is_no_file_and_in_no_error(
    github: FakeGitHub, workspace: Workspace, tmp_path: Path
) -> None:
    sha = make_commit(workspace)
    workspace.push("work", sha, expected=None)
    github.world.protected.add("work")
    with pytest.raises(OriginUnavailableError) as error:
        workspace.push("work", make_commit(workspace, b"newer"), expected=sha)

    used = {r.headers.get("authorization", "") for r in github.requests}
    encoded = {header.removeprefix("Basic ") for header in used if header.startswith("Basic ")}
    tokens = {b64decode(text).decode().partition(":")[2] for text in encoded}
    secrets = encoded | tokens
    written = b"".join(f.read_bytes() for f in workspace.folder.rglob("*") if f.is_file())

    assert [token[:4] for token in tokens] == ["ghs_"]
    assert not [secret for secret in secrets if secret.encode() in written]
    assert not [secret for secret in secrets if secret in f"{error.value} {error.value.__cause__}"]


def test_git_s_token_may_push_and_do_nothing_else(github: FakeGitHub, workspace: Workspace) -> None:
    workspace.find_heads()

    (asked,) = (r for r in github.requests if r.path.endswith("/access_tokens"))

    assert b'"contents": "write"' in asked.body
    assert b"pull_requests" not in asked.body
    assert b'"repositories": ["kernels"]' in asked.body


def test_a_git_with_a_token_heeds_nobody_s_configuration() -> None:
    made = environment_with({"http.https://h/r.git.extraHeader": "X"}, "https://h/r.git")

    assert made["GIT_ALLOW_PROTOCOL"] == "https"
    assert (made["GIT_CONFIG_NOSYSTEM"], made["GIT_CONFIG_GLOBAL"]) == ("1", "/dev/null")
    count = int(made["GIT_CONFIG_COUNT"])
    told = {made[f"GIT_CONFIG_KEY_{i}"]: made[f"GIT_CONFIG_VALUE_{i}"] for i in range(count)}
    assert told["core.hooksPath"] == "/dev/null"
    assert told["credential.helper"] == ""
    assert told["http.followRedirects"] == "false"
    assert told["http.https://h/r.git.extraHeader"] == "X"
