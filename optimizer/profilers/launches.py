"""The door to PyTorch's profiler: which kernels and library functions one call runs."""

import warnings
from collections.abc import Callable, Iterator
from typing import Any, Final

import torch
from torch._C._autograd import DeviceType
from torch.profiler import ProfilerActivity, profile, record_function

from optimizer.profilers.trace import Activity, Trace

_CALL: Final = "kernelevolve call"


def trace(call: Callable[[], object], *, device: str) -> Trace:
    """Return what ran in one call, on every stream of the device; call it warmed up.

    Slow and heavy: only ever in a process that is not timed.
    """
    wanted = [ProfilerActivity.CPU]
    if device == "cuda":
        wanted.append(ProfilerActivity.CUDA)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the profiler tells of what it lacks; so does the trace
        _wait(device)
        with profile(activities=wanted) as profiler:
            with record_function(_CALL):
                call()
                _wait(device)
            _wait(device)
        return _read(list(profiler.events() or ()))


def _read(events: list[Any]) -> Trace:
    """Return the trace that events of torch's profiler tell; torch does not type them."""
    host = [e for e in events if e.device_type == DeviceType.CPU]
    device = [e for e in events if e.device_type != DeviceType.CPU and not _is_mark(e)]
    (window,) = [e.time_range for e in host if e.name == _CALL]
    # Work and the function that it ran for are tied by name and length alone.
    owners = {(k.name, k.duration): _outermost(e) for e in host for k in e.kernels}
    activities = tuple(
        Activity(
            name=e.name,
            stream=int(e.device_resource_id),
            begin_us=e.time_range.start,
            took_us=e.time_range.end - e.time_range.start,
            op=owners.get((e.name, e.time_range.end - e.time_range.start), ""),
        )
        for e in device
    )
    ops = dict.fromkeys(_outermost(e) for e in host if _is_function(e))
    return Trace(activities=activities, ops=tuple(ops), window_us=(window.start, window.end))


def _outermost(event: Any) -> str:  # noqa: ANN401 - torch does not type it
    names = [e.name for e in _ancestry(event) if _is_function(e)]
    return names[-1] if names else ""


def _ancestry(event: Any) -> Iterator[Any]:  # noqa: ANN401 - torch does not type it
    while event is not None:
        yield event
        event = event.cpu_parent


def _is_function(event: Any) -> bool:  # noqa: ANN401 - torch does not type it
    return "::" in event.name and not event.is_user_annotation


def _is_mark(event: Any) -> bool:  # noqa: ANN401 - torch does not type it
    """Return whether an event of the device is no work but a mark of the host's, seen there."""
    return bool(event.is_user_annotation) or event.name == _CALL


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()
