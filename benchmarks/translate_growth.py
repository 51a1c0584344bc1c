"""How the cost of translating grows: with the length of a sentence, of a batch, of the beam, with the number of lines.

    python benchmarks/translate_growth.py --model MODEL --source FILE [--most 1000000] [--svg growth.svg]

Time is the median of five (one for the number of lines, a whole process with its peak of memory). Prints tables, and
draws the four of them as one picture, both axes logarithmic: a slope of 1 is cost in proportion.
"""

import argparse
import math
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path

from vidrio.model import find as models
from vidrio.model.folder import read_config
from vidrio.translate.translator import Translator

SOURCE = "../shared/data/en-es/test/tatoeba-test-v2020-07-28.en"
MEASURE = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, status)
"""

ROUNDS = 5
LENGTHS, BATCHES, BEAMS = (5, 10, 20, 40, 80, 120), (1, 4, 16, 64, 256), (1, 2, 4, 8, 16)
WIDTH, HEIGHT, LEFT, TOP, GAP = 300, 220, 46, 26, 34  # of one of the pictures


@dataclass(frozen=True)
class Grown:
    """One of the four: what grows, and points (how much of it, milliseconds, megabytes or None)."""

    title: str
    across: str
    up: str
    points: Sequence[tuple[float, float, float | None]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model folder or name")
    parser.add_argument("--source", type=Path, default=Path(SOURCE), help="what to translate, a sentence a line")
    parser.add_argument("--most", type=int, default=100_000, help="lines at most")
    parser.add_argument("--svg", type=Path, help="where to draw it")
    given = parser.parse_args()
    folder = models.find(given.model)
    lines = given.source.read_text(encoding="utf-8").splitlines()
    found = []
    for one in measured(folder, lines, given.most):
        found.append(one)
        print(f"{one.title}\n  {one.across:>12} {one.up:>14}" + "        memory" * (one.points[0][2] is not None))
        for x, y, memory in one.points:
            print(f"  {x:12,.0f} {y:14,.2f}" + ("" if memory is None else f" {memory:10,.0f} MB"))
        print(flush=True)
    if given.svg:
        given.svg.write_text(picture(found), encoding="utf-8")


def measured(folder: Path, lines: Sequence[str], most: int) -> Iterator[Grown]:
    translator = Translator.load(folder, workers=1)
    config, _ = read_config(folder)
    room = config.max_positions
    ids = [i for line in lines[:2000] for i in translator._source.encode(line)]
    greedy = replace(translator.options, beam=1)

    def cut(length: int, count: int) -> list[list[int]]:
        """Stretches of real text of just this many tokens."""
        chosen = random.Random(length)
        starts = [chosen.randrange(len(ids) - length) for _ in range(count)]
        return [[*ids[a : a + length], *([config.special.end] if config.source_end else [])] for a in starts]

    def search(sources: Sequence[Sequence[int]], beam: int, length: int) -> Callable[[], object]:
        """As many tokens out as in, whatever the model would like."""
        options = replace(greedy, beam=beam, min_length=length, max_length=min(room, length))
        return lambda: translator.engine.search(sources, options)

    yield Grown(
        "one sentence, greedy, one thread",
        "tokens",
        "ms",
        [(n, timed(search(cut(n, 1), 1, n)), None) for n in LENGTHS if n < room],
    )
    yield Grown(
        "sentences of 20 tokens in one batch, greedy",
        "sentences",
        "ms each",
        [(n, timed(search(cut(20, n), 1, 20)) / n, None) for n in BATCHES],
    )
    yield Grown(
        "64 sentences of 20 tokens",
        "beam",
        "ms each",
        [(n, timed(search(cut(20, 64), n, 20)) / 64, None) for n in BEAMS],
    )
    counts = [10**n for n in range(2, 7) if 10**n <= most]
    yield Grown(
        "the command on lines, greedy, all cores", "lines", "ms", [(n, *command(folder, lines, n)) for n in counts]
    )


def timed(run: Callable[[], object]) -> float:
    """Milliseconds, the median of five after one that does not count."""
    taken = []
    for _ in range(ROUNDS + 1):
        began = time.perf_counter()
        run()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken[1:])


def command(folder: Path, lines: Sequence[str], count: int) -> tuple[float, float]:
    """`vidrio translate` on so many lines, words shuffled so that hardly any comes twice: milliseconds, megabytes."""
    generator = random.Random(1)
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "lines"
        with path.open("w", encoding="utf-8") as file:
            for line in islice(cycle(lines), count):
                words = line.split()
                file.write(" ".join(generator.sample(words, len(words))) + "\n")
        arguments = ["translate", "-m", str(folder), "-i", str(path), "-o", f"{path}.out", "--beam", "1"]
        seconds, megabytes = process_cost([sys.executable, "-m", "vidrio", *arguments])
    return 1000 * seconds, megabytes


# --- the picture ------------------------------------------------------------------------------------------------------


def picture(grown: Sequence[Grown]) -> str:
    width, height = 2 * (WIDTH + GAP) + GAP, 2 * (HEIGHT + GAP) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" '
        f'font-size="11" fill="#333"><rect width="{width}" height="{height}" fill="#fff"/>'
    ]
    for n, one in enumerate(grown):
        parts.append(f'<g transform="translate({GAP + n % 2 * (WIDTH + GAP)} {GAP + n // 2 * (HEIGHT + GAP)})">')
        parts += [*panel(one), "</g>"]
    return "\n".join([*parts, "</svg>\n"])


def panel(one: Grown) -> Iterator[str]:
    xs, ys, memory = zip(*one.points, strict=True)
    yield f'<text x="0" y="-12" font-weight="bold">{one.title}</text>'
    left, right = math.log10(min(xs)), math.log10(max(xs))
    known = [m for m in memory if m is not None]
    low = math.floor(math.log10(min([*ys, *known])))
    high = max(low + 1, math.ceil(math.log10(max([*ys, *known]))))

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT) * (math.log10(value) - left) / (right - left)

    def y(value: float) -> float:
        return HEIGHT - TOP - (HEIGHT - TOP) * (math.log10(value) - low) / (high - low)

    for power in range(low, high + 1):
        at = y(10.0**power)
        yield f'<path d="M{LEFT} {at:.1f}H{WIDTH}" stroke="#ddd"/>'
        yield f'<text x="{LEFT - 5}" y="{at + 4:.1f}" text-anchor="end">{10.0**power:g}</text>'
    for value in xs:
        yield f'<text x="{x(value):.1f}" y="{HEIGHT - 10}" text-anchor="middle">{value:,.0f}</text>'
    yield f'<text x="{WIDTH}" y="{HEIGHT + 4}" text-anchor="end">{one.across}</text>'
    for values, colour, name in ((ys, "#0b66c3", one.up), (known, "#b3541e", "MB")):
        if values:
            places = [f"{x(a):.1f} {y(b):.1f}" for a, b in zip(xs, values, strict=True)]
            yield f'<path d="M{"L".join(places)}" fill="none" stroke="{colour}" stroke-width="2"/>'
            yield from (f'<circle cx="{p.split()[0]}" cy="{p.split()[1]}" r="3" fill="{colour}"/>' for p in places)
            yield f'<text x="{WIDTH}" y="{y(values[-1]) - 7:.1f}" text-anchor="end" fill="{colour}">{name}</text>'


def process_cost(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """(seconds, megabytes at its peak) of a process. A small one starts it: a child's peak counts its parent's."""
    starter = [sys.executable, "-c", MEASURE, *command]
    measured = subprocess.run(starter, capture_output=True, text=True, check=True, env=environment)
    seconds, memory, status = measured.stdout.split()
    if status != "0":
        raise SystemExit(f"{' '.join(command)} failed")
    return float(seconds), int(memory) / (1024 * 1024 if sys.platform == "darwin" else 1024)


if __name__ == "__main__":
    main()
