"""Whether a reference's source holds what its spec names, with the arguments that it needs."""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from operator_registry.checks.draft import Draft
from operator_registry.document import Path
from operator_registry.fault import Fault, Finding, name_one_of
from operator_registry.source import SourceError, parse_source
from operator_registry.spec import Made

Functions = Mapping[str, ast.FunctionDef]
MADE_ARGUMENTS = ("generator", "sizes", "dtype")


@dataclass(frozen=True)
class InSource:
    """A finding at a line of the source, not of the spec."""

    line: int
    message: str
    remedy: str

    def to_fault(self, path: str) -> Fault:
        """Return it as a fault of the source's file."""
        return Fault(path=path, line=self.line, message=self.message, remedy=self.remedy)


def check_source(draft: Draft, source: str) -> Iterator[Finding | InSource]:
    """Yield what disagrees between the spec and its reference's source."""
    try:
        tree = parse_source(source)
    except SourceError as error:
        yield InSource(error.line, error.message, "mend the syntax")
        return
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    yield from _check_imports(tree)
    if draft.reference is not None:
        yield from _check_function(draft, ("reference",), draft.reference, functions)
    for place, name in enumerate(draft.equivalents):
        if name == draft.reference or name in draft.equivalents[:place]:
            message = f"equivalents names {name} again"
            yield Finding(("equivalents", place), message, "name each function once")
        else:
            yield from _check_function(draft, ("equivalents", place), name, functions)
    for name, tensor in draft.inputs:
        if isinstance(tensor.values, Made):
            where = ("inputs", name, "values", "function")
            yield from _check_made(where, tensor.values.function, functions)


def _check_function(
    draft: Draft, where: Path, name: str, functions: Functions
) -> Iterator[Finding | InSource]:
    if name not in functions:
        message = f"{where[0]} names {name!r}, which reference.py does not define"
        yield Finding(where, message, _remedy(name, functions))
    elif draft.inputs.known and draft.attributes.known:
        yield from _check_arguments(draft, functions[name])


def _remedy(name: str, functions: Functions) -> str:
    if not functions:
        return f"write `def {name}(...)` at the file's top level"
    return name_one_of(name, functions)


def _check_imports(tree: ast.Module) -> Iterator[InSource]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            message = "imports a file beside it, but a reference stands alone"
            yield InSource(node.lineno, message, "copy what it needs into this file")


def _check_arguments(draft: Draft, function: ast.FunctionDef) -> Iterator[InSource]:
    """Check that it can be called as ``function(*inputs, **attributes)``."""
    wanted = f"{function.name}({', '.join((*draft.inputs.names, *draft.attributes.names))})"
    remedy = f"write it as `def {wanted}`"
    arguments = function.args
    by_place = [a.arg for a in (*arguments.posonlyargs, *arguments.args)]
    inputs = len(draft.inputs.names)
    if len(by_place) < inputs and arguments.vararg is None:
        message = f"{function.name} takes {len(by_place)} arguments, the spec has {inputs} inputs"
        yield InSource(function.lineno, message, remedy)
        return
    only_by_place = {a.arg for a in arguments.posonlyargs}
    by_name = {*by_place[inputs:], *(a.arg for a in arguments.kwonlyargs)} - only_by_place
    for name in draft.attributes.names:
        if name not in by_name and arguments.kwarg is None:
            message = f"{function.name} takes no argument {name!r}, an attribute of the spec"
            yield InSource(function.lineno, message, remedy)
    optional = set(by_place[len(by_place) - len(arguments.defaults) :])
    by_default = zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
    optional |= {argument.arg for argument, default in by_default if default is not None}
    beyond = [*by_place[inputs:], *(a.arg for a in arguments.kwonlyargs)]
    for name in beyond:
        if name not in draft.attributes.names and name not in optional:
            message = f"{function.name} needs an argument {name!r}, which the spec lacks"
            yield InSource(function.lineno, message, remedy)


def _check_made(where: Path, name: str, functions: Functions) -> Iterator[Finding | InSource]:
    function = functions.get(name)
    if function is None:
        message = f"values are made by {name!r}, which reference.py does not define"
        yield Finding(where, message, _remedy(name, functions))
        return
    arguments = function.args
    taken = len(arguments.posonlyargs) + len(arguments.args)
    needed = taken - len(arguments.defaults)
    if needed > len(MADE_ARGUMENTS) or (taken < len(MADE_ARGUMENTS) and not arguments.vararg):
        message = f"{name} must take {len(MADE_ARGUMENTS)} arguments to make values"
        remedy = f"write it as `def {name}({', '.join(MADE_ARGUMENTS)})`"
        yield InSource(function.lineno, message, remedy)
