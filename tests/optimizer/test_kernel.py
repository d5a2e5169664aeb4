"""A kernel's folder: what is written is read, and damage is noticed."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from knowledge.profile import KernelTime
from optimizer.audit import find_flaw
from optimizer.errors import KernelFolderError
from optimizer.kernel import (
    EVIDENCE_LIMIT_BYTES,
    PLOT_LIMIT_BYTES,
    ByPeer,
    ByVariant,
    Dispatch,
    DispatchEntry,
    Kernel,
    make_kernel,
    read_candidate,
    read_kernel,
)
from optimizer.kernel_page import fitting, kernel_files, write_kernel
from optimizer.kernel_plot import distribution_svg, latency_svg
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence, make_profiled

CANDIDATE = make_candidate(block=8)


def make(*ratios: float) -> Kernel:
    evidence = make_evidence(CANDIDATE, *ratios)
    return make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=evidence)


def make_dispatch(*rows: int) -> Dispatch:
    entries = tuple(
        DispatchEntry(
            workload=f"w{r}", sizes={"rows": r}, dtypes={}, served_by=ByVariant(variant="v")
        )
        for r in rows
    )
    return Dispatch(operator="o", operator_digest="0", hardware="h", entries=entries)


def test_a_kernel_is_read_as_it_was_written(tmp_path: Path) -> None:
    kernel = make(2.0, 1.5)

    write_kernel(tmp_path / "k", kernel)

    assert read_kernel(tmp_path / "k") == kernel


def test_nothing_is_left_beside_a_written_folder(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    write_kernel(tmp_path / "k", make(3.0))

    assert [path.name for path in tmp_path.iterdir()] == ["k"]


def test_verifications_outlive_a_rewrite(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    (tmp_path / "k/verifications.jsonl").write_text("{}\n")

    write_kernel(tmp_path / "k", make(3.0))

    assert (tmp_path / "k/verifications.jsonl").read_text() == "{}\n"


def test_code_that_was_changed_is_noticed(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    code = next(tmp_path.glob("k/*/kernel.cpp"))
    code.write_text(code.read_text() + "// faster\n")

    with pytest.raises(KernelFolderError, match="the code is not the one"):
        read_kernel(tmp_path / "k")


def test_a_plan_that_was_changed_is_noticed(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    plan = next(tmp_path.glob("k/*/plan.json"))
    plan.write_text(plan.read_text().replace('"block": 8', '"block": 4'))

    with pytest.raises(KernelFolderError, match="is not the one that evidence"):
        read_kernel(tmp_path / "k")


def test_an_operator_that_was_changed_is_noticed(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    operator = tmp_path / "k/operator.json"
    operator.write_text(operator.read_text().replace("x * factor", "x + factor"))

    with pytest.raises(KernelFolderError, match="another version of the operator"):
        read_kernel(tmp_path / "k")


@pytest.mark.parametrize("name", ["operator.json", "hardware.json", "dispatch.json"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    (tmp_path / "k" / name).unlink()

    with pytest.raises(KernelFolderError, match=name):
        read_kernel(tmp_path / "k")


def test_another_schema_version_is_named(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    dispatch = tmp_path / "k/dispatch.json"
    dispatch.write_text(json.dumps(json.loads(dispatch.read_text()) | {"schema": 2}))

    with pytest.raises(KernelFolderError, match=r"dispatch.json: schema"):
        read_kernel(tmp_path / "k")


def test_a_candidate_is_read_from_its_folder_and_from_its_code(tmp_path: Path) -> None:
    write_kernel(tmp_path / "k", make(2.0))
    code = next(tmp_path.glob("k/*/kernel.cpp"))

    assert read_candidate(code) == read_candidate(code.parent) == CANDIDATE


def test_what_serves_is_taken_from_the_evidence() -> None:
    evidence = make_evidence(CANDIDATE, 2.0, 1.0)
    first, second = evidence.workloads
    handed = second.model_copy(update={"served_by": "reference/eager"})
    evidence = evidence.model_copy(update={"workloads": (first, handed)})

    kernel = make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=evidence)

    served = [entry.served_by for entry in kernel.dispatch.entries]
    assert served == [
        ByVariant(variant=next(iter(kernel.variants))),
        ByPeer(peer="reference/eager"),
    ]


@given(st.integers(1, 10**6))
def test_the_nearest_size_serves(rows: int) -> None:
    picked = make_dispatch(16, 1024).pick({"rows": rows}, {})

    assert picked is not None
    assert picked.workload == ("w16" if rows < 128 else "w1024") or rows == 128


def test_other_dtypes_are_served_by_no_entry() -> None:
    assert make_dispatch(16).pick({"rows": 16}, {"T": "float64"}) is None


def test_the_page_tells_the_ratio_the_peer_and_the_workload_that_lost() -> None:
    page = kernel_files(make(2.0, 0.9))["README.md"]

    assert "2.00x (1.98 to 2.02)" in page
    assert "`reference/eager`" in page
    assert "Slower than the best peer on: w1." in page
    assert "kernelevolve verify kernels/scale/cpu-x86-64-v3" in page


def test_the_page_holds_the_host_function() -> None:
    page = kernel_files(make(2.0))["README.md"]

    assert "    y = torch.empty((rows,), dtype=T)\n    kernel.scale(x, y, rows, factor)\n" in page


def test_the_picture_is_small_and_the_same_every_time() -> None:
    first, second = kernel_files(make(2.0, 0.9)), kernel_files(make(2.0, 0.9))
    name = next(name for name in first if name.endswith("latency.svg"))

    assert first[name] == second[name]
    assert len(first[name]) < 200_000


def make_with_profile() -> Kernel:
    evidence = make_profiled(CANDIDATE)
    return make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=evidence)


def test_the_page_shows_the_profile_beside_the_baselines() -> None:
    page = kernel_files(make_with_profile())["README.md"]

    assert "| `w0` | 80.0 % | 40.0 % |" in page
    assert "| `reference/eager` | `mul` | 1 | 4 | 4000 | 20000 % | long scoreboard 60 % |" in page
    assert "| `scale` | 32 | 0 | 0 | 100 % |" in page
    assert "- hardware counters: there is no ncu here" in page


def test_the_page_ties_the_verdict_to_the_source() -> None:
    kernel = make_with_profile()
    (variant,) = kernel.variants.values()
    source = variant.evidence.source_sha256[:12]

    page = kernel_files(kernel)["README.md"]

    assert f"source `{source}`, built to `abcabcabcabc`, launched `scale`: `better`" in page


def test_both_distributions_are_drawn_where_they_are_known() -> None:
    known, unknown = kernel_files(make_with_profile()), kernel_files(make(2.0))
    name = next(name for name in known if name.endswith("distribution.svg"))

    assert name in known["README.md"]
    assert "this kernel" in known[name]
    assert "reference/eager" in known[name]
    assert name not in unknown


@pytest.mark.parametrize("workloads", [1, 200])
def test_pictures_of_however_many_workloads_are_small(workloads: int) -> None:
    evidence = make_profiled(CANDIDATE)
    many = evidence.model_copy(update={"workloads": evidence.workloads * workloads})

    for draw in (latency_svg, distribution_svg):
        assert len(draw(many).encode()) < PLOT_LIMIT_BYTES


def test_no_name_breaks_out_of_the_page() -> None:
    kernel = make_with_profile()
    (variant,) = kernel.variants.values()
    (profile,) = variant.evidence.profile
    evil = KernelTime(kernel="a | b`\n# c", launches=1, device_ms=1)
    baseline = profile.baseline.model_copy(update={"kernels": (evil,)})
    shown = variant.evidence.model_copy(
        update={"profile": (profile.model_copy(update={"baseline": baseline}),)}
    )

    page = kernel_files(make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=shown))[
        "README.md"
    ]

    assert "`a / b' # c`" in page


def test_of_very_many_workloads_the_evidence_keeps_what_the_claim_rests_on() -> None:
    evidence = make_profiled(CANDIDATE)
    few = evidence.model_copy(update={"workloads": evidence.workloads * 2})
    many = evidence.model_copy(update={"workloads": evidence.workloads * 60})

    kept = fitting(many)

    assert fitting(few) == few
    assert len(kept.to_json(indent=1)) < EVIDENCE_LIMIT_BYTES < len(many.to_json(indent=1))
    assert find_flaw(kept) == find_flaw(many)
    assert [w.pair_ratios for w in kept.workloads] == [w.pair_ratios for w in many.workloads]
