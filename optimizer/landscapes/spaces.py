"""The spaces that are recorded, by name, for each kind of device."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from operator_registry.hardware import HardwareSpec
from operator_registry.registry import CATALOG, Operator, load_registry
from operator_registry.spec import TargetName
from optimizer.errors import CaptureError
from optimizer.landscapes import attention, convolution, product
from optimizer.landscapes.space import Space, Structure, at_workload
from optimizer.landscapes.widening import widened
from optimizer.propose.synthesis.make import capture_forms
from optimizer.propose.synthesis.proposer import SynthesisProposer

Make = Callable[[HardwareSpec], Space]


@dataclass(frozen=True)
class _Drafts:
    """The synthesiser's drafts of a catalogue operator, at one of its workloads."""

    name: str
    operator: str
    workload: str
    by: int
    """How far the tunables are widened."""

    def __call__(self, hardware: HardwareSpec) -> Space:
        """Return the space.

        Raises:
            CaptureError: The operator can't be synthesised.
        """
        operator = at_workload(load_registry(CATALOG).operators[self.operator], self.workload)
        return Space(self.name, operator, draft_structures(operator, hardware, by=self.by))


def draft_structures(
    operator: Operator, hardware: HardwareSpec, *, by: int
) -> tuple[Structure, ...]:
    """Return every structure that the synthesiser writes, with more values for its tunables.

    Raises:
        CaptureError: There is none; says why.
    """
    graphs, reasons = capture_forms(operator)
    drafts = SynthesisProposer(operator, graphs, hardware).drafts
    if not drafts:
        msg = f"{operator.name} can't be synthesised for {hardware.name}: {'; '.join(reasons)}"
        raise CaptureError(msg)
    return tuple(
        Structure(name=f"draft-{place}", code=widened(draft, by=by), plan=draft.plan)
        for place, draft in enumerate(drafts, start=1)
    )


def _on_device() -> Iterator[tuple[str, Make]]:
    for size, (rows, cols, depth) in product.SIZES.items():
        operator = product.make_product(rows, cols, depth, dtype="bfloat16")
        yield _written(f"product-{size}", operator, product.triton_structures())
    for size, (images, height, channels, features) in convolution.SIZES.items():
        operator = convolution.make_convolution(
            images, height, channels, features, dtype="bfloat16"
        )
        yield _written(f"convolution-{size}", operator, convolution.triton_structures())
    for size, (heads, length, width) in attention.SIZES.items():
        operator = attention.make_attention(heads, length, width, dtype="bfloat16")
        yield _written(f"attention-{size}", operator, attention.triton_structures())
    for drafts in _DEVICE_DRAFTS:
        yield drafts.name, drafts


def _on_processor() -> Iterator[tuple[str, Make]]:
    for size, (rows, cols, depth) in product.CPU_SIZES.items():
        operator = product.make_product(rows, cols, depth, dtype="float32")
        yield _written(f"cpu-product-{size}", operator, product.cpp_structures())
    for size, (images, height, channels, features) in convolution.CPU_SIZES.items():
        operator = convolution.make_convolution(images, height, channels, features, dtype="float32")
        yield _written(f"cpu-convolution-{size}", operator, convolution.cpp_structures())


def _written(name: str, operator: Operator, structures: tuple[Structure, ...]) -> tuple[str, Make]:
    return name, lambda _: Space(name, operator, structures)


_DEVICE_DRAFTS: Final = (
    _Drafts("rms-norm-long", "rms_norm", "r64-c16384-bf16", 2),
    _Drafts("rms-norm-short", "rms_norm", "r65536-c256-bf16", 2),
    _Drafts("softmax-bf16", "softmax", "r8192-c4096-bf16", 1),
    _Drafts("softmax-fp32", "softmax", "r8192-c8192-fp32", 1),
    _Drafts("gelu-bias", "gelu_bias", "r8192-c4096-bf16", 1),
    _Drafts("map-id-large", "map_id", "e1000000-b4000000", 1),
    _Drafts("map-id-small", "map_id", "e10000-b50000", 1),
    _Drafts("truncate", "batch_event_truncate", "f9-u1024-max200", 4),
)
SPACES: Final[Mapping[TargetName, Mapping[str, Make]]] = {
    "cuda": dict(_on_device()),
    "cpu": dict(_on_processor()),
}
"""More than are kept: those that turn out too easy are left out."""
HELD_OUT: Final = ("convolution-deep", "softmax-fp32")
"""Never looked at while policies are chosen; reported alone."""
