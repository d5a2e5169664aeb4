"""A folder's signature: whose it is, what it covers, and what breaks it."""

import json
from pathlib import Path

import pytest

from optimizer.errors import KernelFolderError, KeyFileError
from optimizer.kernel import make_kernel
from optimizer.kernel_page import sign_kernel, write_kernel
from optimizer.signing import new_key, public_key, read_signer
from tests.makers import HARDWARE, OPERATOR, make_candidate, make_evidence

CANDIDATE = make_candidate()
COVERED = (
    "*/evidence.json", "*/plan.json", "*/kernel.cpp", "dispatch.json", "operator.json",
    "hardware.json",
)  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    evidence = make_evidence(CANDIDATE, 2.0)
    kernel = make_kernel(OPERATOR, HARDWARE, candidate=CANDIDATE, evidence=evidence)
    write_kernel(tmp_path / "kernel", kernel)
    return tmp_path / "kernel"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    new_key(tmp_path / "keys/mine")
    return tmp_path / "keys/mine"


def test_a_folder_without_a_signature_says_that_it_is_unsigned(folder: Path) -> None:
    assert read_signer(folder) == ""
    assert "**Unsigned**" in (folder / "README.md").read_text()


def test_a_signed_folder_names_its_key(folder: Path, key: Path) -> None:
    signer = sign_kernel(folder, key)

    assert signer == read_signer(folder) == public_key(key)
    assert signer in (folder / "README.md").read_text()
    assert "Unsigned" not in (folder / "README.md").read_text()


@pytest.mark.parametrize("name", COVERED)
def test_no_covered_file_can_be_changed(folder: Path, key: Path, name: str) -> None:
    sign_kernel(folder, key)
    (path,) = folder.glob(name)
    path.write_text(path.read_text() + "\n")

    with pytest.raises(KernelFolderError, match="is not the file that was signed"):
        read_signer(folder)


def test_a_file_that_is_added_is_not_covered(folder: Path, key: Path) -> None:
    sign_kernel(folder, key)
    (folder / "other").mkdir()
    (folder / "other/kernel.cpp").write_text("")

    with pytest.raises(KernelFolderError, match=r"other/kernel.cpp is not"):
        read_signer(folder)


def test_verifications_may_be_appended(folder: Path, key: Path) -> None:
    signer = sign_kernel(folder, key)
    (folder / "verifications.jsonl").write_text("{}\n")

    assert read_signer(folder) == signer


def test_nobody_can_sign_in_another_name(folder: Path, key: Path, tmp_path: Path) -> None:
    sign_kernel(folder, key)
    signature = json.loads((folder / "signature.json").read_text())
    signature["public_key"] = new_key(tmp_path / "keys/theirs")
    (folder / "signature.json").write_text(json.dumps(signature))

    with pytest.raises(KernelFolderError, match="not by the key that it names"):
        read_signer(folder)


def test_a_key_is_the_owners_alone_and_is_never_overwritten(key: Path) -> None:
    before = public_key(key)

    assert key.stat().st_mode & 0o077 == 0
    with pytest.raises(KeyFileError):
        new_key(key)
    assert public_key(key) == before


def test_what_is_no_key_is_named(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "key").write_text("secret")

    with pytest.raises(KeyFileError, match="no signing key"):
        sign_kernel(folder, tmp_path / "key")
