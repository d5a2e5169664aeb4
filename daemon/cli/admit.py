"""The command that probes operators: ``kernelevolve admit``."""

from argparse import Namespace
from collections.abc import Iterator

from daemon.cli.arguments import find_hardware, find_operator, load_given
from daemon.cli.search import FAULTS, MISUSE, run_job, tell_stopped
from daemon.cli.terminal import Terminal
from daemon.settings import Settings
from knowledge.admission import Admission
from optimizer.job import AdmitRequest, AdmitResult

__all__ = ["FAULTS", "MISUSE", "admit"]


def admit(args: Namespace, terminal: Terminal) -> int:
    """Say of each operator whether its checks prove anything, and what gets past them if not."""
    registry = load_given(args.registry)
    hardware = find_hardware(registry, args.hardware)
    named = [find_operator(registry, args.operator)] if args.operator else None
    operators = tuple(
        operator
        for operator in named or registry.operators.values()
        if operator.spec.workloads_on(hardware.target)
    )
    request = AdmitRequest(
        operators=operators,
        hardware=hardware,
        state_folder=Settings.load().state / "artefacts",
    )
    title = f"operators on {hardware.name}"
    result = run_job("admit", request, title, terminal)
    if not isinstance(result, AdmitResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        for admission in result.admissions:
            for line in _lines(admission):
                terminal.say(line)
    for failure in result.failures:
        terminal.complain(failure)
    sound = all(admission.admitted for admission in result.admissions)
    whole = len(result.admissions) == len(operators)
    return 0 if sound and whole else 1


def _lines(admission: Admission) -> Iterator[str]:
    if not admission.admitted:
        yield f"degenerate  {admission.operator}: {admission.reason}"
        return
    yield f"admitted    {admission.operator}: every probe was rejected in {admission.cases} cases"
    for name, probes in admission.fooled.items():
        if probes:
            yield f"            but its output {name} alone passes as {', '.join(probes)}"
