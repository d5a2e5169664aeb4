from dataclasses import replace

from daemon.forge import PullRequest
from daemon.pull_request import (
    EDITED_LABEL,
    Proposal,
    add_notice,
    commit_message,
    find_marker,
    make_body,
    make_draft,
)
from knowledge.evidence import Evidence, PeerRow
from tests.makers import make_candidate, make_evidence, make_profiled

HEAD = "a" * 40


def make_proposal(*ratios: float, evidence: Evidence | None = None) -> Proposal:
    return Proposal(
        evidence=evidence or make_evidence(make_candidate(), *ratios),
        origin="synthesis",
        note="vectorised",
        outcomes={"passed": 9, "timed_out": 1},
        shares={"ads_ranker": 0.25},
    )


def body_of(proposal: Proposal) -> str:
    return make_body(proposal, head=HEAD)


def section(body: str, title: str) -> str:
    return body.split(f"### {title}")[1].split("###", maxsplit=1)[0]


def test_the_first_line_says_that_a_machine_wrote_it_and_which_proposer() -> None:
    first = body_of(make_proposal()).splitlines()[0]

    assert first.startswith("A machine wrote this")
    assert "`synthesis`" in first


def test_the_verdict_has_its_unit_and_its_interval() -> None:
    body = body_of(make_proposal(2.0))

    assert "**2.00x faster** than the best PyTorch form on `cpu-x86-64-v3`" in body
    assert "99.95 % interval 1.98x to 2.02x" in body
    assert "device time in ms" in body


def test_regressions_come_first() -> None:
    rows = section(body_of(make_proposal(2.0, 0.9, 3.0)), "By workload").splitlines()

    assert "`w1 " in rows[4]
    assert "**slower** 0.90x" in rows[4]


def test_a_row_names_the_best_peer_and_what_it_took() -> None:
    rows = section(body_of(make_proposal(2.0)), "By workload")

    assert "| `w0 float32` | `reference/eager` | 1 | 0.5 |" in rows


def test_the_incumbent_has_a_column_where_there_is_one() -> None:
    evidence = make_evidence(make_candidate())
    first = evidence.workloads[0]
    incumbent = PeerRow(name="incumbent", device_ms=0.75, call_ms=0.8)
    with_incumbent = first.model_copy(update={"peers": (*first.peers, incumbent)})
    evidence = evidence.model_copy(update={"workloads": (with_incumbent,)})

    rows = section(body_of(make_proposal(evidence=evidence)), "By workload")

    assert "incumbent ms" in rows
    assert "| 0.75 |" in rows
    assert "incumbent" not in section(body_of(make_proposal()), "By workload")


def test_the_share_of_the_roofline_is_shown_where_it_is_known() -> None:
    evidence = make_evidence(make_candidate())
    bounded = evidence.workloads[0].model_copy(update={"share_of_roofline": 0.83})
    evidence = evidence.model_copy(update={"workloads": (bounded,)})

    assert "| 83 % |" in section(body_of(make_proposal(evidence=evidence)), "By workload")
    assert "roofline" not in section(body_of(make_proposal()), "By workload")


def test_both_figures_are_shown() -> None:
    rows = section(body_of(make_proposal(2.0)), "Device time and call time")

    assert "| `w0 float32` | 0.5 | 1 | 0.55 | 1.1 |" in rows


def test_a_models_gain_follows_from_its_share() -> None:
    assert "`ads_ranker` spends 25 % of its time here" in body_of(make_proposal(2.0))
    assert "would take 12 % less" in body_of(make_proposal(2.0))


def test_it_says_how_to_reproduce_roll_back_and_refuse() -> None:
    controls = section(body_of(make_proposal()), "What you can do")

    assert "`kernelevolve verify kernels/scale/cpu-x86-64-v3`" in controls
    assert "Roll back" in controls
    assert "close this pull request" in controls
    assert "Stop the bot" in controls


def test_the_marker_is_found_again() -> None:
    proposal = make_proposal()

    marker = find_marker(body_of(proposal))

    assert marker is not None
    assert (marker.key, marker.head) == (proposal.key, HEAD)


def test_a_body_without_our_marker_has_none() -> None:
    assert find_marker("hello <!-- kernelevolve {} -->") is None
    assert find_marker("") is None


def test_what_strangers_wrote_pings_nobody_and_forges_no_marker() -> None:
    evil = '@everyone <!-- kernelevolve {"schema":1} --> | x |\n\nKernel-Key: forged'
    proposal = Proposal(evidence=make_evidence(make_candidate()), origin=evil, note=evil)

    body = body_of(proposal)

    assert "\n| x" not in body
    assert "Kernel-Key: forged" not in commit_message(proposal).splitlines()
    marker = find_marker(body)
    assert marker is not None
    assert marker.key == proposal.key


def test_the_profile_stands_beside_the_baselines() -> None:
    body = body_of(make_proposal(evidence=make_profiled(make_candidate())))

    rows = section(body, "Profile")
    assert "| `w0` | 80.0 % | 40.0 % |" in rows
    assert "| `w0` | `this kernel` | `scale` | 1 | 0.5 |" in rows
    assert "| `reference/eager` | `mul` | 1 | 4 | 4000 | - | long scoreboard 60 % |" in rows
    assert "there is no ncu here" in rows


def test_without_a_profile_there_is_no_section() -> None:
    assert "### Profile" not in body_of(make_proposal())


def test_the_links_from_source_to_verdict_are_told() -> None:
    evidence = make_profiled(make_candidate())

    rows = section(body_of(make_proposal(evidence=evidence)), "Evidence")

    assert f"| source | `{evidence.source_sha256[:12]}` |" in rows
    assert "| built to | `abcabcabcabc` |" in rows
    assert "| launched | `scale` |" in rows
    assert "| verdict | `better` |" in rows


def test_it_says_who_signed_or_that_nobody_did() -> None:
    signed = replace(make_proposal(), signed_by="f" * 64)

    assert "unsigned" in section(body_of(make_proposal()), "Evidence")
    assert "unsigned" not in section(body_of(signed), "Evidence")
    assert "f" * 64 in section(body_of(signed), "Evidence")


def test_a_body_of_many_workloads_stays_below_what_code_hosts_take() -> None:
    body = body_of(make_proposal(*([2.0] * 500)))

    assert len(body.encode()) < 60_000
    assert "460 more are in `evidence.json`" in body


def test_equal_proposals_make_equal_drafts() -> None:
    make = make_draft

    assert make(make_proposal(), head=HEAD, base="main") == make(
        make_proposal(), head=HEAD, base="main"
    )


def test_the_commit_names_the_kernel_and_where_it_was_verified() -> None:
    proposal = make_proposal()

    trailers = commit_message(proposal).strip().splitlines()[-2:]

    assert trailers[0] == f"Kernel-Key: {proposal.key}"
    assert trailers[1].startswith("Verified-On: a processor")


def test_a_notice_replaces_an_earlier_one_and_keeps_the_rest() -> None:
    draft = make_draft(make_proposal(), head=HEAD, base="main")
    at = "2026-11-30T12:00:00Z"
    old = PullRequest(
        **draft.model_dump(), number=1, state="open", head_sha=HEAD, created_at=at, updated_at=at
    )

    once = add_notice(old, "one")
    twice = add_notice(old.model_copy(update=once.model_dump()), "two")

    assert "**Note:** two" in twice.body
    assert "**Note:** one" not in twice.body
    assert twice.body.endswith(draft.body)
    assert twice.labels == ("kernelevolve", EDITED_LABEL)
