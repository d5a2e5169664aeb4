import base64
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from daemon.forge import Check, ForgeRefusedError, ForgeUnavailableError
from daemon.github.records import (
    Json,
    read_check,
    read_comment,
    read_file,
    read_issue,
    read_permission,
    read_person,
    read_pull_request,
    read_run,
    read_status,
    status_state,
)

USER = {"id": 7, "login": "ada", "type": "User"}
PULL = {
    "number": 3,
    "state": "open",
    "title": "T",
    "body": None,
    "head": {"ref": "work", "sha": "a" * 40, "repo": {"full_name": "Octo/Kernels"}},
    "base": {"ref": "main"},
    "labels": [{"name": "one"}],
    "created_at": "2026-11-30T12:00:00Z",
    "updated_at": "2026-11-30T12:00:00Z",
    "user": USER,
    "mergeable": True,
}
CHECK = {"id": 1, "name": "c", "head_sha": "a" * 40, "status": "completed", "conclusion": None}
READERS: tuple[Callable[[Json], object], ...] = (
    read_check,
    read_comment,
    read_file,
    read_issue,
    read_permission,
    read_person,
    read_run,
    lambda json: read_pull_request(json, "octo/kernels"),
    lambda json: read_status(json, "a" * 40),
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner),
    max_leaves=9,
)


@pytest.mark.parametrize("read", READERS)
@given(json=ANYTHING)
def test_an_answer_of_any_shape_is_read_or_worth_another_try(
    read: Callable[[Json], object], json: Json
) -> None:
    try:
        read(json)
    except ForgeUnavailableError:
        return


@given(field=st.sampled_from(sorted(PULL)), value=ANYTHING)
def test_a_pull_request_with_any_wrong_field_is_borne(field: str, value: Json) -> None:
    try:
        read_pull_request(PULL | {field: value}, "octo/kernels")
    except ForgeUnavailableError:
        return


def test_a_pull_request_is_read() -> None:
    found = read_pull_request(PULL, "octo/kernels")

    assert (found.number, found.body, found.labels) == (3, "", ("one",))
    assert (found.from_fork, found.mergeable, found.state) == (False, True, "open")


@pytest.mark.parametrize("repo", [None, {"full_name": "eve/kernels"}])
def test_a_head_elsewhere_or_nowhere_is_a_fork_s(repo: Json) -> None:
    json = PULL | {"head": PULL["head"] | {"repo": repo}}  # type: ignore[operator]

    assert read_pull_request(json, "octo/kernels").from_fork


def test_what_is_closed_with_a_date_of_merging_is_merged() -> None:
    json = PULL | {"state": "closed", "merged_at": "2026-11-30T12:00:00Z"}

    assert read_pull_request(json, "octo/kernels").state == "merged"


def test_whose_account_is_gone_is_the_ghost() -> None:
    assert read_person(None).login == "ghost"


@pytest.mark.parametrize(
    ("role_name", "permission", "expected"),
    [
        ("maintain", "write", "maintain"),
        ("triage", "read", "triage"),
        ("release-captain", "write", "write"),  # a company's own role, made from this one
        ("", "none", "none"),
        ("owner", "push", "none"),
        (None, None, "none"),
    ],
)
def test_rights_are_those_of_the_role_and_none_where_in_doubt(
    role_name: str | None, permission: str | None, expected: str
) -> None:
    assert read_permission({"role_name": role_name, "permission": permission}) == expected


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("success", "success"),
        ("timed_out", "failure"),
        ("skipped", "neutral"),
        ("stale", "neutral"),
    ],
)
def test_a_conclusion_that_we_never_give_is_read_as_one_of_ours(theirs: str, ours: str) -> None:
    assert read_check(CHECK | {"conclusion": theirs}).conclusion == ours


def test_what_is_unfinished_or_neutral_is_no_failure_as_a_status() -> None:
    check = Check(name="c", head_sha="a", status="in_progress", title="t", summary="s")
    neutral = check.model_copy(update={"status": "completed", "conclusion": "neutral"})

    assert (status_state(check), status_state(neutral)) == ("pending", "success")


def test_a_file_is_text_and_nothing_else() -> None:
    def make(content: bytes, **changes: object) -> Json:
        encoded = base64.encodebytes(content).decode()
        return {"type": "file", "encoding": "base64", "content": encoded} | changes

    assert read_file(make("zwölf".encode())) == "zwölf"
    assert read_file([make(b"x")]) is None
    assert read_file(make(b"x", type="submodule")) is None
    for bad in (make(b"\xff\xfe"), make(b"", encoding="none", size=2_000_000)):
        with pytest.raises(ForgeRefusedError, match=r"no text|too large"):
            read_file(bad)
