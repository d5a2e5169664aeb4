"""A candidate's Triton code, brought to life from a file: to be compiled, or to be interpreted.

A kernel's arguments come in the order of its signature, `tl.constexpr` ones left out; those are
given by name. A list of tensors is an int64 pointer: what is loaded from it is an address, to be
cast with ``.to(tl.pointer_type(tl.float32))``. A list of sizes is an int64 pointer as well.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Final

from triton import knobs

from optimizer.source_module import import_source
from optimizer.targets.target import BuildError, Instance

_LOG_CHARACTERS: Final = 6000
_CAUSES: Final = 4


def load_source(code: str, name: str, *, interpreted: bool) -> ModuleType:
    """Return the code as a module, its kernels made for the compiler or for the interpreter.

    Runs the module level of foreign code.

    Args:
        code: The source.
        name: The file that messages and debug facts tell; it need not exist.
        interpreted: Whether kernels are made for the interpreter.

    Raises:
        BuildError: The code can't be imported.
    """
    try:
        with knobs.runtime.scope():
            knobs.runtime.interpret = interpreted
            return import_source(code, name)
    except Exception as error:
        raise BuildError(explain(error)) from error


@dataclass(frozen=True)
class SourceKernel:
    """A jitted function and the names of what it takes."""

    function: Any
    """Triton's own object; Triton has no types."""
    names: tuple[str, ...]
    """All parameters, in order."""
    arguments: tuple[str, ...]
    """The parameters that are passed at a launch."""

    constants: Mapping[str, object]
    """The compile-time constants with their values, defaults included."""


def find_kernel(module: ModuleType, instance: Instance) -> SourceKernel:
    """Return the jitted function that an instance is of.

    Raises:
        BuildError: No such kernel, or the plan passes it other arguments than it takes.
    """
    kernel = getattr(module, instance.kernel, None)
    if kernel is None or not hasattr(kernel, "arg_names"):
        msg = f"the code has no @triton.jit function {instance.kernel}"
        raise BuildError(msg)
    parameters = inspect.signature(kernel.fn).parameters
    constexprs = constexpr_names(kernel.fn)
    given = dict(instance.constants)
    defaults = {name: parameters[name].default for name in constexprs}
    required = {name for name, value in defaults.items() if value is inspect.Parameter.empty}
    if not required <= given.keys() <= set(constexprs):
        wanted, got = ", ".join(constexprs) or "none", ", ".join(sorted(given)) or "none"
        msg = f"{instance.kernel} takes the constants {wanted}; the plan gives {got}"
        raise BuildError(msg)
    arguments = tuple(name for name in parameters if name not in constexprs)
    if len(arguments) != len(instance.types):
        takes = ", ".join(arguments)
        msg = f"{instance.kernel} takes ({takes}); the plan gives {len(instance.types)} arguments"
        raise BuildError(msg)
    return SourceKernel(kernel, tuple(parameters), arguments, {**defaults, **given})


def constexpr_names(function: Callable[..., object]) -> tuple[str, ...]:
    """Return the names of a kernel's compile-time constants."""
    return tuple(
        name
        for name, parameter in inspect.signature(function).parameters.items()
        if "constexpr" in str(parameter.annotation)
    )


def explain(error: BaseException) -> str:
    """Return what went wrong in code, with its causes: Triton tells the place, its cause why."""
    parts: list[str] = []
    cause: BaseException | None = error
    while cause is not None and len(parts) < _CAUSES:
        parts.append(f"{type(cause).__name__}: {cause}".strip())
        cause = cause.__cause__
    return "\n".join(dict.fromkeys(parts))[:_LOG_CHARACTERS]
