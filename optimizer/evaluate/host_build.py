"""What is built of a candidate with a host side in Python: its source, put where a worker reads it.

Its kernels are compiled by its own code at the first call, in the worker.
"""

import os
from pathlib import Path
from typing import Final

from operator_registry.hardware import HardwareSpec
from optimizer.candidate import RUN, Candidate
from optimizer.evaluate.building import Built
from optimizer.store.artefacts import touch
from optimizer.targets.artefact import is_built, source_sha256, write_artefact
from optimizer.targets.target import Artefact, Compiled

SOURCE: Final = "kernel.py"


def place_source(candidate: Candidate, hardware: HardwareSpec, folder: Path) -> Built:
    """Return a candidate's source as an artefact, in a folder named by its hash."""
    sha256 = source_sha256(candidate.code)
    own = folder / f"python-{sha256[:32]}"
    artefact = Artefact(
        target=hardware.target,
        arch=hardware.compile.arch,
        source_sha256=sha256,
        compiled=(Compiled(kernel=RUN, symbol=RUN, file=SOURCE, sha256=sha256),),
    )
    if not is_built(own):
        own.mkdir(parents=True, exist_ok=True)
        fresh = own / f"{SOURCE}.{os.getpid()}"
        fresh.write_text(candidate.code, encoding="utf-8", newline="")
        fresh.replace(own / SOURCE)
        write_artefact(own, artefact)
    touch(own)
    return Built(own, artefact)
