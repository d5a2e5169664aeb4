"""The keeper: a process of the judge's own that holds the device memory which candidates write to.

No foreign code ever runs in it. It fills the memory beforehand and copies out of it afterwards, so
that a candidate's own process has no part in what the judge reads.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

import torch
from pydantic import Field, TypeAdapter
from torch import Tensor

from operator_registry.record import Record
from optimizer.evaluate.handing import offer
from optimizer.evaluate.memory import map_file
from optimizer.evaluate.protocol import Done, TensorFile
from optimizer.targets.device_memory import (
    DeviceMemory,
    free,
    hand_over,
    make_device_memory,
)

KEEPER = "optimizer.evaluate.keeper:Keeper"


class Make(Record):
    """Make memory, and hand it to whoever connects first."""

    kind: Literal["make"] = "make"
    path: str
    """A socket's; also the memory's name from now on."""
    nbytes: int


class Made(Record):
    """Memory was made."""

    nbytes: int
    """How much: the driver rounds up."""


class HandAgain(Record):
    """Hand memory to one more process, whoever connects first."""

    kind: Literal["hand_again"] = "hand_again"
    path: str
    """The memory's name."""
    to: str
    """A socket's."""


class Fill(Record):
    """Fill a part of the memory with a byte."""

    kind: Literal["fill"] = "fill"
    path: str
    offset: int
    nbytes: int
    byte: int = Field(ge=0, le=255)


class Copy(Record):
    """Copy a part of the memory into a file."""

    kind: Literal["copy"] = "copy"
    path: str
    offset: int
    into: TensorFile


class Free(Record):
    """Give the memory up."""

    kind: Literal["free"] = "free"
    path: str


Request = Annotated[Make | HandAgain | Fill | Copy | Free, Field(discriminator="kind")]
REQUESTS: TypeAdapter[Request] = TypeAdapter(Request)


@dataclass
class Keeper:
    """Answers the judge's messages, one after another."""

    _kept: dict[str, tuple[DeviceMemory, Tensor]] = field(default_factory=dict)

    def __call__(self, text: str) -> str:
        """Return the answer to a message."""
        return self._answer(REQUESTS.validate_json(text)).to_json()

    def _answer(self, message: Request) -> Record:
        match message:
            case Make():
                return self._make(message)
            case HandAgain(path=path, to=to):
                offer(hand_over(self._kept[path][0]), Path(to))
            case Fill(path=path, offset=offset, nbytes=nbytes, byte=byte):
                self._kept[path][1][offset : offset + nbytes].fill_(byte)
                torch.cuda.synchronize()
            case Copy(path=path, offset=offset, into=into):
                part = self._kept[path][1][offset : offset + into.shape[0]]
                map_file(into).copy_(part)
            case Free(path=path):
                memory, _ = self._kept.pop(path)
                free(memory)
        return Done()

    def _make(self, message: Make) -> Made:
        torch.zeros(1, device="cuda").add_(1).item()  # so that the device's context is current
        memory = make_device_memory(message.nbytes)
        offer(hand_over(memory), Path(message.path))
        self._kept[message.path] = (memory, memory.as_bytes())
        return Made(nbytes=memory.nbytes)
