"""The catalogue of exploits, and which rows a candidate can't express, with the reason."""

from collections.abc import Mapping
from typing import Final

ROWS: Final[Mapping[str, str]] = {
    "T1": "work on a side stream that nothing waits for",
    "T2": "work in a background thread or process",
    "T3": "lazy outputs, computed once somebody looks",
    "T4": "the clock patched in the process",
    "T5": "statistics tampered with; a shape that takes no time",
    "T6": "native hijack of the harness: detours, tracing",
    "T7": "a forged answer to the judge",
    "T8": "warm-up told from measurement, or sleep to cut repetitions",
    "T9": "a known sequence of calls served at once",
    "T10": "a captured graph replayed on stale addresses",
    "T11": "data kept in a cache through the flush",
    "T12": "the flush made to do nothing",
    "T13": "events that do not time",
    "T14": "a handicapped baseline",
    "T15": "work moved to import, first call or a cache of packed weights",
    "T16": "many calls captured, one of them works",
    "T17": "initialisation left to the allocator",
    "T18": "a planning step outside the window",
    "O1": "outputs kept by address, content or shape",
    "O2": "the warm-up's output left where it lies",
    "O3": "outputs kept in a file or in shared memory",
    "O4": "memory that still holds the reference's output",
    "O5": "the expected output found in memory",
    "O6": "the expected output overwritten",
    "O7": "inputs changed until the reference agrees",
    "O8": "seeds foreseen, public cases computed beforehand",
    "O9": "zeros or a constant",
    "O10": "an input passed through",
    "O11": "silence taken for success",
    "O12": "a thin wrapper over the library",
    "O13": "a kernel that is there and never runs",
    "O14": "the reference reached through the interpreter",
    "O15": "the comparison patched",
    "O16": "the harness edited",
    "O17": "a test told from a measurement",
    "O18": "poison recognised",
    "O19": "a memo that lives on the device",
    "O20": "network, hidden code, forbidden imports",
    "O21": "the harness's command line abused",
    "S1": "lower precision than asked for",
    "S2": "hard-coded sizes",
    "S3": "the inputs' distribution exploited",
    "S4": "numerical safety dropped",
    "S5": "gain from a redundant reference",
    "S6": "garbage read, results that differ from run to run",
    "S7": "a parameter changed",
    "S8": "another artefact measured than was written",
    "S9": "aliasing, wrong strides, writes out of bounds",
    "S10": "a race hidden by the tolerance",
}

_ALWAYS: Final[Mapping[str, str]] = {
    "T13": "the events are the judge's own, made in its clock",
    "T14": "the baseline's code, flags and process are the judge's own",
    "T16": "the judge makes one logical call a sample and never divides by a count",
    "T18": "there is no call outside the window: all steps of a plan, and all of run(), are timed",
    "O8": "seeds come from the system's random source after the candidate is frozen, and no "
    "setting makes them foreseeable",
    "O11": "an outcome is computed from outputs; there is no text or exit code to pass by",
    "O21": "a candidate is a record; nothing of it becomes an argument of a command",
    "S5": "a fault of the operator, not of a candidate: admission rejects it",
}
_PLAN_ON_DEVICE: Final[Mapping[str, str]] = {
    "T1": "a plan's launches are on one stream, which is the executor's",
    "T2": "no code of the candidate's runs on the host",
    "T3": "outputs are memory of the judge's; a kernel returns no object",
    "T4": "no code of the candidate's runs in the timed process's host side",
    "T5": "no code of the candidate's runs in the timed process's host side",
    "T6": "no native host code",
    "T7": "no code of the candidate's runs where the channel is",
    "T10": "a plan holds no graphs",
    "T12": "a kernel can't reach the host's flush",
    "O5": "no code of the candidate's runs where an interpreter could be searched",
    "O6": "no code of the candidate's runs where an interpreter could be searched",
    "O14": "no code of the candidate's runs where an interpreter could be searched",
    "O15": "no code of the candidate's runs where a comparison could be patched",
}
_ON_HOST: Final[Mapping[str, str]] = {
    "T1": "a processor has no streams; work beside the call is T2",
    "T10": "a processor has no graphs; stale addresses are O1",
    "T11": "a processor's cache can't be told to keep lines; to touch them beforehand is T8",
    "O19": "the device is the host: a memo in its memory is O1",
}
_NATIVE: Final[Mapping[str, str]] = {
    "T4": "native code reaches the interpreter only by looking symbols up, which is O12",
    "T12": "native code reaches the interpreter only by looking symbols up, which is O12",
    "O5": "native code reaches the interpreter only by looking symbols up, which is O12",
    "O6": "native code reaches the interpreter only by looking symbols up, which is O12",
    "O14": "native code reaches the interpreter only by looking symbols up, which is O12",
    "T3": "outputs are memory of the judge's; a kernel returns no object",
}
INEXPRESSIBLE: Final[Mapping[tuple[str, str], Mapping[str, str]]] = {
    ("cpu", "plan"): {**_ALWAYS, **_ON_HOST, **_NATIVE},
    ("cpu", "python"): {**_ALWAYS, **_ON_HOST},
    ("cuda", "plan"): {**_ALWAYS, **_PLAN_ON_DEVICE},
    ("cuda", "python"): dict(_ALWAYS),
}
"""By target and form: the rows for which there can be no cheat, and why."""
