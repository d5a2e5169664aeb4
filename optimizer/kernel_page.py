"""The texts of a kernel's folder: its JSON files, and a README that a person can read."""

import ast
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

from knowledge.evidence import Evidence, Interval, WorkloadEvidence
from knowledge.verdict import judge
from operator_registry.registry import Operator
from optimizer.binding import launched
from optimizer.errors import KernelFolderError
from optimizer.host_text import host_function
from optimizer.kernel import (
    EVIDENCE_LIMIT_BYTES,
    PLOT_LIMIT_BYTES,
    Kernel,
    Variant,
    code_file,
    read_kernel,
    write_files,
)
from optimizer.kernel_plot import distribution_svg, latency_svg
from optimizer.profile_rows import Rows, chain, not_measured, profile_tables
from optimizer.signing import SIGNATURE, public_key, sign_folder

_BREAKING = str.maketrans({"|": "/", "`": "'", "\n": " "})
"""What would end a cell or a name in Markdown."""


def write_kernel(folder: Path, kernel: Kernel) -> None:
    """Write a kernel's folder, as a whole or not at all; known verifications stay.

    Raises:
        KernelFolderError: The evidence is larger than git should hold.
    """
    write_files(folder, kernel_files(kernel))


def kernel_files(kernel: Kernel) -> dict[str, str]:
    """Return the texts of a kernel's folder by file name.

    Raises:
        KernelFolderError: The evidence is larger than git should hold.
    """
    files = {
        "operator.json": _lines(kernel.operator.to_json(indent=2)),
        "hardware.json": _lines(kernel.hardware.to_json(indent=2)),
        "dispatch.json": _lines(kernel.dispatch.to_json(indent=2)),
        "README.md": readme(kernel),
    }
    for variant in kernel.variants.values():
        files |= {f"{variant.name}/{name}": text for name, text in _variant_files(variant).items()}
    return files


def _variant_files(variant: Variant) -> dict[str, str]:
    evidence = _lines(fitting(variant.evidence).to_json(indent=1))
    if len(evidence.encode()) > EVIDENCE_LIMIT_BYTES:
        msg = f"the evidence of {variant.name} takes {len(evidence)} bytes"
        raise KernelFolderError(msg)
    bare = variant.candidate.model_copy(update={"code": ""})
    return {
        code_file(variant.candidate): variant.candidate.code,
        "plan.json": _lines(bare.to_json(indent=2)),
        "evidence.json": evidence,
        **_plots(variant.evidence),
    }


def fitting(evidence: Evidence) -> Evidence:
    """Return evidence that git can hold: of very many workloads, no distributions are kept.

    What the claim rests on stays; the raw samples are kept elsewhere in any case.
    """
    if len(evidence.to_json(indent=1).encode()) < EVIDENCE_LIMIT_BYTES:
        return evidence
    bare = {"quantiles_ms": (), "baseline_quantiles_ms": ()}
    workloads = tuple(w.model_copy(update=bare) for w in evidence.workloads)
    return evidence.model_copy(update={"workloads": workloads, "profile": ()})


def _plots(evidence: Evidence) -> dict[str, str]:
    """Return the pictures by file name.

    Raises:
        KernelFolderError: One is larger than git should hold.
    """
    plots = {"plots/latency.svg": latency_svg(evidence)}
    if any(w.quantiles_ms for w in evidence.workloads):
        plots["plots/distribution.svg"] = distribution_svg(evidence)
    for name, text in plots.items():
        if len(text.encode()) > PLOT_LIMIT_BYTES:
            msg = f"{name} takes {len(text.encode())} bytes"
            raise KernelFolderError(msg)
    return plots


def sign_kernel(folder: Path, key: Path) -> str:
    """Sign a written folder, say so on its page, and return the public key.

    Raises:
        KeyFileError: The key can't be read.
        KernelFolderError: The folder is damaged, or can't be written.
    """
    page = readme(read_kernel(folder), signed_by=public_key(key))
    (folder / "README.md").write_text(page, encoding="utf-8")
    return sign_folder(folder, key)


def readme(kernel: Kernel, *, signed_by: str = "") -> str:
    """Return the page that stands in front of a kernel.

    Args:
        kernel: The kernel.
        signed_by: The public key that signs the folder; empty where none does.
    """
    parts = [
        f"# `{kernel.operator.name}` on {kernel.hardware.name}",
        *_formula(kernel.operator),
        *_use(kernel),
        _signature(signed_by),
    ]
    for variant in kernel.variants.values():
        parts += _variant(kernel, variant)
    return "\n\n".join(parts) + "\n"


def _formula(operator: Operator) -> Iterator[str]:
    if operator.spec.summary:
        yield operator.spec.summary.strip()
    yield "What it computes, as its users wrote it:"
    yield _fenced("python", _function_text(operator.source, operator.spec.reference))


def _use(kernel: Kernel) -> Iterator[str]:
    place = f"kernels/{kernel.operator.name}/{kernel.hardware.name}"
    arguments = ", ".join(kernel.operator.spec.inputs)
    attributes = "".join(
        f", {name}={spec.value!r}" for name, spec in kernel.operator.spec.attributes.items()
    )
    yield "## Use"
    yield _fenced(
        "python",
        "import optimizer\n\n"
        f'{kernel.operator.name} = optimizer.load("{place}")\n'
        f"{', '.join(kernel.operator.spec.outputs)} = "
        f"{kernel.operator.name}({arguments}{attributes})",
    )
    yield (
        "The first call builds the kernel. A call is served as the nearest public workload of "
        "equal dtypes is, by size (`dispatch.json`); where none has these dtypes, by the reference."
    )
    yield "Measure it again, with new seeds, on this hardware:"
    yield _fenced("sh", f"kernelevolve verify {place}")


def _signature(signed_by: str) -> str:
    if not signed_by:
        return (
            "**Unsigned**: the hashes here hold code, plan and evidence together, but no key "
            "vouches for who measured them."
        )
    return (
        f"Signed with the Ed25519 key `{signed_by}`: `{SIGNATURE}` covers evidence, code, plan "
        "and dispatch, and `kernelevolve verify` checks it."
    )


def _variant(kernel: Kernel, variant: Variant) -> Iterator[str]:
    evidence = variant.evidence
    yield f"## Variant `{variant.name}`"
    if variant.candidate.note:
        yield f"{variant.candidate.note} (proposed by {variant.candidate.origin})"
    yield _claim(evidence)
    yield workload_table(evidence)
    yield from _losses(evidence)
    yield f"![Latency beside every peer]({variant.name}/plots/latency.svg)"
    yield from _host_side(kernel, variant)
    yield from _profile(kernel, variant)
    yield _chain(evidence)
    yield _environment(evidence)


def _host_side(kernel: Kernel, variant: Variant) -> Iterator[str]:
    if variant.candidate.host == "python":
        names = ", ".join(f"`{name}`" for name in launched(variant.candidate.plan))
        yield (
            "Its host side is Python of its own (`host: python`): `run` in "
            f"`{variant.name}/kernel.py`, in the caller's process. It declares that it launches "
            f"{names}."
        )
        return
    yield "The host side of a call, rendered from `plan.json`, which the executor runs:"
    yield _fenced("python", host_function(kernel.operator.spec, variant.candidate))


def _claim(evidence: Evidence) -> str:
    figure = "on the device" if evidence.figure == "device_ms" else "from call to idle device"
    search = evidence.search
    found = f" Found in {search.trials} trials by {search.proposer}." if search else ""
    return (
        f"**{ratio_text(evidence.ratio)}** of the best peer's speed (weighted geometric mean over "
        f"the public workloads, time {figure}; the lower end holds at one-sided level "
        f"{evidence.alpha:g}), and {evidence.versus_eager:.2f}x of the eager reference's. Outputs "
        f"agreed at {evidence.checked_sizes} public and drawn sizes.{found}"
    )


def workload_table(evidence: Evidence) -> str:
    """Return a Markdown table with a row for each public workload."""
    head = "| workload | sizes | best peer | its ms | ours, ms | ratio | served by |"
    rows = (_row(evidence, workload) for workload in evidence.workloads)
    return "\n".join((head, "| --- | --- | --- | ---: | ---: | --- | --- |", *rows))


def ratio_text(ratio: Interval) -> str:
    """Return a ratio with its interval; too few pairs have none."""
    if not ratio.bounded:
        return f"{ratio.estimate:.2f}x (no interval)"
    return f"{ratio.estimate:.2f}x ({ratio.low:.2f} to {ratio.high:.2f})"


def _row(evidence: Evidence, workload: WorkloadEvidence) -> str:
    peers = {peer.name: peer for peer in workload.peers}
    peer_ms: float = getattr(peers[workload.best_peer], evidence.figure)
    ours_ms: float = getattr(workload, evidence.figure)
    handed = workload.served_by in peers
    sizes = ", ".join(f"{axis} {size}" for axis, size in workload.sizes.items())
    dtypes = "".join(f", {name} {dtype}" for name, dtype in workload.dtypes.items())
    cells = (
        workload.workload,
        sizes + dtypes,
        f"`{workload.best_peer}`",
        f"{peer_ms:.4g}",
        f"{ours_ms:.4g}",
        ratio_text(workload.ratio),
        f"peer `{workload.served_by}`" if handed else "this variant",
    )
    return f"| {' | '.join(cells)} |"


def _losses(evidence: Evidence) -> Iterator[str]:
    lost = [w.workload for w in evidence.workloads if w.ratio.high < 1]
    handed = [w.workload for w in evidence.workloads if w.served_by in {p.name for p in w.peers}]
    if lost:
        yield f"Slower than the best peer on: {', '.join(lost)}."
    if handed:
        yield f"Handed back to a peer, which is as fast or faster there: {', '.join(handed)}."
    if evidence.not_tested:
        yield "\n".join(("Not tested:\n", *(f"- {what}" for what in evidence.not_tested)))


def _profile(kernel: Kernel, variant: Variant) -> Iterator[str]:
    evidence = variant.evidence
    if any(w.quantiles_ms for w in evidence.workloads):
        yield f"![All samples beside the best peer's]({variant.name}/plots/distribution.svg)"
    bandwidth = kernel.hardware.limits.dram_bandwidth_gb_s
    for rows in profile_tables(evidence, bandwidth_gb_s=bandwidth):
        lines = [rows.heads, ("---",) * len(rows.heads), *map(partial(_cells, rows), rows.cells)]
        yield f"{rows.title}:"
        yield "\n".join(f"| {' | '.join(line)} |" for line in lines)
    if lacking := not_measured(evidence):
        yield "\n".join(("Not in this profile:\n", *(f"- {why}" for why in lacking)))


def _cells(rows: Rows, cells: tuple[str, ...]) -> tuple[str, ...]:
    """Return cells that no name can break out of."""
    bare = (cell.translate(_BREAKING) for cell in cells)
    return tuple(f"`{c}`" if place in rows.names else c for place, c in enumerate(bare))


def _chain(evidence: Evidence) -> str:
    """Return the links that tie the verdict to the source."""
    source, artefacts, launched_names, verdict = chain(evidence, judge(evidence).kind)
    built = ", ".join(f"`{name}`" for name in artefacts) or "nothing of its own"
    ran = ", ".join(f"`{name.translate(_BREAKING)}`" for name in launched_names)
    samples = evidence.samples_sha256[:12]
    kept = f" The raw samples' hash is `{samples}`." if samples else ""
    return (
        f"From source to verdict: source `{source}`, built to {built}, launched {ran}: "
        f"`{verdict}`.{kept}"
    )


def _environment(evidence: Evidence) -> str:
    environment: Mapping[str, object] = evidence.environment.model_dump()
    told = ", ".join(f"{name} {value}" for name, value in environment.items() if value)
    return f"Measured {evidence.measured_at} in: {told}."


def _function_text(source: str, name: str) -> str:
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return ast.get_source_segment(source, node) or ""
    return ""


def _fenced(language: str, text: str) -> str:
    return f"```{language}\n{text.strip()}\n```"


def _lines(text: str) -> str:
    return text + "\n"
