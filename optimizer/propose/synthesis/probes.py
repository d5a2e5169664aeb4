"""The sizes and attributes at which a reference is traced: apart from each other on purpose."""

from collections.abc import Iterator, Mapping

from operator_registry.spec import OperatorSpec, RangeAxis, Scalar, Workload
from optimizer.errors import CaptureError
from optimizer.propose.synthesis.dtypes import FLOATS, HALVES

PROBES = 3
"""Two show how numbers depend on axes, the third checks it."""
_FIRST_SIZES = (5, 7, 11)
_MEMBERS = (2, 2, 3)


def make_probes(spec: OperatorSpec, dtypes: Mapping[str, str]) -> tuple[Workload, ...]:
    """Return workloads in which no two axes have the same size, if their ranges allow it."""
    sizes: list[dict[str, int]] = [{} for _ in range(PROBES)]
    used: set[int] = {0, 1, 2, 3}
    lists = {tensor.list_over for tensor in (*spec.inputs.values(), *spec.outputs.values())}
    for name, axis in spec.axes.items():
        if not isinstance(axis, RangeAxis):
            continue
        for probe in range(PROBES):
            if name in lists:
                size = min(max(_MEMBERS[probe], axis.min), axis.max)
            else:
                size = _unused(axis, used, _FIRST_SIZES[probe])
            sizes[probe][name] = size
            used.add(size)
    return tuple(
        Workload.model_validate(
            {
                "name": f"probe-{probe}",
                "sizes": sizes[probe],
                "dtypes": dict(dtypes),
                "attributes": dict(_attributes(spec, probe)),
            }
        )
        for probe in range(PROBES)
    )


def narrowest(spec: OperatorSpec) -> dict[str, str]:
    """Return a dtype for each variable, no two the same: a trace shows casts only for the narrow.

    Raises:
        CaptureError: Two variables can't be told apart, or one mixes float64 with narrower ones.
    """
    bound: dict[str, str] = {}
    for name, admitted in spec.dtypes.items():
        if len(admitted) > 1 and "float64" in admitted:
            msg = f"dtype variable {name} admits float64 beside others: make two operators of it"
            raise CaptureError(msg)
        order = sorted(admitted, key=lambda d: (d not in HALVES, d not in FLOATS, d))
        free = [dtype for dtype in order if dtype not in bound.values()]
        if not free:
            msg = f"dtype variable {name} can't be told from another that admits the same dtypes"
            raise CaptureError(msg)
        bound[name] = free[0]
    return bound


def _unused(axis: RangeAxis, used: set[int], least: int) -> int:
    step = axis.multiple_of
    low = -(-max(axis.min, least) // step) * step
    for size in range(low, axis.max + 1, step):
        if size not in used:
            return size
    return min(low, (axis.max // step) * step)


def _attributes(spec: OperatorSpec, probe: int) -> Iterator[tuple[str, Scalar]]:
    for name, attribute in spec.attributes.items():
        value, low, high = attribute.value, attribute.min, attribute.max
        if isinstance(value, bool):
            continue
        if low is not None and high is not None:
            share = (probe + 1) / (PROBES + 1)
            between = low + (high - low) * share
        else:
            between = value * (1 + probe / 4) if value else probe / 4
        whole = isinstance(value, int)
        yield name, (round(between) + probe * (low is None) if whole else float(between))
