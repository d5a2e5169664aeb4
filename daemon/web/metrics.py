"""What Prometheus is told: counters of what was done, gauges of what waits. The one door to it."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

import psutil
from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Histogram,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from daemon.pause import find_pause
from daemon.web.health import Health
from optimizer.errors import StoreError
from optimizer.store import Backlog, Store

Answer = Literal["accepted", "known", "ignored", "refused", "store_away"]
_LONG_S = (0.05, 0.25, 1.0, 5.0, 15.0, 60.0, 300.0, 1800.0, 7200.0)


class Metrics:
    """The daemon's figures. Each object has a registry of its own, so that tests share nothing."""

    def __init__(self, store: Store, health: Health, *, clock: Callable[[], float]) -> None:
        self.registry = CollectorRegistry()
        registry = self.registry
        ProcessCollector(registry=registry)
        registry.register(_Gauges(store, health, clock))
        self.deliveries = Counter(
            "kernelevolve_deliveries", "Requests to the webhook", ["answer"], registry=registry
        )
        self.rounds = Histogram(
            "kernelevolve_round_seconds",
            "Time that a loop took once around",
            ["loop"],
            buckets=_LONG_S,
            registry=registry,
        )
        self.failures = Counter(
            "kernelevolve_failures", "Failures of a loop's part", ["part"], registry=registry
        )
        self.ends = Counter(
            "kernelevolve_goals_ended", "Goals that ended", ["verdict"], registry=registry
        )

    def count_answer(self, answer: Answer) -> None:
        """Count what a request to the webhook was answered."""
        self.deliveries.labels(answer).inc()

    def count_failure(self, part: str) -> None:
        """Count a failure of a loop's part."""
        self.failures.labels(part).inc()

    def count_end(self, verdict: str) -> None:
        """Count a goal that ended."""
        self.ends.labels(verdict).inc()

    def note_round(self, loop: str, took_s: float) -> None:
        """Note how long a loop took once around."""
        self.rounds.labels(loop).observe(took_s)

    def render(self) -> tuple[bytes, str]:
        """Return everything as text, and the type of that text."""
        return generate_latest(self.registry), CONTENT_TYPE_LATEST


@dataclass(eq=False)  # a registry keeps its collectors by identity
class _Gauges(Collector):
    """What is read at the moment of asking, so that it is never stale."""

    store: Store
    health: Health
    clock: Callable[[], float]

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Return the gauges; those of the store are left out while the store is away."""
        yield _gauge("kernelevolve_children", "Processes below this one", _children())
        yield from self._of_health()
        try:
            backlog, goals = self.store.backlog(), len(self.store.pending_goals())
            paused = find_pause(self.store) is not None
        except StoreError:
            yield _gauge("kernelevolve_store_up", "Whether the store answers", 0)
            return
        yield _gauge("kernelevolve_store_up", "Whether the store answers", 1)
        yield _gauge("kernelevolve_paused", "Whether all is paused", int(paused))
        yield _gauge("kernelevolve_goals_waiting", "Goals that have not ended", goals)
        yield from self._of_mail(backlog)

    def _of_health(self) -> Iterator[GaugeMetricFamily]:
        report = self.health.report(paused=False)
        silent = GaugeMetricFamily(
            "kernelevolve_loop_silent_seconds", "Time since a loop was heard of", labels=["loop"]
        )
        for name, loop in report.loops.items():
            silent.add_metric([name], loop.silent_s)
        yield silent
        yield _gauge("kernelevolve_faults", "Parts that failed last time", len(report.faults))

    def _of_mail(self, backlog: Backlog) -> Iterator[GaugeMetricFamily]:
        waiting = GaugeMetricFamily(
            "kernelevolve_waiting", "What passes by the code host and waits", labels=["what"]
        )
        waiting.add_metric(["delivery"], backlog.deliveries)
        waiting.add_metric(["command"], backlog.commands)
        waiting.add_metric(["effect"], backlog.effects)
        yield waiting
        age = GaugeMetricFamily(
            "kernelevolve_oldest_waiting_seconds", "Age of the oldest of these", labels=["what"]
        )
        now = self.clock()
        oldest = {"delivery": backlog.oldest_delivery_at, "effect": backlog.oldest_effect_at}
        for what, at in oldest.items():
            age.add_metric([what], 0.0 if at is None else max(0.0, now - at))
        yield age
        yield _gauge("kernelevolve_effects_given_up", "Effects that failed", backlog.given_up)


def _gauge(name: str, about: str, value: float) -> GaugeMetricFamily:
    return GaugeMetricFamily(name, about, value=value)


def _children() -> int:
    return len(psutil.Process().children(recursive=True))
