"""Replays the kernels of open pull requests whose head is not the commit that the judge saw."""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from daemon.actions.parcel import find_key
from daemon.forge import ForgeError
from daemon.gate import Gate
from daemon.jobs import JobError, RunsJobs
from daemon.logs import find_log
from daemon.origin import TooLargeError, WorkspaceError
from daemon.outbox import post_sticky
from daemon.pulls.branches import Branches
from daemon.pulls.kernel_commits import KernelCommits
from daemon.pulls.pull_request import find_pair
from daemon.pulls.standing import (
    NotReplayed,
    Replayed,
    Standing,
    find_standing,
    note_standing,
    sum_up,
)
from daemon.pulls.watched import Watched, find_watched
from daemon.talk.wishes import Wish, answer_wish, find_stop, find_wish, forget_stop, wish
from operator_registry.hardware import HardwareSpec
from optimizer.job import VerifyRequest, VerifyResult
from optimizer.store import Store

log = find_log(__name__)
US = "kernelevolve"
"""Who wishes for a replay that nobody asked for."""
_ATTEMPTS = 3
_BUDGET_S = 60.0


@dataclass(frozen=True)
class Reverifier:
    """Replays one kernel after another, between searches."""

    branches: Branches
    store: Store
    jobs: RunsJobs
    find_obstacle: Callable[[HardwareSpec], str | None]
    """Why a hardware is not at hand; None where it is."""
    gate: Gate
    state: Path
    keep_going: Callable[[], bool]
    is_going: Callable[[str], bool] = lambda _: False
    """Whether a job is under way, whose files are not to be touched."""
    trusted_keys: tuple[str, ...] = ()
    budget_s: float = _BUDGET_S

    def run(self) -> None:
        """Replay all that is not known yet or that somebody wants to be replayed.

        Raises:
            StoreError: The database is away.
        """
        for request in find_watched(self.store):
            if not self.keep_going():
                return
            try:
                self._look_at(request)
            except (WorkspaceError, ForgeError, JobError) as error:
                log.warning("kernel not replayed", branch=request.branch, error=str(error))

    def _look_at(self, request: Watched) -> None:
        asked = find_wish(self.store, "verify", request.branch)
        if asked is None:
            if find_standing(self.store, request.sha) is not None:
                return
            if by := self._find_stop(request.branch):
                self._note(request, request.sha, NotReplayed(why=f"{by} said stop"))
                return
            # As a wish it can be seen and stopped like any other.
            asked = Wish(by=US, at=self.branches.clock(), sha=request.sha)
            wish(self.store, "verify", request.branch, asked)
        forget_stop(self.store, _stop(request.branch))
        head = self.branches.repository.fetch(request.branch)
        if asked.sha and not head.startswith(asked.sha):
            told = "the branch has moved since; look at it, and comment again"
            answer_wish(self.store, "verify", request.branch, told, well=False)
            return
        self._replay(request, head, asked)

    def _replay(self, request: Watched, sha: str, asked: Wish) -> None:
        pair = find_pair(request.branch)
        try:
            files = KernelCommits(self.branches, *pair).files(sha) if pair else {}
        except TooLargeError as error:
            self._note(request, sha, NotReplayed(why=str(error)))
            return
        if obstacle := self._find_obstacle(files):
            self._note(request, sha, NotReplayed(why=obstacle))
            return
        budget_s = asked.budget_s or self.budget_s
        if pair and (wait := self.gate.find_obstacle(pair[1], budget_s=budget_s)):
            if asked.by != US:  # what nobody asked for waits in silence
                answer_wish(self.store, "verify", request.branch, wait, well=False)
            return
        log.info("replay started", branch=request.branch, sha=sha)
        wanted = VerifyRequest(
            kernel_folder=self._folder(sha),
            state_folder=self.state / "artefacts",
            budget_s=budget_s,
            trusted_keys=self.trusted_keys,
        )
        if not self.is_going(find_key(wanted)):
            write_files(wanted.kernel_folder, files)
        try:
            with self.gate.counting(f"verify/{sha}"):
                result = self.jobs.run(
                    "verify", wanted, keep_going=lambda: self._is_wanted(request.branch)
                )
        except JobError as error:
            self._count_attempt(request, sha, error)
            return
        if isinstance(result, VerifyResult):
            self._note(request, sha, Replayed(verifications=result.verifications))
        elif by := self._find_stop(request.branch):
            self._note(request, sha, NotReplayed(why=f"{by} said stop"))

    def _is_wanted(self, branch: str) -> bool:
        return self.keep_going() and self._find_stop(branch) is None

    def _folder(self, sha: str) -> Path:
        return self.state / "replays" / sha[:16]

    def _find_obstacle(self, files: Mapping[str, bytes]) -> str | None:
        try:
            hardware = HardwareSpec.from_json(files["hardware.json"])
        except KeyError:
            return "there is no kernel at this commit"
        except ValidationError as error:
            return f"hardware.json is damaged: {error.errors()[0]['msg']}"
        return self.find_obstacle(hardware)

    def _note(self, request: Watched, sha: str, standing: Standing) -> None:
        """Remember what was found, and have it shown."""
        shutil.rmtree(self._folder(sha), ignore_errors=True)
        note_standing(self.store, sha, standing)
        forget_stop(self.store, _stop(request.branch))
        well, told = False, standing.why if isinstance(standing, NotReplayed) else ""
        if isinstance(standing, Replayed):
            kind, told = sum_up(standing)
            well = kind == "reproduced"
        answer_wish(self.store, "verify", request.branch, told, well=well)
        post_sticky(self.store, request.number, now=self.branches.clock())
        log.info("replay ended", branch=request.branch, sha=sha, found=told)

    def _count_attempt(self, request: Watched, sha: str, error: JobError) -> None:
        mark = f"attempts/verify/{sha}"
        attempts = int(self.store.recall(mark) or 0) + 1
        self.store.mark(mark, str(attempts))
        log.error("replay failed", branch=request.branch, sha=sha, error=str(error))
        if attempts >= _ATTEMPTS:
            self.store.mark(mark, "")
            self._note(request, sha, NotReplayed(why=f"it failed {attempts} times: {error}"))

    def _find_stop(self, branch: str) -> str | None:
        return find_stop(self.store, _stop(branch))


def write_files(folder: Path, files: Mapping[str, bytes]) -> None:
    """Put a folder with these files in the place of an earlier one.

    A name that leads out of the folder is no file's of a kernel, and is left out.
    """
    shutil.rmtree(folder, ignore_errors=True)
    for name, content in files.items():
        path = folder / name
        if not path.resolve().is_relative_to(folder.resolve()):
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def _stop(branch: str) -> str:
    return f"verify/{branch}"
