"""A reference's source text: its functions and its syntax tree, parsed and never run."""

import ast
import hashlib
import warnings
from dataclasses import dataclass
from functools import lru_cache


@dataclass(frozen=True)
class SourceError(Exception):
    """The text is no Python that can be parsed."""

    line: int
    message: str


def parse_source(text: str) -> ast.Module:
    """Return the syntax tree.

    Raises:
        SourceError: A syntax error, or nesting beyond what the parser can take.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of invalid escapes; not this reader's matter
            tree = ast.parse(text)
        _spell(tree)
    except SyntaxError as error:
        raise SourceError(error.lineno or 1, f"is no Python: {error.msg}") from error
    except (ValueError, RecursionError, MemoryError) as error:
        raise SourceError(1, f"can't be parsed: {error or type(error).__name__}") from error
    return tree


@lru_cache(maxsize=16384)
def syntax_digest(text: str) -> str:
    """Return a hash that comments, layout and docstrings do not change.

    The spelling leaves out what is absent or empty, since Python versions differ in that.

    Raises:
        SourceError: See `parse_source`.
    """
    return hashlib.sha256(_spell(parse_source(text)).encode()).hexdigest()


def _spell(node: object) -> str:
    if isinstance(node, list):
        return "[" + ",".join(_spell(item) for item in node if not _is_prose(item)) + "]"
    if not isinstance(node, ast.AST):
        return repr(node)
    if isinstance(node, ast.JoinedStr):
        # Python 3.12 leaves empty texts among the parts.
        parts = [v for v in node.values if not (isinstance(v, ast.Constant) and v.value == "")]
        return f"JoinedStr({_spell(parts)})"
    fields = ((name, getattr(node, name, None)) for name in node._fields)
    told = (
        f"{name}={_spell(value)}"
        for name, value in fields
        if value is not None and value != [] and name not in {"ctx", "type_comment", "kind"}
    )
    return f"{type(node).__name__}({','.join(told)})"


def _is_prose(node: object) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
