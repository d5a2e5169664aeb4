"""In which dtype is computed what is stored in another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from optimizer.errors import CaptureError

HALVES = ("bfloat16", "float16")
FLOATS = (*HALVES, "float32", "float64")
INTEGERS = ("bool", "uint8", "int8", "int16", "int32", "int64")
_RANKS = (*INTEGERS, "float32", "float64")


class RegionError(CaptureError):
    """There is no region for a part of the graph; the message says which and why."""


@dataclass(frozen=True)
class Dtypes:
    """A spec's dtype variables, with what each admits."""

    variables: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def computed(self, dtype: str) -> str:
        """Return the dtype in which values of `dtype` are computed.

        A variable that admits unlike dtypes is returned itself: such values are only moved.
        """
        admitted = self.variables.get(dtype, (dtype,))
        if all(one in FLOATS and one != "float64" for one in admitted):
            return "float32"
        if dtype in self.variables and all(one in INTEGERS for one in admitted):
            return "int64"
        return dtype

    def arithmetic(self, dtype: str, op: str) -> str:
        """Return the dtype in which an operation on `dtype` is computed.

        Raises:
            RegionError: The variable admits dtypes that are not computed alike.
        """
        computed = self.computed(dtype)
        if computed in self.variables:
            msg = (
                f"no region for {op} on {dtype}, which may be {' or '.join(self.variables[dtype])}"
            )
            raise RegionError(msg)
        return computed


def is_float(dtype: str) -> bool:
    """Return whether a computed dtype is a floating one."""
    return dtype in FLOATS


def promoted(dtypes: Sequence[str]) -> str:
    """Return the computed dtype in which operands of these dtypes meet."""
    return max(dtypes, key=_RANKS.index)
