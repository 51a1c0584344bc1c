"""Check that the engine's builds and the NumPy reference agree bit for bit, in batches and one sentence at a time.

    python benchmarks/engine_bits.py [--model en-es] [--data FOLDER] [--sentences 1000] [--glass 1000]

Every build that runs on this machine translates sentences from the two test sets with beam 1 and beam 4, first all in
one call, in batches of mixed lengths, and then one at a time. The script compares their tokens, log-probabilities,
scores and attention. The reference then traces the best translations of beam 4, and every value of the forward pass is
compared with the engine's. The script fails if any bit differs.
"""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from engine_speed import FILES, builds
from shared import ENGLISH_SPANISH, processor
from vidrio.engine.engine import Engine, load_model
from vidrio.engine.library import opener
from vidrio.glass.engine import INT8
from vidrio.glass.machine import build
from vidrio.glass.walk import translate_forced
from vidrio.hypothesis import Hypothesis, Options
from vidrio.model.find import find
from vidrio.model.folder import read_arrays, read_config
from vidrio.text.tokens.tokenizer import Tokenizer


def bits(found: Sequence[Hypothesis]) -> list[object]:
    """Return all results of a search. They contain no NaN or −0, so they compare equal only if all bits are equal."""
    return [(h[:5], h.attention and h.attention.tobytes()) for h in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="en-es", help="a model folder or name")
    parser.add_argument("--data", type=Path, default=ENGLISH_SPANISH)
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--glass", type=int, default=1000, help="number of sentences to trace with the reference")
    given = parser.parse_args()
    folder = find(given.model)
    config, about = read_config(folder)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    lines = [
        line
        for name in FILES
        for line in (given.data / name).with_suffix(f".{about.source_language}").read_text("utf-8").splitlines()
    ]
    some = lines[:: max(1, len(lines) // given.sentences)][: given.sentences]
    sources = [[*tokenizer.encode(line), *config.source_close] for line in some]
    print(f"{processor()}; {folder.name}; {len(sources):,} sentences")

    differing, best = 0, list[tuple[int, ...]]()
    engines = {name: Engine(partial(load_model, folder, config, opener(name)()), 1) for name in builds()}
    for beam in (1, 4):
        options, first = Options(beam=beam, n_best=beam), list[object]()
        for name, engine in engines.items():
            together = engine.search(sources, options)
            alone = [engine.search([source], options)[0] for source in sources]
            first = first or [bits(found) for found in together]
            here = [bits(a) != f or bits(b) != f for a, b, f in zip(together, alone, first, strict=True)]
            differing += sum(here)
            print(f"  beam {beam}, {name:9}: {sum(here)} sentences differ from {next(iter(engines))}", flush=True)
        best = [found[0].ids for found in together]

    engine, machine = next(iter(engines.values())), build(config, read_arrays(folder), np.float32, INT8)
    numbers, others = 0, 0
    for source, target in zip(sources[: given.glass], best, strict=False):
        in_engine = engine.quantities(source, target)

        def compare(name: str, value: np.ndarray, in_engine: dict[str, Any] = in_engine) -> np.ndarray:
            nonlocal numbers, others
            if name in in_engine:
                expected = np.ravel(in_engine.pop(name)).view(np.int32)
                numbers += len(expected)
                others += int(np.count_nonzero(np.ravel(np.asarray(value, np.float32)).view(np.int32) != expected))
            return value

        translate_forced(machine.tapped(compare), source, [config.special.start, *target])
        others += len(in_engine)  # values that the reference did not compute
    print(f"  the glass: {others:,} of {numbers:,} numbers differ in {min(given.glass, len(sources)):,} passes")
    sys.exit(1 if differing or others else 0)


if __name__ == "__main__":
    main()
