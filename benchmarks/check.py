"""How long it takes to recompute all numbers of a run: a model of the paper's base size, random, 20 + 20 tokens.

python benchmarks/check.py
"""

import time

import numpy as np

from vidrio.glass.checking import check
from vidrio.glass.machine import build
from vidrio.glass.trace import Trace
from vidrio.glass.walk import translate_forced
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters


def main() -> None:
    config = ModelConfig(source_vocabulary=8000, target_vocabulary=8000)
    generator = np.random.default_rng(0)
    trace = Trace(build(config, random_parameters(config, generator), np.float32))
    translate_forced(trace.machine.tapped(trace.tap), range(20), range(20))
    began = time.perf_counter()
    checked = check(trace)
    seconds = time.perf_counter() - began
    assert not checked.wrong
    print(f"{checked.count:,} numbers in {seconds:.2f} s, {1e9 * seconds / checked.count:.0f} ns each")


if __name__ == "__main__":
    main()
