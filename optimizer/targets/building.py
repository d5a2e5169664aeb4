"""Kernels that are built when they are first wanted, and kept for the next process."""

import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from operator_registry.record import digest
from optimizer.targets.artefact import is_built
from optimizer.targets.target import Build, BuildError, Instance, KernelTable, Launcher, Target

_DIGITS: Final = 16


@dataclass
class BuildingTable:
    """A `KernelTable` for users: what a call's sizes need is built then, into a cache folder.

    Any number of processes may share the folder: a build is made aside and moved into its place.
    """

    target: Target
    code: str
    folder: Path
    _loaded: dict[str, KernelTable] = field(default_factory=dict)

    def launcher(self, instance: Instance) -> Launcher:
        """Return the launcher of an instance, built if no process has built it before.

        Raises:
            BuildError: The compiler refuses the code.
            OSError: There is no device here to load it on.
        """
        table = self._loaded.get(instance.symbol)
        if table is None:
            table = self.target.load(self._built(instance))
            self._loaded[instance.symbol] = table
        return table.launcher(instance)

    def _built(self, instance: Instance) -> Path:
        key = digest(self.code, self.target.toolchain)[:_DIGITS]
        place = self.folder / f"{instance.symbol}-{key}"
        if is_built(place):
            return place
        self.folder.mkdir(parents=True, exist_ok=True)
        aside = Path(tempfile.mkdtemp(prefix=".building-", dir=self.folder))
        try:
            (built,) = self.target.build([Build(code=self.code, instances=(instance,))], [aside])
            if isinstance(built, BuildError):
                raise built
            _move(aside, place)
        finally:
            shutil.rmtree(aside, ignore_errors=True)
        return place


def _move(aside: Path, place: Path) -> None:
    try:
        aside.rename(place)
    except OSError:
        if not is_built(place):  # else another process was first, and made the same
            raise
