"""What looking costs: a full trace at the paper's base size.

    python benchmarks/trace_cost.py

Random parameters, float32, a sentence of 20 tokens and a translation of 20 tokens: how long a full trace takes, beyond
loading, and the same with the search before it. Median of 5, by the clock. The limit is 0.5 s on two cores.
"""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

THREADS = "2"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = THREADS  # before NumPy is imported

import numpy as np  # noqa: E402

from vidrio.glass.machine import Machine, build  # noqa: E402
from vidrio.glass.trace import Trace  # noqa: E402
from vidrio.glass.walk import stepper, translate_forced  # noqa: E402
from vidrio.hypothesis import default_options  # noqa: E402
from vidrio.model.config import ModelConfig  # noqa: E402
from vidrio.model.parameters import count, random_parameters  # noqa: E402
from vidrio.search import greedy  # noqa: E402

LENGTH = 20
LIMIT = 0.5  # seconds
RUNS = 5


def seconds(run: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    run()
    return clock() - start


def told(times: list[float]) -> str:
    return f"median {statistics.median(times):.4f} s, from {min(times):.4f} to {max(times):.4f}"


def machine_facts() -> str:
    cpu = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    threads = os.environ["OPENBLAS_NUM_THREADS"]
    return (
        f"{cpu}, {os.cpu_count()} cores{load}; {threads} threads; {platform.system()} {platform.machine()}; "
        f"Python {platform.python_version()}, NumPy {np.__version__}"
    )


def make() -> tuple[Machine, list[int], list[int]]:
    """The paper's base size, with a sentence and a translation."""
    config = ModelConfig(source_vocabulary=37000, target_vocabulary=37000)
    generator = np.random.default_rng(0)
    machine = build(config, random_parameters(config, generator), np.float32)
    source, target = (generator.integers(4, 37000, LENGTH).tolist() for _ in range(2))
    return machine, source, target


def full_trace() -> bool:
    machine, source, target = make()
    config = machine.config
    print(f"the paper's base size, {count(config):,} random parameters, float32, {LENGTH} + {LENGTH} tokens\n")

    def traced() -> Trace:
        trace = Trace(machine)
        translate_forced(machine.tapped(trace.tap), source, target)
        return trace

    def searched_and_traced() -> None:
        options = replace(default_options(config), beam=1, max_length=LENGTH)
        found = greedy(stepper(machine, source), config.special.start, config.special.end, options)
        translate_forced(machine.tapped(Trace(machine).tap), source, [config.special.start, *found.ids[:-1]])

    trace = traced()
    kept = sum(array.size for array in trace.values.values())
    times = [seconds(traced) for _ in range(RUNS)]
    print(f"full trace, {len(trace.values):,} quantities, {kept:,} numbers, {RUNS} runs")
    print(f"   {told(times)}; the limit is {LIMIT} s")
    busy = [seconds(traced, time.process_time) for _ in range(RUNS)]
    print(f"   of processor time, both threads together: {told(busy)}")
    whole = [seconds(searched_and_traced) for _ in range(RUNS)]
    print(f"   with the search before it (greedy, {LENGTH} steps): {told(whole)}")
    return statistics.median(times) <= LIMIT


def main() -> int:
    print(machine_facts())
    return 0 if full_trace() else 1


if __name__ == "__main__":
    sys.exit(main())
