"""A day's requests against `vidrio serve`, replayed in minutes: does its memory grow?

    python benchmarks/serve_day.py --requests 20000

The day of a small organisation, drawn from a seed: texts of a sentence or several, nearly half of them in a language
that the server has to find, lists, pages of HTML, Markdown, long texts, alternatives, terms, files, and what
clients ask around it. No answer may be an error; the memory is told after every tenth of the day.
"""

import argparse
import random
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from served import SENTENCES, Client, Server, quantile, report, server, texts

CLIENTS = 16
TENTHS = 10
DAY = {  # requests in a thousand
    **{"text": 400, "found": 300, "list": 30, "html": 60, "markdown": 20, "long": 20},
    **{"alternatives": 20, "terms": 20, "file": 10, "detect": 40, "languages": 30, "settings": 20, "health": 30},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--file", type=Path, default=SENTENCES, help="English sentences, one a line")
    parser.add_argument("--requests", type=int, default=20_000)
    given = parser.parse_args()
    lines = texts(given.file, 5000)
    draw = random.Random(4)
    day = draw.choices(list(DAY), list(DAY.values()), k=given.requests)
    began, memory, waited = time.perf_counter(), [], list[float]()
    with tempfile.TemporaryDirectory() as folder, server("--files", folder) as there:
        memory.append(there.memory())
        for tenth in range(TENTHS):
            now = day[tenth * len(day) // TENTHS : (tenth + 1) * len(day) // TENTHS]
            with ThreadPoolExecutor(CLIENTS) as pool:
                begun = [
                    pool.submit(client, there, now[number::CLIENTS], lines, 1000 * tenth + number)
                    for number in range(CLIENTS)
                ]
                waited += [one for times in begun for one in times.result()]
            memory.append(there.memory())
    report(
        requests=len(waited),
        mix=dict(Counter(day)),
        seconds=time.perf_counter() - began,
        p50_seconds=quantile(waited, 0.5),
        p99_seconds=quantile(waited, 0.99),
        memory_mb=[round(one) for one in memory],
        grown_percent_since_noon=100 * (memory[-1] / memory[TENTHS // 2] - 1),
    )
    assert memory[-1] < 1.1 * memory[TENTHS // 2], "the memory grows"  # at noon every part of the server has been used


def client(there: Server, mine: Sequence[str], lines: list[str], seed: int) -> list[float]:
    draw, connection = random.Random(seed), there.client()
    return [ask(connection, what, draw, lines) for what in mine]


def ask(client: Client, what: str, draw: random.Random, lines: list[str]) -> float:
    """One request; the seconds that its answer took."""
    text, other = draw.sample(lines, 2)
    asked: dict[str, Any] = {"q": text, "source": "en", "target": "es"}
    path = "/detect" if what == "detect" else "/translate"
    if what == "found":
        asked["source"] = "auto"
    elif what == "list":
        asked["q"] = draw.sample(lines, 10)
    elif what == "html":
        asked |= {"format": "html", "q": f"<div><p>{text}</p><ul><li><b>{other}</b></li></ul></div>"}
    elif what == "markdown":
        asked |= {"format": "markdown", "q": f"# {other}\n\n*{text}*\n\n- {text}\n"}
    elif what == "long":
        asked["q"] = "\n\n".join(draw.sample(lines, 30))
    elif what == "alternatives":
        asked["alternatives"] = 3
    elif what == "terms":
        asked |= {"glossary": {"house": "mansión", "dog": "can"}, "keep": ["Tom", "Boston"]}
    began = time.perf_counter()
    if what == "file":
        status, told = client.upload("/translate_file", f"{text}\n\n{other}\n")
    elif what in ("languages", "settings", "health"):
        status, told = client.ask({"settings": "/frontend/settings"}.get(what, f"/{what}"))
    else:
        status, told = client.ask(path, asked)
    assert status == 200, f"{what}: {status} {told}"
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
