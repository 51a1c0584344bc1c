"""How long it takes to recompute numbers of a large model: the paper's base size, random parameters, 20 + 20 tokens.

python benchmarks/check.py
"""

import time

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.transformer import build, translate_forced
from vidrio.glass.proof.checking import check, every, how_many, recomputed_names, spread, usual
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters


def main() -> None:
    config = ModelConfig(source_vocabulary=8000, target_vocabulary=8000)
    generator = np.random.default_rng(0)
    trace = Trace(build(config, random_parameters(config, generator), np.float32))
    translate_forced(trace.machine, range(20), range(20), trace.tap)
    print(f"{how_many(trace):,} numbers")
    for what, numbers in (
        ("200 at random", spread(trace, recomputed_names(trace), 200, generator)),
        ("the usual check", usual(trace, generator)),
        ("all of enc.0", list(every(trace, recomputed_names(trace, "enc.0")))),
    ):
        began = time.perf_counter()
        checked = check(trace, numbers)
        seconds = time.perf_counter() - began
        assert not checked.exceptions
        print(f"{what:16} {checked.count:8,} numbers {seconds:7.2f} s {1e6 * seconds / checked.count:5.0f} µs each")


if __name__ == "__main__":
    main()
