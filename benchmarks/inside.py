"""What looking costs: a full trace, and recomputing every number of it, at the paper's base size.

    python benchmarks/inside.py [--rounds 5]

Random parameters, float32, 20 source and 20 target tokens, a vocabulary of 8,000.
"""

import argparse
import statistics

import numpy as np

from shared import processor, timed
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.transformer import build, translate_forced
from vidrio.glass.proof.checking import check
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters

LENGTH, VOCABULARY = 20, 8000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    config = ModelConfig(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    machine = build(config, random_parameters(config, np.random.default_rng(0)), np.float32)
    traces: list[Trace] = []

    def traced() -> None:
        traces[:] = [Trace(machine)]
        translate_forced(machine, range(LENGTH), range(LENGTH), traces[0].tap)

    def checked() -> None:
        assert not check(traces[0]).wrong

    print(processor())
    for name, run in (("a full trace", traced), ("its check", checked)):
        times = [timed(run) for _ in range(given.rounds)]
        print(f"{name}: median {statistics.median(times):.3f} s, from {min(times):.3f} to {max(times):.3f}")
    print(f"{check(traces[0]).count:,} numbers")


if __name__ == "__main__":
    main()
