"""The door to Ray: posts on the hosts of a cluster, placed by what a host says that it has.

A host names its devices as custom resources, ``ray start --resources='{"h200/gpu0": 1}'``: hardware
and device. One that names none is asked for its GPUs, by Ray's own name of their kind. An actor
holds its device's resource for as long as it lives, so that Ray itself never puts two on one. What
is sent and what comes back are texts; see `optimizer.runners.post`.
"""

import contextlib
import logging
import signal
import socket
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, cast

import ray
from ray.exceptions import GetTimeoutError, RayActorError, RayError, RayTaskError

from optimizer.errors import DeviceLostError, RunnerError
from optimizer.runners.access import RayAccess
from optimizer.runners.post import Post
from optimizer.runners.remote import PlacedPost, PostLostError
from optimizer.store import NewDevice

_PLACE_S = 120.0
"""A device that is leased to us is ours by then: Ray starts a process, and Python loads torch."""
_SHARE = 0.001
"""Of what marks a node, and is not used up."""
_ACCELERATOR = "accelerator_type:"
_QUIET: Mapping[str, Any] = {
    "include_dashboard": False,
    "log_to_driver": False,
    "configure_logging": False,
    "logging_level": logging.ERROR,
}
_STORE_BYTES = 100_000_000
"""What passes is text; Ray asks for no less."""


@dataclass
class Cluster:
    """A Ray cluster, as one process speaks to it. Any thread may."""

    address: str
    _idle: dict[str, list[PlacedPost]] = field(default_factory=dict, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        """Connect.

        Raises:
            RunnerError: The cluster can't be reached.
        """
        self._idle = defaultdict(list)
        try:
            _init(self.address, ignore_reinit_error=True, **_QUIET)
        except (ConnectionError, RuntimeError, RayError, OSError) as error:
            msg = f"the Ray cluster at {self.address} can't be reached: {error}"
            raise RunnerError(msg) from error

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the cluster; what this process has placed there ends."""
        ray.shutdown()

    def devices(self) -> list[NewDevice]:
        """Return the devices that the cluster's hosts have now."""
        found: list[NewDevice] = []
        nodes: list[Any] = ray.nodes()  # type: ignore[no-untyped-call] # Ray's own lack
        for node in nodes:
            if node["Alive"]:
                found += find_devices(node, self.address)
        return found

    def at(self, access: RayAccess) -> "DevicePosts":
        """Return where posts of a device are placed."""
        return DevicePosts(self, access)

    def take(self, key: str) -> PlacedPost | None:
        """Return a post of a device that nobody uses."""
        with self._lock:
            return self._idle[key].pop() if self._idle[key] else None

    def put(self, key: str, post: PlacedPost) -> None:
        """Keep a post for the next one that has its device."""
        with self._lock:
            self._idle[key].append(post)


@dataclass(frozen=True)
class DevicePosts:
    """Places posts on one device; see `optimizer.runners.remote.Posts`."""

    cluster: Cluster
    access: RayAccess

    def place(self) -> PlacedPost:
        """Return a post, one that is there already if there is.

        Raises:
            DeviceLostError: The device is gone, or somebody else has it.
        """
        kept = self.cluster.take(self._key)
        if kept is not None:
            return kept
        needs = dict(self.access.needs)
        remote: Any = ray.remote(Post)  # what Ray returns has no type of its own
        actor = remote.options(
            num_cpus=0, num_gpus=needs.pop("GPU", 0), resources=needs, max_restarts=0
        ).remote()
        post = RayPost(actor)
        try:
            post.greet()
        except PostLostError as error:
            post.end()
            msg = f"no post comes to be on a device with {self.access.needs}: {error}"
            raise DeviceLostError(msg) from error
        return post

    def give_back(self, post: PlacedPost) -> None:
        """Keep a post that is well."""
        self.cluster.put(self._key, post)

    @property
    def _key(self) -> str:
        return self.access.to_json()


@dataclass(frozen=True)
class RayPost:
    """A post that is a Ray actor."""

    actor: Any
    """Ray's handle; it has no type of its own."""

    def greet(self) -> None:
        """Wait until it is there.

        Raises:
            PostLostError: It is not to be had.
        """
        self._ask(self.actor.close.remote(), _PLACE_S)

    def open(self, judge: str, request: str) -> str:
        """Make a judge."""
        return cast("str", self._ask(self.actor.open.remote(judge, request), _PLACE_S))

    def evaluate(
        self, candidates: Sequence[str], ahead: Sequence[str], *, patience_s: float
    ) -> Iterator[str]:
        """Try candidates; nothing is sent ahead of what we take."""
        method = self.actor.evaluate.options(num_returns="streaming")
        stream = method.remote(candidates, ahead)
        while True:
            with _lost():
                ready, _ = ray.wait([stream], timeout=patience_s)
                if not ready:
                    msg = f"it was silent for {patience_s:g} s"
                    raise PostLostError(msg)
                try:
                    told = next(stream)
                except StopIteration:
                    return
            yield cast("str", self._ask(told, patience_s))

    def confirm(self, request: str, *, patience_s: float) -> str:
        """Make a confirming run."""
        return cast("str", self._ask(self.actor.confirm.remote(request), patience_s))

    def fetch(self, name: str) -> bytes | None:
        """Return an artefact by its hash."""
        return cast("bytes | None", self._ask(self.actor.fetch.remote(name), _PLACE_S))

    def end(self) -> None:
        """Kill the process, whatever it does."""
        with contextlib.suppress(RayError):
            ray.kill(self.actor)

    def _ask(self, told: Any, patience_s: float) -> object:  # noqa: ANN401 - Ray's reference
        with _lost():
            found: object = ray.get(told, timeout=patience_s)
            return found


@contextlib.contextmanager
def _lost() -> Iterator[None]:
    """Turn what Ray raises into our own errors.

    Raises:
        PostLostError: The post, or what carries its words, is gone.
        RunnerError: The post itself raised what it should not.
    """
    try:
        yield
    except RayTaskError as error:
        msg = f"the host's judge failed: {str(error).strip().splitlines()[-1]}"
        raise RunnerError(msg) from error
    except GetTimeoutError as error:
        msg = "it did not answer in time"
        raise PostLostError(msg) from error
    except (RayActorError, RayError) as error:
        raise PostLostError(str(error).strip().splitlines()[0]) from error


def find_devices(node: Mapping[str, Any], address: str) -> list[NewDevice]:
    """Return the devices of a node, as Ray describes it.

    What it names itself counts; its GPUs are asked for only where it names none, and where it is
    not this machine, whose own are lent without Ray.
    """
    host, resources = node["NodeManagerAddress"], node["Resources"]
    named = sorted(name for name in resources if "/" in name)
    found = []
    for name in named:
        hardware, _, called = name.partition("/")
        for place in range(int(resources[name])):
            one = called if resources[name] == 1 else f"{called}-{place}"
            access = RayAccess(address=address, needs={name: 1})
            found.append(_device(host, one, hardware, access))
    kinds = [name for name in resources if name.startswith(_ACCELERATOR)]
    if named or node.get("NodeManagerHostname") == socket.gethostname() or len(kinds) != 1:
        return found
    hardware = kinds[0].removeprefix(_ACCELERATOR)
    access = RayAccess(address=address, needs={"GPU": 1, f"node:{host}": _SHARE})
    return [
        _device(host, f"{hardware.lower()}-{place}", hardware, access)
        for place in range(int(resources.get("GPU", 0)))
    ]


def _device(host: str, called: str, hardware: str, access: RayAccess) -> NewDevice:
    return NewDevice(name=f"{host}/{called}", host=host, hardware=hardware, access=access.to_json())


def _init(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - as Ray's own
    """Connect, and keep the process's own answer to SIGTERM, which Ray replaces by `sys.exit`."""
    if threading.current_thread() is not threading.main_thread():
        return ray.init(*arguments, **named)
    before = signal.getsignal(signal.SIGTERM)
    try:
        return ray.init(*arguments, **named)
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def local_cluster(resources: Mapping[str, float]) -> Iterator[Cluster]:
    """Start a cluster of one host, for as long as one is in the context.

    Args:
        resources: What the host says that it has, such as ``{"cpu-x86-64-v3/slot0": 1}``.
    """
    context: Any = _init(  # what Ray returns for a cluster of its own has more than its type
        "local",
        num_cpus=len(resources),
        num_gpus=0,
        resources=dict(resources),
        object_store_memory=_STORE_BYTES,
        **_QUIET,
    )
    try:
        yield Cluster(context.address_info["gcs_address"])
    finally:
        ray.shutdown()
