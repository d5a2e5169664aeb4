"""What a child is told of the walls around it, before it has imported anything foreign."""

import json
from dataclasses import asdict, dataclass
from typing import Any, Self

from optimizer.evaluate.guards import Guard, Guards, without


@dataclass(frozen=True)
class Terms:
    """What a child may see, write and use."""

    scratch: str
    """The folder it starts in: memory of its own, gone with it."""
    parent: int
    """The judge's process."""
    read: tuple[str, ...] = ()
    """What it sees of the file system."""
    write: tuple[str, ...] = ()
    """Folders of the judge that it may write in."""
    fill: tuple[str, ...] = ()
    """Folders of the judge with files that it may write into; it makes and removes none."""
    devices: tuple[str, ...] = ()
    """Device files beside the harmless ones."""
    scratch_bytes: int | None = None
    memory_bytes: int | None = None
    """Private memory of one process."""
    total_bytes: int | None = None
    """Memory of all processes."""
    disk_bytes: int | None = None
    """What they write into `write` and `fill`."""
    cpu_s: int | None = None
    file_bytes: int | None = None
    processes: int | None = None
    """Processes and threads together."""
    down: tuple[str, ...] = ()
    """Guards that are down."""

    @property
    def guards(self) -> Guards:
        """Return which guards are up."""
        return without([Guard(name) for name in self.down])

    def to_json(self) -> str:
        """Return it as it travels to the child."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return what travelled."""
        told: dict[str, Any] = json.loads(text)
        for name, value in told.items():
            if isinstance(value, list):
                told[name] = tuple(value)
        return cls(**told)
