"""What all parts of the GitHub forge stand on: one repository, and who we are there."""

from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote

from daemon.forge import Person
from daemon.github.access import App
from daemon.github.answers import GitHubRefusedError, Request, Verb
from daemon.github.client import GitHubClient
from daemon.github.records import Json, read_person, reading


@dataclass
class Speaker:
    """Asks for one repository."""

    client: GitHubClient
    _me: Person | None = field(default=None, init=False)
    _knows_drafts: bool = field(default=True, init=False)
    """Not so in the private repositories of small plans."""
    _is_here: bool = field(default=False, init=False)

    @property
    def me(self) -> Person:
        """See `CodeHost.me`; it is asked once."""
        if self._me is None:
            self._me = self._find_me()
        return self._me

    def _find_me(self) -> Person:
        if not isinstance(self.client.access, App):
            return read_person(self.client.ask(Request("GET", "/user")).json)
        app = self.client.ask(Request("GET", "/app", purpose="app")).json
        with reading("App"):
            # What an App writes is written by an account of its own, with a number of its own.
            login = quote(f"{app['slug']}[bot]", safe="")
        return read_person(self.client.ask(Request("GET", f"/users/{login}")).json)

    def _ask(self, verb: Verb, path: str, body: object = None, *, urgent: bool = False) -> Json:
        """Ask of the repository and return the answer's JSON."""
        return self.client.ask(Request(verb, self._path(path), body=body, urgent=urgent)).json

    def _path(self, path: str) -> str:
        if not self._is_here:
            self._look_where_it_is()
        return f"/repos/{self.client.repository}{path}"

    def _look_where_it_is(self) -> None:
        """Refuse to work under an old name: on the way to the new one a list loses its filters."""
        request = Request("GET", f"/repos/{self.client.repository}")
        with reading("repository"):
            name = str(self.client.ask(request).json["full_name"])
        if name.lower() != self.client.repository.lower():
            msg = f"it is {name} now; set KERNELEVOLVE_GITHUB_REPOSITORY to that"
            raise GitHubRefusedError(request.what, HTTPStatus.MOVED_PERMANENTLY, msg)
        self._is_here = True
