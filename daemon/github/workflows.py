"""Workflows on GitHub's or a company's own runners, and files of the repository."""

import re
from urllib.parse import quote

from daemon.forge import ForgeRefusedError, ForgeUnavailableError, NotThereError, WorkflowRun
from daemon.github.answers import GitHubRefusedError, Request
from daemon.github.artefacts import download, unpack
from daemon.github.records import Json, read_file, read_run, reading
from daemon.github.speaker import Speaker

_WORKFLOW = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}\.ya?ml\Z")
_PATH = re.compile(r"(?!/)(?!(.*/)?\.\.?(/|\Z))[^\x00-\x1f\x7f]{1,500}\Z")
_RUN_PAGES = 2
_ENDED = 409


class Actions(Speaker):
    """The part of the forge that starts workflows and reads files."""

    def file(self, path: str, *, ref: str) -> str | None:
        """See `CodeHost.file`."""
        if not _PATH.match(path):
            msg = f"{path!r} is no path of a file"
            raise ForgeRefusedError(msg)
        request = Request("GET", self._path(f"/contents/{quote(path)}"), {"ref": ref})
        try:
            return read_file(self.client.ask(request).json)
        except NotThereError:
            return None

    def dispatch(self, workflow: str, *, ref: str, inputs: dict[str, str]) -> None:
        """See `CodeHost.dispatch`. A repetition starts another run: give it a tag to look for."""
        body = {"ref": ref, "inputs": inputs}
        path = self._path(f"/actions/workflows/{_named(workflow)}/dispatches")
        self.client.ask(Request("POST", path, body=body, purpose="actions"))

    def workflow_runs(self, workflow: str) -> tuple[WorkflowRun, ...]:
        """See `CodeHost.workflow_runs`: the last two hundred."""
        found = self.client.pages(
            self._path(f"/actions/workflows/{_named(workflow)}/runs"),
            query={"event": "workflow_dispatch"},
            under="workflow_runs",
            purpose="actions",
            most=_RUN_PAGES,
        )
        return tuple(sorted((read_run(json) for json in found), key=lambda run: -run.id))

    def cancel_run(self, run_id: int) -> None:
        """See `CodeHost.cancel_run`. It goes before all else."""
        path = self._path(f"/actions/runs/{run_id}/cancel")
        try:
            self.client.ask(Request("POST", path, purpose="actions", urgent=True))
        except GitHubRefusedError as error:
            if error.status != _ENDED:
                raise

    def artefact(self, run_id: int, name: str) -> bytes | None:
        """See `CodeHost.artefact`."""
        found = self._find_artefact(run_id, name)
        if found is None:
            return None
        path = self._path(f"/actions/artifacts/{found}/zip")
        answer = self.client.ask(Request("GET", path, purpose="actions"))
        address = answer.headers.get("location")
        if not address:
            msg = f"GET {path}: GitHub does not say where the artefact lies"
            raise ForgeUnavailableError(msg)
        return unpack(download(address, api=self.client.api))

    def _find_artefact(self, run_id: int, name: str) -> int | None:
        found: list[Json] = self.client.pages(
            self._path(f"/actions/runs/{run_id}/artifacts"),
            query={"name": name},
            under="artifacts",
            purpose="actions",
        )
        with reading("artefact"):
            fresh = [json for json in found if json["name"] == name and not json.get("expired")]
            return max((int(json["id"]) for json in fresh), default=None)


def _named(workflow: str) -> str:
    if not _WORKFLOW.match(workflow):
        msg = f"{workflow!r} is no workflow's file name, such as search.yml"
        raise ForgeRefusedError(msg)
    return workflow
