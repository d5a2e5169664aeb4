"""Source text as a Python module, although no file of that name need exist (runs foreign code)."""

import linecache
from types import ModuleType


def import_source(code: str, name: str) -> ModuleType:
    """Return the code as a module. Its level is run: only in a process that may be lost.

    Args:
        code: The source.
        name: The file that tracebacks, and Triton in search of a kernel's text, look lines up by.
    """
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    module = ModuleType("candidate")
    module.__file__ = name
    exec(compile(code, name, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - what it is for
    return module
