"""What a server tells of itself, in Prometheus's words. Each app counts for itself; `--workers` add up by files."""

import os
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

FILES = "PROMETHEUS_MULTIPROC_DIR"  # where several workers keep their counts
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ours: dict[str, Any] = {"namespace": "vidrio", "registry": self.registry}
        level = ours | {"multiprocess_mode": "livesum"}
        self.requests = Counter("http_requests", "Requests answered", ("path", "status"), **ours)
        self.seconds = Histogram(
            "http_seconds", "Seconds until the answer was sent", ("path",), buckets=SECONDS, **ours
        )
        self.in_flight = Gauge("http_in_flight", "Requests at work", **level)
        self.waiting = Gauge("queue_characters", "Characters that wait", **level)
        self.batch_texts = Histogram("batch_texts", "Texts in a batch", buckets=(1, 2, 4, 8, 16, 32, 64, 128), **ours)
        self.batch_seconds = Histogram("batch_seconds", "Seconds that a batch took", buckets=SECONDS, **ours)
        self.characters = Counter("characters", "Characters translated", **ours)
        self.tokens = Counter("tokens", "Tokens written", **ours)

    def batch(self, texts: int, characters: int, seconds: float) -> None:
        self.batch_texts.observe(texts)
        self.batch_seconds.observe(seconds)
        self.characters.inc(characters)

    def text(self) -> bytes:
        if FILES not in os.environ:
            return generate_latest(self.registry)
        together = CollectorRegistry()
        MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
