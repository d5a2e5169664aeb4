"""Messages over a stream socket: four bytes of length, then UTF-8 text."""

import socket
import struct

HEADER = struct.Struct("!I")
LARGEST_BYTES = 1 << 28
"""A longer message is taken for damage: tensors never travel this way."""


class FrameError(ValueError):
    """The bytes on the socket are no message."""


def encode(text: str) -> bytes:
    """Return the message as it travels.

    Raises:
        FrameError: The text is too long.
    """
    body = text.encode()
    if len(body) > LARGEST_BYTES:
        msg = f"a message of {len(body)} bytes is longer than {LARGEST_BYTES}"
        raise FrameError(msg)
    return HEADER.pack(len(body)) + body


def split(received: bytearray) -> str | None:
    """Take the first whole message off the front of what was received; None where none is whole.

    Raises:
        FrameError: The length is absurd, or the text is not UTF-8.
    """
    if len(received) < HEADER.size:
        return None
    (length,) = HEADER.unpack_from(received)
    if length > LARGEST_BYTES:
        msg = f"a message of {length} bytes is announced"
        raise FrameError(msg)
    end = HEADER.size + length
    if len(received) < end:
        return None
    body = bytes(received[HEADER.size : end])
    del received[:end]
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        msg = "a message is not UTF-8"
        raise FrameError(msg) from error


def receive(stream: socket.socket) -> str | None:
    """Return the next message of a blocking socket; None when the other end has closed it."""
    received = bytearray()
    while (text := split(received)) is None:
        if len(received) < HEADER.size:
            wanted = HEADER.size - len(received)
        else:
            wanted = HEADER.size + HEADER.unpack_from(received)[0] - len(received)
        chunk = stream.recv(min(wanted, 1 << 20))
        if not chunk:
            return None
        received += chunk
    return text
