"""Tensors in files of shared memory: how inputs and outputs pass between the judge's processes."""

import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from knowledge.roofline import BYTES
from optimizer.evaluate.protocol import Form, Stored, TensorFile
from optimizer.evaluate.scratch import make_scratch, remove_stale

Value = Tensor | list[Tensor]


def form_of(tensor: Tensor) -> Form:
    """Return a tensor's shape and dtype."""
    return Form.model_validate(
        {"shape": tuple(tensor.shape), "dtype": str(tensor.dtype).removeprefix("torch.")}
    )


def map_file(file: TensorFile, *, shared: bool = True) -> Tensor:
    """Return the tensor that lies in a file.

    Args:
        file: The file.
        shared: Whoever else maps the file sees what is written; else the file is only read.

    Raises:
        RuntimeError: The file can't be mapped.
    """
    dtype: torch.dtype = getattr(torch, file.dtype)
    elements = torch.Size(file.shape).numel()
    if elements == 0:
        return torch.empty(file.shape, dtype=dtype)
    flat = torch.from_file(file.path, shared=shared, size=elements, dtype=dtype)
    return flat.view(file.shape)


def write_file(path: Path, tensor: Tensor) -> TensorFile:
    """Store a tensor in a new file."""
    form = form_of(tensor)
    file = TensorFile(path=str(path), shape=form.shape, dtype=form.dtype)
    map_file(file).copy_(tensor.detach())
    return file


def write_value(folder: Path, name: str, value: Value) -> Stored:
    """Store a tensor or a list of them, in files that begin with `name`."""
    if isinstance(value, Tensor):
        return write_file(folder / name, value)
    return tuple(write_file(folder / f"{name}-{i}", member) for i, member in enumerate(value))


def store_values(
    outputs: Sequence[Value], files: Sequence[Stored]
) -> tuple[Form | tuple[Form, ...], ...]:
    """Copy outputs into the files that fit, and return the outputs' forms."""
    for output, stored in zip(outputs, files, strict=False):
        for tensor, file in zip(tensors_of(output), members_of(stored), strict=False):
            form = form_of(tensor)
            if (form.shape, form.dtype) == (file.shape, file.dtype):
                map_file(file).copy_(tensor)
    return tuple(
        form_of(output) if isinstance(output, Tensor) else tuple(map(form_of, output))
        for output in outputs
    )


def read_value(stored: Stored, device: str = "cpu") -> Value:
    """Return a copy of what is stored, on a device."""
    if isinstance(stored, TensorFile):
        return map_file(stored, shared=False).clone().to(device)
    return [map_file(member, shared=False).clone().to(device) for member in stored]


def reserve(folder: Path, name: str, forms: Sequence[Form]) -> tuple[TensorFile, ...]:
    """Return new files, one for each form, for somebody to write tensors into."""
    files = [
        TensorFile(path=str(folder / f"{name}-{i}"), shape=form.shape, dtype=form.dtype)
        for i, form in enumerate(forms)
    ]
    for file in files:
        map_file(file)
    return tuple(files)


def take_file(file: TensorFile) -> Tensor:
    """Return what a file holds, in memory of this process alone, and remove the file."""
    tensor = map_file(file).clone()
    Path(file.path).unlink(missing_ok=True)
    return tensor


def scrub(outputs: Sequence[Stored], byte: int) -> None:
    """Fill the files of outputs, whatever somebody made of them, so that nothing old is in them."""
    chunk = bytes([byte]) * (1 << 20)
    for file in (member for stored in outputs for member in members_of(stored)):
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
        with os.fdopen(os.open(file.path, flags, 0o600), "wb") as stream:
            left = nbytes_of(file)
            while left:
                left -= stream.write(chunk[:left])


def read_output(file: TensorFile) -> Tensor | None:
    """Return what somebody left in a file, in own memory; None where the file is damaged.

    It is read and not mapped: to touch a mapped file that is cut short meanwhile kills the reader.
    """
    held = np.empty(nbytes_of(file), dtype=np.uint8)
    try:
        with os.fdopen(os.open(file.path, os.O_RDONLY | os.O_NOFOLLOW), "rb") as stream:
            if stream.readinto(held.data) != held.nbytes:
                return None
    except OSError:
        return None
    dtype: torch.dtype = getattr(torch, file.dtype)
    if not held.nbytes:  # an empty array has no stride by which torch could view it
        return torch.empty(file.shape, dtype=dtype)
    return torch.from_numpy(held).view(dtype).view(file.shape)


def nbytes_of(form: Form) -> int:
    """Return the bytes of a tensor's elements."""
    return torch.Size(form.shape).numel() * BYTES[form.dtype]


def members_of(stored: Stored) -> tuple[TensorFile, ...]:
    """Return the tensors of a list, or the only one."""
    return (stored,) if isinstance(stored, TensorFile) else stored


def tensors_of(value: Value) -> list[Tensor]:
    """Return the members of a list of tensors, or the only tensor."""
    return [value] if isinstance(value, Tensor) else value


def bytes_of(tensor: Tensor) -> Tensor:
    """Return a contiguous tensor's memory as bytes."""
    return tensor.reshape(-1).view(torch.uint8)


class SharedFolder:
    """A folder in shared memory that lives as long as the judge."""

    def __init__(self) -> None:
        remove_stale()
        self.path = make_scratch(shared=True)

    def folder(self, name: str) -> Path:
        """Return a folder inside, made if need be."""
        path = self.path / name
        path.mkdir(exist_ok=True)
        return path

    def close(self) -> None:
        """Remove all."""
        shutil.rmtree(self.path, ignore_errors=True)
