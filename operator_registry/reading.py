"""One file of a registry -> its record and every fault in it; remembered by the file's text."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Generic, TypeVar

from operator_registry.checks.draft import draft_of, make_draft
from operator_registry.checks.operators import check_operator
from operator_registry.checks.source import InSource, check_source
from operator_registry.document import DocumentError, Node, find_text_fault, parse_document
from operator_registry.fault import Fault, Finding
from operator_registry.record import Record
from operator_registry.spec import OperatorSpec
from operator_registry.validation import validate

AnyRecord = TypeVar("AnyRecord", bound=Record)
FILES_REMEMBERED = 65536
"""Texts of files seen last: a later revision is read for the price of what changed."""


@dataclass(frozen=True)
class Reading(Generic[AnyRecord]):
    """What was read of a file."""

    path: str
    record: AnyRecord | None
    """None where the file does not hold the record."""
    root: Node | None
    """None where the file is no document."""
    faults: tuple[Fault, ...]

    def place(self, findings: Iterable[Finding]) -> Iterator[Fault]:
        """Yield the findings as faults of this file, each at its line."""
        for finding in findings:
            yield Fault(
                path=self.path,
                line=self.root.line_of(finding.where) if self.root else 1,
                message=finding.message,
                remedy=finding.remedy,
            )

    def with_findings(self, findings: Iterable[Finding]) -> "Reading[AnyRecord]":
        """Return the reading with more faults."""
        return replace(self, faults=(*self.faults, *self.place(findings)))


def missing(path: str, remedy: str = "add it") -> Fault:
    """Return the fault that a file is not there."""
    return Fault(path=path, line=1, message="is missing", remedy=remedy)


def read_record(kind: type[AnyRecord], path: str, text: str) -> Reading[AnyRecord]:
    """Return what a YAML file holds, judged by itself."""
    try:
        root, faults = parse_document(path, text)
    except DocumentError as error:
        return Reading(path, None, None, error.faults)
    record, findings = validate(kind, root)
    return Reading(path, record, root, faults).with_findings(findings)


@lru_cache(maxsize=FILES_REMEMBERED)
def read_operator(folder: str, text: str | None, source: str | None) -> Reading[OperatorSpec]:
    """Return what an operator's two files hold, judged together; None for a file that is absent."""
    path, source_path = (f"operators/{folder}/{file}" for file in ("operator.yaml", "reference.py"))
    faults = [missing(each) for each, got in ((path, text), (source_path, source)) if got is None]
    if text is None:
        return Reading(path, None, None, tuple(faults))
    reading = read_record(OperatorSpec, path, text)
    faults += reading.faults
    if source is not None and (fault := find_text_fault(source_path, source)):
        faults.append(fault)
        source = None
    if reading.root:
        draft = draft_of(reading.record) if reading.record else make_draft(reading.root)
        faults += reading.place(check_operator(draft, folder))
        for found in check_source(draft, source) if source is not None else ():
            if isinstance(found, InSource):
                faults.append(found.to_fault(source_path))
            else:
                faults += reading.place((found,))
    return replace(reading, faults=tuple(faults))
