import io
import zipfile

import pytest

from daemon.forge import ForgeUnavailableError
from daemon.github.artefacts import download, unpack


def make_zip(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_the_one_file_of_an_archive_comes_out() -> None:
    assert unpack(make_zip(out=b"\x00\xff")) == b"\x00\xff"


@pytest.mark.parametrize("archive", [make_zip(), make_zip(a=b"1", b=b"2")], ids=["none", "two"])
def test_none_and_two_are_not_one(archive: bytes) -> None:
    assert unpack(archive) is None


@pytest.mark.parametrize(
    "archive",
    [b"", b"PK", b"<Error/>", make_zip(a=b"x" * 999)[:-30]],
    ids=["empty", "begun", "a page", "cut"],  # an archive holds the time: no name of a test
)
def test_what_is_no_archive_is_worth_another_try(archive: bytes) -> None:
    with pytest.raises(ForgeUnavailableError, match="no zip archive"):
        unpack(archive)


def test_an_archive_that_swells_is_not_unpacked() -> None:
    bomb = make_zip(out=bytes(80 * 1024 * 1024))

    assert len(bomb) < 1024 * 1024
    assert unpack(bomb) is None


@pytest.mark.parametrize("address", ["file:///etc/passwd", "ftp://e/x", "http://e/x", "/x", ""])
def test_only_an_encrypted_address_is_fetched_from(address: str) -> None:
    with pytest.raises(ForgeUnavailableError, match="address"):
        download(address, api="https://api.github.com")


def test_an_address_stays_out_of_the_error() -> None:
    with pytest.raises(ForgeUnavailableError) as error:
        download("http://127.0.0.1:9/x?sig=SECRET", api="http://127.0.0.1:9")

    assert "SECRET" not in str(error.value)
