"""From source to artefact: whether what is about to run was built from what was judged."""

import hashlib
from pathlib import Path

from knowledge.outcome import Cheated
from optimizer.candidate import Candidate
from optimizer.evaluate.building import Built
from optimizer.evaluate.guards import Guard, Guards
from optimizer.targets.artefact import source_sha256


def find_fraud(built: Built, candidate: Candidate, guards: Guards) -> Cheated | None:
    """Return why an artefact may not be loaded for a candidate, None where it may.

    The record is the judge's own, of the very build; the files are read anew before each load.
    """
    broken = find_break(built, candidate)
    if broken is not None and guards.up(Guard.CHAIN):
        return Cheated(guard=Guard.CHAIN, detail=broken)
    if built.artefact.foreign and guards.up(Guard.LAUNCHED):
        detail = f"calls {', '.join(built.artefact.foreign)}, which is in no library of its own"
        return Cheated(guard=Guard.LAUNCHED, detail=detail)
    return None


def find_break(built: Built, candidate: Candidate) -> str | None:
    """Return where the chain of hashes from source to files is broken, None where it holds."""
    if built.artefact.source_sha256 != source_sha256(candidate.code):
        return "the artefact was built from another source"
    for compiled in built.artefact.compiled:
        if _sha256(built.folder / compiled.file) != compiled.sha256:
            return f"{compiled.file} is not the file that was built for {compiled.kernel}"
    return None


def _sha256(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""
