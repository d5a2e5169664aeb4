"""Checks beside commits on GitHub: check runs of an App, or commit statuses of a mere token."""

from daemon.forge import Check, ForgeRefusedError
from daemon.github.access import App
from daemon.github.records import read_check, read_status, reading, status_state
from daemon.github.speaker import Speaker
from daemon.origin import SHA

_LONGEST = 65_000
_LONGEST_DESCRIPTION = 140
_CUT = "\n\n*(cut: it is too long for a check)*"


class Checks(Speaker):
    """The part of the forge that shows what was found out about a commit."""

    def show_check(self, check: Check) -> None:
        """See `CodeHost.show_check`.

        Raises:
            ForgeRefusedError: There is no such commit.
        """
        _require_sha(check.head_sha)
        if isinstance(self.client.access, App):
            self._show_run(check)
        else:
            self._show_status(check)

    def find_check(self, head_sha: str, name: str) -> Check | None:
        """See `CodeHost.find_check`. A commit status holds a title and no more."""
        _require_sha(head_sha)
        if isinstance(self.client.access, App):
            found = self._find_run(head_sha, name)
            return None if found is None else found[1]
        return self._find_status(head_sha, name)

    def _show_run(self, check: Check) -> None:
        shown = check.model_copy(update={"summary": _cut(check.summary), "text": _cut(check.text)})
        found = self._find_run(check.head_sha, check.name)
        if found is not None and found[1] == shown:
            return
        output = {"title": shown.title, "summary": shown.summary}
        output |= {"text": shown.text} if shown.text else {}
        wanted: dict[str, object] = {"name": shown.name, "status": shown.status, "output": output}
        wanted |= {"external_id": shown.external_id} if shown.external_id else {}
        wanted |= {"conclusion": shown.conclusion} if shown.conclusion else {}
        if found is None or (found[1].status == "completed" and shown.status != "completed"):
            # One that is completed is history; a newer one of its name takes its place.
            self._ask("POST", "/check-runs", wanted | {"head_sha": shown.head_sha})
        else:
            self._ask("PATCH", f"/check-runs/{found[0]}", wanted)

    def _find_run(self, head_sha: str, name: str) -> tuple[int, Check] | None:
        access = self.client.access
        path = self._path(f"/commits/{head_sha}/check-runs")
        query = {"check_name": name, "filter": "latest"}
        runs = self.client.pages(path, query=query, under="check_runs")
        with reading("check run"):
            own = [
                json
                for json in runs
                if isinstance(access, App)
                and (json.get("app") or {}).get("id") == access.app_id
                and json["name"] == name
            ]
            if not own:
                return None
            last = max(own, key=lambda json: int(json["id"]))
            return int(last["id"]), read_check(last)

    def _show_status(self, check: Check) -> None:
        wanted = {
            "state": status_state(check),
            "context": check.name,
            "description": check.title[:_LONGEST_DESCRIPTION],
        }
        now = self._find_status(check.head_sha, check.name)
        if now is None or (status_state(now), now.title) != (
            wanted["state"],
            wanted["description"],
        ):
            self._ask("POST", f"/statuses/{check.head_sha}", wanted)

    def _find_status(self, head_sha: str, name: str) -> Check | None:
        for json in self.client.pages(self._path(f"/commits/{head_sha}/statuses")):
            with reading("commit status"):
                ours = (json.get("creator") or {}).get("id") == self.me.id
                if ours and json["context"] == name:  # the newest comes first
                    return read_status(json, head_sha)
        return None


def _require_sha(text: str) -> None:
    if not SHA.match(text):
        msg = f"{text!r} is no commit"
        raise ForgeRefusedError(msg)


def _cut(text: str) -> str:
    return text if len(text.encode()) <= _LONGEST else _shortened(text)


def _shortened(text: str) -> str:
    room = _LONGEST - len(_CUT)
    return text.encode()[:room].decode(errors="ignore") + _CUT
