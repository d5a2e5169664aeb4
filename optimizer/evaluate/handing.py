"""How a process hands an open file to another one that shares no more with it than a folder."""

import os
import socket
import threading
from pathlib import Path
from typing import Final

_PATIENCE_S: Final = 60.0


def offer(file: int, path: Path) -> None:
    """Give an open file to the first that connects to a socket at `path`; closes it here.

    Returns at once.

    Raises:
        OSError: No socket can be made there.
    """
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(str(path))
        listener.listen(1)
        listener.settimeout(_PATIENCE_S)
    except OSError:
        listener.close()
        os.close(file)
        raise
    threading.Thread(target=_give, args=(listener, file, path), daemon=True).start()


def fetch(path: str) -> int:
    """Return the file that is offered at a path.

    Raises:
        OSError: None is.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(_PATIENCE_S)
        connection.connect(path)
        _, files, _, _ = socket.recv_fds(connection, 1, 1)
    if not files:
        msg = f"nothing was handed over at {path}"
        raise OSError(msg)
    return files[0]


def _give(listener: socket.socket, file: int, path: Path) -> None:
    try:
        with listener:
            connection, _ = listener.accept()
            with connection:
                socket.send_fds(connection, [b"!"], [file])
    except OSError:
        pass  # nobody came for it
    finally:
        os.close(file)
        path.unlink(missing_ok=True)
