from pathlib import Path

from daemon.planner import Work
from daemon.published import copy_kin
from operator_registry.registry import Operator
from operator_registry.spec import AttributeSpec
from tests.makers import HARDWARE, OPERATOR

WORK = Work(operator=OPERATOR, hardware=HARDWARE, minimum_gain=1.05, budget_s=60, revision="r")


class Clone:
    """Files of one revision."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self._files = files

    def files(self, revision: str, folder: str = "", *, named: str = "") -> dict[str, bytes]:
        start = f"{folder}/"
        return {
            path.removeprefix(start): content
            for path, content in self._files.items()
            if path.startswith(start) and path.endswith(named)
        }


def publish(operator: Operator, name: str, hardware: str) -> dict[str, bytes]:
    folder = f"kernels/{name}/{hardware}"
    spec = operator.spec.model_copy(update={"name": name})
    body = operator.model_copy(update={"spec": spec}).to_json().encode()
    return {f"{folder}/operator.json": body, f"{folder}/dispatch.json": b"{}"}


def test_kernels_of_others_that_are_alike_are_copied_for_the_same_hardware(tmp_path: Path) -> None:
    two = {"factor": AttributeSpec(value=2.0), "bias": AttributeSpec(value=0.0)}
    unlike = OPERATOR.model_copy(
        update={"spec": OPERATOR.spec.model_copy(update={"attributes": two})}
    )
    clone = Clone(
        publish(OPERATOR, "stretch", HARDWARE.name)
        | publish(OPERATOR, "elsewhere", "h200")
        | publish(unlike, "unlike", HARDWARE.name)
        | publish(OPERATOR, OPERATOR.name, HARDWARE.name)
        | {f"kernels/damaged/{HARDWARE.name}/operator.json": b"{"}
    )

    (copy,) = copy_kin(clone, "r", WORK, tmp_path)

    assert copy == tmp_path / "stretch"
    assert sorted(path.name for path in copy.iterdir()) == ["dispatch.json", "operator.json"]
