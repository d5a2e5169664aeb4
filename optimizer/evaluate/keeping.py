"""The judge's end of the keeper: device memory that is lent to workers."""

import contextlib
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final, TypeVar

from torch import Tensor

from operator_registry.record import Record
from optimizer.errors import RunnerError
from optimizer.evaluate import keeper as k
from optimizer.evaluate.memory import SharedFolder, map_file, reserve
from optimizer.evaluate.protocol import Done, Form, LentMemory, TensorFile
from optimizer.evaluate.sandbox import Child, ChildError, ChildRaisedError, Limits, start
from optimizer.evaluate.tray import Memory

_FIRST_S: Final = 120.0
"""For the keeper to import torch and touch the device as well."""
_DEADLINE_S: Final = 30.0
Answer = TypeVar("Answer", bound=Record)


@dataclass
class KeeperLender:
    """Lends memory of a CUDA device, which a keeper holds: see `Lender`."""

    limits: Limits
    """The keeper's; it may write into `private`."""
    folder: Path
    """Where memory is handed over; workers see it."""
    private: SharedFolder
    """Where the keeper leaves copies; no worker sees it."""
    obstacle: str | None = None
    busy_s: float = 0.0
    _child: Child | None = None
    _numbers: "count[int]" = field(default_factory=count)
    # The keeper dies with the thread that started it, and answers one message at a time.
    _thread: ThreadPoolExecutor = field(default_factory=lambda: ThreadPoolExecutor(1))

    def lend(self, nbytes: int) -> Memory | None:
        """See `Lender.lend`."""
        return self._thread.submit(self._lend, nbytes).result()

    def refuse(self, reason: str) -> None:
        """See `Lender.refuse`."""
        self.obstacle = f"outputs are copied by the process that made them: {reason}"

    def close(self) -> None:
        """See `Lender.close`."""
        try:
            self._thread.submit(self._end).result()
        except RuntimeError:  # the program is ending, and its threads have ended before
            self._end()
        self._thread.shutdown()
        self.private.close()

    def tell(self, child: Child, message: Record) -> None:
        """Let the keeper do something.

        Raises:
            RunnerError: It can't; the device is out of order.
        """
        self._thread.submit(self._ask, child, message, Done, _DEADLINE_S).result()

    def new_path(self) -> str:
        """Return a new name of memory, or a place to hand it over at."""
        return str(self.folder / f"k{next(self._numbers)}")

    def file(self, nbytes: int) -> TensorFile:
        """Return a new file for a copy."""
        form = Form(shape=(nbytes,), dtype="uint8")
        return reserve(self.private.path, f"copy{next(self._numbers)}", [form])[0]

    def _lend(self, nbytes: int) -> Memory | None:
        if self.obstacle is not None:
            return None
        if self._child is None or not self._child.alive:
            self._end()
            self._child = start(k.KEEPER, limits=self.limits)
        path = self.new_path()
        try:
            made = self._ask(self._child, k.Make(path=path, nbytes=nbytes), k.Made, _FIRST_S)
        except _RefusedError as error:
            self.refuse(str(error))
            return None
        return KeptMemory(self, self._child, LentMemory(path=path, nbytes=made.nbytes))

    def _ask(
        self, child: Child, message: Record, answer: type[Answer], deadline_s: float
    ) -> Answer:
        began_s = time.monotonic()
        try:
            return answer.from_json(child.ask(message.to_json(), deadline_s=deadline_s))
        except ChildRaisedError as error:
            raise _RefusedError(error.log.strip().splitlines()[-1]) from error
        except ChildError as error:
            msg = f"the keeper of outputs on the device is gone: {error}"
            raise RunnerError(msg) from error
        finally:
            self.busy_s += time.monotonic() - began_s

    def _end(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._child = None


@dataclass(frozen=True)
class KeptMemory:
    """Memory of a device: see `Memory`."""

    lender: KeeperLender
    keeper: Child
    lent: LentMemory

    @property
    def alive(self) -> bool:
        """See `Memory.alive`."""
        return self.keeper.alive

    def hand_again(self) -> str:
        """Return where one more process, and no other, is handed this memory.

        Raises:
            RunnerError: It can't be reached any more.
        """
        path = self.lender.new_path()
        self.lender.tell(self.keeper, k.HandAgain(path=self.lent.path, to=path))
        return path

    def fill(self, offset: int, nbytes: int, byte: int) -> None:
        """See `Memory.fill`."""
        fill = k.Fill(path=self.lent.path, offset=offset, nbytes=nbytes, byte=byte)
        self.lender.tell(self.keeper, fill)

    def read(self, offset: int, nbytes: int) -> Tensor | None:
        """See `Memory.read`."""
        file = self.lender.file(nbytes)
        try:
            copy = k.Copy(path=self.lent.path, offset=offset, into=file)
            self.lender.tell(self.keeper, copy)
            # Mapped and not read, which would copy it once more: only the keeper can touch it.
            return map_file(file)
        finally:
            Path(file.path).unlink(missing_ok=True)

    def close(self) -> None:
        """See `Memory.close`."""
        with contextlib.suppress(RunnerError):  # with its keeper, the memory is gone too
            if self.keeper.alive:
                self.lender.tell(self.keeper, k.Free(path=self.lent.path))


class _RefusedError(RunnerError):
    """The keeper is well, but the driver refused what it was asked for."""
