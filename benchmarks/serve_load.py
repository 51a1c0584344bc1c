"""Many clients at once against `vidrio serve`: throughput, waiting times, and whether each gets its own answer.

    python benchmarks/serve_load.py --seconds 120 --clients 64

First one client asks for one text after the other, then all ask at the same time; texts are of one to twelve sentences
of the file given (--file, a sentence a line). Every answer is compared with what the translator says offline.
"""

import argparse
import http.client
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

from vidrio.documents.polish import as_source
from vidrio.translate.translator import Translator

TEXTS = 400


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, required=True, help="English sentences, one a line")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--clients", type=int, default=64)
    given = parser.parse_args()
    lines = [line for line in given.file.read_text(encoding="utf-8").splitlines() if line.strip()]
    draw = random.Random(1)
    texts = [" ".join(draw.sample(lines, draw.choice((1, 1, 1, 2, 3, 5, 12)))) for _ in range(TEXTS)]
    offline = [as_source(text, one.text) for text, one in zip(texts, Translator.load().translate(texts), strict=True)]
    wanted = dict(zip(texts, offline, strict=True))
    command = [sys.executable, "-m", "vidrio", "serve", "--port", "0", "--no-page"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            found = re.search(r"http://\S+", process.stdout.readline())
            assert found
            client(found[0], texts[:5], wanted, 5)
            alone = client(found[0], texts, wanted, given.seconds / 4)
            tell("one at a time", 1, alone, given.seconds / 4)
            began, memory = time.perf_counter(), resident(process.pid)
            with ThreadPoolExecutor(given.clients) as pool:
                shuffled = [draw.sample(texts, len(texts)) for _ in range(given.clients)]
                each = pool.map(lambda mine: client(found[0], mine, wanted, given.seconds), shuffled)
                together = [seconds for times in each for seconds in times]
            taken = time.perf_counter() - began
            tell("all at once", given.clients, together, taken)
            ratio = len(together) / taken / (len(alone) / (given.seconds / 4))
            print(f"{ratio:.2f} times as many; memory {memory:.0f} to {resident(process.pid):.0f} MB")
        finally:
            process.terminate()


def client(address: str, texts: Sequence[str], wanted: dict[str, str], seconds: float) -> list[float]:
    """Ask for one text after the other; the seconds that each answer took."""
    where = urlsplit(address)
    connection = http.client.HTTPConnection(where.hostname or "", where.port, timeout=300)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        text = texts[len(times) % len(texts)]
        began = time.perf_counter()
        body = json.dumps({"q": text, "source": "en", "target": "es"})
        connection.request("POST", "/translate", body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        told = json.loads(answer.read())
        times.append(time.perf_counter() - began)
        if answer.status != 200 or told["translatedText"] != wanted[text]:
            raise SystemExit(f"a wrong answer: {answer.status} {told} for {text!r}")
    connection.close()
    return times


def tell(what: str, clients: int, times: Sequence[float], seconds: float) -> None:
    ordered = sorted(times)
    middle, late = ordered[len(ordered) // 2], ordered[int(0.99 * len(ordered))]
    print(f"{what}: {clients} clients, {len(times)} texts, {len(times) / seconds:.1f} a second,", end=" ")
    print(f"median {middle:.3f} s, 99th percentile {late:.3f} s, all answers right", flush=True)


def resident(process: int) -> float:
    """Megabytes of memory, on Linux."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmRSS:\s+(\d+)", status)[0]) / 1024


if __name__ == "__main__":
    main()
