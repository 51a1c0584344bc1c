"""The figures of a server, in Prometheus's form."""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """The figures of one app."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ours: dict[str, Any] = {"namespace": "vidrio", "registry": self.registry}
        self.requests = Counter("http_requests", "Requests answered", ("path", "status"), **ours)
        self.seconds = Histogram(
            "http_seconds", "Seconds until the answer was sent", ("path",), buckets=SECONDS, **ours
        )
        self.in_flight = Gauge("http_in_flight", "Requests at work", **ours)
        self.waiting = Gauge("queue_characters", "Characters that wait or are worked on", **ours)
        self.characters = Counter("characters", "Characters translated", **ours)
        self.tokens = Counter("tokens", "Tokens written", **ours)

    def text(self) -> bytes:
        return generate_latest(self.registry)
