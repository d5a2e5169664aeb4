"""Triton kernels run by Triton's interpreter on the host: right or wrong, but never a time.

About 4 ms a program instance. A `tl.dot` of bfloat16 is wrong there, and so is no ground to judge.
One thread at a time: Triton's language is changed for the length of a launch.
"""

import warnings
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Final

import numpy as np
import triton.language as tl
from triton.runtime.errors import InterpreterError
from triton.runtime.interpreter import InterpretedFunction, TensorHandle
from triton.runtime.jit import JITFunction

from optimizer.host_python import find_run
from optimizer.targets.artefact import source_sha256
from optimizer.targets.target import Instance, Launcher
from optimizer.targets.triton_source import find_kernel, load_source

INTERPRETER_ERRORS: Final = (InterpreterError,)
"""What a launch may raise: an error in the kernel, or in the interpreter itself."""
_NUMPY_WARNING: Final = "Conversion of an array with ndim > 0"
_SCALARS: Final = {
    "i32": (tl.int32, np.int32),
    "i64": (tl.int64, np.int64),
    "fp32": (tl.float32, np.float32),
}
_ELEMENTS: Final = {
    "fp64": tl.float64, "fp32": tl.float32, "fp16": tl.float16, "bf16": tl.bfloat16,
    "i64": tl.int64, "i32": tl.int32, "i16": tl.int16, "i8": tl.int8, "u8": tl.uint8,
    "i1": tl.int1,
}  # fmt: skip
_CHANGED: Final = (
    JITFunction, tl, tl.core, tl.core.tensor, tl.math, tl.core.tensor_descriptor_base,
    tl.core.dtype,
)  # fmt: skip
"""All that the interpreter, or this module for its sake, sets attributes of."""


class InterpreterTable:
    """The `KernelTable` of a candidate's code for tensors in the host's memory."""

    def __init__(self, code: str) -> None:
        """Import the code; nothing has to be built.

        Raises:
            BuildError: The code can't be imported.
        """
        name = f"kernel_{source_sha256(code)[:12]}.py"
        self._module = load_source(code, name, interpreted=True)

    def launcher(self, instance: Instance) -> Launcher:
        """See `KernelTable.launcher`.

        Raises:
            BuildError: No such kernel, or the plan passes it other arguments than it takes.
        """
        kernel = find_kernel(self._module, instance)

        def launch(grid: tuple[int, ...], arguments: Sequence[int | float]) -> None:
            passed = zip(kernel.arguments, instance.types, arguments, strict=True)
            typed = {name: _tensor(kind, value) for name, kind, value in passed}
            with _interpreted_language(), warnings.catch_warnings():
                warnings.filterwarnings("ignore", _NUMPY_WARNING, DeprecationWarning)
                kernel.function[grid](**typed, **kernel.constants)

        return launch


def load_interpreted_run(code: str) -> Callable[..., object]:
    """Return the code's own host side `run`; what it launches is interpreted.

    Raises:
        BuildError: The code can't be imported.
        PlanError: It defines no `run`.
    """
    run = find_run(vars(load_source(code, "kernel.py", interpreted=True)))

    def interpreted(*arguments: object, **named: object) -> None:
        with _interpreted_language(), warnings.catch_warnings():
            warnings.filterwarnings("ignore", _NUMPY_WARNING, DeprecationWarning)
            run(*arguments, **named)

    return interpreted


def _tensor(kind: str, value: float) -> object:
    """Return an argument as the interpreter holds it; addresses are taken as they are."""
    if kind.startswith("*"):
        pointer = tl.pointer_type(_ELEMENTS[kind[1:]])
        return tl.tensor(TensorHandle(np.array([value], dtype=np.uint64), pointer), pointer)
    scalar, numpy_type = _SCALARS[kind]
    return tl.tensor(TensorHandle(np.array([value], dtype=numpy_type), scalar), scalar)


@contextmanager
def _interpreted_language() -> Generator[None]:
    """Let Triton's own functions, such as `tl.max`, be interpreted as well.

    They are made for the compiler unless TRITON_INTERPRET is set when Triton is imported, which
    would leave the process unable to compile. What the interpreter changes and does not restore is
    restored here.
    """
    before = [(owner, dict(vars(owner))) for owner in _CHANGED]
    JITFunction.__call__ = _interpret  # pyright: ignore[reportAttributeAccessIssue] # it raises
    for name, member in before[3][1].items():
        if isinstance(member, JITFunction):
            setattr(tl.core.tensor, name, _method(member))
    try:
        yield
    finally:
        for owner, members in before:
            _restore(owner, members)


def _restore(owner: object, members: dict[str, object]) -> None:
    for name, member in list(vars(owner).items()):
        if name not in members:
            delattr(owner, name)
        elif members[name] is not member:
            setattr(owner, name, members[name])


def _interpret(function: JITFunction, *arguments: object, **named: object) -> object:
    return _interpreted(function.fn)(*arguments, **named)


def _method(function: JITFunction) -> Callable[..., object]:
    def method(self: object, *arguments: object, **named: object) -> object:
        return _interpret(function, self, *arguments, **named)

    return method


@cache
def _interpreted(function: Callable[..., object]) -> InterpretedFunction:
    return InterpretedFunction(function)
