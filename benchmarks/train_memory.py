"""How much memory training takes: a whole run from a file of pairs, or one step of several processes. Needs Linux.

    python benchmarks/train_memory.py --run FILE [FILE] [--columns 2,3] [--steps 400] [--preset small]
        [--batch-tokens 8192] [--threads 1] [--to FOLDER]

What `vidrio train` takes in all, from reading to judging, at most in each part of it: as Linux counts it (VmHWM), with
what is mapped from files. The run lies in --to [a temporary folder, removed].

    python benchmarks/train_memory.py [--preset base] [--vocabulary 8000] [--precision bfloat16] [--processes 2]

What each process takes for a step: bytes for each parameter, beyond what it has taken before there was a model.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

GOAL = 4e9  # bytes at most, at `small` with 8 thousand tokens a batch
PARTS = 4  # that the steps are told in
BEFORE, AFTER = "reading, cleaning, tokenizer", "judging, writing"
TOKENS = 256  # in a batch: so few that the parameters are what counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", nargs="+", metavar="FILE", help="sentence pairs, as `vidrio train` reads them")
    parser.add_argument("--columns", help="of these files")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--to", type=Path, help="where to make it")
    parser.add_argument("--preset", help="[small for a run, base for a step]")
    parser.add_argument("--vocabulary", type=int, default=8000)
    parser.add_argument("--precision", default="bfloat16")
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    if given.run:
        with tempfile.TemporaryDirectory(prefix="vidrio-memory-", dir=given.to) as folder:
            whole_run(Path(folder), given)
        return
    given.preset = given.preset or "base"
    if "LOCAL_RANK" in os.environ:
        measure(given.preset, given.vocabulary, given.precision)
        return
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(given.processes)]
    # Memory that is freed goes back to the system at once, or it would be counted.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": "65536", "OMP_NUM_THREADS": "1"}
    raise SystemExit(subprocess.run([*command, *sys.argv], env=environment, check=False).returncode)


def whole_run(home: Path, given: argparse.Namespace) -> None:
    """`vidrio train`, looked at from outside."""
    options = ["--preset", given.preset or "small", "--batch-tokens", str(given.batch_tokens)]
    options += ["--steps", str(given.steps), "--threads", str(given.threads), "--validations", str(PARTS)]
    options += ["--columns", given.columns] if given.columns else []
    command = [sys.executable, "-m", "vidrio", "train", *given.run, "--to", str(home / "model"), *options]
    print("vidrio train", *given.run, "--to model", *options, flush=True)
    with (home / "said").open("w") as said:
        process = subprocess.Popen(command, stderr=said)
    peaks = dict[str, int]()
    part = BEFORE
    try:
        while process.poll() is None:
            peaks[part] = max(peaks.get(part, 0), memory("VmHWM", process.pid))
            if (now := part_of(home, given.steps)) != part:
                told(part, peaks[part])
                part = now
                Path(f"/proc/{process.pid}/clear_refs").write_text("5")  # VmHWM begins anew
            time.sleep(0.2)
    except (OSError, StopIteration):  # it has ended meanwhile
        process.wait()
    finally:
        process.terminate()
    if process.returncode:
        raise SystemExit((home / "said").read_text())
    told(part, peaks[part])
    most = max(peaks.values())
    told(f"most; the goal is {GOAL / 1e9:g} GB: {'reached' if most <= GOAL else 'not reached'}", most)


def part_of(home: Path, steps: int) -> str:
    """What the run is at."""
    said = (home / "said").read_text()
    if "beginning with" not in said:
        return BEFORE
    if "\ntrained " in said:
        return AFTER
    metrics = home / "model" / "run" / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    done = max((json.loads(line)["step"] for line in lines if line.endswith("}")), default=0)
    size = -(-steps // PARTS)
    first = min(done, steps - 1) // size * size
    return f"steps {first + 1:,} to {min(first + size, steps):,}"


def told(what: str, size: int) -> None:
    print(f"{size / 1e9:6.2f} GB  {what}", flush=True)


def memory(what: str, process: int | str = "self") -> int:
    """Bytes: VmRSS, what a process takes now; VmHWM, the most since it was last asked for."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(what))


def measure(preset: str, vocabulary: int, precision: str) -> None:
    """Begin, and take two steps."""
    import numpy as np
    import torch

    from vidrio.data.store import in_memory
    from vidrio.learn.choose import sized
    from vidrio.learn.loop import Training, loop
    from vidrio.learn.parameters import Parameters
    from vidrio.learn.plan import Recipe, Stop
    from vidrio.learn.processes import join, leave
    from vidrio.learn.state import State, share_state
    from vidrio.model.config import SpecialIds
    from vidrio.model.parameters import count, random_parameters

    torch.set_num_threads(1)
    processes = join()
    config = sized(preset, vocabulary, SpecialIds())
    random = np.random.default_rng(1)
    pairs = [(row.tolist(), row.tolist()) for row in random.integers(4, vocabulary, size=(200, 15))]
    recipe = Recipe(stop=Stop(steps=2), batch_tokens=TOKENS, accumulate=processes.size, precision=precision, warmup=1)
    n = count(config)
    if processes.leads:
        print(f"{preset}, {n:,} parameters, {precision}, {processes.size} processes; bytes for each parameter")

    def begin() -> State | None:
        parameters = random_parameters(config, np.random.default_rng(1))
        return State.start(Parameters.from_arrays(config, parameters)) if processes.leads else None

    before = memory("VmRSS")
    state = share_state(begin(), config, torch.device("cpu"), processes)
    kept = memory("VmRSS") - before
    Path("/proc/self/clear_refs").write_text("5")  # VmHWM begins anew
    peaks: list[int] = []

    def note(net: object) -> dict[str, float]:
        peaks.append(memory("VmHWM"))
        return {"loss": 1.0}

    list(loop(Training([in_memory(pairs)], recipe, note, processes=processes), state))
    peak = torch.tensor([kept, (peaks[0] if peaks else memory("VmHWM")) - before], dtype=torch.float64)
    for rank in range(processes.size):
        own = processes.sum(peak * (processes.rank == rank)) / n
        if processes.leads:
            print(f"  process {rank}: {own[0]:.1f} between steps, {own[1]:.1f} at most in a step")
    leave()


if __name__ == "__main__":
    main()
