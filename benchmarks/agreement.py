"""How often `glass/` in eight bits finds the same tokens as the fast engine, and the first sentences where it does not.

    python benchmarks/agreement.py en-es test.en [--beam 1 4] [--sentences 10000] [--processes 2]

A line of the file is one source. With a beam of 1 the fast engine's tokens are forced upon `glass/`, which has to find
each of them the likeliest: one pass, and the same as a search. With a beam, `glass/` searches.
"""

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from vidrio.fast.engine import Engine
from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.transformer import Machine, build, decode, encode, for_beam, logits
from vidrio.model.find import find
from vidrio.model.folder import read_config, read_parameters
from vidrio.search import Hypothesis, Options, default_options, restrict, search
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers

SHOWN = 5  # sentences that differ
LONGEST = 100  # tokens; what is longer is no sentence


@dataclass(frozen=True)
class Both:
    """One model in both engines."""

    machine: Machine
    fast: Engine
    source: Tokenizer
    target: Tokenizer

    def ids(self, line: str) -> list[int]:
        config = self.machine.config
        return [*self.source.encode(line), *([config.special.end] if config.source_end else [])]


@cache
def opened(name: str, dtype: type = np.int8) -> Both:
    folder = find(name)
    config, _ = read_config(folder)
    source, target = read_tokenizers(folder, config)
    return Both(build(config, read_parameters(folder), dtype), Engine(folder / "fast", config), source, target)


def glass_tokens(machine: Machine, source: Sequence[int], options: Options, printed: Hypothesis) -> tuple[int, ...]:
    """What `glass/` finds; with a beam of 1 up to the first token that is another one than was printed."""
    special = machine.config.special
    machine = for_beam(machine, options.beam)
    if options.beam > 1:
        return search(stepper(machine, source), special.start, special.end, options)[0].ids
    wanted = (*printed.ids, *([special.end] if printed.ended else []))
    rows_TV = logits(machine, decode(machine, [special.start, *wanted[:-1]], encode(machine, source)))
    for step, row_V in enumerate(rows_TV):
        token = int(np.argmax(restrict(row_V, wanted[:step], special.end, options)))
        if token != wanted[step]:
            return (*wanted[:step], token)
    return printed.ids


def differing(name: str, beam: int, lines: Sequence[str], dtype: type = np.int8) -> Iterator[tuple[str, str, str]]:
    """For each line where the two part: the line, what was printed, and what `glass/` found."""
    both = opened(name, dtype)
    options = replace(default_options(both.machine.config), beam=beam)
    sources = [both.ids(line) for line in lines]
    for line, source, [printed, *_] in zip(lines, sources, both.fast.search(sources, options), strict=True):
        found = glass_tokens(both.machine, source, options, printed)
        if found != printed.ids:
            yield line, both.target.decode(printed.ids), both.target.decode(found)


def work(task: tuple[str, int, list[str], type]) -> tuple[int, list[tuple[str, str, str]]]:
    name, beam, lines, dtype = task
    return len(lines), list(differing(name, beam, lines, dtype))


def sentences(path: Path, name: str, most: int) -> list[str]:
    both = opened(name)
    with path.open(encoding="utf-8") as file:
        lines = (line.partition("\t")[0].strip() for line in file)
        return list(islice((line for line in lines if line and len(both.ids(line)) <= LONGEST), most))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("file", type=Path)
    parser.add_argument("--beam", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--sentences", type=int, default=10_000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--float", action="store_true", help="glass/ in float32 instead, for comparison")
    given = parser.parse_args()
    dtype = np.float32 if given.float else np.int8
    lines = sentences(given.file, given.model, given.sentences)
    for beam in given.beam:
        began, done, differ = time.perf_counter(), 0, []
        tasks = [(given.model, beam, lines[i : i + 100], dtype) for i in range(0, len(lines), 100)]
        with get_context("spawn").Pool(given.processes) as pool:
            for count, parted in pool.imap_unordered(work, tasks):
                done, differ = done + count, differ + parted
                print(f"\r{done:,} sentences, {len(differ)} differ", end="", flush=True)
        share = 100 * (1 - len(differ) / len(lines))
        print(f"\r{given.model}, beam {beam}: the same tokens in {share:.2f} % of {len(lines):,} sentences", end=", ")
        print(f"{time.perf_counter() - began:.0f} s")
        for line, printed, found in differ[:SHOWN]:
            print(f"  {line}\n    fast:  {printed}\n    glass: {found}")


if __name__ == "__main__":
    main()
