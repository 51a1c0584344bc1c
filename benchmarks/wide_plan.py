"""What translating very many lines with `--ray` would take, from what this machine takes for a few.

    python benchmarks/wide_plan.py --source FILE [--lines 1000000000] [--machines 16] [--cores 16] [--price 0.05]

Measured are, in processor time where that is what counts, so that work beside it changes little: translating lines of
the file greedily on one core, what of it the beginning takes left out; the memory of a worker; cutting a file into
parts; handing parts out by Ray; choosing held-out pairs. The plan below is arithmetic on these.
"""

import argparse
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.data.split import Apart, held_out
from vidrio.wide.bulk import THREADS
from vidrio.wide.held_out import repeated, write_held_out
from vidrio.wide.parts import PART, cut_lines
from vidrio.wide.places import Place
from wide import distinct, handing_out, spent

FEW, MANY = 500, 5_000  # lines
FILE, PAIRS = 1 << 28, 1_000_000  # bytes that are cut, pairs of which some are chosen


def processor_seconds(do: Callable[[], Any]) -> float:
    began = time.process_time()
    do()
    return time.process_time() - began


def looking_up(pairs: list[tuple[str, str]]) -> tuple[float, float]:
    """Seconds of the processor for a pair: as `data clean --ray` finds what repeats a held-out one, and as without."""
    few = len(pairs) // 10
    apart = Apart()
    for pair in pairs[:few]:
        apart.add(*pair)
    with tempfile.TemporaryDirectory() as folder:
        write_held_out(Path(folder), pairs[:few], (), near=True)
        by_hash = processor_seconds(lambda: repeated(Path(folder), iter(pairs[few:]), near=True))
    in_sets = processor_seconds(lambda: [apart.fault(*pair) for pair in pairs[few:]])
    return by_hash / len(pairs[few:]), in_sets / len(pairs[few:])


def write(path: Path, text: list[str], lines: int) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(f"{line}\n" for line in islice(distinct(text), lines))
    return path


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=float, default=1e9)
    parser.add_argument("--machines", type=int, default=16)
    parser.add_argument("--cores", type=int, default=16, help="of each machine")
    parser.add_argument("--price", type=float, default=0.05, help="of a core for an hour: an assumption")
    given = parser.parse_args()
    text = [line for line in given.source.read_text("utf-8").splitlines() if line]
    vidrio = [sys.executable, "-m", "vidrio", "translate", "--beam", "1"]
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        few, many = (write(home / f"{lines}.txt", text, lines) for lines in (FEW, MANY))
        one = [*vidrio, "--workers", "1", "-o", str(home / "out.txt"), "-i"]
        alone = [spent([*one, str(path)]) for path in (few, many)]
        rate = (MANY - FEW) / (alone[1].processor - alone[0].processor)
        together = spent([*vidrio, "-i", str(many), "-o", str(home / "out"), "--ray"])
        line_in, line_out = (path.stat().st_size / MANY for path in (many, home / "out.txt"))
        large = home / "large.txt"
        with large.open("wb") as file:
            for _ in range(-(-FILE // many.stat().st_size)):
                file.write(many.read_bytes())
        cutting = large.stat().st_size / processor_seconds(lambda: cut_lines(Place.of(str(large))))
    handed = handing_out(1000)
    draw = np.random.default_rng(1)
    sources, targets = draw.integers(0, 2**63, (2, PAIRS), np.uint64)
    choosing = processor_seconds(lambda: held_out(sources, targets, (2000,)))
    tracemalloc.start()
    held_out(sources, targets, (2000,))
    of_pair = (tracemalloc.get_traced_memory()[1] + 2 * sources.nbytes) / PAIRS
    tracemalloc.stop()
    by_hash, in_sets = looking_up(list(zip(text, reversed(text), strict=True)))

    print(f"one core, greedy:      {rate:,.0f} lines in a second of processor time (before the first: "
          f"{alone[0].processor - FEW / rate:.1f} s)")  # fmt: skip
    print(f"--ray, all processes:  {together.processor - MANY / rate:.1f} s of the processor more, "
          f"a worker {together.memory:.0f} MB, the others {together.whole - together.memory:.0f}")  # fmt: skip
    print(f"a line:                {line_in:.0f} bytes in, {line_out:.0f} out")
    print(f"cutting a file:        {cutting / 1e6:,.0f} MB in a second of processor time")
    print(f"Ray hands out:         {handed:,.0f} parts a second")
    print(f"choosing held-out:     {of_pair:.0f} bytes a pair, {choosing * 1e6 / PAIRS:.2f} s for a million")
    print(f"held-out near-copies:  {by_hash * 1e6:.0f} µs a pair by hash, {in_sets * 1e6:.0f} in sets of sentences\n")

    cores = given.machines * given.cores
    hours, parts = given.lines / rate / 3600, given.lines * line_in / PART
    print(f"{given.lines:,.0f} such lines: {given.lines * line_in / 1e9:.0f} GB in, "
          f"{given.lines * line_out / 1e9:.0f} GB out, {parts:,.0f} parts")  # fmt: skip
    print(f"processor time:        {hours:,.0f} core-hours; at {given.price} an hour {hours * given.price:,.0f}")
    print(f"{given.machines} machines of {given.cores} cores: {60 * hours / cores:,.0f} minutes; the command cuts "
          f"{given.lines * line_in / cutting / THREADS / 60:,.1f} minutes before that (many files), "
          f"and hands out for {parts / handed / 60:,.1f} minutes beside it")  # fmt: skip
    print(f"one command feeds:     {handed * PART / line_in / rate:,.0f} cores")
    print(f"choosing held-out pairs of as many: {given.lines * of_pair / 1e9:,.0f} GB on one machine")


if __name__ == "__main__":
    main()
