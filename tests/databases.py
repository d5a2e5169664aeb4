"""A PostgreSQL server of the tests' own: on a socket only, in a folder that goes with it."""

import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from sqlalchemy import create_engine, text

PACKAGES = Path("/usr/lib/postgresql")
"""Where Debian's packages put each version's programs."""
_OWNER = "postgres"
"""The server refuses to run as root; the package makes this user."""
_START_S = 30.0


@dataclass
class Postgres:
    """A running server, and the databases that are made on it."""

    folder: Path
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def make_database(self, *, like: str = "template0") -> str:
        """Return the name of a new database, a copy of another one."""
        name = f"d{next(self._numbers)}"
        self._do(f"CREATE DATABASE {name} TEMPLATE {like}")
        return name

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever is still connected: each takes ten megabytes."""
        self._do(f"DROP DATABASE {name} WITH (FORCE)")

    def url(self, name: str) -> str:
        """Return the URL of a database."""
        return f"postgresql://kernelevolve@/{name}?host={self.folder}"

    def _do(self, statement: str) -> None:
        engine = create_engine(self.url("postgres"), isolation_level="AUTOCOMMIT")
        with engine.connect() as connection:
            connection.execute(text(statement))
        engine.dispose()


def find_programs() -> Path | None:
    """Return where the newest server's programs are; None where there is none."""
    found = [path.parent for path in PACKAGES.glob("*/bin/postgres")]
    return max(found, key=lambda path: float(path.parent.name), default=None)


@contextmanager
def serving(programs: Path) -> Iterator[Postgres]:
    """Start a server; it ends with the block, and with this process however that ends."""
    folder = Path(tempfile.mkdtemp(prefix="kernelevolve-postgres-"))
    owned: list[str] = []
    if os.geteuid() == 0:
        user = pwd.getpwnam(_OWNER)
        os.chown(folder, user.pw_uid, user.pw_gid)
        owned = ["--reuid", _OWNER, "--regid", str(user.pw_gid), "--clear-groups"]
    cluster = folder / "cluster"
    make: list[str | Path] = [
        programs / "initdb",
        "-D",
        cluster,
        "-U",
        "kernelevolve",
        "-A",
        "trust",
    ]
    make += ["-E", "UTF8", "--locale=C", "--no-sync"]
    settings = {"listen_addresses": "", "unix_socket_directories": str(folder)}
    # Nothing here must outlive a power cut, and syncing is most of what a commit costs.
    settings |= {"fsync": "off", "full_page_writes": "off", "shared_buffers": "32MB"}
    serve: list[str | Path] = [programs / "postgres", "-D", cluster]
    serve += [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
    with (folder / "log").open("w") as log:
        subprocess.run(["setpriv", *owned, *make], check=True, stdout=log, stderr=log, cwd=folder)
        server = subprocess.Popen(
            ["setpriv", "--pdeathsig", "QUIT", *owned, *serve], stdout=log, stderr=log, cwd=folder
        )
    try:
        _wait_for(folder, server)
        yield Postgres(folder)
    finally:
        server.send_signal(signal.SIGQUIT)  # at once, whoever is still connected
        server.wait()
        shutil.rmtree(folder)


def _wait_for(folder: Path, server: "subprocess.Popen[bytes]") -> None:
    end_s = time.monotonic() + _START_S
    status = folder / "cluster" / "postmaster.pid"
    while "ready" not in (status.read_text() if status.exists() else ""):
        if server.poll() is not None or time.monotonic() > end_s:
            raise RuntimeError((folder / "log").read_text())
        time.sleep(0.02)
