"""Sends the webhooks of the fake of GitHub, as reliably as its quirks allow."""

import hmac
import json
import queue
import threading
import urllib.error
import urllib.request
import uuid
from dataclasses import dataclass, field

from tests.github.quirks import Quirks
from tests.github.state import Delivery, Json

_TIMEOUT_S = 10.0


def sign(secret: str, body: bytes) -> str:
    """Return the value of the header X-Hub-Signature-256."""
    return "sha256=" + hmac.new(secret.encode(), body, "sha256").hexdigest()


def make_delivery(  # noqa: PLR0913 - all that a webhook says
    number: int, event: str, action: str | None, payload: Json, *, secret: str, at: float
) -> Delivery:
    """Return a signed webhook with a GUID of its own."""
    guid, body = str(uuid.uuid4()), json.dumps(payload).encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "GitHub-Hookshot/fake",
        "X-GitHub-Delivery": guid,
        "X-GitHub-Event": event,
        "X-GitHub-Hook-ID": "1",
        "X-GitHub-Hook-Installation-Target-Type": "integration",
        "X-Hub-Signature-256": sign(secret, body),
    }
    return Delivery(number, guid, event, action, headers, body, at)


def post(delivery: Delivery, url: str) -> int:
    """Send a delivery and return the status of the answer; 0 where there was none."""
    request = urllib.request.Request(  # noqa: S310 - a test's own address
        url, data=delivery.body, headers=delivery.headers, method="POST"
    )
    try:
        with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as answer:  # noqa: S310 - as above
            delivery.status_code = answer.status
    except urllib.error.HTTPError as error:
        delivery.status_code = error.code
        error.close()
    except OSError:
        delivery.status_code = 0
    return delivery.status_code


@dataclass
class Hooks:
    """Posts in a thread of its own, so that a slow receiver never holds the host up."""

    quirks: Quirks
    url: str | None = None
    """Where to; None sends nothing."""
    _queue: "queue.Queue[Delivery | None]" = field(default_factory=queue.Queue)
    _thread: threading.Thread | None = None
    _held: Delivery | None = None
    _count: int = 0

    def take(self, delivery: Delivery) -> None:
        """Send a delivery soon; or not at all, twice, or after the next one."""
        if self.url is None:
            return
        for one in self.arrange(delivery):
            self._queue.put(one)

    def arrange(self, delivery: Delivery) -> list[Delivery]:
        """Return what is sent now that this one is made."""
        quirks = self.quirks
        self._count += 1
        every = quirks.drop_deliveries_every
        if every and self._count % every == 0:
            return []
        every = quirks.double_deliveries_every
        now = [delivery, delivery] if every and self._count % every == 0 else [delivery]
        if not quirks.reorder_deliveries:
            held, self._held = self._held, None
            return now + ([held] if held else [])
        if self._held is None:
            self._held = now.pop()
            return now
        held, self._held = self._held, None
        return [*now, held]

    def start(self) -> None:
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._queue.put(None)
        if self._thread:
            self._thread.join()

    def drain(self) -> None:
        """Wait until all that is to be sent was sent; one held back for the next is sent too."""
        if self._held:
            self._queue.put(self._held)
            self._held = None
        self._queue.join()

    def _work(self) -> None:
        while (delivery := self._queue.get()) is not None:
            if self.url:
                post(delivery, self.url)
            self._queue.task_done()
