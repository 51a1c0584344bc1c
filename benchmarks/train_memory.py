"""How much memory each of two processes takes for a training step, with a whole model each and sharing it out.

    python benchmarks/train_memory.py [--preset base] [--vocabulary 8000] [--precision bfloat16]

Counted beyond what the process has taken before there was a model: bytes for each parameter of the model. Needs Linux.
"""

import argparse
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

TOKENS = 256  # in a batch: so few that the parameters are what counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="base")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if "LOCAL_RANK" in os.environ:
        measure(given.preset, given.vocabulary, given.precision)
        return
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(given.processes)]
    # Memory that is freed goes back to the system at once, or it would be counted.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    raise SystemExit(subprocess.run([*command, *sys.argv], env=environment, check=False).returncode)


def memory(what: str) -> int:
    """Bytes: VmRSS, what this process takes now; VmHWM, the most since it was last asked for."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))


def measure(preset: str, vocabulary: int, precision: str) -> None:
    """Begin, and take two steps, in both ways."""
    import numpy as np
    import torch

    from vidrio.config import SpecialIds
    from vidrio.learn.plain import in_memory
    from vidrio.learn.recipe import Recipe, Stop, sized
    from vidrio.learn.state import State, hand_out
    from vidrio.learn.together import join, leave
    from vidrio.learn.train import train
    from vidrio.learn.weights import Weights
    from vidrio.parameters import count, random_parameters

    torch.set_num_threads(1)
    together = join()
    config = sized(preset, vocabulary, SpecialIds())
    random = np.random.default_rng(1)
    pairs = [(row.tolist(), row.tolist()) for row in random.integers(4, vocabulary, size=(200, 15))]
    recipe = Recipe(stop=Stop(steps=2), batch_tokens=TOKENS, accumulate=together.size, precision=precision, warmup=1)
    n = count(config)
    if together.leads:
        print(f"{preset}, {n:,} parameters, {precision}, {together.size} processes; bytes for each parameter")

    def begin() -> State | None:
        parameters = random_parameters(config, np.random.default_rng(1))
        return State.start(Weights.from_arrays(config, parameters)) if together.leads else None

    for way in (replace(together, sharded=True), together):
        before = memory("VmRSS")
        state = hand_out(begin(), config, torch.device("cpu"), way)
        kept = memory("VmRSS") - before
        Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
        peaks = []

        def note(peaks: list[int] = peaks) -> dict[str, float]:
            peaks.append(memory("VmHWM"))
            return {"loss": 1.0}

        train(in_memory(pairs), state, recipe, lambda net, note=note: note(), together=way)
        peak = torch.tensor([kept, (peaks[0] if peaks else memory("VmHWM")) - before], dtype=torch.float64)
        for rank in range(together.size):
            own = together.add_up(peak * (together.rank == rank)) / n
            if together.leads:
                name = "shared out" if way.sharded else "whole model"
                print(f"  {name}, process {rank}: {own[0]:.1f} between steps, {own[1]:.1f} at most in a step")
        del state
    leave()


if __name__ == "__main__":
    main()
