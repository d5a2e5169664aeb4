"""Devices lent to jobs, one job a device: who gets which, for how long, and which nobody gets."""

import threading
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from daemon.fleet.found import access_of, fits, without_disturbed
from daemon.logs import find_log
from operator_registry.hardware import HardwareSpec
from optimizer.evaluate.device_state import DeviceState, find_states, remedy
from optimizer.runners.access import LentDevice, LocalAccess
from optimizer.store import NewDevice, Store, StoredDevice

_RENEWALS = 6
"""A lease is prolonged so often in its time."""
log = find_log(__name__)


@dataclass
class Lease:
    """A device while one has it."""

    lending: "Lending"
    device: LentDevice
    holder: str
    """Of this lease alone: another of the same scheduler's is another holder."""
    _renewed_at: float

    def renew(self) -> bool:
        """Prolong the lease where it is time to; False where the device is to be given back."""
        now = self.lending.clock()
        ttl_s = self.lending.ttl_s
        if now - self._renewed_at < ttl_s / _RENEWALS:
            return not self.lending.is_draining(self.device.name)
        if now - self._renewed_at >= ttl_s:
            return False  # it has ended, and somebody else may be on the device since
        self._renewed_at = now
        return self.lending.store.renew_device(self.device.name, self.holder, ttl_s=ttl_s, now=now)

    def give_back(self) -> None:
        """End the lease."""
        self.lending.store.free_device(self.device.name, self.holder, now=self.lending.clock())


@dataclass
class Lending:
    """Lends the devices of this machine and of a cluster. Any thread may ask."""

    store: Store
    holder: str
    clock: Callable[[], float]
    look_around: Callable[[], Sequence[NewDevice]]
    """Returns the devices that there are now."""
    artefacts: Path | None = None
    """Where judges remember devices that failed."""
    host: str = ""
    """What this machine is called."""
    ttl_s: float = 120.0
    """A lease that nobody prolongs ends then: with the role of the scheduler that has lent it."""
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)
    _hosts: set[str] = field(default_factory=set, init=False)
    _seen: frozenset[str] = field(default_factory=frozenset, init=False)
    """Names of the devices that were there at the last look: the store knows other machines'."""
    _lost: dict[str, set[str]] = field(default_factory=dict, init=False)
    """By task, the devices on which it was lost."""

    def look(self) -> tuple[StoredDevice, ...]:
        """Bring the records up to date, cordons of health checks among them; return them.

        Raises:
            StoreError: The database is away.
        """
        seen = self.look_around()
        self._seen = frozenset(device.name for device in seen)
        self._hosts |= {device.host for device in seen} | {self.host}
        self.store.note_devices(sorted(self._hosts), seen, now=self.clock())
        if self.artefacts is not None:
            self._heed_health(self.artefacts)
        return self.store.devices()

    def knows(self, hardware: HardwareSpec) -> bool:
        """Return whether there is any device of a hardware, free or not."""
        return any(fits(device, hardware) for device in self._devices())

    def find_obstacle(self, hardware: HardwareSpec) -> str | None:
        """Return why no device of a hardware will be lent, however long one waits.

        None where one will, and where there is none that these records know of.
        """
        theirs = [device for device in self._devices() if fits(device, hardware)]
        if not theirs or any(device.rule is None for device in theirs):
            return None
        return "; ".join(f"{device.name} is {device.rule}: {device.why}" for device in theirs)

    def find_user(self, hardware: HardwareSpec) -> str | None:
        """Return who has the devices where none of a hardware is free; None where one is."""
        if self.has_room(hardware):
            return None
        users = [d for d in self._devices() if d.is_held(self.clock())]
        told = ", ".join(f"{d.name} is leased for {d.task}" for d in users)
        return told or None

    def has_room(self, hardware: HardwareSpec) -> bool:
        """Return whether a device of a hardware would be lent now."""
        return bool(self._free(hardware, ""))

    def lend(self, hardware: HardwareSpec, *, key: str, task: str) -> Lease | None:
        """Return a device for a task; None where none is free.

        Args:
            hardware: Of which kind.
            key: Names the task; it gets a device last on which it was lost before.
            task: What the device is for, in words.
        """
        with self._lock:
            now, free = self.clock(), {d.name: d for d in self._free(hardware, key)}
            holder = f"{self.holder}#{uuid.uuid4().hex}"
            lent = self.store.lease_device([*free], holder, task=task, ttl_s=self.ttl_s, now=now)
            if lent is None:
                return None
            if free[lent.name].ruled_by == "person":
                self._forget_faults(lent)
            return Lease(self, access_of(lent), holder, now)

    def note_loss(self, key: str, device: str) -> None:
        """Remember that a task was lost on a device."""
        with self._lock:
            self._lost.setdefault(key, set()).add(device)

    def forget(self, key: str) -> None:
        """Forget a task that has ended."""
        with self._lock:
            self._lost.pop(key, None)

    def is_draining(self, name: str) -> bool:
        """Return whether what runs on a device shall end."""
        found = self.store.find_device(name)
        return found is not None and found.rule == "draining"

    def _free(self, hardware: HardwareSpec, key: str) -> list[StoredDevice]:
        fit = [d.name for d in self._devices() if d.rule is None and fits(d, hardware)]
        lost = self._lost.get(key, frozenset[str]())
        # A task waits for another device rather than go back to where it was lost.
        mine = {name for name in fit if name not in lost} or set(fit)
        free = without_disturbed(self.store.devices(), now=self.clock())
        return sorted(
            (device for device in free if device.name in mine),
            key=lambda device: (device.since, device.name),
        )

    def _devices(self) -> list[StoredDevice]:
        return [device for device in self.store.devices() if device.name in self._seen]

    def _heed_health(self, artefacts: Path) -> None:
        """Cordon what keeps failing, free what a check has found well since."""
        for device in self.store.devices():
            if device.host != self.host:
                continue
            now, found = self.clock(), self._find_faults(device, artefacts)
            if found is None and device.rule is not None and device.ruled_by == "health":
                self.store.uncordon_device(device.name, now=now, by="health")
                log.info("device is well again", device=device.name)
            elif found is not None and device.rule is None and device.ruled_by == "health":
                file, state = found
                why = f"{state.faults[-1].reason}. {remedy(file)}, or free it"
                self.store.rule_device(device.name, "cordoned", why=why, by="health", now=now)
                log.error("device cordoned", device=device.name, why=why)

    def _forget_faults(self, device: NewDevice) -> None:
        """Let a judge try a device again that a person has freed."""
        if self.artefacts and (found := self._find_faults(device, self.artefacts)):
            found[0].unlink(missing_ok=True)

    def _find_faults(self, device: NewDevice, artefacts: Path) -> tuple[Path, DeviceState] | None:
        """Return what cordons a GPU of this machine, with the file where it stands."""
        access = access_of(device).access
        if not isinstance(access, LocalAccess) or not access.gpu:
            return None
        digits = access.gpu.removeprefix("GPU-").replace("-", "")
        for file, state in find_states(artefacts):
            if state.device.endswith(digits) and state.cordoned:
                return file, state
        return None
