"""One job on the code host's runners, from its dispatch to its answer.

A dispatch says nothing of the run that it makes. Each thus goes under a tag that nobody can guess,
remembered before it is sent; the run is found by it, and found again after a restart. Of several
runs of one tag the oldest is ours: a dispatch that was repeated, or somebody who has read the tag.
"""

import json
import math
import secrets
from collections.abc import Callable

from pydantic import ValidationError

from daemon.actions.acceptance import accept
from daemon.actions.parcel import (
    LONGEST_INPUTS,
    ParcelError,
    find_key,
    fingerprint,
    make_parcel,
    pack,
    read_answer,
)
from daemon.actions.yard import Sent, Yard
from daemon.forge import (
    ForgeBusyError,
    ForgeRefusedError,
    ForgeUnavailableError,
    WorkflowRun,
)
from daemon.jobs import JobLostError, JobRefusedError, Progress
from daemon.logs import find_log
from operator_registry.hardware import HardwareSpec
from operator_registry.record import Record
from optimizer.job import ErrorEvent, OptimizeResult, PhaseEvent, Result, VerifyResult

ARTEFACT = "answer"
"""As ``.github/workflows/job.yml`` calls it."""
DISPATCHES = 3
"""A workflow that was started so often without a run to show for it is given up."""
_DONE = "completed"

log = find_log(__name__)


class Errand:
    """One job. Nothing here waits: `look` and `cancel` are called again and again.

    Raises:
        JobRefusedError: The request can't be sent.
    """

    def __init__(
        self,
        yard: Yard,
        request: Record,
        hardware: HardwareSpec,
        on_progress: Callable[[Progress], None],
    ) -> None:
        try:
            self._packed = pack(make_parcel(request))
        except (ParcelError, ValidationError) as error:
            raise JobRefusedError(type(error).__name__, str(error)) from error
        self._yard = yard
        self._request = request
        self._labels = hardware.runner.labels
        self._on_progress = on_progress
        self._mark = f"run/{find_key(request)}"
        known = yard.memory.recall(self._mark)
        self._sent = Sent.from_json(known) if known else None
        self._state, self._since = "missing", yard.clock()
        self._dispatches = 0
        self._unlisted_since = math.inf
        """Since when a run that is to be cancelled was looked for in vain."""

    def look(self) -> Result | None:
        """Do what is to be done now; return the result once it is there.

        Raises:
            JobRefusedError: The workflow can't be started, or the job could not do its work.
            JobLostError: The run never came to be, or ended without an answer that can be used.
        """
        try:
            if self._sent is None:
                self._dispatch(secrets.token_hex(12))
                return None
            return self._find(self._sent)
        except ForgeBusyError as error:
            log.info("code host is busy", error=str(error))
        except ForgeUnavailableError as error:
            log.warning("code host can't be asked for a run", error=str(error))
        except ForgeRefusedError as error:
            message = f"runs of {self._yard.workflow} can't be looked at: {error}"
            raise JobRefusedError(type(error).__name__, message) from error
        return None

    def cancel(self) -> bool:
        """Ask for the end of what runs; return False where it has to be tried again."""
        if self._sent is None:
            return True
        found = False
        try:
            for run in self._yard.runs_of(self._sent.tag, fresh=True):
                self._cancel(run)
                found = True
            if not found and self._sent.run_id is not None:
                self._yard.host.cancel_run(self._sent.run_id)
                found = True
        except ForgeUnavailableError as error:
            log.warning("run can't be cancelled yet", error=str(error))
            return False
        except ForgeRefusedError as error:
            log.warning("runs can't be cancelled", error=str(error))
        # What was dispatched a moment ago is not listed yet, and a list may lag behind at any time.
        self._unlisted_since = min(self._unlisted_since, self._yard.clock())
        unlisted_s = self._yard.clock() - self._unlisted_since
        if found or unlisted_s > self._yard.patience.appear_s:
            self._forget()
            return True
        return False

    def _dispatch(self, tag: str) -> None:
        inputs = {"tag": tag, "labels": json.dumps(self._labels), "request": self._packed}
        if len(json.dumps(inputs)) > LONGEST_INPUTS:
            error, message = "ParcelError", "the runner's labels are too long to be sent"
            raise JobRefusedError(error, message)
        ref = self._yard.find_ref()
        self._remember(Sent(tag=tag, request=fingerprint(self._packed)))
        self._state, self._since = "missing", self._yard.clock()
        self._dispatches += 1
        try:
            self._yard.host.dispatch(self._yard.workflow, ref=ref, inputs=inputs)
        except ForgeBusyError:
            # Nothing was sent now, though an earlier try may have been: it goes on under this tag.
            self._dispatches -= 1
            self._since = -math.inf
            raise
        except ForgeRefusedError as error:
            self._forget()
            message = f"{self._yard.workflow} can't be started on {ref}: {error}"
            raise JobRefusedError(type(error).__name__, message) from error
        log.info("run dispatched", workflow=self._yard.workflow, tag=tag, labels=self._labels)

    def _find(self, sent: Sent) -> Result | None:
        mine = self._yard.runs_of(sent.tag)
        if not mine:
            return self._miss(sent)
        run, *doubles = mine
        for double in doubles:
            self._cancel(double)
        if run.id != sent.run_id:
            sent = sent.model_copy(update={"run_id": run.id})
            self._remember(sent)
        if self._enter(run.status):
            self._on_progress(PhaseEvent(phase="search", detail=f"{run.status}: {run.url}"))
        if run.status == _DONE:
            how = f"{run.url} ended ({run.conclusion})"
            return self._collect(run.id, how, sent, within_s=self._yard.patience.upload_s)
        self._end_if_late(run)
        return None

    def _miss(self, sent: Sent) -> Result | None:
        """See to a run that is not listed: no longer, not yet, or never."""
        if sent.run_id is not None:
            self._enter("gone")
            how = f"run {sent.run_id} is listed no longer and ended"
            return self._collect(sent.run_id, how, sent, within_s=self._yard.patience.run_s)
        if self._for_s() <= self._yard.patience.appear_s:
            return None
        if self._dispatches >= DISPATCHES:
            msg = (
                f"{self._yard.workflow} was started {DISPATCHES} times and no run named {sent.tag}"
                " came to be; its `run-name` must hold the input `tag`"
            )
            raise self._lost(msg)
        # The same tag again: if the first dispatch was only slow, its run is the oldest.
        self._dispatch(sent.tag)
        return None

    def _collect(self, run_id: int, how: str, sent: Sent, *, within_s: float) -> Result | None:
        content = self._fetch(run_id, how)
        if content is None:
            if self._for_s() <= within_s:
                return None
            msg = f"{how} without an answer"
            raise self._lost(msg)
        try:
            end = read_answer(content, request=sent.request).end
            if isinstance(end, ErrorEvent):
                self._forget()
                raise JobRefusedError(end.error, f"{how}: {end.message}")
            result = accept(end.result, self._request)
        except ParcelError as error:
            msg = f"{how} with an answer that is of no use: {error}"
            raise self._lost(msg) from error
        if isinstance(result, OptimizeResult) and result.message == "stopped":
            msg = f"{how} before there was a verdict"
            raise self._lost(msg)
        if isinstance(result, VerifyResult):
            self._forget()  # asked again it is a new question, while a goal is answered once
        return result

    def _fetch(self, run_id: int, how: str) -> bytes | None:
        try:
            return self._yard.host.artefact(run_id, ARTEFACT)
        except ForgeBusyError:
            raise
        except ForgeUnavailableError as error:
            if self._for_s() <= self._yard.patience.fetch_s:
                raise
            msg = f"{how}, but its answer can't be fetched: {error}"
            raise self._lost(msg) from error

    def _end_if_late(self, run: WorkflowRun) -> None:
        patience, waits = self._yard.patience, run.status == "queued"
        limit_s = patience.start_s if waits else patience.run_s
        if self._for_s() <= limit_s:
            return
        self._cancel(run)
        what = f"no runner with the labels {list(self._labels)} took it" if waits else "no end"
        msg = f"{run.url}: {what} within {limit_s / 3600:g} hours"
        raise self._lost(msg)

    def _cancel(self, run: WorkflowRun) -> None:
        if run.status == _DONE:
            return
        try:
            self._yard.host.cancel_run(run.id)
            log.info("run cancelled", run=run.url)
        except ForgeRefusedError as error:
            log.warning("run can't be cancelled", run=run.url, error=str(error))

    def _enter(self, state: str) -> bool:
        """Note the run's state, and since when; return whether it is a new one."""
        if state == self._state:
            return False
        self._state, self._since = state, self._yard.clock()
        return True

    def _for_s(self) -> float:
        return self._yard.clock() - self._since

    def _remember(self, sent: Sent) -> None:
        self._sent = sent
        self._yard.memory.mark(self._mark, sent.to_json())

    def _forget(self) -> None:
        self._sent = None
        self._yard.memory.mark(self._mark, "")

    def _lost(self, message: str) -> JobLostError:
        self._forget()
        return JobLostError(message)
