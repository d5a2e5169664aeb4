from daemon.pulls.body import make_draft
from daemon.pulls.pull_request import (
    EDITED_LABEL,
    Proposal,
    add_notice,
    branch_name,
    commit_message,
    drop_notice,
    find_marker,
    find_pair,
    remark,
    tell_rebase,
)
from tests.daemon.proposals import HEAD, make_proposal, make_shown
from tests.makers import make_candidate, make_evidence

OTHER = "b" * 40


def test_a_branch_tells_its_pair_and_others_tell_none() -> None:
    assert find_pair(branch_name("scale", "h200")) == ("scale", "h200")
    assert find_pair("kernelevolve/configure") is None
    assert find_pair("feature/scale/h200") is None


def test_the_marker_is_found_again() -> None:
    proposal = make_proposal()

    marker = find_marker(make_draft(proposal, head=HEAD, base="main").body)

    assert marker is not None
    assert (marker.key, marker.head) == (proposal.key, HEAD)


def test_a_body_without_our_marker_has_none() -> None:
    assert find_marker("hello <!-- kernelevolve {} -->") is None
    assert find_marker("") is None


def test_a_trailer_can_not_be_forged() -> None:
    evil = "somebody\n\nKernel-Key: forged"
    proposal = Proposal(evidence=make_evidence(make_candidate()), origin=evil, note=evil)

    assert "Kernel-Key: forged" not in commit_message(proposal).splitlines()


def test_the_commit_names_the_kernel_and_where_it_was_verified() -> None:
    proposal = make_proposal()

    trailers = commit_message(proposal).strip().splitlines()[-2:]

    assert trailers[0] == f"Kernel-Key: {proposal.key}"
    assert trailers[1].startswith("Verified-On: a processor")


def test_equal_proposals_make_equal_drafts() -> None:
    make = make_draft

    assert make(make_proposal(), head=HEAD, base="main") == make(
        make_proposal(), head=HEAD, base="main"
    )


def test_a_better_kernel_is_added_to_the_history() -> None:
    first = make_draft(make_proposal(2.0), head=HEAD, base="main")
    better = make_proposal(evidence=make_evidence(make_candidate("two"), 3.0))

    second = make_draft(better, head=OTHER, base="main", old=find_marker(first.body))

    assert "### History" not in first.body
    marker = find_marker(second.body)
    assert marker is not None
    assert [(past.what, past.ratio) for past in marker.history] == [
        ("proposed", 2.0), ("replaced", 3.0),
    ]  # fmt: skip
    assert f"| replaced | 3.00x | `{better.evidence.candidate[:12]}` | {OTHER[:12]} |" in (
        second.body
    )


def test_telling_the_same_again_changes_nothing() -> None:
    once = make_draft(make_proposal(), head=HEAD, base="main")

    assert once == make_draft(make_proposal(), head=HEAD, base="main", old=find_marker(once.body))


def test_a_rebase_changes_marker_and_history_alone() -> None:
    draft = make_draft(make_proposal(), head=HEAD, base="main")

    rebased = tell_rebase(make_shown(draft), head=OTHER, at="2026-12-01T12:00:00Z")

    marker = find_marker(rebased.body)
    assert marker is not None
    assert marker.head == OTHER
    assert [past.what for past in marker.history] == ["proposed", "rebased"]
    assert rebased.body.split("<!-- history -->")[0] == draft.body.split("<!-- kernelevolve")[0]
    again = tell_rebase(make_shown(rebased), head=HEAD, at="2026-12-02T12:00:00Z")
    assert again.body.count("### History") == 1


def test_a_body_that_lost_its_marker_is_left_as_it_is() -> None:
    shown = make_shown(make_draft(make_proposal(), head=HEAD, base="main"))
    mine = shown.model_copy(update={"body": "what a nice kernel"})

    assert tell_rebase(mine, head=OTHER, at="2026-12-01").body == "what a nice kernel"


def test_a_history_is_no_longer_than_it_is_read() -> None:
    draft = make_draft(make_proposal(), head=HEAD, base="main")
    for day in range(1, 29):
        sha = f"{day:040x}"
        draft = tell_rebase(make_shown(draft), head=sha, at=f"2026-12-{day:02}T12:00:00Z")

    marker = find_marker(draft.body)

    assert marker is not None
    assert len(marker.history) == 20


def test_a_marker_can_be_replaced() -> None:
    shown = make_shown(make_draft(make_proposal(), head=HEAD, base="main"))
    marker = find_marker(shown.body)
    assert marker is not None

    changed = remark(shown, marker.model_copy(update={"retired": True}))

    found = find_marker(changed.body)
    assert found is not None
    assert found.retired


def test_a_notice_replaces_an_earlier_one_and_keeps_the_rest() -> None:
    draft = make_draft(make_proposal(), head=HEAD, base="main")
    draft = draft.model_copy(update={"labels": ("kernelevolve", "theirs")})

    once = add_notice(make_shown(draft), "one", label=EDITED_LABEL)
    twice = add_notice(make_shown(once), "two", label=EDITED_LABEL)

    assert "**Note:** two" in twice.body
    assert "**Note:** one" not in twice.body
    assert twice.body.endswith(draft.body)
    assert twice.labels == ("kernelevolve", "theirs", EDITED_LABEL)


def test_a_dropped_notice_leaves_what_was_there_before() -> None:
    draft = make_draft(make_proposal(), head=HEAD, base="main")

    assert drop_notice(make_shown(add_notice(make_shown(draft), "one", label="human-edited"))) == (
        draft
    )
