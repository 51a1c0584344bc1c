"""Measure the cost of a full trace and its check at the paper's base size, and of complete commands.

    python benchmarks/inside.py [--rounds 5]

The trace uses random float32 parameters, 20 source and 20 target tokens, and a vocabulary of 8,000. The commands use
the packaged model and a sentence of 20 words.
"""

import argparse
import statistics
import sys

import numpy as np

from shared import SENTENCE, cost_of, processor, timed
from vidrio.glass.checking import check
from vidrio.glass.machine import build
from vidrio.glass.trace import Trace
from vidrio.glass.walk import translate_forced
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters

LENGTH, VOCABULARY = 20, 8000
COMMANDS = (["translate"], ["look"], ["look", "--json"], ["look", "--html", "/dev/stdout"], ["check"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    config = ModelConfig(source_vocabulary=VOCABULARY, target_vocabulary=VOCABULARY)
    machine = build(config, random_parameters(config, np.random.default_rng(0)), np.float32)
    traces: list[Trace] = []

    def traced() -> None:
        traces[:] = [Trace(machine)]
        translate_forced(machine.tapped(traces[0].tap), range(LENGTH), range(LENGTH))

    def checked() -> None:
        assert not check(traces[0]).wrong

    print(processor())
    show("a full trace", [timed(traced) for _ in range(given.rounds)])
    show(f"its check, {check(traces[0]).count:,} numbers", [timed(checked) for _ in range(given.rounds)])
    for words in COMMANDS:
        command = [sys.executable, "-m", "vidrio", *words, SENTENCE]
        show(" ".join(["vidrio", *words]), [cost_of(command).seconds for _ in range(given.rounds)])


def show(what: str, seconds: list[float]) -> None:
    print(
        f"{what}: median {statistics.median(seconds):.3f} s, from {min(seconds):.3f} to {max(seconds):.3f}", flush=True
    )


if __name__ == "__main__":
    main()
