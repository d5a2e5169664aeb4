"""A model's reply as candidates: lenient in its form, strict in what it says."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError

from operator_registry.hardware import HardwareSpec
from optimizer.candidate import Candidate, CandidateError, load_tunables
from optimizer.evaluate.screen import find_fault
from optimizer.plan import Plan
from optimizer.propose.fence import one_line

LONGEST: Final = 400_000
"""Characters of a reply that are read."""
_LONGEST_CODE: Final = 128_000
_MOST_BLOCKS: Final = 32
_MOST_TUNABLES: Final = 16
_MOST_VALUES: Final = 64
_MOST_STEPS: Final = 64
_NOTE: Final = 160
_FAULT: Final = 1200
_THOUGHT: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>|\Z)", re.DOTALL)
_BLOCK: Final = re.compile(
    r"^[ \t]{0,3}(`{3,}+|~{3,}+)[ \t]*([\w+#-]{0,20})[^\n]*+\n"
    r"(.*?)(?:^[ \t]{0,3}\1[`~]*[ \t]*$|\Z)",
    re.DOTALL | re.MULTILINE,
)
_COMMA: Final = re.compile(r",(\s*[}\]])")
_TRITON: Final = re.compile(r"@triton\.jit|import triton")
_RUN: Final = re.compile(r"^def run\(", re.MULTILINE)
_KERNEL: Final = re.compile(r"\bKERNEL\s*\(\s*\w+\s*\)")


@dataclass(frozen=True)
class Unusable:
    """A reply without a candidate, and what to tell the model of it."""

    reason: str


def read_reply(
    text: str, *, parent: Candidate | None, hardware: HardwareSpec, origin: str, most: int = 1
) -> tuple[Candidate, ...] | Unusable:
    """Return the candidates that a reply holds, at most so many; or what is wrong with it.

    Args:
        text: Anything.
        parent: The candidate that was to be bettered: a plan that is left out is its plan.
        hardware: What they are for.
        origin: The model's name.
        most: How many.
    """
    text = _THOUGHT.sub("", text[:LONGEST])
    found: list[Candidate] = []
    reasons: list[str] = []
    reader = _Reader(parent, hardware, origin, _note(text))
    for code, told in _pairs(text):
        made = reader.make(code, told)
        if isinstance(made, Candidate):
            found.append(made)
        else:
            reasons.append(made)
    if found:
        return tuple({candidate.id: candidate for candidate in found}.values())[:most]
    reason = reasons[0] if reasons else "the reply holds no block with code"
    return Unusable(reason[:_FAULT])


def find_objects(text: str) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a text: of its blocks, else from its first bracket to its last."""
    blocks = [body for _, body in _blocks(text)]
    first, last = text.find("{"), text.rfind("}")
    if 0 <= first < last:
        blocks.append(text[first : last + 1])
    for body in blocks:
        if (value := _object(body)) is not None:
            yield value


def _blocks(text: str) -> list[tuple[str, str]]:
    """Return the fenced blocks, each with its tag; the last may be without an end."""
    found: list[tuple[str, str]] = []
    for block in _BLOCK.finditer(text):
        found.append((block.group(2).lower(), block.group(3)))
        if len(found) == _MOST_BLOCKS:
            break
    return found


def _pairs(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each code with the object that follows it; empty where there is none."""
    blocks = _blocks(text)
    if not blocks:
        yield from _bare(text)
        return
    code = ""
    for tag, body in blocks:
        value = _object(body) if tag in ("json", "") else None
        if tag == "json" and value is None:
            value = {"fault": "the JSON block can't be read"}
        if value is not None:
            yield str(value.get("code") or code), value
            code = ""
            continue
        if code:
            yield code, {}
        code = body
    if code:
        yield code, {}


def _bare(text: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield what a reply without blocks holds: a JSON object with code in it, or code alone."""
    for value in find_objects(text):
        if isinstance(value.get("code"), str):
            yield value["code"], value
            return
    if _KERNEL.search(text) or _TRITON.search(text):
        yield text, {}


def _object(text: str) -> dict[str, Any] | None:
    for attempt in (text, _COMMA.sub(r"\1", text)):
        try:
            value = json.loads(attempt)
        except (ValueError, RecursionError):
            continue
        return value if isinstance(value, dict) else None
    return None


@dataclass(frozen=True)
class _Reader:
    """Makes candidates of what a reply holds."""

    parent: Candidate | None
    hardware: HardwareSpec
    origin: str
    note: str

    def make(self, code: str, told: dict[str, Any]) -> Candidate | str:
        """Return the candidate, or what is wrong with it."""
        if "fault" in told:
            return str(told["fault"])
        if not code.strip():
            if self.parent is None:
                return "there is a plan, but no block with code"
            code = self.parent.code
        if len(code) > _LONGEST_CODE:
            return f"the code has more than {_LONGEST_CODE} characters"
        plan = _plan(told, _language(code), self.parent)
        if isinstance(plan, str):
            return plan
        made = self._candidate(code.strip("\n") + "\n", plan, told.get("chosen"))
        if isinstance(made, str):
            return made
        return find_fault(made, self.hardware) or made

    def _candidate(self, code: str, plan: Plan, wished: object) -> Candidate | str:
        try:
            candidate = Candidate(
                code=code,
                plan=plan,
                chosen=_choose(code, plan.language, wished, self.parent),
                parent=self.parent.id if self.parent else None,
                origin=self.origin,
                note=self.note,
                host="python" if plan.language == "python" else "plan",
            )
            candidate.id.encode()
            candidate.to_json()
        except CandidateError as error:
            return str(error)
        except ValidationError as error:
            return _explain("candidate", error)
        except (UnicodeError, PydanticSerializationError, MemoryError):
            return "the code or the plan holds signs that are no text"
        return candidate


def _language(code: str) -> str:
    if _RUN.search(code):
        return "python"
    return "triton" if _TRITON.search(code) else "cpp"


def _plan(told: dict[str, Any], language: str, parent: Candidate | None) -> Plan | str:
    given = told.get("plan", told if "steps" in told else None)
    if given is None:
        if parent is not None and parent.plan.language == language:
            return parent.plan
        return "there is no plan: give its JSON in a block after the code"
    if not isinstance(given, dict):
        return "`plan` is no object"
    names = {"schema", *Plan.model_fields} - {"schema_version"}
    plan = given if given is not told else {k: v for k, v in given.items() if k in names}
    try:
        read = Plan.model_validate({"language": language, **plan, **_steps(plan)})
    except (ValidationError, RecursionError) as error:
        return _explain("plan", error)
    if max(len(read.steps), len(read.buffers), len(read.let)) > _MOST_STEPS:
        return f"the plan has more than {_MOST_STEPS} steps, buffers or names"
    return read


def _steps(plan: dict[str, Any]) -> dict[str, Any]:
    """Return the steps of a plan with all that can only mean one thing put right."""
    steps = plan.get("steps")
    if isinstance(steps, dict):
        steps = [steps]
    if not isinstance(steps, list):
        return {}
    return {"steps": [_step(step) if isinstance(step, dict) else step for step in steps]}


def _step(step: dict[str, Any]) -> dict[str, Any]:
    kinds = {"kernel": "launch", "op": "library", "buffer": "read_size"}
    kind = next((kind for name, kind in kinds.items() if name in step), "launch")
    step = {"kind": kind, **{name: _texts(value) for name, value in step.items()}}
    for name in ("grid", "arguments", "out"):
        if isinstance(step.get(name), str):
            step[name] = [step[name]]
    return step


def _texts(value: object) -> object:
    """Return numbers as the expressions that they are."""
    match value:
        case bool():
            return value
        case int() | float():
            return str(value)
        case list():
            return [_texts(each) for each in value[:1000]]
        case dict():
            return {name: _texts(each) for name, each in value.items()}
        case _:
            return value


def _choose(code: str, language: str, given: object, parent: Candidate | None) -> dict[str, int]:
    """Return a value for each tunable: the model's, else the parent's, else the middle one.

    Raises:
        CandidateError: The tunables can't be read, or there are too many.
    """
    tunables = load_tunables(code, language=language)
    if len(tunables) > _MOST_TUNABLES or any(
        not 0 < len(values) <= _MOST_VALUES for values in tunables.values()
    ):
        msg = f"TUNABLES are at most {_MOST_TUNABLES}, each with 1 to {_MOST_VALUES} values"
        raise CandidateError(msg)
    wishes: Sequence[object] = (given, parent.chosen if parent else None)
    chosen: dict[str, int] = {}
    for name, values in tunables.items():
        wished = [w.get(name) for w in wishes if isinstance(w, dict)]
        fitting = (v for v in wished if type(v) is int and v in values)
        chosen[name] = next(fitting, values[(len(values) - 1) // 2])
    return chosen


def _note(text: str) -> str:
    """Return the first line of prose."""
    prose = _BLOCK.sub("", text)
    line = next((line for line in prose.splitlines() if line.strip(" #*`{}[]")), "")
    return one_line(line, longest=_NOTE)


def _explain(what: str, error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return f"the {what} is nested too deep"
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"])) or "it"
    return f"the {what} can't be read: {where}: {first['msg']}"
