"""A published kernel as a function: ``load(folder)(*inputs, **attributes)``."""

from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

import torch
from torch import Tensor

from operator_registry.inputs import load_reference, resolve_sizes
from operator_registry.spec import RangeAxis, Scalar
from optimizer.candidate import Candidate
from optimizer.errors import CallError, UnsupportedDeviceError
from optimizer.executor import Executor
from optimizer.expression import total
from optimizer.host_python import HostPython, load_run
from optimizer.kernel import ByPeer, ByVariant, Kernel, Variant, read_kernel
from optimizer.shapes import attributes_of, dtypes_of
from optimizer.targets import BuildingTable, find_obstacle, make_target

Value = Tensor | list[Tensor]
Serve = Callable[..., Value | tuple[Value, ...]]
CACHE: Final = Path("~/.cache/kernelevolve")
_COMPILE_MODES: Final[Mapping[str, str]] = {
    "compile-default": "default",
    "compile-max-autotune": "max-autotune-no-cudagraphs",
}
_REMEMBERED: Final = 512


def load(folder: Path | str, *, cache: Path | str = CACHE) -> "LoadedKernel":
    """Return the kernel of a folder as a function of the operator's inputs.

    What serves a call is built when it is first needed, into `cache`. The folder's code and
    reference are run in this process: load only what you trust.

    Raises:
        KernelFolderError: A file is absent, damaged or of another version.
        UnsupportedDeviceError: The kernel is for a device that is not here.
    """
    kernel = read_kernel(Path(folder))
    if obstacle := find_obstacle(kernel.hardware):
        raise UnsupportedDeviceError(kernel.hardware.name, obstacle)
    return LoadedKernel(kernel, Path(cache).expanduser())


class LoadedKernel:
    """Calls are served as the dispatch table says; dtypes unknown to it by the reference."""

    def __init__(self, kernel: Kernel, cache: Path) -> None:
        self.kernel = kernel
        self._cache = cache
        self._device = torch.device(kernel.hardware.target)
        self._servers: dict[str, Serve] = {}
        self._picked: dict[object, Serve] = {}

    def __call__(self, *inputs: Value, **attributes: Scalar) -> Value | tuple[Value, ...]:
        """Return what the reference returns: a tensor, a list, or a tuple of these.

        Raises:
            CallError: The arguments are not what the operator takes.
        """
        key = _key(inputs)
        serve = self._picked.get(key)
        if serve is None:
            if len(self._picked) >= _REMEMBERED:
                self._picked.clear()
            serve = self._picked[key] = self._pick(inputs)
        return serve(*inputs, **attributes)

    def served_by(self, *inputs: Value) -> ByVariant | ByPeer:
        """Return what serves a call with such inputs.

        Raises:
            CallError: The arguments are not what the operator takes.
        """
        spec = self.kernel.operator.spec
        if len(inputs) != len(spec.inputs):
            msg = f"{spec.name} takes {len(spec.inputs)} inputs: {', '.join(spec.inputs)}"
            raise CallError(msg)
        dtypes = dtypes_of(spec, [_dtypes(value) for value in inputs])
        try:
            sizes = resolve_sizes(spec, inputs, attributes_of(spec, {}))
        except ValueError as error:
            raise CallError(*error.args) from error
        chosen = {
            name: total(size)
            for name, size in sizes.items()
            if isinstance(spec.axes.get(name), RangeAxis)
        }
        entry = self.kernel.dispatch.pick(chosen, dtypes)
        return ByPeer(peer="reference/eager") if entry is None else entry.served_by

    def _pick(self, inputs: tuple[Value, ...]) -> Serve:
        match self.served_by(*inputs):
            case ByVariant(variant=name):
                return self._server(name, lambda: self._variant(self.kernel.variants[name]))
            case ByPeer(peer=name):
                return self._server(name, lambda: self._peer(name))

    def _server(self, name: str, make: Callable[[], Serve]) -> Serve:
        if name not in self._servers:
            self._servers[name] = make()
        return self._servers[name]

    def _variant(self, variant: Variant) -> Serve:
        host = self._host(variant.candidate)
        single = len(self.kernel.operator.spec.outputs) == 1

        def serve(*inputs: Value, **attributes: Scalar) -> Value | tuple[Value, ...]:
            outputs = host(*inputs, **attributes)
            return outputs[0] if single else outputs

        return serve

    def _host(self, candidate: Candidate) -> Executor | HostPython:
        spec = self.kernel.operator.spec
        if candidate.host == "python":
            run = load_run(candidate.code, f"{spec.name}_{candidate.id[:12]}.py")
            return HostPython(spec, candidate.chosen, run, device=self._device)
        folder = self._cache / candidate.id
        kernels = BuildingTable(make_target(self.kernel.hardware), candidate.code, folder)
        return Executor(
            spec, candidate.plan, candidate.chosen, kernels=kernels, device=self._device
        )

    def _peer(self, name: str) -> Serve:
        # A graph replays on buffers of its own; a user's fresh tensors are served without one.
        form, _, mode = name.removesuffix("-graph").partition("/")
        spec = self.kernel.operator.spec
        function: Serve = getattr(self._forms, spec.reference if form == "reference" else form)
        if mode in _COMPILE_MODES:
            function = torch.compile(function, mode=_COMPILE_MODES[mode])

        def serve(*inputs: Value, **attributes: Scalar) -> Value | tuple[Value, ...]:
            return function(*inputs, **attributes_of(spec, attributes))

        return serve

    @cached_property
    def _forms(self) -> object:
        return load_reference(self.kernel.operator)


def _key(inputs: tuple[Value, ...]) -> object:
    return tuple(
        (value.shape, value.dtype)
        if isinstance(value, Tensor)
        else tuple((member.shape, member.dtype) for member in value)
        for value in inputs
    )


def _dtypes(value: Value) -> str | list[str]:
    if isinstance(value, Tensor):
        return str(value.dtype).removeprefix("torch.")
    return [str(member.dtype).removeprefix("torch.") for member in value]
