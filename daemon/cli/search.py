"""The commands that run a job on this machine: optimize, evaluate, doctor, bench."""

import shlex
import sys
import uuid
from argparse import Namespace
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from daemon.cli.arguments import (
    MisuseError,
    find_hardware,
    find_operator,
    load_given,
)
from daemon.cli.search_report import (
    show_abilities,
    show_evaluation,
    show_optimization,
)
from daemon.cli.stop import heeding_signals
from daemon.cli.terminal import Terminal
from daemon.jobs import JobError, Jobs, Task
from daemon.logs import configure_logs
from daemon.sealing import seal
from daemon.settings import Settings, SettingsError
from daemon.workspace import find_revision
from knowledge.evidence import Better
from knowledge.outcome import Passed
from operator_registry.fault import RegistryError
from operator_registry.record import Record
from optimizer.candidate import Candidate
from optimizer.errors import KernelFolderError, OptimizerError
from optimizer.job import (
    BenchRequest,
    BenchResult,
    DoctorRequest,
    DoctorResult,
    EvaluateRequest,
    EvaluateResult,
    OptimizeRequest,
    OptimizeResult,
    Result,
)
from optimizer.kernel import read_candidate, write_files
from optimizer.plan import Plan
from optimizer.spending import Allowance

MISUSE = (MisuseError, SettingsError)
FAULTS = (RegistryError, JobError, OptimizerError, OSError)


def optimize(args: Namespace, terminal: Terminal) -> int:
    """Search for a faster kernel, prove it, and write its folder."""
    settings = Settings.load()
    registry = load_given(args.registry)
    operator = find_operator(registry, args.operator)
    hardware = find_hardware(registry, args.hardware)
    out = args.out or Path("kernels") / operator.name / hardware.name
    key = f"optimize-{operator.name}-{uuid.uuid4().hex[:16]}"
    request = OptimizeRequest(
        operator=operator,
        hardware=hardware,
        goal_key=key,
        store_url=settings.store_url,
        state_folder=settings.state / "artefacts",
        out_folder=settings.state / "kernels" / key,
        budget_s=args.budget or registry.config.budget_s,
        minimum_gain=registry.config.minimum_gain,
        incumbent_folder=out.absolute() if out.is_dir() else None,
        accept_weak_sandbox=settings.accept_weak_sandbox,
        allowance=Allowance(
            device_s=args.device_seconds,
            cpu_s=args.cpu_seconds,
            tokens=args.tokens,
            money_usd=args.money,
        ),
        trials=args.trials,
        fitness=args.fitness,
        roofline_percent=args.roofline,
        model=settings.model,
    )
    title = f"{operator.name} on {hardware.name}"
    result = run_job("optimize", request, title, terminal)
    if not isinstance(result, OptimizeResult):
        return tell_stopped(terminal)
    if result.kernel_folder is not None:
        seal(result.kernel_folder, settings.signing_key)
        _copy(result.kernel_folder, out)
        result = result.model_copy(update={"kernel_folder": out})
    if terminal.as_json:
        terminal.tell(result)
    else:
        show_optimization(result, terminal)
    return 0 if isinstance(result.verdict, Better) else 1


def evaluate(args: Namespace, terminal: Terminal) -> int:
    """Try one kernel, as a search would."""
    settings = Settings.load()
    registry = load_given(args.registry)
    candidate = _read_candidate(args.file)
    request = EvaluateRequest(
        operator=find_operator(registry, args.operator),
        hardware=find_hardware(registry, args.hardware),
        candidate=candidate,
        state_folder=settings.state / "artefacts",
        confirm=args.confirm,
        budget_s=args.budget or registry.config.budget_s,
        minimum_gain=registry.config.minimum_gain,
    )
    result = run_job("evaluate", request, str(args.file), terminal)
    if not isinstance(result, EvaluateResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        show_evaluation(result, terminal)
    passed = isinstance(result.evaluation.outcome, Passed)
    proven = isinstance(result.verdict, Better) or not args.confirm
    return 0 if passed and proven else 1


def doctor(args: Namespace, terminal: Terminal) -> int:
    """Say what this machine can build, run, time and sandbox, and what to install."""
    result = run_job(
        "doctor",
        DoctorRequest(state_folder=Settings.load().state / "artefacts"),
        "this machine",
        terminal,
    )
    if not isinstance(result, DoctorResult):
        return tell_stopped(terminal)
    if terminal.as_json:
        terminal.tell(result)
    else:
        show_abilities(result, terminal)
    return 0 if all(ability.able for ability in result.abilities) else 1


def bench(args: Namespace, terminal: Terminal) -> int:
    """Optimise every operator of the registry and write the table."""
    settings = Settings.load()
    registry = load_given(args.registry)
    hardware = find_hardware(registry, args.hardware)
    file = args.out / "catalog.json"
    if file.exists() and not args.resume:
        msg = f"{file} is there already; add --resume to keep its rows, or delete it"
        raise MisuseError(msg)
    request = BenchRequest(
        operators=tuple(
            operator
            for operator in registry.operators.values()
            if operator.spec.workloads_on(hardware.target)
        ),
        hardware=hardware,
        folder=args.out.absolute(),
        store_url=settings.store_url,
        state_folder=settings.state / "artefacts",
        kernels_folder=args.kernels.absolute() if args.kernels else None,
        budget_s=args.budget or registry.config.budget_s,
        minimum_gain=registry.config.minimum_gain,
        commit=args.commit or find_revision(Path(__file__).parent) or "",
        command=shlex.join(("kernelevolve", *sys.argv[1:])),
        shard=args.shard,
    )
    result = run_job("bench", request, f"catalogue on {hardware.name}", terminal)
    if not isinstance(result, BenchResult):
        return tell_stopped(terminal)
    if args.kernels and settings.signing_key:
        for dispatch in args.kernels.glob(f"*/{hardware.name}/dispatch.json"):
            seal(dispatch.parent, settings.signing_key)
    if terminal.as_json:
        terminal.tell(result)
    else:
        for name, value in result.summary.items():
            terminal.say(f"{name}: {value:.4g}")
        terminal.say(f"the table: {result.file.with_suffix('.md')}")
    for reason in result.unfinished:
        terminal.complain(f"not finished: {reason}")
    return 1 if result.unfinished else 0


def _read_candidate(file: Path) -> Candidate:
    """Return the candidate of a code file; the ``plan.json`` beside it may be a bare plan."""
    if not file.exists():
        msg = f"there is no {file}"
        raise MisuseError(msg)
    try:
        plan = Plan.from_json((file.parent / "plan.json").read_bytes())
        host: Literal["plan", "python"] = "python" if plan.language == "python" else "plan"
        code = file.read_text(encoding="utf-8")
        return Candidate(code=code, plan=plan, origin="person", host=host)
    except FileNotFoundError as error:
        msg = f"there is no plan.json beside {file}; it says how the code is launched"
        raise MisuseError(msg) from error
    except ValidationError:
        pass
    try:
        return read_candidate(file)
    except KernelFolderError as error:
        raise MisuseError(str(error)) from error


def run_job(task: Task, request: Record, title: str, terminal: Terminal) -> Result | None:
    """Run a job, showing its progress; None where it was stopped before it had a result."""
    configure_logs(Settings.load().log, sys.stderr)
    with heeding_signals() as stop, terminal.progress(title) as on_progress:
        return Jobs().run(
            task, request, on_progress=on_progress, keep_going=lambda: not stop.is_set()
        )


def tell_stopped(terminal: Terminal) -> int:
    """Say that there is no result; return the exit code of that."""
    terminal.complain("kernelevolve: stopped before there was a result")
    return 1


def _copy(made: Path, out: Path) -> None:
    """Put the kernel where it was asked for; what `verifications.jsonl` holds there stays."""
    files = {
        path.relative_to(made).as_posix(): path.read_text(encoding="utf-8")
        for path in made.rglob("*")
        if path.is_file() and path.name != "verifications.jsonl"
    }
    write_files(out, files)
