"""The fake of GitHub, asked by the library that the daemon uses and by git."""

from collections.abc import Iterator
from pathlib import Path

import github
import pytest

from tests.github.fake import FakeGitHub


@pytest.fixture
def host(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as host:
        yield host


def make_app_client(host: FakeGitHub) -> github.Github:
    auth = github.Auth.AppAuth(host.app_id, host.private_key)
    granted = {"pull_requests": "write", "contents": "write", "checks": "write"}
    installed = auth.get_installation_auth(host.installation_id, granted)
    return github.Github(
        auth=installed,
        base_url=host.api_url,
        retry=None,
        seconds_between_requests=0,
        seconds_between_writes=0,
    )


def test_smoke(host: FakeGitHub) -> None:
    host.push("work", {"a.txt": "a"}, "octo")
    with make_app_client(host) as client:
        repo = client.get_repo("octo/kernels")
        made = repo.create_pull("main", "work", title="T", body="B", draft=True)
        made.mark_ready_for_review()
        made.add_to_labels("fast")
        made.create_issue_comment("hi").create_reaction("eyes")
        repo.create_check_run(
            "k", made.head.sha, status="in_progress", output={"title": "t", "summary": "s"}
        )
        host.merge(made.number, "octo")
        made.update()
        assert made.merged
