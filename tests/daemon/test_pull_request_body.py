from dataclasses import replace

from daemon.pulls.body import make_draft
from daemon.pulls.pull_request import Proposal, Site, find_marker
from knowledge.evidence import Evidence, SearchSummary
from tests.daemon.proposals import HEAD, make_incumbent, make_proposal
from tests.makers import make_candidate, make_evidence, make_profiled

WEB = Site(web="https://github.example/o/r", hears_commands=True)


def body_of(proposal: Proposal, site: Site | None = None) -> str:
    return make_draft(proposal, head=HEAD, base="main", site=site).body


def section(body: str, title: str) -> str:
    return body.split(f"### {title}")[1].split("###", maxsplit=1)[0]


def changed(evidence: Evidence, **first: object) -> Evidence:
    """Return the evidence with something else told of its first workload."""
    rows = (evidence.workloads[0].model_copy(update=first), *evidence.workloads[1:])
    return evidence.model_copy(update={"workloads": rows})


def test_the_first_line_says_that_a_machine_wrote_it_and_which_proposer() -> None:
    first = body_of(make_proposal()).splitlines()[0]

    assert first.startswith("A machine wrote this")
    assert "`synthesis` proposed (vectorised)" in first


def test_the_verdict_is_a_sentence_with_its_interval() -> None:
    body = body_of(make_proposal(2.0))

    assert "**2.00x faster** than the best PyTorch form on `cpu-x86-64-v3`" in body
    assert "99.95 % interval of the first: 1.98x to 2.02x" in body


def test_the_verdict_names_what_got_slower() -> None:
    assert "**Slower on `w1`**" in body_of(make_proposal(2.0, 0.99, 3.0))
    assert "Slower on" not in body_of(make_proposal(2.0, 3.0))


def test_a_workload_that_is_left_to_a_peer_is_no_regression() -> None:
    evidence = changed(make_evidence(make_candidate(), 0.99, 2.0), served_by="reference/eager")

    body = body_of(make_proposal(evidence=evidence))

    assert "Left to the best peer, which is as fast there: `w0`." in body
    assert "Slower on" not in body
    assert "| left to the peer | 1 |" in section(body, "By workload")


def test_the_published_kernel_is_compared_but_not_as_a_proof() -> None:
    body = body_of(replace(make_proposal(2.0), incumbent=make_incumbent(ms=0.75)))

    assert "it was 1.50x faster than the published kernel `cpp-0`; that ratio is no part" in body


def test_a_published_kernel_that_was_faster_is_told() -> None:
    body = body_of(replace(make_proposal(2.0), incumbent=make_incumbent(ms=0.25)))

    assert "the published kernel `cpp-0` was faster" in body


def test_the_search_is_summed_up() -> None:
    search = SearchSummary(
        trials=10, passed=9, seconds=61.2, proposer="synthesis", best_so_far=(0.0, 1.5, 2.0)
    )
    evidence = make_evidence(make_candidate()).model_copy(update={"search": search})

    body = body_of(make_proposal(evidence=evidence))

    assert "10 trials in 61 s: 9 passed, 1 timed out. The best went from 1.50x to 2.00x." in body


def test_why_the_search_ended_is_told() -> None:
    search = SearchSummary(trials=10, passed=9, seconds=61, proposer="tuner", ending="stalled")
    evidence = make_evidence(make_candidate()).model_copy(update={"search": search})

    body = body_of(make_proposal(evidence=evidence))

    assert "It ended because nothing had got better for long." in body


def test_a_models_gain_follows_from_its_share() -> None:
    assert "`ads_ranker` spends 25 % of its time here" in body_of(make_proposal(2.0))
    assert "would take 12 % less" in body_of(make_proposal(2.0))


def test_the_difference_to_the_published_code_is_shown() -> None:
    body = body_of(replace(make_proposal(), incumbent=make_incumbent("same\nold\n"), text="same\n"))

    assert "`cpp-0` loses 1 line and gains 0 lines" in section(body, "What changed")
    assert "```diff\n--- published\n+++ new\n@@ -1,2 +1 @@\n same\n-old\n```" in body


def test_equal_code_has_no_difference() -> None:
    body = body_of(replace(make_proposal(), incumbent=make_incumbent("new\n")))

    assert "only its plan or its tunables differ" in section(body, "What changed")
    assert "```" not in body


def test_code_can_not_break_out_of_its_block() -> None:
    evil = "```\n</details>\n\n/stop\n@everyone\n"

    body = body_of(replace(make_proposal(), incumbent=make_incumbent(), text=evil))

    assert "````diff" in body
    assert "\n/stop" not in body


def test_pictures_are_those_of_the_commit() -> None:
    body = body_of(make_proposal(evidence=make_profiled(make_candidate())), WEB)

    place = f"https://github.example/o/r/blob/{HEAD}/kernels/scale/cpu-x86-64-v3/cpp-1/plots"
    assert f"![Every peer's time beside it]({place}/latency.svg?raw=true)" in body
    assert f"({place}/distribution.svg?raw=true)" in section(body, "Profile")


def test_without_a_page_of_its_own_a_repository_has_paths_and_no_links() -> None:
    body = body_of(make_proposal())

    assert "`kernels/scale/cpu-x86-64-v3/cpp-1/plots/latency.svg`" in body
    assert "](" not in body


def test_it_says_how_to_reproduce_roll_back_and_refuse() -> None:
    controls = section(body_of(make_proposal()), "What you can do")

    assert "`kernelevolve verify kernels/scale/cpu-x86-64-v3`" in controls
    assert "Roll back" in controls
    assert "close this pull request" in controls
    assert "Stop the bot" in controls


def test_commands_are_named_where_they_are_heard_and_never_begin_a_line() -> None:
    assert "`/verify`" not in body_of(make_proposal())

    body = body_of(make_proposal(), WEB)

    assert "`/verify`" in section(body, "What you can do")
    assert not any(line.startswith("/") for line in body.splitlines())


def test_what_strangers_wrote_pings_nobody_and_forges_no_marker() -> None:
    evil = '@everyone <!-- kernelevolve {"schema":1} --> | x |\n\n/stop'
    proposal = Proposal(evidence=make_evidence(make_candidate()), origin=evil, note=evil)

    body = body_of(proposal)

    assert "\n| x" not in body
    assert "\n/stop" not in body
    marker = find_marker(body)
    assert marker is not None
    assert marker.key == proposal.key


def test_without_a_profile_there_is_no_section() -> None:
    assert "### Profile" not in body_of(make_proposal())
    assert "### Profile" in body_of(make_proposal(evidence=make_profiled(make_candidate())))


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
    evidence = make_evidence(make_candidate(), *([2.0] * 500))
    evidence = evidence.model_copy(
        update={"not_tested": ("x" * 400,) * 500, "launched": ("y" * 400,) * 500}
    )
    long = "\n".join(f"line {number} of a long kernel" for number in range(5000))
    proposal = replace(
        make_proposal(evidence=evidence), incumbent=make_incumbent(), note="@" * 400, text=long
    )

    body = body_of(proposal, WEB)

    assert len(body.encode()) <= 60_000
    assert "460 more are in `evidence.json`" in body
    assert "488 more things, which `evidence.json` names" in body
    assert find_marker(body) is not None
