"""Who vouches for a kernel's folder: an Ed25519 signature over its files (no torch).

`signature.json` in the folder names the files, their hashes and the key. Without it a folder is
unsigned: its hashes still hold it together, but anybody may have written all of it.
"""

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field, ValidationError

from operator_registry.record import Record, canonical_json
from optimizer.errors import KernelFolderError, KeyFileError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

SIGNATURE = "signature.json"
_SHARED = ("operator.json", "hardware.json", "dispatch.json")
_OF_VARIANTS = ("kernel.py", "kernel.cpp", "plan.json", "evidence.json")
_SHOWN = 16
Hash = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class Statement(Record):
    """What a key signs: these are the files of one kernel, as its judge left them."""

    kind: Literal["kernelevolve kernel"] = "kernelevolve kernel"
    files: dict[str, Hash] = Field(min_length=1)
    """By path in the folder: evidence, code, plans, dispatch, operator and hardware."""


class Signature(Record):
    """The contents of ``signature.json``."""

    schema_version: Literal[1] = Field(default=1, alias="schema")
    algorithm: Literal["ed25519"] = "ed25519"
    public_key: Hash
    statement: Statement
    signature: str = Field(pattern=r"^[0-9a-f]{128}$")


def new_key(path: Path) -> str:
    """Write a fresh private key, readable by its owner only, and return the public key in hex.

    Raises:
        KeyFileError: The file is there already, or can't be written.
    """
    # The library takes a while to load, and a device host, which signs nothing, may lack it.
    from cryptography.hazmat.primitives import serialization  # noqa: PLC0415
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    key = ed25519.Ed25519PrivateKey.generate()
    text = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text)
    except OSError as error:
        raise KeyFileError(path, str(error)) from error
    return key.public_key().public_bytes_raw().hex()


def public_key(path: Path) -> str:
    """Return the public key of a private key's file, in hex.

    Raises:
        KeyFileError: It holds no such key.
    """
    return _load(path).public_key().public_bytes_raw().hex()


def sign_folder(folder: Path, key: Path) -> str:
    """Sign a kernel's folder as it stands, and return the public key.

    Raises:
        KeyFileError: The key can't be read.
        KernelFolderError: The folder can't be read or written.
    """
    private = _load(key)
    statement = Statement(files=_hashes(folder))
    signature = Signature(
        public_key=private.public_key().public_bytes_raw().hex(),
        statement=statement,
        signature=private.sign(canonical_json(statement).encode()).hex(),
    )
    (folder / SIGNATURE).write_text(signature.to_json(indent=1) + "\n", encoding="utf-8")
    return signature.public_key


def read_signer(folder: Path) -> str:
    """Return the public key that signed a folder as it stands; empty where it is unsigned.

    Raises:
        KernelFolderError: The signature is not for these files, or not by its key.
    """
    path = folder / SIGNATURE
    if not path.exists():
        return ""
    try:
        signature = Signature.from_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        msg = f"{path} can't be read: {error}"
        raise KernelFolderError(msg) from error
    if fault := _find_fault(signature, _hashes(folder)):
        msg = f"{path}: {fault}"
        raise KernelFolderError(msg)
    return signature.public_key


def signer_text(key: str) -> str:
    """Return who signed, in words."""
    return f"signed by the key {key[:_SHOWN]}" if key else "unsigned"


def _find_fault(signature: Signature, found: dict[str, str]) -> str | None:
    from cryptography.exceptions import InvalidSignature  # noqa: PLC0415 - as in `new_key`
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415

    signed = signature.statement.files
    for name in sorted(signed.keys() | found.keys()):
        if signed.get(name) != found.get(name):
            return f"{name} is not the file that was signed"
    key = ed25519.Ed25519PublicKey.from_public_bytes(bytes.fromhex(signature.public_key))
    try:
        key.verify(bytes.fromhex(signature.signature), canonical_json(signature.statement).encode())
    except InvalidSignature:
        return "the signature is not by the key that it names"
    return None


def _hashes(folder: Path) -> dict[str, str]:
    """Return the hash of each file that a signature covers: all but what is drawn from them."""
    try:
        paths = [folder / name for name in _SHARED]
        paths += [path for name in _OF_VARIANTS for path in folder.glob(f"*/{name}")]
        return {
            path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(paths)
        }
    except OSError as error:
        msg = f"{folder} is no kernel's folder: {error}"
        raise KernelFolderError(msg) from error


def _load(path: Path) -> "Ed25519PrivateKey":
    from cryptography.hazmat.primitives.asymmetric import ed25519  # noqa: PLC0415 - as in `new_key`
    from cryptography.hazmat.primitives.serialization import load_pem_private_key  # noqa: PLC0415

    try:
        key = load_pem_private_key(path.read_bytes(), password=None)
    except (OSError, ValueError, TypeError) as error:
        raise KeyFileError(path, str(error)) from error
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise KeyFileError(path, "it is no Ed25519 key")
    return key
