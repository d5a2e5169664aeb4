"""Attacks on the server, and what it owes to the code host: a real one, on a real socket."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field

import psutil
import pytest

from daemon.web import server as web
from daemon.web.health import Health
from daemon.web.metrics import Metrics
from daemon.web.server import Reception, Site, serving
from daemon.web.webhooks import MOST_BYTES, Addressee, sign
from optimizer.errors import StoreError
from optimizer.store import Delivery, Store
from tests.daemon.web_client import SECRET, Client, make_body, read_all, status_of

HUGE = 10 * 1024 * 1024
OTHER_SECRET = b"another secret, as long as it"


@dataclass
class Server:
    """A server with a real store behind it."""

    store: Store
    port: int = 0
    woken: list[str] = field(default_factory=list)
    receive: Callable[[Delivery], bool] | None = None
    """What the store does, where a test has it do something else."""

    def site(self) -> Site:
        health = Health(time.monotonic)
        metrics = Metrics(self.store, health, clock=time.time)
        reception = Reception(
            addressee=Addressee((SECRET, OTHER_SECRET), "acme/kernels", 7),
            inbox=_Inbox(self),
            clock=time.time,
            on_delivery=lambda delivery: self.woken.append(delivery.id),
            on_answer=metrics.count_answer,
        )
        return Site(
            reception=reception,
            find_health=lambda: health.report(paused=False),
            is_ready=lambda: True,
            render_metrics=metrics.render,
        )

    @property
    def client(self) -> Client:
        return Client(self.port)

    def kept(self) -> list[str]:
        return [delivery.id for delivery in self.store.unhandled_deliveries()]


@dataclass
class _Inbox:
    server: Server

    def receive(self, delivery: Delivery) -> bool:
        return (self.server.receive or self.server.store.receive)(delivery)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("web")
    with Store(f"sqlite:///{folder / 'store.sqlite'}") as store:
        store.migrate()
        server = Server(store)
        with serving(server.site(), "127.0.0.1", 0) as port:
            server.port = port
            yield server


@pytest.fixture
def server(running: Server) -> Server:
    """The one server of all tests, as if nothing had ever been delivered."""
    for delivery_id in running.kept():
        running.store.handle_delivery(delivery_id, now=0.0)
    running.store.forget_deliveries(before=1e12)
    running.woken.clear()
    running.receive = None
    return running


def test_a_delivery_is_kept_and_answered_within_a_second(server: Server) -> None:
    reply = server.client.deliver(make_body(), delivery_id="d-1")

    assert (reply.status, server.kept(), server.woken) == (202, ["d-1"], ["d-1"])
    assert reply.took_s < 1.0


def test_a_burst_of_deliveries_is_answered_within_a_second_each(server: Server) -> None:
    with ThreadPoolExecutor(30) as pool:
        replies = list(pool.map(lambda _: server.client.deliver(make_body()), range(60)))

    assert {reply.status for reply in replies} == {202}
    assert max(reply.took_s for reply in replies) < 1.0
    assert len(server.kept()) == 60


def test_the_second_secret_is_taken_as_well(server: Server) -> None:
    client = Client(server.port, secret=OTHER_SECRET)

    assert client.deliver(make_body()).status == 202


def test_a_delivery_that_comes_again_is_kept_once(server: Server) -> None:
    for _ in range(5):
        assert server.client.deliver(make_body(), delivery_id="d-1").status == 202

    assert (server.kept(), server.woken) == (["d-1"], ["d-1"])


def test_a_handled_delivery_that_is_replayed_stays_handled(server: Server) -> None:
    server.client.deliver(make_body(), delivery_id="d-1")
    server.store.handle_delivery("d-1", now=1.0)

    assert server.client.deliver(make_body(), delivery_id="d-1").status == 202

    assert server.kept() == []


def test_replays_that_come_at_once_are_kept_once(server: Server) -> None:
    with ThreadPoolExecutor(16) as pool:
        again = pool.map(lambda _: server.client.deliver(make_body(), delivery_id="d-1"), range(32))
        assert {reply.status for reply in again} == {202}

    assert (server.kept(), server.woken) == (["d-1"], ["d-1"])


FORGED: dict[str, Callable[[Client, bytes], int]] = {
    "no signature": lambda c, b: c.deliver(b, x_hub_signature_256=None).status,
    "an empty signature": lambda c, b: c.deliver(b, x_hub_signature_256="").status,
    "a guess": lambda c, b: c.deliver(b, x_hub_signature_256="sha256=" + "0" * 64).status,
    "another's secret": lambda c, b: (
        c.deliver(b, x_hub_signature_256=sign(b, b"another's").decode()).status
    ),
    "no secret at all": lambda c, b: c.deliver(b, x_hub_signature_256=sign(b, b"").decode()).status,
    "the signature of another body": lambda c, b: (
        c.deliver(b, x_hub_signature_256=sign(b + b" ", SECRET).decode()).status
    ),
    "sha1": lambda c, b: (
        c.deliver(b, x_hub_signature_256=None, x_hub_signature="sha1=" + "0" * 40).status
    ),
    "a signature of letters beyond ASCII": lambda c, b: (
        c.deliver(b, x_hub_signature_256="sha256=" + "\u00e9" * 64).status
    ),
    "a signature in capitals": lambda c, b: (
        c.deliver(b, x_hub_signature_256="sha256=" + sign(b, SECRET).decode()[7:].upper()).status
    ),
    "a signature that goes on": lambda c, b: (
        c.deliver(b, x_hub_signature_256=sign(b, SECRET).decode() + "0").status
    ),
}


@pytest.mark.parametrize("attack", FORGED)
def test_what_the_code_host_did_not_sign_is_forbidden(server: Server, attack: str) -> None:
    assert FORGED[attack](server.client, make_body()) == 403
    assert (server.kept(), server.woken) == ([], [])


def test_a_refusal_does_not_say_what_was_wrong(server: Server) -> None:
    said = {
        server.client.deliver(make_body(), x_hub_signature_256=signature).text
        for signature in (None, "", "sha256=" + "0" * 64)
    }

    assert said == {"Forbidden\n"}


ODD: dict[str, tuple[Callable[[Client, bytes], int], int]] = {
    "a form": (
        lambda c, b: c.deliver(b, content_type="application/x-www-form-urlencoded").status,
        415,
    ),
    "no content type": (lambda c, b: c.deliver(b, content_type=None).status, 415),
    "a packed body": (lambda c, b: c.deliver(b, content_encoding="gzip").status, 415),
    "no event": (lambda c, b: c.deliver(b, x_github_event=None).status, 400),
    "no delivery": (lambda c, b: c.deliver(b, x_github_delivery=None).status, 400),
    "SQL for a delivery": (
        lambda c, b: c.deliver(b, x_github_delivery="d'; DROP TABLE goals; --").status,
        400,
    ),
    "a path for a delivery": (
        lambda c, b: c.deliver(b, x_github_delivery="../../etc/passwd").status,
        400,
    ),
    "no JSON": (lambda c, b: c.deliver(b"body=x").status, 400),
    "JSON in UTF-16": (lambda c, b: c.deliver(b.decode().encode("utf-16")).status, 400),
    "JSON that is 100,000 deep": (lambda c, b: c.deliver(b"[" * 100_000).status, 400),
    "a number of 5,000 digits": (lambda c, b: c.deliver(b"9" * 5000).status, 400),
    "another repository's": (
        lambda c, b: c.deliver(make_body(repository={"full_name": "evil/kernels"})).status,
        204,
    ),
    "a repository that looks like ours": (
        lambda c, b: c.deliver(make_body(repository={"full_name": "acme/\u212aernels"})).status,
        204,
    ),
    "another installation's": (
        lambda c, b: c.deliver(make_body(installation={"id": 8})).status,
        204,
    ),
    "an event that nobody handles": (lambda c, b: c.deliver(b, x_github_event="star").status, 204),
    "an action that nobody handles": (
        lambda c, b: c.deliver(make_body(action="edited")).status,
        204,
    ),
    "a look": (lambda c, b: c.ask("GET", "/webhook").status, 405),
    "another way to write": (lambda c, b: c.ask("PUT", "/webhook", b).status, 405),
    "another path": (lambda c, b: c.ask("POST", "/webhook/../admin", b).status, 404),
}


@pytest.mark.parametrize("attack", ODD)
def test_what_is_odd_leaves_nothing_behind(server: Server, attack: str) -> None:
    ask, status = ODD[attack]

    assert ask(server.client, make_body()) == status
    assert (server.kept(), server.woken) == ([], [])


def test_a_body_of_ten_megabytes_is_refused_before_it_is_sent(server: Server) -> None:
    with server.client.speaking() as spoken:
        spoken.sendall(server.client.head(b"", f"Content-Length: {HUGE}"))

        assert status_of(read_all(spoken)) == 413
    assert server.kept() == []


def test_a_body_that_does_not_tell_its_length_is_cut_off_in_time(server: Server) -> None:
    before = psutil.Process().memory_info().rss
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    with server.client.speaking() as spoken:
        spoken.sendall(server.client.head(b"", "Transfer-Encoding: chunked"))
        with suppress(ConnectionError):
            for _ in range(HUGE // 65536 * 4):
                spoken.sendall(chunk)
        assert status_of(read_all(spoken)) in (413, None)

    assert server.kept() == []
    assert psutil.Process().memory_info().rss - before < 4 * MOST_BYTES


def test_the_longest_body_that_is_allowed_is_taken(server: Server) -> None:
    content = make_body(comment={"body": ""})
    content = content[:-1] + b" " * (MOST_BYTES - len(content)) + b"}"

    assert server.client.deliver(content).status == 202
    with server.client.speaking() as spoken:
        spoken.sendall(server.client.head(content, f"Content-Length: {MOST_BYTES + 1}"))
        assert status_of(read_all(spoken)) == 413


RAW: dict[str, bytes] = {
    "two signatures": Client(0).head(
        make_body(), f"Content-Length: {len(make_body())}", "X-Hub-Signature-256: sha256=00"
    )
    + make_body(),
    "two lengths": Client(0).head(make_body(), "Content-Length: 5", "Content-Length: 83")
    + make_body(),
    "a length and chunks": Client(0).head(
        make_body(), "Content-Length: 5", "Transfer-Encoding: chunked"
    )
    + b"0\r\n\r\n",
    "a length below zero": Client(0).head(make_body(), "Content-Length: -1") + make_body(),
    "no HTTP": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
    "headers without end": b"POST /webhook HTTP/1.1\r\nA: " + b"a" * 100_000,
    "a NUL in a header": Client(0).head(make_body(), "X-A: \x00") + make_body(),
    "a second request in the body of the first": Client(0).head(b"", "Content-Length: 0")
    + b"POST /webhook HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("attack", RAW)
def test_what_is_no_proper_request_is_refused(server: Server, attack: str) -> None:
    with server.client.speaking() as spoken:
        with suppress(ConnectionError):
            spoken.sendall(RAW[attack])
        assert status_of(read_all(spoken)) in (400, 403, 431, None)

    assert server.kept() == []
    assert server.client.deliver(make_body()).status == 202


def test_a_body_that_is_broken_off_is_not_kept(server: Server) -> None:
    content = make_body()
    with server.client.speaking() as spoken:
        spoken.sendall(server.client.head(content, f"Content-Length: {len(content)}"))
        spoken.sendall(content[:-1])

    assert server.client.deliver(make_body(), delivery_id="d-2").status == 202
    assert server.kept() == ["d-2"]


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch, server: Server) -> Server:
    monkeypatch.setattr(web, "_CONNECTION_S", 0.5)
    return server


@pytest.mark.parametrize("begin", [b"", b"POST /webhook HTTP/1.1\r\n"], ids=["silent", "slow"])
def test_who_is_slow_is_cut_off(impatient: Server, begin: bytes) -> None:
    with impatient.client.speaking() as spoken:
        spoken.sendall(begin)
        began = time.monotonic()
        assert read_all(spoken) == b""

    assert time.monotonic() - began < 5.0


def test_a_body_that_trickles_is_cut_off(impatient: Server) -> None:
    content = make_body()
    with impatient.client.speaking() as spoken:
        spoken.sendall(impatient.client.head(content, f"Content-Length: {len(content)}"))
        with suppress(ConnectionError):
            for byte in content:
                spoken.sendall(bytes([byte]))
                time.sleep(0.05)
        read_all(spoken)

    assert impatient.kept() == []


def test_a_hundred_connections_that_say_nothing_do_not_last(impatient: Server) -> None:
    held = [socket.create_connection(("127.0.0.1", impatient.port)) for _ in range(100)]
    try:
        time.sleep(1.0)
        assert impatient.client.deliver(make_body()).status == 202
    finally:
        for connection in held:
            connection.close()


def test_no_delivery_is_answered_for_that_could_not_be_kept(server: Server) -> None:
    def fail(_: Delivery) -> bool:
        msg = "the disk is full"
        raise StoreError(msg)

    server.receive = fail
    assert server.client.deliver(make_body(), delivery_id="d-1").status == 503

    server.receive = None
    assert server.client.deliver(make_body(), delivery_id="d-1").status == 202
    assert server.kept() == ["d-1"]


def test_a_store_that_is_slow_holds_up_nobody_else(server: Server) -> None:
    free = threading.Event()

    def wait(delivery: Delivery) -> bool:
        return free.wait(10) and server.store.receive(delivery)

    server.receive = wait
    with ThreadPoolExecutor(1) as pool:
        slow = pool.submit(server.client.deliver, make_body())
        time.sleep(0.1)
        assert server.client.ask("GET", "/readyz").took_s < 1.0
        free.set()
        assert slow.result().status == 202


def test_answers_are_counted(server: Server) -> None:
    with serving(server.site(), "127.0.0.1", 0) as port:
        client = Client(port)
        client.deliver(make_body(), delivery_id="d-1")
        client.deliver(make_body(), delivery_id="d-1")
        client.deliver(make_body(), x_github_event="star")
        client.deliver(make_body(), x_hub_signature_256=None)
        figures = client.ask("GET", "/metrics").text.splitlines()

    for answer in ("accepted", "known", "ignored", "refused"):
        assert f'kernelevolve_deliveries_total{{answer="{answer}"}} 1.0' in figures
    assert 'kernelevolve_waiting{what="delivery"} 1.0' in figures


def test_without_webhooks_there_is_no_such_path(server: Server) -> None:
    site = server.site()
    bare = Site(None, site.find_health, site.is_ready, site.render_metrics)
    with serving(bare, "127.0.0.1", 0) as port:
        assert Client(port).deliver(make_body()).status == 404


def test_a_taken_address_is_an_error_at_the_start(server: Server) -> None:
    with (
        pytest.raises(OSError, match="in use"),
        serving(server.site(), "127.0.0.1", server.port),
    ):
        pass


def test_after_the_end_nobody_listens(server: Server) -> None:
    with serving(server.site(), "127.0.0.1", 0) as port:
        pass
    with pytest.raises(ConnectionRefusedError):
        Client(port).ask("GET", "/healthz")


def test_it_listens_at_addresses_of_both_kinds(server: Server) -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    try:
        with serving(server.site(), "::1", 0) as port, socket.create_connection(("::1", port)):
            pass
    except OSError:
        pytest.skip("this machine has no IPv6")
