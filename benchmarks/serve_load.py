"""Measure the throughput and latency of `vidrio serve` with many concurrent clients, and verify every response.

    python benchmarks/serve_load.py --seconds 120 --clients 64
    python benchmarks/serve_load.py --seconds 120 --clients 64 --sentences 1

First a single client sends one text after another, then all clients do so concurrently, and then a single client again.
There are several thousand distinct texts of one to twelve sentences. Every response is compared with the offline
translation.
"""

import argparse
import os
import random
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from served import LENGTHS, Server, quantile, report, server, texts, until
from shared import TATOEBA
from vidrio.documents.aligned import as_source
from vidrio.translate.translator import Translator


class Measured(NamedTuple):
    seconds: float
    processor: float  # the server's CPU seconds
    waited: list[float]  # the latency of each response

    @property
    def rate(self) -> float:
        return len(self.waited) / self.seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, default=TATOEBA, help="English sentences, one per line")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--texts", type=int, default=3000, help="number of distinct texts")
    parser.add_argument(
        "--sentences", type=int, nargs="+", default=LENGTHS, help="possible numbers of sentences per text"
    )
    given = parser.parse_args()
    asked = texts(given.file, given.texts, lengths=given.sentences)
    wanted = offline(asked)
    with server("--no-page") as there:
        report(**figures(there, asked, wanted, given.seconds, given.clients))


def figures(
    there: Server, asked: Sequence[str], wanted: dict[str, str] | None, seconds: float, clients: int
) -> dict[str, Any]:
    """Measure a single client, all clients concurrently, and a single client again."""
    measure(there, [asked[:20]], wanted, 2)
    before = measure(there, [asked], wanted, seconds / 8)
    memory = there.memory()
    together = measure(there, shuffled(asked, clients), wanted, seconds)
    after = measure(there, [asked[::-1]], wanted, seconds / 8)
    return {
        "clients": clients,
        "alone_a_second": [round(before.rate, 1), round(after.rate, 1)],
        "together_a_second": together.rate,
        "times": 2 * together.rate / (before.rate + after.rate),
        "answers": len(together.waited),
        "p50_seconds": quantile(together.waited, 0.5),
        "p99_seconds": quantile(together.waited, 0.99),
        "alone_p50_seconds": quantile(before.waited + after.waited, 0.5),
        "alone_p99_seconds": quantile(before.waited + after.waited, 0.99),
        "processor_ms_a_text": [round(1000 * one.processor / len(one.waited), 1) for one in (before, together, after)],
        "processors_busy": together.processor / together.seconds,
        "memory_mb": [round(memory), round(there.memory())],
        "load": os.getloadavg()[0],
    }


def offline(asked: Sequence[str]) -> dict[str, str]:
    """Translate each text separately, matching the case and final punctuation of its source."""
    translations = Translator.load().translate(asked)
    return {text: as_source(text, found.text) for text, found in zip(asked, translations, strict=True)}


def shuffled(asked: Sequence[str], clients: int) -> list[list[str]]:
    draw = random.Random(2)
    return [draw.sample(asked, len(asked)) for _ in range(clients)]


def measure(there: Server, each: Sequence[Sequence[str]], wanted: dict[str, str] | None, seconds: float) -> Measured:
    """Run one client per list of texts, concurrently, and check every response."""
    processor, began = there.processor_seconds(), time.perf_counter()

    def client(mine: Sequence[str]) -> list[float]:
        connection, waited = there.client(), []
        for number in until(began + seconds):
            text, asked_at = mine[number % len(mine)], time.perf_counter()
            status, told = connection.ask("/translate", {"q": text, "source": "en", "target": "es"})
            waited.append(time.perf_counter() - asked_at)
            if status != 200 or (wanted and told["translatedText"] != wanted[text]):
                raise SystemExit(f"a wrong answer: {status} {told} for {text!r}")
        return waited

    with ThreadPoolExecutor(len(each)) as pool:
        waited = [one for times in pool.map(client, each) for one in times]
    return Measured(time.perf_counter() - began, there.processor_seconds() - processor, waited)


if __name__ == "__main__":
    main()
