"""What is known of the kernel at a commit of ours: judged, replayed, or not to be said."""

from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from daemon.marks import Marks
from operator_registry.record import Record
from optimizer.job import CannotTell, NotReproduced, Reproduced, Verification


class Judged(Record):
    """The commit holds what the judge proved, as it proved it."""

    kind: Literal["judged"] = "judged"


class Replayed(Record):
    """The kernel was replayed at this commit, with new seeds."""

    kind: Literal["replayed"] = "replayed"
    verifications: tuple[Verification, ...]


class NotReplayed(Record):
    """It should be replayed and can't be."""

    kind: Literal["not_replayed"] = "not_replayed"
    why: str


Standing = Judged | Replayed | NotReplayed
Result = Literal["reproduced", "not_reproduced", "cannot_tell", "cannot_run"]
_STANDING: TypeAdapter[Standing] = TypeAdapter(Annotated[Standing, Field(discriminator="kind")])


def note_standing(memory: Marks, sha: str, standing: Standing) -> None:
    """Remember what is known of a commit."""
    memory.mark(_mark(sha), standing.to_json())


def find_standing(memory: Marks, sha: str) -> Standing | None:
    """Return what is known of a commit; None where nothing is."""
    text = memory.recall(_mark(sha))
    try:
        return _STANDING.validate_json(text) if text else None
    except ValidationError:
        return None  # of another version of this program: it is found out again


def sum_up(standing: Replayed) -> tuple[Result, str]:
    """Return what a replay says of all variants together, and that in a sentence."""
    findings = [v.finding for v in standing.verifications]
    for kind in (NotReproduced, CannotTell):
        for finding in findings:
            if isinstance(finding, kind):
                return finding.kind, finding.reason
    if findings and all(isinstance(finding, Reproduced) for finding in findings):
        sizes = min(v.checked_sizes for v in standing.verifications)
        ratios = [f"{v.ratio:.2f}x" for v in standing.verifications if v.ratio is not None]
        told = f", {', '.join(ratios)} of the best peer's speed" if ratios else ""
        return "reproduced", f"reproduced with new seeds at {sizes} sizes{told}"
    reasons = [f.reason for f in findings if not isinstance(f, Reproduced)]
    return "cannot_run", reasons[0] if reasons else "there is no kernel in the folder"


def _mark(sha: str) -> str:
    return f"standing/{sha}"
