from daemon.pulls.tables import by_workload, costs, errors, profile
from knowledge.evidence import Evidence, PeerRow
from tests.daemon.proposals import make_incumbent
from tests.makers import make_candidate, make_evidence, make_profiled


def with_row(**changes: object) -> Evidence:
    """Return evidence of one workload, with something else told of it."""
    evidence = make_evidence(make_candidate())
    row = evidence.workloads[0].model_copy(update=changes)
    return evidence.model_copy(update={"workloads": (row,)})


def test_regressions_come_first() -> None:
    rows = by_workload(make_evidence(make_candidate(), 2.0, 0.9, 3.0)).splitlines()

    assert rows[2].startswith("| `w1`")
    assert "**slower** 0.90x <br>0.89 to 0.91" in rows[2]


def test_a_row_names_the_best_peer_and_what_it_took() -> None:
    row = by_workload(make_evidence(make_candidate())).splitlines()[2]

    assert row == (
        "| `w0` <br>float32 | `reference` <br>eager | 1 | 0.5 | 2.00x <br>1.98 to 2.02 |"
    )


def test_the_incumbent_has_a_column_where_it_was_measured() -> None:
    evidence = make_evidence(make_candidate())

    assert "incumbent ms" in by_workload(evidence, incumbent=make_incumbent())
    assert "| 0.75 | 0.5 |" in by_workload(evidence, incumbent=make_incumbent())
    assert "incumbent" not in by_workload(evidence, incumbent=make_incumbent(workload="gone"))
    assert "incumbent" not in by_workload(evidence)


def test_the_share_of_the_roofline_is_shown_where_it_is_known() -> None:
    assert "| 83 % |" in by_workload(with_row(share_of_roofline=0.83))
    assert "| 2.7 % |" in by_workload(with_row(share_of_roofline=0.0271))
    assert "roofline" not in by_workload(make_evidence(make_candidate()))


def test_both_figures_of_both_sides_are_shown() -> None:
    rows = costs(make_evidence(make_candidate()))

    assert "| `w0` <br>float32 | **new** | 0.5 | 0.55 | 0.45 to 0.55 |" in rows
    assert "|  | `reference` <br>eager | 1 | 1.1 |  |" in rows


def test_memory_of_both_sides_is_shown_where_it_was_weighed() -> None:
    peer = PeerRow(name="reference/eager", device_ms=1, call_ms=1, peak_bytes=3_000_000)

    rows = costs(with_row(peak_bytes=2_000_000, peers=(peer,)))

    assert "| 2 MB |" in rows
    assert "| 3 MB |" in rows
    assert "memory" not in costs(make_evidence(make_candidate()))


def test_the_first_call_of_both_sides_is_shown_where_it_was_timed() -> None:
    peer = PeerRow(name="reference/eager", device_ms=1, call_ms=1, first_call_ms=41_234)

    rows = costs(with_row(first_call_ms=12.34, peers=(peer,)))

    assert "| 12.3 ms |" in rows
    assert "| 41.2 s |" in rows
    assert "first call" not in costs(make_evidence(make_candidate()))


def test_what_a_peer_serves_has_the_peers_line_alone() -> None:
    assert "**new**" not in costs(with_row(served_by="reference/eager"))


def test_the_greatest_error_comes_first_and_none_is_called_exact() -> None:
    evidence = make_evidence(make_candidate(), 2.0, 2.0)
    row = evidence.workloads[1].model_copy(update={"error": 1e-7, "reference_error": 2e-7})
    evidence = evidence.model_copy(update={"workloads": (evidence.workloads[0], row)})

    rows = errors(evidence).splitlines()

    assert rows[2] == "| `w1` <br>float32 | 1.00e-07 | 2.00e-07 |"
    assert rows[3] == "| `w0` <br>float32 | exact | exact |"


def test_the_profile_stands_beside_the_baselines() -> None:
    rows = profile(make_profiled(make_candidate()), bandwidth_gb_s=8000)

    assert "| `w0` | 80.0 % | 40.0 % |" in rows
    assert "| `w0` | `this kernel` | `scale` | 1 | 0.5 |" in rows
    assert "| `reference/eager` | `mul` | 1 | 4 | 4000 | 50 % | long scoreboard 60 % |" in rows
    assert "there is no ncu here" in rows


def test_of_many_rows_the_rest_is_counted() -> None:
    evidence = make_evidence(make_candidate(), *([2.0] * 5))

    for told in (by_workload, costs, errors):
        assert "3 more are in `evidence.json`" in told(evidence, rows=2)
