"""What ``/explain`` answers: how it came to a result, from the evidence and from the store."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pydantic import ValidationError

from daemon.endings import describe_end
from daemon.forge import CodeHost
from daemon.markdown import bullets, code, plain, table
from daemon.outbox import post_comment
from daemon.pulls.pull_request import kernel_path
from daemon.talk.asking import job_name
from daemon.talk.commands import Topic
from daemon.talk.scene import Scene, last_ends
from daemon.talk.status import describe_jobs
from knowledge.evidence import Evidence
from operator_registry.record import digest
from optimizer.store import Store, StoredCommand

_MOST_ROWS = 20
_MOST_ENDS = 5


@dataclass(frozen=True)
class Explainer:
    """Answers below an issue or a pull request; the same answer never twice."""

    host: CodeHost
    store: Store
    clock: Callable[[], float]

    def explain(self, topic: Topic, command: StoredCommand, scene: Scene) -> str:
        """Post the explanation, and return where it is found.

        Raises:
            ForgeError: The code host can't be asked now.
        """
        body = f"### {topic}\n\n" + "\n".join(self._lines(topic, scene))
        key = f"explain/{scene.number}/{topic}/{digest(body)[:16]}"
        fresh = post_comment(self.store, command.number, body, key=key, now=self.clock())
        return "explained in a comment" if fresh else "explained in a comment above, still true"

    def _lines(self, topic: Topic, scene: Scene) -> Iterator[str]:
        if topic == "queue":
            rows = describe_jobs(scene, self.store, now=self.clock())
            yield (
                bullets(f"{code(row.name)} {plain(row.what)}: {plain(row.state)}" for row in rows)
                or "Nothing waits or runs here."
            )
        elif topic == "search":
            yield from self._searches(scene)
        elif (evidence := self._find_evidence(scene)) is None:
            yield "There is no proven kernel here."
            yield from self._searches(scene)
        elif topic == "peers":
            yield _peers(evidence)
        elif topic == "proof":
            yield _proof(evidence)
        else:
            yield _result(evidence)
            yield from self._searches(scene)

    def _searches(self, scene: Scene) -> Iterator[str]:
        ends = list(last_ends(scene, self.store))[:_MOST_ENDS]
        if not ends:
            yield "No search has ended here."
        for goal, end in ends:
            trials = self.store.outcome_counts(goal.key)
            counted = ", ".join(f"{count} {kind}" for kind, count in sorted(trials.items()))
            why = "; ".join(goal.reasons)
            yield (
                f"- {code(job_name(goal.key))} {plain(f'{goal.operator} on {goal.hardware}')}: "
                f"{plain(describe_end(end))}. Wanted because: {plain(why)}. "
                f"Trials: {counted or 'none'}."
            )

    def _find_evidence(self, scene: Scene) -> Evidence | None:
        if scene.request is None or scene.pair is None:
            return None
        path = f"{kernel_path(*scene.pair)}/evidence.json"
        text = self.host.file(path, ref=scene.request.head_sha)
        try:
            return Evidence.from_json(text) if text else None
        except ValidationError:
            return None  # somebody edited it, or it is of another version


def _result(evidence: Evidence) -> str:
    ratio = evidence.ratio
    return (
        f"The best peer takes {ratio.estimate:.2f} times as long as the kernel, {ratio.low:.2f} to "
        f"{ratio.high:.2f} with an error probability of {evidence.alpha:g}. A kernel is proposed "
        f"where it is at least {evidence.minimum_gain:g} times as fast for certain and agrees "
        "with the reference at every size that was checked.\n"
    )


def _peers(evidence: Evidence) -> str:
    rows = [
        (
            code(row.workload),
            code(row.best_peer),
            f"{min(peer.device_ms for peer in row.peers):.4g} ms" if row.peers else "",
            f"{row.device_ms:.4g} ms",
            f"{row.ratio.estimate:.2f}x",
        )
        for row in evidence.workloads[:_MOST_ROWS]
    ]
    names = sorted({peer.name for row in evidence.workloads for peer in row.peers})
    shown = table(("workload", "best peer", "its time", "the kernel", "ratio"), rows)
    return f"{shown}\n\nAll peers: {', '.join(code(name) for name in names)}."


def _proof(evidence: Evidence) -> str:
    where = evidence.environment
    pairs = max(len(row.pair_ratios) for row in evidence.workloads)
    drawn = "held-out ones among them, drawn after the kernel was frozen"
    device = f"on {where.device}, torch {where.torch}, judge {evidence.judge_version}"
    return bullets(
        (
            f"{evidence.checked_sizes} sizes were checked, {drawn}",
            f"{len(evidence.workloads)} public workloads were timed in {pairs} pairs of processes",
            f"the kernel beside itself came to {evidence.null.ratio.estimate:.3f}",
            plain(device),
        )
    )
