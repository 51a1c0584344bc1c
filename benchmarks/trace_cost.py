"""What looking costs: a full trace at the paper's base size, and the taps when nobody looks.

    python benchmarks/trace_cost.py

Two questions, random parameters, float32, a sentence of 20 tokens and a translation of 20 tokens:

1. How long does a full trace take, beyond loading? Median of 5, by the clock. The limit is 0.5 s on two cores.
2. What do the taps cost when nobody looks? The same code runs beside a copy of it with every `tap(name, value)`
   replaced by `value`, in turn, on one thread, by the processor's own time, which other work on the machine hardly
   changes. The ratio with / without is told.
"""

import ast
import importlib
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType

ALONE = "--taps"
THREADS = "1" if ALONE in sys.argv else "2"
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = THREADS  # before NumPy is imported

import numpy as np  # noqa: E402

import vidrio.glass.paper  # noqa: E402
from vidrio.glass.numbers.trace import Trace  # noqa: E402
from vidrio.glass.paper.decoding import stepper  # noqa: E402
from vidrio.glass.paper.maths import Array  # noqa: E402
from vidrio.glass.paper.transformer import Machine, build, translate_forced  # noqa: E402
from vidrio.hypothesis import default_options  # noqa: E402
from vidrio.model.config import ModelConfig  # noqa: E402
from vidrio.model.parameters import count, random_parameters  # noqa: E402
from vidrio.search import greedy  # noqa: E402

LENGTH = 20
LIMIT = 0.5  # seconds
RUNS = 5
PAIRS = 41
PACKAGE, BARE = "vidrio.glass.paper", "glass_without_taps"


class WithoutTaps(ast.NodeTransformer):
    """`tap(name, value)` becomes `value`, and so do those of the heads; imports stay inside the copy."""

    removed = 0

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id in ("tap", "of_heads", "tap_heads"):
            WithoutTaps.removed += 1
            return node.args[-1]
        return node

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        if node.module and node.module.startswith(PACKAGE):
            node.module = node.module.replace(PACKAGE, BARE)
        return node


def without_taps(folder: Path) -> ModuleType:
    """A copy of the modules that compute, without their taps."""
    source = Path(vidrio.glass.paper.__file__).parent
    package = folder / BARE
    package.mkdir()
    (package / "__init__.py").write_text("")
    for path in source.glob("[a-z]*.py"):
        tree = WithoutTaps().visit(ast.parse(path.read_text("utf-8")))
        (package / path.name).write_text(ast.unparse(ast.fix_missing_locations(tree)))
    sys.path.insert(0, str(folder))
    return importlib.import_module(f"{BARE}.transformer")


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
        translate_forced(machine, source, target, trace.tap)
        return trace

    def searched_and_traced() -> None:
        options = replace(default_options(config), beam=1, max_length=LENGTH)
        found = greedy(stepper(machine, source), config.special.start, config.special.end, options)
        translate_forced(machine, source, [config.special.start, *found.ids[:-1]], Trace(machine).tap)

    trace = traced()
    kept = sum(array.size for array in trace.values.values())
    times = [seconds(traced) for _ in range(RUNS)]
    print(f"1. full trace, {len(trace.values):,} quantities, {kept:,} numbers, {RUNS} runs")
    print(f"   {told(times)}; the limit is {LIMIT} s")
    busy = [seconds(traced, time.process_time) for _ in range(RUNS)]
    print(f"   of processor time, both threads together: {told(busy)}")
    whole = [seconds(searched_and_traced) for _ in range(RUNS)]
    print(f"   with the search before it (greedy, {LENGTH} steps): {told(whole)}")
    return statistics.median(times) <= LIMIT


def taps() -> bool:
    machine, source, target = make()
    with tempfile.TemporaryDirectory() as folder:
        bare = without_taps(Path(folder))
        bare_machine = bare.build(machine.config, machine.parameters, np.float32)

        def tapped() -> Array:
            return translate_forced(machine, source, target)

        def untapped() -> Array:
            result: Array = bare.translate_forced(bare_machine, source, target)
            return result

        same = np.array_equal(tapped(), untapped())
        with_taps, without = [], []
        for pair in range(PAIRS):
            order = [(with_taps, tapped), (without, untapped)]
            for found, run in order if pair % 2 else reversed(order):
                found.append(seconds(run, time.process_time))
    ratios = sorted(a / b for a, b in zip(with_taps, without, strict=True))
    middle = ratios[PAIRS // 4 : -(PAIRS // 4)]
    print(f"\n2. the same pass, nobody looking, {WithoutTaps.removed} tap calls taken out of the copy, {PAIRS} pairs")
    print(f"   both give the same numbers, bit for bit: {'yes' if same else 'NO'}")
    print(f"   with taps:    {told(with_taps)} of processor time, one thread")
    print(f"   without taps: {told(without)}")
    spread = f"half of the pairs {middle[0]:.3f} to {middle[-1]:.3f}"
    print(f"   with / without: median {statistics.median(ratios):.3f}, {spread}", flush=True)
    return bool(same)


def main() -> int:
    if ALONE in sys.argv:
        return 0 if taps() else 1
    print(machine_facts())
    fast = full_trace()
    sys.stdout.flush()
    same = subprocess.run([sys.executable, __file__, ALONE], check=False).returncode == 0
    return 0 if fast and same else 1


if __name__ == "__main__":
    sys.exit(main())
