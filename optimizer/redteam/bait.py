"""What a cheat is tempted with: a secret variable, a file out of its scratch, an open port."""

import os
import secrets
import socket
import tempfile
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

VARIABLE: Final = "KERNELEVOLVE_REDTEAM"


@contextmanager
def laid_out() -> Generator[Mapping[str, str]]:
    """Lay the bait out, and yield what stands for each ``@NAME@`` in a cheat's text.

    FOLDER is outside of any scratch and everybody may write there; ``secret`` in it holds TOKEN, as
    does the environment's VARIABLE. At PORT of the loopback somebody listens. PID is the judge's.
    """
    token = secrets.token_hex(8)
    with (
        tempfile.TemporaryDirectory(prefix="redteam-bait-") as folder,
        socket.create_server(("127.0.0.1", 0), backlog=64) as server,
    ):
        Path(folder).chmod(0o777)
        (Path(folder) / "secret").write_text(token, encoding="ascii")
        os.environ[VARIABLE] = token
        try:
            yield {
                "FOLDER": folder,
                "PORT": str(server.getsockname()[1]),
                "VARIABLE": VARIABLE,
                "TOKEN": token,
                "PID": str(os.getpid()),
                "REPO": str(Path(__file__).parents[2]),
            }
        finally:
            del os.environ[VARIABLE]
