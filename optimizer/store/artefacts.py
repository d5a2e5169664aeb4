"""What is too large for the database: bytes in files that are named by their hash.

Any number of processes may write, read and collect at once. A file is either whole or not there;
one that somebody changed is found out when it is read.
"""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from optimizer.store.engine import file_lock

FOLDER: Final = "kept"
"""In the state folder."""
FRESH: Final = ".new-"
"""How the name of a file begins that is being written."""


@dataclass(frozen=True)
class Artefacts:
    """The artefacts of a state folder."""

    state: Path

    @property
    def folder(self) -> Path:
        """Return where they are, in folders by the first two digits of their hash."""
        return self.state / FOLDER

    @property
    def lock(self) -> Path:
        """Return the file whose lock is held by who removes one, or counts on one to stay."""
        return self.folder / ".lock"

    def put(self, content: bytes) -> str:
        """Keep some bytes and return the hash by which they are found.

        Raises:
            OSError: There is no room, or no leave to write.
        """
        name = hashlib.sha256(content).hexdigest()
        place = self._place(name)
        place.parent.mkdir(parents=True, exist_ok=True)
        with file_lock(self.lock):
            if touch(place):
                return name
        handle, fresh = tempfile.mkstemp(prefix=FRESH, dir=place.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())  # else a power cut could leave the name without the bytes
            Path(fresh).replace(place)
        finally:
            Path(fresh).unlink(missing_ok=True)
        return name

    def find(self, name: str) -> bytes | None:
        """Return the bytes of a hash; None where they are not here.

        Raises:
            ValueError: The file is not what its name says.
        """
        place = self._place(name)
        if not name or not place.is_file():
            return None
        content = place.read_bytes()
        if hashlib.sha256(content).hexdigest() != name:
            msg = f"{place} was changed after it was written"
            raise ValueError(msg)
        touch(place)
        return content

    def _place(self, name: str) -> Path:
        return self.folder / name[:2] / name


def touch(path: Path) -> bool:
    """Note that a file or folder is used; False where it is not there."""
    try:
        os.utime(path)
    except FileNotFoundError:
        return False
    return True
