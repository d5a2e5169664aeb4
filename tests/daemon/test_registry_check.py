from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from daemon.board.registry_check import NAME, RegistryCheck
from daemon.config.file import Ceilings, Limits
from daemon.origin import WorkspaceError
from daemon.pause import pause, resume
from operator_registry.registry import CATALOG
from tests.daemon.hosted import CONFIG, OWNER, Hosted, open_hosted
from tests.daemon.origins import HERE


@pytest.fixture
def hosted(tmp_path: Path) -> Iterator[Hosted]:
    with open_hosted(tmp_path, {CONFIG: "version: 1\n"}) as hosted:
        hosted.look()
        yield hosted


def check(hosted: Hosted, ceilings: Ceilings | None = None) -> None:
    config = replace(hosted.config, ceilings=ceilings or Ceilings())
    RegistryCheck(hosted.host, hosted.workspace, hosted.store, config, folder="").run()


def propose(hosted: Hosted, files: dict[str, str | bytes | None], branch: str = "change") -> str:
    sha = hosted.push(files, branch)
    hosted.github.open_pull_request("sam", branch)
    return sha


def softmax() -> dict[str, str | bytes | None]:
    folder = CATALOG / "operators" / "softmax"
    return {f"operators/softmax/{path.name}": path.read_text() for path in folder.iterdir()}


def test_a_new_operator_tells_its_goals_and_their_cost(hosted: Hosted) -> None:
    sha = propose(hosted, softmax())

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert (shown.status, shown.conclusion, shown.title) == ("completed", "success", "1 search")
    assert "1 search of 30 minutes at the most: 0.5 device hours." in shown.summary
    assert f"| `softmax` | `{HERE}` |" in shown.text
    assert "operator added" in shown.text


def test_faults_fail_with_file_line_and_remedy(hosted: Hosted) -> None:
    sha = propose(hosted, {"registry.yaml": "schema: 1\nhardwear: [x]\n"})

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert shown.conclusion == "failure"
    assert "`registry.yaml:2` unknown key hardwear; did you mean 'hardware'?" in shown.text


def test_a_change_of_the_configuration_tells_what_would_change(hosted: Hosted) -> None:
    sha = propose(hosted, {CONFIG: "version: 1\nlimits: {open_pull_requests: 99}\n"})

    check(hosted, Ceilings(limits=Limits(open_pull_requests=20)))

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert shown.conclusion == "success"
    assert "it starts no search" in shown.summary
    assert "| `limits.open_pull_requests` | `10` | `20` |" in shown.summary


def test_a_broken_configuration_fails(hosted: Hosted) -> None:
    sha = propose(hosted, {CONFIG: "version: 1\npuase: true\n"})

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert shown.conclusion == "failure"
    assert f"`{CONFIG}:2` unknown key puase; did you mean 'pause'?" in shown.text


def test_hardware_that_the_configuration_passes_over_starts_nothing(hosted: Hosted) -> None:
    sha = propose(hosted, {**softmax(), CONFIG: "version: 1\nhardware: [h200]\n"})

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert "1 goal would wait" in shown.summary
    assert "selects none of the registry's hardware" in shown.summary
    assert shown.text == ""


def test_other_changes_get_no_check(hosted: Hosted) -> None:
    sha = propose(hosted, {"README.md": "hello\n"})

    check(hosted)

    assert hosted.host.find_check(sha, NAME) is None


def test_a_head_is_checked_once_and_its_next_one_again(hosted: Hosted) -> None:
    propose(hosted, softmax())
    check(hosted)
    hosted.github.requests.clear()

    check(hosted)
    assert {r.method for r in hosted.github.requests if r.path.startswith("/api")} <= {"GET"}

    sha = hosted.push({"registry.yaml": "schema: 1\n"}, "change")
    check(hosted)
    assert hosted.host.find_check(sha, NAME) is not None


def test_the_base_may_go_on_meanwhile(hosted: Hosted) -> None:
    sha = propose(hosted, softmax())
    hosted.push({"registry.yaml": f"schema: 1\nhardware: [{HERE}]\nbudget_s: 60\n"})

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert shown.title == "1 search"


def test_a_fork_is_parsed_and_never_run(hosted: Hosted, tmp_path: Path) -> None:
    trap = tmp_path / "ran"
    files = softmax()
    source = files["operators/softmax/reference.py"]
    files["operators/softmax/reference.py"] = f"open({str(trap)!r}, 'w')\n{source!s}"
    number = hosted.github.open_pull_request_from_fork("sam", dict(files))

    check(hosted)

    shown = hosted.host.find_check(hosted.host.pull_request(number).head_sha, NAME)
    assert shown is not None
    assert not trap.exists()


def test_what_a_stranger_made_too_large_fails_without_being_read(hosted: Hosted) -> None:
    files: dict[str, str | bytes | None] = {
        f"operators/softmax/{n}.py": "#" * (1 << 20) for n in range(17)
    }
    number = hosted.github.open_pull_request_from_fork("sam", files)

    check(hosted)

    shown = hosted.host.find_check(hosted.host.pull_request(number).head_sha, NAME)
    assert shown is not None
    assert (shown.conclusion, shown.title) == ("failure", "it is too large")


def test_names_of_strangers_do_not_break_out_of_the_text(hosted: Hosted) -> None:
    sha = propose(hosted, {"registry.yaml": 'schema: 1\n"@everyone\\n/stop <img src=x>": 1\n'})

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert "@everyone" not in shown.text
    assert "<img" not in shown.text
    assert "\n/stop" not in shown.text


def test_while_all_is_paused_nothing_is_checked(hosted: Hosted) -> None:
    sha = propose(hosted, softmax())
    pause(hosted.store, "an incident")
    check(hosted)
    resume(hosted.store)
    hosted.push({CONFIG: "version: 1\npause: true\n"})
    hosted.look()
    check(hosted)

    assert hosted.host.find_check(sha, NAME) is None


def test_a_change_that_mends_a_broken_configuration_is_checked(hosted: Hosted) -> None:
    hosted.push({CONFIG: "version: 2\n"})
    hosted.look()
    sha = propose(hosted, {CONFIG: "version: 1\n"})

    check(hosted)

    shown = hosted.host.find_check(sha, NAME)
    assert shown is not None
    assert shown.conclusion == "success"


def test_closed_ones_and_those_to_other_branches_are_passed_over(hosted: Hosted) -> None:
    closed = propose(hosted, softmax(), "one")
    hosted.github.close(hosted.github.pulls()[0].number, OWNER)
    hosted.push({"x": "y"}, "elsewhere")
    other = hosted.push(softmax(), "two")
    hosted.github.open_pull_request("sam", "two", base="elsewhere")

    check(hosted)

    assert hosted.host.find_check(closed, NAME) is None
    assert hosted.host.find_check(other, NAME) is None


def test_one_head_that_can_not_be_read_does_not_keep_the_others(hosted: Hosted) -> None:
    propose(hosted, {"registry.yaml": "schema: 2\n"}, "broken")
    number = hosted.github.pulls()[0].number
    sha = propose(hosted, softmax(), "good")
    hosted.github.git.point(f"refs/pull/{number}/head", None)

    with pytest.raises(WorkspaceError):
        check(hosted)

    assert hosted.host.find_check(sha, NAME) is not None
