from collections.abc import Iterator
from pathlib import Path

import pytest

from daemon.cli.main import main
from daemon.github.access import App
from daemon.github.doctor import Doctor, Finding
from daemon.settings import Settings
from daemon.workspace import Workspace
from tests.github.fake import FakeGitHub
from tests.github.hosts import make_app, make_clock, make_person, open_forge
from tests.github.quirks import Fault


@pytest.fixture
def github(tmp_path: Path) -> Iterator[FakeGitHub]:
    with FakeGitHub(tmp_path) as github:
        make_clock(github)
        yield github


def examine(
    github: FakeGitHub, access: object = None, *, webhooks: bool = False, workflow: str = ""
) -> list[Finding]:
    folder = github.world.folder
    settings = Settings(
        state=folder, forge="github", github_repository=github.full_name,
        listen="127.0.0.1:8000" if webhooks else "", actions_workflow=workflow,
    )  # fmt: skip
    workspace = Workspace(github.git_url, folder / "clone.git")
    forge = open_forge(github, access)  # type: ignore[arg-type]
    return list(Doctor(settings, forge, workspace).find())


def told(findings: list[Finding], state: str) -> str:
    return "\n".join(f"{f.subject}: {f.told} -> {f.fix}" for f in findings if f.state == state)


def test_a_good_installation_has_nothing_bad(github: FakeGitHub) -> None:
    github.world.protected.add("main")

    findings = examine(github, webhooks=True)

    assert told(findings, "bad") == ""
    good = told(findings, "good")
    for subject in ("app", "installation", "permissions", "webhook", "account", "repository"):
        assert f"{subject}: " in good
    assert "main is protected" in good


def test_a_permission_that_is_missing_is_named_with_its_level(github: FakeGitHub) -> None:
    github.permissions["pull_requests"] = "read"
    del github.permissions["checks"]

    bad = told(examine(github), "bad")

    assert "missing: checks: write, pull_requests: write -> grant these" in bad


def test_a_permission_that_nobody_needs_is_named(github: FakeGitHub) -> None:
    github.permissions["administration"] = "write"
    del github.permissions["actions"]

    note = told(examine(github), "note")

    assert "granted and never used: administration" in note
    assert "actions: write is not granted" in note


def test_an_app_that_is_not_installed_is_told_where_to_be(github: FakeGitHub) -> None:
    github.quirks.faults = [Fault("404", path="/installation$", times=9)]

    assert "installation: the App is not installed in octo/kernels -> install it: http" in told(
        examine(github), "bad"
    )


def test_another_installation_than_the_set_one_is_found(github: FakeGitHub) -> None:
    app = make_app(github, github.world.folder)

    bad = told(examine(github, App(app.app_id, app.private_key, 78)), "bad")

    assert "it is 77 here, not 78 as it is set -> set KERNELEVOLVE_GITHUB_INSTALLATION_ID=77" in bad


def test_a_key_that_others_can_read_is_found(github: FakeGitHub) -> None:
    app = make_app(github, github.world.folder)
    app.private_key.chmod(0o644)

    assert "can be read by others" in told(examine(github, app), "bad")


def test_a_key_of_another_app_leaves_nothing_good(github: FakeGitHub) -> None:
    app = make_app(github, github.world.folder)

    findings = examine(github, App(app.app_id + 1, app.private_key, 77))

    assert "app: " in told(findings, "bad")
    assert "account" not in told(findings, "good")


def test_a_base_that_anybody_may_push_to_is_noted(github: FakeGitHub) -> None:
    assert "main is not protected" in told(examine(github), "note")


def test_rules_on_our_branches_are_found(github: FakeGitHub) -> None:
    github.world.protected.add("kernelevolve/operator/hardware")

    bad = told(examine(github), "bad")

    assert "the rule non_fast_forward holds on kernelevolve/**" in bad


def test_labels_that_are_missing_are_noted(github: FakeGitHub) -> None:
    before = told(examine(github), "note")
    for name in ("kernelevolve", "human-edited", "stale"):
        github.world.label(name)

    assert "gh label create kernelevolve" in before
    assert "labels: all are there" in told(examine(github), "good")


def test_a_webhook_through_which_nothing_comes_is_found(github: FakeGitHub) -> None:
    github.open_issue("octo", "One")  # there is a delivery, and nobody who takes it

    assert "deliveries of the last day arrived" in told(examine(github, webhooks=True), "bad")


def test_without_webhooks_there_is_nothing_to_mend(github: FakeGitHub) -> None:
    github.open_issue("octo", "One")

    assert "webhook: none is taken" in told(examine(github), "note")


def test_a_person_s_rights_are_looked_at(github: FakeGitHub) -> None:
    access = make_person(github)
    good = examine(github, access)
    github.set_role("machine", "triage")

    assert told(good, "bad") == ""
    assert "shows no checks" in told(good, "note")
    assert "machine may only triage here" in told(examine(github, access), "bad")


def test_a_host_that_is_away_is_bad_and_no_crash(tmp_path: Path) -> None:
    with FakeGitHub(tmp_path) as github:
        make_clock(github)
        access = make_person(github)

    assert "can't be reached" in told(examine(github, access), "bad")


def test_answers_of_another_shape_are_bad_and_no_crash(github: FakeGitHub) -> None:
    github.quirks.faults = [Fault("html", times=999)]

    findings = examine(github)

    assert told(findings, "good").count("\n") == 0  # git's
    assert "no JSON" in told(findings, "bad")


def test_the_command_tells_what_to_mend(
    github: FakeGitHub,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    token = make_person(github).token
    for name, value in {
        "STATE": str(tmp_path / "state"), "FORGE": "github", "GITHUB_TOKEN": token,
        "GITHUB_REPOSITORY": github.full_name, "GITHUB_API": github.api_url,
    }.items():  # fmt: skip
        monkeypatch.setenv(f"KERNELEVOLVE_{name}", value)

    code = main(["github", "doctor"])
    github.set_role("machine", "read")
    worse = main(["github", "doctor"])

    out = capsys.readouterr().out
    assert (code, worse) == (0, 1)
    assert "-> give it the role Write" in out
    assert token not in out


def test_a_workflow_that_is_not_there_keeps_runners_from_work(github: FakeGitHub) -> None:
    bad = told(examine(github, workflow="search.yml"), "bad")

    assert "runners: there is no .github/workflows/search.yml -> copy this project's" in bad


def test_our_own_workflow_can_be_started(github: FakeGitHub) -> None:
    path = ".github/workflows/search.yml"
    github.push("main", {path: Path(__file__).parents[2].joinpath(path).read_text()}, "octo")

    assert "runners: search.yml can be started on main" in told(
        examine(github, workflow="search.yml"), "good"
    )
