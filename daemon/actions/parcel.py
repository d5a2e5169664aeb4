"""A job as it travels to another machine and back: without a path, a secret or a database in it.

Both ends take the other's text for a stranger's. The request goes as one line of base64, since it
is the input of a workflow; what would be a path there is a text here, and a folder is its files.
"""

import base64
import binascii
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, StringConstraints, TypeAdapter, ValidationError

from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record, digest
from operator_registry.registry import Operator
from optimizer.job import (
    FIRST_ALPHA,
    ErrorEvent,
    OptimizeRequest,
    ResultEvent,
    VerifyRequest,
)

LONGEST_INPUTS = 65_535
"""Characters that GitHub takes for all inputs of a dispatched workflow, as their JSON."""
LONGEST_REQUEST = LONGEST_INPUTS - 1_500
"""The rest is for the tag and the labels."""
LARGEST_BYTES = 8 << 20
"""Unpacked, either way."""
_REPLAYED = ("*.json", "*/*.json", "*/kernel.py", "*/kernel.cpp")
"""What of a kernel's folder is replayed or signed; the rest is drawn from it."""

_PART = "[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}"
FilePath = Annotated[str, StringConstraints(pattern=f"^({_PART}/){{0,2}}{_PART}$")]
"""A path in a folder: relative, no part of it begins with a dot."""
Files = Annotated[dict[FilePath, str], Field(max_length=200)]


class ParcelError(Exception):
    """What arrived can't be what was sent, or what is to be sent is too large."""


class SearchParcel(Record):
    """An `OptimizeRequest` to travel; where things lie is the other machine's affair."""

    task: Literal["optimize"] = "optimize"
    schema_version: Literal[1] = Field(default=1, alias="schema")
    operator: Operator
    hardware: HardwareSpec
    goal_key: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,200}$")]
    budget_s: float = Field(gt=0)
    minimum_gain: float = Field(ge=1)
    alpha: float = Field(default=FIRST_ALPHA, gt=0, lt=1)
    incumbent: Files = {}
    """The published kernel's folder."""


class VerifyParcel(Record):
    """A `VerifyRequest` to travel."""

    task: Literal["verify"] = "verify"
    schema_version: Literal[1] = Field(default=1, alias="schema")
    kernel: Files
    """Its folder."""
    budget_s: float = Field(gt=0)
    trusted_keys: tuple[str, ...] = ()


Parcel = SearchParcel | VerifyParcel
_PARCEL: TypeAdapter[Parcel] = TypeAdapter(Annotated[Parcel, Field(discriminator="task")])


class Answer(Record):
    """What came of a parcel."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    request: str
    """`fingerprint` of the text that was asked, so that no other job's answer passes for it."""
    end: Annotated[ResultEvent | ErrorEvent, Field(discriminator="event")]


def find_key(request: Record) -> str:
    """Return what names a piece of work, however often it is asked for.

    A search is named by its goal alone: a kernel to beat that is merged meanwhile makes no other.
    """
    return request.goal_key if isinstance(request, OptimizeRequest) else digest(request)


def make_parcel(request: Record) -> Parcel:
    """Return what of a job's request travels.

    Raises:
        ParcelError: A job of this kind, or one of these files, can't.
    """
    if isinstance(request, OptimizeRequest):
        incumbent = request.incumbent_folder
        return SearchParcel(
            operator=request.operator,
            hardware=request.hardware,
            goal_key=request.goal_key,
            budget_s=request.budget_s,
            minimum_gain=request.minimum_gain,
            alpha=request.alpha,
            incumbent=folder_files(incumbent) if incumbent else {},
        )
    if isinstance(request, VerifyRequest):
        return VerifyParcel(
            kernel=folder_files(request.kernel_folder),
            budget_s=request.budget_s,
            trusted_keys=request.trusted_keys,
        )
    msg = f"a {type(request).__name__} is for this machine only"
    raise ParcelError(msg)


def pack(parcel: Parcel) -> str:
    """Return a parcel as a line of text.

    Raises:
        ParcelError: It is longer than a workflow's inputs may be.
    """
    packed = base64.b64encode(zlib.compress(parcel.to_json().encode(), 9)).decode()
    if len(packed) > LONGEST_REQUEST:
        msg = (
            f"the job's request takes {len(packed)} characters, {LONGEST_REQUEST} at most can be "
            "sent to a runner; have a machine of its own work on this hardware"
        )
        raise ParcelError(msg)
    return packed


def unpack(text: str) -> Parcel:
    """Return the parcel in a line of text, whoever wrote it.

    Raises:
        ParcelError: It is none.
    """
    try:
        packed = base64.b64decode(text.strip(), validate=True)
        inflating = zlib.decompressobj()
        content = inflating.decompress(packed, LARGEST_BYTES)
        if not inflating.eof or inflating.unused_data:
            msg = f"the request is cut off, or larger than {LARGEST_BYTES} bytes"
            raise ParcelError(msg)
        return _PARCEL.validate_json(content)
    except (binascii.Error, ValueError, zlib.error) as error:
        raise ParcelError(_explain("request", error)) from error


def fingerprint(packed: str) -> str:
    """Return the hash by which an answer names its request."""
    return digest(packed.strip())


def read_answer(content: bytes, *, request: str) -> Answer:
    """Return the answer to a request, whoever wrote it.

    Args:
        content: What arrived.
        request: The fingerprint of what was asked.

    Raises:
        ParcelError: It is none, or that of another request.
    """
    if len(content) > LARGEST_BYTES:
        msg = f"the answer is larger than {LARGEST_BYTES} bytes"
        raise ParcelError(msg)
    try:
        answer = Answer.from_json(content)
    except ValueError as error:
        raise ParcelError(_explain("answer", error)) from error
    if answer.request != request:
        msg = "the answer is that of another request"
        raise ParcelError(msg)
    return answer


def folder_files(folder: Path) -> dict[str, str]:
    """Return what of a kernel's folder has to travel; nothing of a link.

    Raises:
        ParcelError: A file is no text.
    """
    paths = (path for pattern in _REPLAYED for path in folder.glob(pattern))
    try:
        # Bytes, not lines: a signature covers how they end.
        return {
            path.relative_to(folder).as_posix(): path.read_bytes().decode()
            for path in sorted(paths)
            if path.is_file() and not path.is_symlink()
        }
    except UnicodeDecodeError as error:
        msg = f"{folder} holds what is no text: {error}"
        raise ParcelError(msg) from error


def lay_out(files: Mapping[str, str], folder: Path) -> Path:
    """Write a parcel's files into a new folder, and return that."""
    folder.mkdir(parents=True)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text.encode())
    return folder


def _explain(what: str, error: ValueError | zlib.error) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"])) or "it"
        return f"the {what} can't be read: {where}: {first['msg']}"
    return f"the {what} can't be read: {error}"
