"""A file that a workflow left behind: fetched from where GitHub keeps it, and unpacked."""

import time
import zipfile
from io import BytesIO
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from daemon.forge import ForgeUnavailableError

_LARGEST_BYTES = 64 * 1024 * 1024
_CHUNK_BYTES = 1 << 16
_READ_S = 15.0
_DOWNLOAD_S = 120.0


def download(address: str, *, api: str) -> bytes:
    """Return what lies at an address that GitHub names; our token is not sent there.

    Args:
        address: Another company's storage, signed for some minutes.
        api: The API's address: where that is encrypted, this has to be.

    Raises:
        ForgeUnavailableError: It can't be fetched, or is too large.
    """
    scheme = urlsplit(address).scheme
    if scheme not in {"https", urlsplit(api).scheme}:
        msg = f"an artefact does not lie at an address with {scheme or 'no scheme'}"
        raise ForgeUnavailableError(msg)
    ends_at = time.monotonic() + _DOWNLOAD_S
    content = bytearray()
    try:
        with urlopen(address, timeout=_READ_S) as answer:  # noqa: S310 - see the scheme above
            while chunk := answer.read(_CHUNK_BYTES):
                content += chunk
                if len(content) > _LARGEST_BYTES or time.monotonic() > ends_at:
                    msg = f"an artefact is too large or too slow: {len(content)} bytes so far"
                    raise ForgeUnavailableError(msg)
    except (URLError, OSError, ValueError) as error:
        # The address itself is a secret: whoever has it can read the file.
        msg = f"an artefact can't be fetched from {urlsplit(address).hostname}: {error}"
        raise ForgeUnavailableError(msg) from error
    return bytes(content)


def unpack(archive: bytes) -> bytes | None:
    """Return the one file in a zip archive; None where it is not one, or too large."""
    try:
        with zipfile.ZipFile(BytesIO(archive)) as packed:
            members = [member for member in packed.infolist() if not member.is_dir()]
            if len(members) != 1 or members[0].file_size > _LARGEST_BYTES:
                return None
            with packed.open(members[0]) as stream:
                content = stream.read(_LARGEST_BYTES + 1)  # whatever the archive says of its size
    except (zipfile.BadZipFile, RuntimeError, OSError, NotImplementedError, EOFError) as error:
        msg = f"an artefact is no zip archive: {error}"
        raise ForgeUnavailableError(msg) from error
    return content if len(content) <= _LARGEST_BYTES else None
