"""Measure the peak memory of each part of a training run, from reading the pairs to evaluation. Requires Linux.

    python benchmarks/train_memory.py FILE [FILE] [--columns 2,3] [--steps 400] [--preset small]
        [--batch-tokens 8192] [--threads 1] [--to FOLDER]

Peak memory is Linux's VmHWM, which includes mapped files. The run is stored in --to (default: a temporary folder).
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from shared import forget_peak, memory

GOAL = 4e9  # limit in bytes for the `small` preset with 8,000 tokens per batch
PARTS = 4  # number of parts into which the steps are divided
BEFORE, AFTER = "reading, cleaning, tokenizer", "judging, writing"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE", help="sentence pairs, as `vidrio train` reads them")
    parser.add_argument("--columns", help="columns of these files")
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--batch-tokens", type=int, default=8192)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--preset", default="small")
    parser.add_argument("--to", type=Path, help="folder for the run")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="vidrio-memory-", dir=given.to) as folder:
        peaks = watched(Path(folder), given)
    most = max(peaks.values())
    show(f"most; the goal is {GOAL / 1e9:g} GB: {'reached' if most <= GOAL else 'not reached'}", most)


def watched(home: Path, given: argparse.Namespace) -> dict[str, int]:
    """Run `vidrio train`, and return the peak memory of each part."""
    options = ["--preset", given.preset, "--batch-tokens", str(given.batch_tokens)]
    options += ["--steps", str(given.steps), "--threads", str(given.threads), "--validations", str(PARTS)]
    options += ["--columns", given.columns] if given.columns else []
    print("vidrio train", *given.files, "--to model", *options, flush=True)
    with (home / "said").open("w") as said:
        command = [sys.executable, "-m", "vidrio", "train", *given.files, "--to", str(home / "model"), *options]
        process = subprocess.Popen(command, stderr=said)
    peaks, part = dict[str, int](), BEFORE
    try:
        while process.poll() is None:
            peaks[part] = max(peaks.get(part, 0), memory("VmHWM", process.pid))
            if (now := part_of(home, given.steps)) != part:
                show(part, peaks[part])
                part = now
                forget_peak(process.pid)
            time.sleep(0.2)
    except (OSError, StopIteration):  # the process has ended in the meantime
        process.wait()
    finally:
        process.terminate()
    if process.returncode:
        raise SystemExit((home / "said").read_text())
    show(part, peaks.get(part, 0))
    return peaks


def part_of(home: Path, steps: int) -> str:
    """Return the name of the current part of the run."""
    said = (home / "said").read_text()
    if "starting with" not in said:
        return BEFORE
    if "\ntrained " in said:
        return AFTER
    metrics = home / "model" / "run" / "metrics.jsonl"
    lines = metrics.read_text().splitlines() if metrics.exists() else []
    done = max((json.loads(line)["step"] for line in lines if line.endswith("}")), default=0)
    size = -(-steps // PARTS)
    first = min(done, steps - 1) // size * size
    return f"steps {first + 1:,} to {min(first + size, steps):,}"


def show(what: str, size: int) -> None:
    print(f"{size / 1e9:6.2f} GB  {what}", flush=True)


if __name__ == "__main__":
    main()
