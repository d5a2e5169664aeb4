"""Finds, proves and proposes faster kernels for the operators of a registry."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console

from daemon.cli.amounts import amount_of, count_of, seconds_of, shard_of

_WIDE = 240


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 good, 1 a finding, 2 misuse."""
    args = _build_parser().parse_args(argv)
    # Loaded only now, so that `--help` and a typing error are answered at once.
    commands: Any = importlib.import_module(f"daemon.cli.{args.module}")
    terminal = _open_terminal(as_json=getattr(args, "json", False))
    try:
        code: int = getattr(commands, args.run)(args, terminal)
    except commands.MISUSE as error:
        terminal.complain(f"kernelevolve: {error}")
        return 2
    except commands.FAULTS as error:
        terminal.complain(f"kernelevolve: {error}")
        return 1
    return code


def _open_terminal(*, as_json: bool) -> Any:  # noqa: ANN401 - its module is loaded late
    terminal = importlib.import_module("daemon.cli.terminal")
    return terminal.Terminal(
        # A script that reads a table wants a row on a line.
        out=Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else _WIDE),
        err=Console(file=sys.stderr, highlight=False),
        as_json=as_json,
    )


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kernelevolve",
        description=__doc__,
        epilog="Exit codes: 0 good, 1 a finding, 2 misuse. Settings are KERNELEVOLVE_* variables; "
        "see daemon/README.md.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_registry(commands)
    _add_search(commands)
    _add_kernel(commands)
    _add_redteam(commands)
    _add_bot(commands)
    _add_fleet(commands)
    hardware = commands.add_parser("hardware", help="look at this machine's hardware")
    looks = hardware.add_subparsers(required=True, metavar="ACTION")
    what = "draft hardware/NAME.yaml for this machine's GPU, or else its processor"
    detect = _add(looks, "detect", "hardware", "detect", what)
    detect.add_argument("--cpu", action="store_true", help="the processor, also beside a GPU")
    detect.add_argument("--out", type=Path, metavar="FILE", help="(the standard output)")
    _add_job(commands)
    demo = _add(commands, "demo", "demo", "demo", "show the whole path, from commit to proof")
    demo.add_argument("--operator", default="gelu_bias", help="which of the catalogue's to add")
    return parser


def _add_registry(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    registry = commands.add_parser("registry", help="work on a registry's files")
    actions = registry.add_subparsers(required=True, metavar="ACTION")
    validate = _add(actions, "validate", "registry", "validate", "report every fault")
    validate.add_argument("folder", nargs="?", type=Path, metavar="DIR", help=_REGISTRY_HELP)
    _add_json(validate)
    plan = _add(commands, "plan", "registry", "show_plan", "show the goals of a change, and why")
    plan.add_argument("--since", metavar="REV", help="the git revision to compare with (HEAD)")
    _add_registry_folder(plan)
    _add_json(plan)

    config = commands.add_parser("config", help="work on .github/kernelevolve.yml")
    actions = config.add_subparsers(required=True, metavar="ACTION")
    check = _add(actions, "check", "config", "check", "report every fault, or what it comes to")
    check.add_argument("file", nargs="?", type=Path, help="(.github/kernelevolve.yml)")
    _add_json(check)
    schema = _add(commands, "schema", "config", "show_schema", "print a JSON Schema for editors")
    schema.add_argument("kind", nargs="?", choices=_KINDS, default="config", help=_KINDS_HELP)


def _add_search(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    optimize = _add(commands, "optimize", "search", "optimize", "search for a faster kernel")
    optimize.add_argument("operator", help="an operator of the registry")
    _add_hardware(optimize)
    _add_budget(optimize)
    optimize.add_argument("--out", type=Path, metavar="DIR", help=_OUT_HELP)
    _add_endings(optimize)
    _add_registry_folder(optimize)
    _add_json(optimize)

    _add_tree(commands)

    evaluate = _add(commands, "evaluate", "search", "evaluate", "try a kernel of your own")
    evaluate.add_argument("file", type=Path, help="its code; plan.json lies beside it")
    evaluate.add_argument("--operator", required=True, help="what it computes")
    _add_hardware(evaluate)
    evaluate.add_argument("--confirm", action="store_true", help="prove it in a confirming run too")
    _add_budget(evaluate)
    _add_registry_folder(evaluate)
    _add_json(evaluate)

    what = "say which operators' checks prove anything"
    admit = _add(commands, "admit", "admit", "admit", what)
    admit.add_argument("operator", nargs="?", help="one operator of the registry (all of them)")
    admit.add_argument("--hardware", default="cpu", metavar="H", help=_HARDWARE_HELP)
    _add_registry_folder(admit)
    _add_json(admit)

    doctor = _add(commands, "doctor", "search", "doctor", "say what this machine can do")
    _add_json(doctor)
    _add_knowledge(commands)

    bench = commands.add_parser("bench", help="measure side by side")
    kinds = bench.add_subparsers(required=True, metavar="KIND")
    catalog = _add(kinds, "catalog", "search", "bench", "optimise every operator; write a table")
    _add_hardware(catalog)
    catalog.add_argument("--out", type=Path, required=True, metavar="DIR", help="for catalog.json")
    catalog.add_argument("--kernels", type=Path, metavar="DIR", help="where winners are copied to")
    _add_budget(catalog)
    catalog.add_argument("--resume", action="store_true", help="keep the rows that are there")
    catalog.add_argument(
        "--shard", type=shard_of, default=(1, 1), metavar="I/N", help="one part of N"
    )
    catalog.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_registry_folder(catalog)
    _add_json(catalog)

    _add_aa(kinds)
    _add_throughput(kinds)
    _add_landscapes(kinds)
    about = "drill a fleet: workers and the scheduler are killed, and nothing may be lost"
    fleet = _add(kinds, "fleet", "fleet_bench", "bench_fleet", about)
    fleet.add_argument("--goals", type=int, default=100, metavar="N", help="of 20 trials (100)")
    out = Path("benchmarks")
    fleet.add_argument("--out", type=Path, default=out, metavar="DIR", help="for fleet.json")
    fleet.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_json(fleet)


def _add_knowledge(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    about = "show what is known: documents on devices, languages, patterns and errors"
    knowledge = _add(commands, "knowledge", "knowledge", "show_knowledge", about)
    what = "words to search for, such as an error's message, or a document's name (all of them)"
    knowledge.add_argument("query", nargs="*", metavar="QUERY", help=what)
    knowledge.add_argument("--language", choices=_LANGUAGES, help="only what concerns it")
    what = "only what concerns it; cpu is this machine's own"
    knowledge.add_argument("--hardware", metavar="H", help=what)
    what = "a kind of region that the operator has, such as 'row reduction'; may be repeated"
    knowledge.add_argument("--region", action="append", default=[], metavar="KIND", help=what)
    _add_registry_folder(knowledge)
    _add_json(knowledge)


def _add_tree(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    tree = _add(commands, "tree", "tree", "show_tree", "draw what a search has tried")
    tree.add_argument("search", help="its number, or how its goal's key begins")
    what = "nodes that are shown at most; the rest is counted (60)"
    tree.add_argument("--rows", type=count_of, default=60, metavar="N", help=what)
    tree.add_argument("--svg", type=Path, metavar="FILE", help="write a picture as well")
    _add_json(tree)


def _add_endings(optimize: argparse.ArgumentParser) -> None:
    ends = optimize.add_argument_group("what else ends the search")
    ends.add_argument("--trials", type=count_of, metavar="N", help="after so many trials")
    what = "once a kernel is so many times as fast as its best peer"
    ends.add_argument("--fitness", type=amount_of, metavar="F", help=what)
    what = "once a kernel's times are within so many percent of the memory's roofline"
    ends.add_argument("--roofline", type=amount_of, metavar="PERCENT", help=what)
    what = "seconds for which a device is leased; a part is kept for the proof"
    ends.add_argument("--device-seconds", type=amount_of, metavar="S", help=what)
    what = "seconds of processors, of all processes; a part is kept for the proof"
    ends.add_argument("--cpu-seconds", type=amount_of, metavar="S", help=what)
    ends.add_argument("--tokens", type=count_of, metavar="N", help="of language models")
    ends.add_argument("--money", type=amount_of, metavar="USD", help="for language models")


def _add_throughput(kinds: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    about = "count the trials that the judge makes in a minute, and where the time goes"
    throughput = _add(kinds, "throughput", "throughput", "bench_throughput", about)
    throughput.add_argument("--hardware", default="cpu", metavar="H", help=_HARDWARE_HELP)
    what = "how long to go on: 60s, 2m (60s)"
    throughput.add_argument("--seconds", type=seconds_of, default=60.0, metavar="TIME", help=what)
    what = "candidates in a batch (ten to a translation unit)"
    throughput.add_argument("--batch", type=int, metavar="N", help=what)
    what = "for throughput.json (benchmarks/cpu, benchmarks/H)"
    throughput.add_argument("--out", type=Path, metavar="DIR", help=what)
    throughput.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_registry_folder(throughput)
    _add_json(throughput)


def _add_landscapes(kinds: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    about = "record what becomes of every point of schedule spaces"
    record = _add(kinds, "landscapes", "landscapes", "bench_landscapes", about)
    _add_hardware(record)
    what = "for NAME.json, whose points stay"
    record.add_argument("--out", type=Path, required=True, metavar="DIR", help=what)
    record.add_argument("--only", default="", metavar="NAME", help="one space (all)")
    record.add_argument("--points", type=int, metavar="N", help="of each space at most N (all)")
    record.add_argument(
        "--shard", type=shard_of, default=(1, 1), metavar="I/N", help="one part of N"
    )
    record.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_registry_folder(record)
    _add_json(record)
    about = "replay recorded landscapes: how many evaluations each policy takes"
    replay = _add(kinds, "search", "landscapes", "bench_search", about)
    what = "where they were recorded"
    replay.add_argument("--landscapes", type=Path, required=True, metavar="DIR", help=what)
    what = "for search.json; its Markdown goes beside it"
    replay.add_argument("--out", type=Path, required=True, metavar="FILE", help=what)
    replay.add_argument("--seeds", type=int, default=20, metavar="N", help="of each race (20)")
    replay.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_json(replay)


def _add_aa(kinds: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    about = "compare a kernel with itself: false wins and power of the judge"
    aa = _add(kinds, "aa", "aa", "bench_aa", about)
    aa.add_argument("--hardware", default="cpu", metavar="H", help=_HARDWARE_HELP)
    aa.add_argument("--comparisons", type=int, default=3000, metavar="N", help="A/A ones (3000)")
    aa.add_argument("--trials", type=int, default=200, metavar="N", help="a true gain (200)")
    aa.add_argument("--pairs", type=int, default=60, help="process pairs kept alive (60)")
    aa.add_argument("--per-comparison", type=int, default=16, help="pairs in each (16)")
    what = "samples of each side in each pair (3; on a device 2)"
    aa.add_argument("--rounds", type=int, metavar="N", help=what)
    what = "the same in the trials of true gains (7; on a device 3)"
    aa.add_argument("--trial-rounds", type=int, metavar="N", help=what)
    what = "for aa.json, whose rows stay (benchmarks/cpu, benchmarks/H)"
    aa.add_argument("--out", type=Path, metavar="DIR", help=what)
    aa.add_argument("--shard", type=shard_of, default=(1, 1), metavar="I/N", help="one part of N")
    aa.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_registry_folder(aa)
    _add_json(aa)


def _add_kernel(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    verify = _add(commands, "verify", "kernel", "verify", "replay a kernel with new seeds")
    verify.add_argument("folder", type=Path, metavar="DIR", help="kernels/OPERATOR/HARDWARE")
    what = "replay every kernel below DIR; 1 where one does not stand"
    verify.add_argument("--all", action="store_true", help=what)
    verify.add_argument("--record", action="store_true", help="append to verifications.jsonl")
    _add_budget(verify)
    _add_json(verify)
    sign = _add(commands, "sign", "kernel", "sign", "sign a kernel's folder")
    sign.add_argument("folder", type=Path, metavar="DIR", help="kernels/OPERATOR/HARDWARE")
    key = commands.add_parser("key", help="make or show the key that kernels are signed with")
    actions = key.add_subparsers(required=True, metavar="ACTION")
    new = _add(actions, "new", "kernel", "make_key", "write a new private key")
    new.add_argument("file", type=Path, help="where; it must not be there yet")
    _add(actions, "show", "kernel", "show_key", "show the public key of the settings' key")


def _add_redteam(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    about = "show that no cheat gets past the judge, and that each guard is needed"
    redteam = _add(commands, "redteam", "redteam", "redteam", about)
    redteam.add_argument("--target", choices=("cpu", "cuda"), default="cpu", help="(cpu)")
    redteam.add_argument("--hardware", metavar="H", help="of the target (the registry's first)")
    what = "only kinds whose names match, such as cpu/python/ or memo"
    redteam.add_argument("--only", default="", metavar="KIND", help=what)
    redteam.add_argument("--out", type=Path, metavar="DIR", help="for redteam.json and redteam.md")
    redteam.add_argument("--resume", action="store_true", help="keep the rows that are there")
    redteam.add_argument("--commit", default="", metavar="REV", help=_COMMIT_HELP)
    _add_registry_folder(redteam)
    _add_json(redteam)


def _add_bot(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    run = _add(commands, "run", "bot", "run", "make one turn of the daemon")
    run.add_argument("--once", action="store_true", required=True, help="one turn, then end")
    _add_json(run)
    serve = _add(commands, "serve", "bot", "serve", "be the daemon until told to stop")
    what = "where another daemon works already, wait, and take over when it is gone"
    serve.add_argument("--stand-by", action="store_true", help=what)
    status = _add(commands, "status", "bot", "show_status", "show the queue and what became of it")
    status.add_argument("--costs", action="store_true", help="what searches cost, in its stead")
    _add_json(status)
    what = "show who asked for what in comments, and what came of it"
    asked = _add(commands, "commands", "commands", "show_commands", what)
    asked.add_argument("--number", type=int, metavar="N", help="below this issue or pull request")
    asked.add_argument("--limit", type=int, default=50, metavar="N", help="how many (50)")
    _add_json(asked)
    what = "have nothing searched and nothing written, across restarts, until resume"
    pause = _add(commands, "pause", "bot", "pause_all", what)
    pause.add_argument("reason", nargs="*", metavar="REASON", help="shown wherever somebody asks")
    _add(commands, "resume", "bot", "resume_all", "end the pause")
    github = commands.add_parser("github", help="look at GitHub")
    looks = github.add_subparsers(required=True, metavar="ACTION")
    what = "say whether GitHub lets the daemon do its work, and what to change"
    _add_json(_add(looks, "doctor", "github", "doctor", what))
    requests = commands.add_parser("pr", help="look at pull requests of the local forge")
    actions = requests.add_subparsers(required=True, metavar="ACTION")
    _add_json(_add(actions, "list", "bot", "list_pull_requests", "list them, newest first"))
    show = _add(actions, "show", "bot", "show_pull_request", "show one")
    show.add_argument("number", type=int)
    _add_json(show)
    close = _add(actions, "close", "bot", "close_pull_request", "close one: that is a no")
    close.add_argument("number", type=int)
    _add_json(close)


def _add_fleet(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    what = "show the devices, the queue, and who runs what"
    fleet = _add(commands, "fleet", "fleet", "show", what)
    _add_json(fleet)
    actions = fleet.add_subparsers(metavar="ACTION")
    for name, about in (
        ("cordon", "have a device leased no more; what runs on it goes on"),
        ("drain", "have a device leased no more, and what runs on it handed back"),
    ):
        rule = _add(actions, name, "fleet", name, about)
        rule.add_argument("device", metavar="DEVICE", help=_DEVICE_HELP)
        rule.add_argument("--why", required=True, metavar="TEXT", help="shown wherever it is")
    free = _add(actions, "uncordon", "fleet", "uncordon", "have a device leased again")
    free.add_argument("device", metavar="DEVICE", help=_DEVICE_HELP)


def _add_job(commands: Any) -> None:  # noqa: ANN401 - argparse names no type for it
    what = "do what the daemon sent to this machine; a runner of the code host calls it"
    job = _add(commands, "job", "job", "run", what)
    job.add_argument("file", type=Path, help="the request, as it came")
    job.add_argument("--out", type=Path, required=True, metavar="FILE", help="for the answer")


def _add(commands: Any, name: str, module: str, run: str, about: str) -> argparse.ArgumentParser:  # noqa: ANN401 - argparse names no type for it
    parser: argparse.ArgumentParser = commands.add_parser(name, help=about, description=about)
    parser.set_defaults(module=module, run=run)
    return parser


_LANGUAGES = ("cpp", "triton")
_KINDS = ("config", "operator", "hardware", "model", "registry")
_KINDS_HELP = f"of which kind of file: {', '.join(_KINDS)} (config)"
_REGISTRY_HELP = "the registry's folder (./ if it has registry.yaml, else the one that ships)"
_HARDWARE_HELP = "a hardware of the registry; cpu is this machine's own"
_DEVICE_HELP = "as `fleet` shows it, or the part after the last slash"
_COMMIT_HELP = "the revision measured (git's, where this is a checkout)"
_OUT_HELP = "the kernel's folder (./kernels/OPERATOR/HARDWARE)"


def _add_registry_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--registry", type=Path, metavar="DIR", help=_REGISTRY_HELP)


def _add_hardware(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--hardware", required=True, metavar="H", help=_HARDWARE_HELP)


def _add_budget(parser: argparse.ArgumentParser) -> None:
    what = "time to spend: 60s, 2m (the registry's)"
    parser.add_argument("--budget", type=seconds_of, metavar="TIME", help=what)


def _add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the result for scripts")
