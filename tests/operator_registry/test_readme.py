"""What the README tells a newcomer to write is a sound registry, and it runs."""

import re
from pathlib import Path

import torch

from operator_registry.inputs import load_reference, make_inputs
from operator_registry.registry import CATALOG, load_registry, parse_registry, read_files

README = (Path(__file__).parents[2] / "operator_registry" / "README.md").read_text(encoding="utf-8")


def block(language: str) -> str:
    found = re.search(rf"^```{language}\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    assert found
    return found.group(1)


FILES = {
    **read_files(CATALOG),
    "operators/swiglu/operator.yaml": block("yaml"),
    "operators/swiglu/reference.py": block("python"),
}


def test_the_operator_of_the_readme_is_sound() -> None:
    assert set(parse_registry(FILES).operators) == {*load_registry(CATALOG).operators, "swiglu"}


def test_the_operator_of_the_readme_runs() -> None:
    operator = parse_registry(FILES).operators["swiglu"]
    module = load_reference(operator)
    inputs = make_inputs(operator, operator.spec.workloads_on("cpu")[0], seed=1)

    torch.testing.assert_close(module.swiglu(*inputs), module.by_sigmoid(*inputs))
