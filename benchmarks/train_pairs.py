"""Measure memory and time per sentence pair, by stage, from the input file to the first training steps.

    python benchmarks/train_pairs.py [--pairs 200000] [--words 12] [--steps 20] [--to FOLDER] [--threads 2]

The script generates a file of distinct synthetic pairs (random words with a realistic frequency distribution, in two
invented languages), then runs the stages of `vidrio train`: reading and cleaning, finding duplicates and holding out
pairs, comparing the pairs with the held-out ones, learning a tokenizer, encoding the pairs, planning an epoch, and
taking a few steps with a `tiny` model. For each stage, it prints the wall time, the CPU time, the peak memory of the
process, and how much of that memory is mapped from files, which the system can reclaim. It then prints the same figures
per pair and per million pairs. They include memory that does not depend on the number of pairs, such as the model and a
batch, so small runs look expensive. Requires Linux, and about 350 bytes of disk space per pair in --to (default: the
system's temporary folder). All files are removed at the end.
"""

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vidrio.learn.machine import settle, use

settle()  # must run before PyTorch is imported

import numpy as np  # noqa: E402

from shared import forget_peak, memory  # noqa: E402
from vidrio.data.progress import Progress, Work  # noqa: E402
from vidrio.learn import train as training  # noqa: E402
from vidrio.learn.task import (  # noqa: E402
    Request,
    Stop,
)

WORDS = 50_000  # vocabulary size of each language
SOME = 10_000  # pairs generated at a time
SYLLABLES = [a + b for a in "bdfgklmnprstvz" for b in ("a", "e", "i", "o", "u", "an", "er", "is", "ol", "um")]
MAKING, STEPS = "making the file", "more steps"  # additional parts
# The unnamed stage after each named stage.
THEN = {
    "reading pairs": "duplicates, held-out pairs",
    "comparing pairs": "files written",
    "training the tokenizer": "tokenizer written",
    "encoding pairs": "planning, first step",
}


class Enough(Exception):
    """Raised to stop training after the requested number of steps."""


@dataclass(frozen=True)
class Cost:
    """The cost of a stage."""

    stage: str
    seconds: float
    cpu: float
    peak: int  # bytes
    mapped: int  # bytes mapped from files at the end of the stage


class Stages(Progress):
    """Tracks the current stage and the cost of each stage, based on the progress that training reports."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.costs: list[Cost] = []
        self.begin(name)

    def begin(self, name: str) -> None:
        self.name, self.seconds, self.cpu = name, time.perf_counter(), time.process_time()
        forget_peak()

    def end(self, following: str) -> None:
        seconds, cpu = time.perf_counter() - self.seconds, time.process_time() - self.cpu
        self.costs.append(Cost(self.name, seconds, cpu, memory("VmHWM"), memory("RssFile")))
        print(told(self.costs[-1]), flush=True)
        self.begin(following)

    def __setattr__(self, name: str, value: object) -> None:
        before = getattr(self, "work", None) if name == "work" else None
        super().__setattr__(name, value)
        if before is not None:
            self.end(THEN[before.title])
        if isinstance(value, Work):
            self.end(value.title)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=200_000)
    parser.add_argument("--words", type=int, default=12, help="average words per sentence")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--to", type=Path, help="folder for the generated files")
    given = parser.parse_args()
    use(given.threads)
    with tempfile.TemporaryDirectory(prefix="vidrio-pairs-", dir=given.to) as home:
        costs = measure(Path(home), given.pairs, given.words, given.steps)
        size = sum(path.stat().st_size for path in (Path(home) / "model" / "run" / "data").rglob("*") if path.is_file())
    millions = given.pairs / 1e6
    made = [cost for cost in costs if cost.stage not in (MAKING, STEPS)]
    print(
        f"\n{given.pairs:,} pairs; bytes of memory beyond what the process had before, and seconds, for each million:"
    )
    for cost in made:
        more = (cost.peak - costs[0].peak) / given.pairs
        seconds, cpu = cost.seconds / millions, cost.cpu / millions
        print(f"  {cost.stage:28} {more:8,.0f} a pair {seconds:8,.0f} s, CPU {cpu:8,.0f} s")
    whole = [sum(parts) / millions for parts in zip(*((cost.seconds, cost.cpu) for cost in made), strict=True)]
    print(f"  together {whole[0]:,.0f} s for a million pairs, CPU {whole[1]:,.0f} s")
    print(f"on disk, in the run's folder: {size / given.pairs:,.0f} bytes a pair")


def measure(home: Path, pairs: int, words: int, steps: int) -> list[Cost]:
    """Generate the pairs in this folder, run all stages, and return their costs."""
    print(f"{'stage':28} {'seconds':>9} {'CPU':>9} {'MB at most':>11} {'of it mapped':>13}")
    stages = Stages(MAKING)
    write_pairs(home / "pairs.tsv", pairs, words)

    def watch(record: dict[str, Any]) -> None:
        if record["kind"] == "step":
            stages.end(STEPS)
            if record["step"] >= steps:
                raise Enough

    stop, names = Stop(steps=max(steps, 10) + 1), (str(home / "pairs.tsv"),)
    request = Request(folder=home / "model", names=names, preset="tiny", stop=stop, recipe={"validations": 1})
    try:
        stages.watch = watch
        training.train(request, stages)
    except Enough:
        return stages.costs
    raise SystemExit("training ended too early")


def write_pairs(path: Path, pairs: int, words: int) -> None:
    """Write sentences of random words with their word-for-word translations."""
    random = np.random.default_rng(1)
    languages = [made_up(random) for _ in range(2)]
    frequency = 1 / np.arange(10, WORDS + 10)
    bounds = np.cumsum(frequency / frequency.sum())
    with path.open("w", encoding="utf-8") as file:
        for first in range(0, pairs, SOME):
            lengths = random.integers(words // 2, words + words // 2 + 1, min(SOME, pairs - first))
            drawn = np.searchsorted(bounds, random.random(int(lengths.sum())))
            for row in np.split(np.minimum(drawn, WORDS - 1), np.cumsum(lengths)[:-1]):
                file.write("\t".join(" ".join(language[i] for i in row) for language in languages) + "\n")


def made_up(random: np.random.Generator) -> list[str]:
    """Return distinct words, the shortest first, because the first words are used most often."""
    found: dict[str, None] = {}
    while len(found) < WORDS:
        length = 1 + min(4, int(np.log10(len(found) + 1)))
        found["".join(random.choice(SYLLABLES, length))] = None
    return list(found)


def told(cost: Cost) -> str:
    return f"{cost.stage:28} {cost.seconds:9.1f} {cost.cpu:9.1f} {cost.peak / 1e6:11,.0f} {cost.mapped / 1e6:13,.0f}"


if __name__ == "__main__":
    main()
