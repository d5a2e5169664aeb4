"""Memory that the judge lends on a processor: a file of shared memory, which both sides see."""

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor

from optimizer.errors import RunnerError
from optimizer.evaluate.protocol import LentMemory
from optimizer.evaluate.tray import Memory

_CHUNK: Final = 1 << 20


@dataclass
class FileLender:
    """Lends files in a folder of shared memory: see `Lender`."""

    folder: Path
    obstacle: str | None = None
    busy_s: float = 0.0

    def lend(self, nbytes: int) -> Memory | None:
        """See `Lender.lend`."""
        return None if self.obstacle is not None else FileMemory(self.folder, nbytes)

    def refuse(self, reason: str) -> None:
        """See `Lender.refuse`."""
        self.obstacle = f"outputs are copied by the process that made them: {reason}"

    def close(self) -> None:
        """See `Lender.close`; each file goes with the process that it was lent to."""


class FileMemory:
    """A file that the borrower maps.

    The judge itself writes and reads: to touch a mapped file that is cut short meanwhile kills.
    """

    def __init__(self, folder: Path, nbytes: int) -> None:
        self._file, path = tempfile.mkstemp(prefix="tray-", dir=folder)
        self.lent = LentMemory(path=path, nbytes=nbytes)
        try:
            os.posix_fallocate(self._file, 0, nbytes)
        except OSError as error:
            self.close()
            msg = f"no {nbytes} bytes of shared memory in {folder} for outputs: {error}"
            raise RunnerError(msg) from error

    @property
    def alive(self) -> bool:
        """See `Memory.alive`."""
        return self._file >= 0

    def fill(self, offset: int, nbytes: int, byte: int) -> None:
        """See `Memory.fill`."""
        chunk = memoryview(bytes([byte]) * min(nbytes, _CHUNK))
        done = 0
        while done < nbytes:
            done += os.pwrite(self._file, chunk[: nbytes - done], offset + done)

    def read(self, offset: int, nbytes: int) -> Tensor | None:
        """See `Memory.read`."""
        held = np.empty(nbytes, dtype=np.uint8)
        done = 0
        while done < nbytes:
            got = os.preadv(self._file, [held.data[done:]], offset + done)
            if not got:  # somebody cut it short
                return None
            done += got
        return torch.from_numpy(held)

    def close(self) -> None:
        """See `Memory.close`."""
        if self._file >= 0:
            os.close(self._file)
            Path(self.lent.path).unlink(missing_ok=True)
            self._file = -1
