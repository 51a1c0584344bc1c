"""What a server tells of itself, in Prometheus's words. Each app counts for itself; `--workers` add up by files."""

import os
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FILES = "PROMETHEUS_MULTIPROC_DIR"  # where several workers keep their counts
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = self._counter("http_requests", "Requests answered", ("path", "status"))
        self.seconds = self._histogram("http_seconds", "Seconds until the answer was sent", SECONDS, ("path",))
        self.in_flight = self._gauge("http_in_flight", "Requests at work")
        self.waiting = self._gauge("queue_characters", "Characters that wait")
        self.batch_texts = self._histogram("batch_texts", "Texts in a batch", (1, 2, 4, 8, 16, 32, 64, 128))
        self.batch_seconds = self._histogram("batch_seconds", "Seconds that a batch took", SECONDS)
        self.characters = self._counter("characters", "Characters translated")
        self.tokens = self._counter("tokens", "Tokens written")

    def _counter(self, name: str, what: str, labels: Sequence[str] = ()) -> Counter:
        return Counter(name, what, labels, namespace="vidrio", registry=self.registry)

    def _gauge(self, name: str, what: str) -> Gauge:
        return Gauge(name, what, namespace="vidrio", registry=self.registry, multiprocess_mode="livesum")

    def _histogram(self, name: str, what: str, buckets: Sequence[float], labels: Sequence[str] = ()) -> Histogram:
        return Histogram(name, what, labels, buckets=buckets, namespace="vidrio", registry=self.registry)

    def text(self) -> bytes:
        if FILES not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
