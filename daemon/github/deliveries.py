"""What GitHub tried to deliver to the App's webhook; only an App may ask."""

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from daemon.forge import ForgeUnavailableError
from daemon.github.answers import Request
from daemon.github.client import GitHubClient
from daemon.github.records import reading
from daemon.web.redelivery import Attempt

if TYPE_CHECKING:
    from collections.abc import Mapping

_PATH = "/app/hook/deliveries"
_MOST_PAGES = 100
_GOOD = range(200, 300)


@dataclass(frozen=True)
class GitHubDeliveries:
    """Implements `daemon.web.redelivery.Sender`."""

    client: GitHubClient

    def attempts(self, *, since: float) -> tuple[Attempt, ...]:
        """See `Sender.attempts`. GitHub lists the newest first, and knows no other order."""
        found: list[Attempt] = []
        query: Mapping[str, str] = {"per_page": "100"}
        for _ in range(_MOST_PAGES):
            answer = self.client.ask(Request("GET", _PATH, query, purpose="app"))
            page = _read_page(answer.json)
            found += [attempt for attempt in page if attempt.at >= since]
            rest = answer.next_page
            if rest is None or (page and page[-1].at < since):
                return tuple(found)
            query = rest
        msg = f"{_PATH}: the list does not end"
        raise ForgeUnavailableError(msg)

    def deliver_again(self, attempt_id: int) -> None:
        """See `Sender.deliver_again`."""
        self.client.ask(Request("POST", f"{_PATH}/{attempt_id}/attempts", purpose="app"))


def _read_page(json: Any) -> list[Attempt]:  # noqa: ANN401 - the host's JSON
    with reading("list of deliveries"):
        return [
            Attempt(
                id=one["id"],
                delivery_id=one["guid"],
                event=one["event"],
                at=datetime.fromisoformat(one["delivered_at"]).timestamp(),
                is_first=not one["redelivery"],
                succeeded=one["status_code"] in _GOOD,
            )
            for one in json
        ]
