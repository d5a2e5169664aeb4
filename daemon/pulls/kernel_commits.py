"""What lies in a commit of ours, and that commit made anew on top of another base."""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from daemon.origin import TooLargeError
from daemon.pulls.branches import Branches
from daemon.pulls.pull_request import Proposal, commit_message, kernel_path
from knowledge.evidence import Evidence
from operator_registry.registry import Operator
from optimizer.kernel import VERIFICATIONS

_MOST_BYTES = 8_000_000
"""A folder's files together: evidence and pictures have limits far below."""


@dataclass(frozen=True)
class KernelCommits:
    """The kernel's folder of one operator and hardware, at any commit that the clone holds."""

    branches: Branches
    operator: str
    hardware: str

    @property
    def path(self) -> str:
        """Return where the folder lies."""
        return kernel_path(self.operator, self.hardware)

    def files(
        self, revision: str, *, under: Sequence[str] = (), named: str = ""
    ) -> dict[str, bytes]:
        """Return the folder's files, by their path in it.

        Raises:
            TooLargeError: They are larger than those of a kernel: a person's, then.
        """
        return self.branches.repository.files(
            revision, self.path, under=under, named=named, most_bytes=_MOST_BYTES
        )

    def tree(self, revision: str) -> str | None:
        """Return the hash of the folder; None where there is none."""
        return self.branches.repository.tree(revision, self.path)

    def evidence(self, revision: str) -> Evidence | None:
        """Return the evidence in the folder; None where none can be read."""
        try:
            files = self.files(revision, named="evidence.json")
        except TooLargeError:
            return None
        for _, content in sorted(files.items()):
            try:
                return Evidence.from_json(content)
            except ValidationError:
                continue
        return None

    def owners(self, revision: str) -> tuple[str, ...]:
        """Return who owns the operator, as it was when the kernel was made."""
        try:
            files = self.files(revision, under=["operator.json"])
            return Operator.from_json(files.get("operator.json", b"")).spec.owners
        except (ValidationError, TooLargeError):
            return ()

    def rebase(self, branch: str, sha: str, base_sha: str) -> str | None:
        """Return the commit that the branch is at now: the same folder on top of another base.

        None comes back where there is no evidence in the folder, and so nothing to say of it.

        Raises:
            TooLargeError: The folder's files are larger than those of a kernel.
            BranchMovedError: The branch is not at `sha` any more.
            OriginUnavailableError: The origin can't be reached now.
        """
        evidence = self.evidence(sha)
        if evidence is None:
            return None
        repository = self.branches.repository
        # What was verified of the kernel at the base stays told: that file is only appended to.
        told = self.files(base_sha, under=[VERIFICATIONS])
        files = {**self.files(sha), **told}
        origin = evidence.search.proposer if evidence.search else "unknown"
        new = repository.commit(
            base_sha,
            self.path,
            files,
            message=commit_message(Proposal(evidence, origin=origin)),
            by=self.branches.sign(evidence.measured_at),
        )
        if new != sha:
            self.branches.push(branch, new, expected=sha)
        return new
