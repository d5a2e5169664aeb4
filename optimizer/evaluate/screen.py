"""A cheap, readable filter before anything is built. It is no security border: the sandbox is."""

import ast
import re
from collections.abc import Iterator
from itertools import chain

from operator_registry.hardware import HardwareSpec
from optimizer.candidate import RUN, Candidate, CandidateError, load_tunables
from optimizer.expression import ExpressionError, names_in
from optimizer.plan import Launch, LibraryCall, ReadSize

_IMPORTS = ("triton", "math", "__future__", "typing")
_HOST_IMPORTS = (
    *_IMPORTS, "torch", "numpy", "collections", "dataclasses", "functools", "itertools",
)  # fmt: skip
"""For a host side in Python. torch alone reaches everything: the sandbox is the border."""
_NAMES = (
    "eval", "exec", "compile", "open", "__import__", "globals", "locals", "vars", "getattr",
    "setattr", "delattr", "input", "breakpoint",
)  # fmt: skip
_HEADERS = (
    "algorithm", "array", "bit", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint",
    "cstdlib", "cstring", "functional", "immintrin.h", "limits", "math.h", "memory", "numeric",
    "omp.h", "stddef.h", "stdint.h", "string.h", "tuple", "type_traits", "utility", "vector",
)  # fmt: skip
_CPP_CALLS = (
    "system", "popen", "fork", "vfork", "execv", "execve", "execl", "execvp", "socket", "dlopen",
    "dlsym", "mprotect", "ptrace", "signal", "sigaction", "syscall", "getenv", "setenv", "fopen",
    "pthread_create",
)  # fmt: skip
_ASSEMBLY = re.compile(r"\b(?:asm|__asm|__asm__)\b")
_COMMENT_OR_TEXT = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)


def find_fault(candidate: Candidate, hardware: HardwareSpec) -> str | None:
    """Return why a candidate may not be built, in one line; None where it may."""
    return next(_faults(candidate, hardware), None)


def is_library_only(candidate: Candidate) -> bool:
    """Return whether the plan launches no kernel of the candidate's own."""
    return not any(isinstance(step, Launch) for step in candidate.plan.steps)


def _faults(candidate: Candidate, hardware: HardwareSpec) -> Iterator[str]:
    language = candidate.plan.language
    if candidate.host == "plan" and language not in hardware.languages:
        yield f"{hardware.name} takes {' or '.join(hardware.languages)}, this is {language}"
        return
    wanted = {step.kernel for step in candidate.plan.steps if isinstance(step, Launch)}
    if candidate.host == "python":
        yield from _declaration_faults(candidate)
        yield from _python_faults(candidate.code, wanted | {RUN}, imports=_HOST_IMPORTS)
    elif language == "triton":
        yield from _python_faults(candidate.code, wanted, imports=_IMPORTS)
    else:
        yield from _cpp_faults(candidate.code, wanted)
    yield from _choice_faults(candidate)
    yield from _expression_faults(candidate)


def _declaration_faults(candidate: Candidate) -> Iterator[str]:
    """Yield what stands in a plan that is not run, but only says what `run` launches."""
    plan = candidate.plan
    told = [step for step in plan.steps if isinstance(step, ReadSize) or step.arguments]
    if plan.buffers or plan.let or told:
        yield "host: python does all by itself; its plan only names what is launched or called"


def _choice_faults(candidate: Candidate) -> Iterator[str]:
    try:
        tunables = load_tunables(candidate.code, language=candidate.plan.language)
    except CandidateError as error:
        yield str(error)
        return
    if missing := sorted(tunables.keys() - candidate.chosen.keys()):
        yield f"no value is chosen for {', '.join(missing)}"
    for name, value in sorted(candidate.chosen.items()):
        if name not in tunables:
            yield f"{name} is chosen, but TUNABLES does not state it"
        elif value not in tunables[name]:
            yield f"{name} = {value} is not among its values {tunables[name]}"


def _expression_faults(candidate: Candidate) -> Iterator[str]:
    for text in _expressions(candidate):
        try:
            names_in(text)
        except ExpressionError as error:
            yield str(error)


def _expressions(candidate: Candidate) -> Iterator[str]:
    plan = candidate.plan
    buffers = (buffer.shape for buffer in plan.buffers.values())
    yield from chain(plan.let.values(), *buffers)
    for step in plan.steps:
        match step:
            case Launch():
                yield from (*step.grid, *step.arguments, *step.constants.values())
                yield from (step.warps, step.stages, step.when or "1")
            case LibraryCall():
                yield from step.arguments
            case ReadSize():
                yield from (step.index, step.count or "1")


def _python_faults(code: str, wanted: set[str], *, imports: tuple[str, ...]) -> Iterator[str]:
    try:
        tree = ast.parse(code)
    except SyntaxError as error:
        yield f"line {error.lineno}: {error.msg}"
        return
    except (ValueError, RecursionError, MemoryError) as error:
        yield f"the code can't be parsed: {error}"
        return
    for node in ast.walk(tree):
        yield from _node_faults(node, imports)
    kernels = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    for name in sorted(wanted - kernels):
        yield f"the plan launches {name}, which the code does not define"


def _node_faults(node: ast.AST, imports: tuple[str, ...]) -> Iterator[str]:
    match node:
        case ast.Import(names=names):
            modules = [alias.name for alias in names]
        case ast.ImportFrom(module=module):
            modules = [module or "."]
        case ast.Name(id=name) if name in _NAMES:
            yield f"line {node.lineno}: uses {name}"
            return
        case ast.Attribute(attr=name) if name.startswith("__"):
            yield f"line {node.lineno}: uses {name}"
            return
        case _:
            return
    for module in modules:
        if module.split(".")[0] not in imports:
            yield f"line {node.lineno}: imports {module}"


def _cpp_faults(code: str, wanted: set[str]) -> Iterator[str]:
    plain = _COMMENT_OR_TEXT.sub(_blank, code)
    for number, line in enumerate(code.splitlines(), start=1):
        found = re.match(r'\s*#\s*include\s*[<"]([^>"]*)[>"]', line)
        if found and found.group(1) not in _HEADERS:
            yield f"line {number}: includes {found.group(1)}"
    for number, line in enumerate(plain.splitlines(), start=1):
        for name in re.findall(r"\b(\w+)\s*\(", line):
            if name in _CPP_CALLS:
                yield f"line {number}: calls {name}"
        if found := _ASSEMBLY.search(line):
            yield f"line {number}: uses {found.group()}"
    for name in sorted(wanted):
        if not re.search(rf"\bKERNEL\(\s*{re.escape(name)}\s*\)", plain):
            yield f"the plan launches {name}, but the code has no KERNEL({name})"


def _blank(found: re.Match[str]) -> str:
    """Return the text's newlines only, so that line numbers stay."""
    return "\n" * found.group().count("\n")
