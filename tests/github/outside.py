"""Parts that others wrote: emulate, a GitHub of Vercel's, behind Prism, which validates."""

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import requests

from tests.github import fake  # noqa: F401 - its routes enter the table
from tests.github.asking import ROUTES
from tests.github.contract import cut
from tests.github.npm import install
from tests.github.server import Request, Response, Server
from tests.github.state import Json

PARTS = ("emulate@0.11.2", "@stoplight/prism-cli@5.16.0")
APP_ID, INSTALLATION_ID, HOOK_SECRET = 4242, 77, "emulated secret"
_START = """
const [place, port, seed, baseUrl, keyFile] = process.argv.slice(1)
const { createEmulator } = await import(place)
const made = await createEmulator({
  service: 'github', port: Number(port), seed: JSON.parse(seed), baseUrl
})
const key = made.generatedSecrets.find(secret => secret.kind === 'github.app_private_key')
const { renameSync, writeFileSync } = await import('node:fs')
writeFileSync(`${keyFile}.new`, key.value, { mode: 0o600 })
renameSync(`${keyFile}.new`, keyFile)
"""
_START_S = 90.0
_DROPPED = ("connection", "content-encoding", "content-length", "keep-alive", "transfer-encoding")


@dataclass(frozen=True)
class Seen:
    """A request that went through Prism, and what Prism found wrong with it."""

    method: str
    path: str
    status: int
    violations: tuple[str, ...]


@dataclass
class Recorder:
    """Hands requests on to Prism and notes what it says of them."""

    upstream: str = ""
    seen: list[Seen] = field(default_factory=list)
    session: requests.Session = field(default_factory=requests.Session)

    def answer(self, request: Request) -> Response:
        given = {k: v for k, v in request.headers.items() if k not in {*_DROPPED, "host"}}
        answer = self.session.request(
            request.method,
            self.upstream + request.target,
            data=request.body,
            headers=given,
            timeout=30,
            allow_redirects=False,
        )
        said = json.loads(answer.headers.get("sl-violations", "[]"))
        faults = tuple(f"{'.'.join(one['location'])}: {one['message']}" for one in said)
        path = request.target.partition("?")[0]
        self.seen.append(Seen(request.method, path, answer.status_code, faults))
        headers = {k: v for k, v in answer.headers.items() if k.lower() not in _DROPPED}
        return Response(answer.status_code, headers, answer.content)


@dataclass(frozen=True)
class Emulated:
    """A GitHub with ``octo/kernels``, on which an App of ours is installed."""

    api: str
    """Reached by the recorder and Prism."""
    direct: str
    private_key: Path
    recorder: Recorder

    def push(self, branch: str, path: str, text: str) -> None:
        """Make a branch of ``main`` with a commit, as a person would, past Prism."""
        repo = f"{self.direct}/repos/octo/kernels"
        headers = {"Authorization": "Bearer people"}
        head = requests.get(f"{repo}/git/ref/heads/main", headers=headers, timeout=9).json()
        made: Json = {"ref": f"refs/heads/{branch}", "sha": head["object"]["sha"]}
        requests.post(f"{repo}/git/refs", json=made, headers=headers, timeout=9)
        file = {"message": path, "content": text, "branch": branch}
        answer = requests.put(f"{repo}/contents/{path}", json=file, headers=headers, timeout=9)
        answer.raise_for_status()

    def comment(self, number: int, body: str) -> None:
        """Comment, as a person would, past Prism."""
        url = f"{self.direct}/repos/octo/kernels/issues/{number}/comments"
        headers = {"Authorization": "Bearer people"}
        requests.post(url, json={"body": body}, headers=headers, timeout=9).raise_for_status()


@contextmanager
def emulating(folder: Path, permissions: Json, webhook_url: str) -> Iterator[Emulated]:
    """Run emulate behind Prism; skip the test where npm is absent.

    Args:
        folder: For files of the run.
        permissions: What the App has.
        webhook_url: Where deliveries are sent.
    """
    place = install(*PARTS) / "node_modules"
    node = shutil.which("node") or "node"
    recorder = Recorder()
    front = Server(recorder.answer)
    port, prism_port = _free_port(), _free_port()
    seed = json.dumps(_seed(permissions, webhook_url))
    key = folder / "app.pem"
    api = f"file://{place}/emulate/dist/api.js"
    command = [node, "--input-type=module", "-e", _START, api, str(port), seed, front.url, str(key)]
    document = folder / "github.json"
    document.write_text(json.dumps(_requests_only(cut(ROUTES))), encoding="utf-8")
    direct = f"http://127.0.0.1:{port}"
    prism = [node, str(place / ".bin" / "prism"), "proxy", str(document), direct]
    try:
        with (
            _running(command, folder / "emulate.log") as emulate,
            _running([*prism, "--port", str(prism_port)], folder / "prism.log") as proxy,
        ):
            _wait_until(key.exists, emulate)
            _wait_until(lambda: _listens(prism_port), proxy)
            recorder.upstream = f"http://127.0.0.1:{prism_port}"
            yield Emulated(front.url, direct, key, recorder)
    finally:
        recorder.session.close()
        front.close()


def _requests_only(description: Json) -> Json:
    """Return a description that any answer meets: emulate's have flaws that are not ours."""
    paths = {
        path: {
            verb: operation | {"responses": {"default": {"description": "anything"}}}
            for verb, operation in item.items()
        }
        for path, item in description["paths"].items()
    }
    return description | {"paths": paths}


def _seed(permissions: Json, webhook_url: str) -> Json:
    app = {
        "app_id": APP_ID,
        "slug": "kernelevolve",
        "name": "kernelevolve",
        "permissions": permissions,
        "events": ["push", "pull_request", "issue_comment", "issues", "check_run"],
        "webhook_url": webhook_url,
        "webhook_secret": HOOK_SECRET,
        "installations": [
            {"installation_id": INSTALLATION_ID, "account": "octo", "repository_selection": "all"}
        ],
    }
    github = {
        "users": [{"login": "octo"}, {"login": "ann"}],
        "repos": [{"owner": "octo", "name": "kernels", "auto_init": True}],
        "apps": [app],
    }
    return {"tokens": {"people": {"login": "octo", "scopes": ["repo"]}}, "github": github}


@contextmanager
def _running(command: Sequence[str], log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    with (
        log.open("wb") as said,
        subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), 1).close()
    except OSError:
        return False
    return True


def _wait_until(is_ready: Callable[[], bool], process: "subprocess.Popen[bytes]") -> None:
    ends_at = time.monotonic() + _START_S
    while not is_ready():
        assert process.poll() is None, f"{process.args!r} ended"
        assert time.monotonic() < ends_at, f"{process.args!r} does not start"
        time.sleep(0.1)
