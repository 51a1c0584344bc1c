"""Measure the cost of checking facts: the CPU time to translate a file with and without the checks.

    python benchmarks/account_time.py [--direction en-es] [--lines 500] [--rounds 5] [--old CHECKOUT]

Without the checks, the first hypothesis of each sentence is used as it is. `--old` also measures another checkout of
this repository. The variants alternate, each in a separate process with two threads, and all use the WebAssembly engine
(`--engine`), which every checkout contains. CPU time is the user and system time of all threads, excluding the time to
load the model.
"""

import argparse
import os
import statistics
import subprocess
import sys
from pathlib import Path

from shared import ENGLISH_SPANISH, REPOSITORY

MEASURED = """
import os, sys
from vidrio.translate import translator as module
name, path, lines, account = sys.argv[1:]
texts = open(path, encoding="utf-8").read().splitlines()[: int(lines)]
if account == "without":
    from vidrio.text.account import Faults
    from vidrio.translate.judging import Judge, Candidate
    Judge.candidates = lambda judge, query, ids, found: [
        Candidate(one, written, query.masked.restore(written), Faults(), False) for one, written in found
    ]
translator = module.Translator.load(name, workers=2)
translator.translate(texts[0])
before = os.times()
translator.translate(texts)
after = os.times()
print(after.user - before.user + after.system - before.system)
"""


def seconds(checkout: Path, account: str, given: argparse.Namespace, path: Path) -> float:
    """Return the CPU seconds of one process."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src"), "VIDRIO_ENGINE": given.engine}
    command = [sys.executable, "-c", MEASURED, given.direction, str(path), str(given.lines), account]
    return float(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--direction", default="en-es", choices=["en-es", "es-en"])
    parser.add_argument("--lines", type=int, default=500)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--engine", default="wasm")
    parser.add_argument("--old", type=Path, help="another checkout to measure as well")
    parser.add_argument("--data", type=Path, default=ENGLISH_SPANISH / "dev/newstest2012")
    given = parser.parse_args()
    path = Path(f"{given.data}.{given.direction[:2]}").absolute()
    ways = {"with": (REPOSITORY, "with"), "without": (REPOSITORY, "without")}
    ways |= {"old": (given.old.absolute(), "with")} if given.old else {}
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(given.rounds):
        for way, (checkout, account) in ways.items():
            found[way].append(seconds(checkout, account, given, path))
    for way, times in found.items():
        ratios = [one / other for one, other in zip(found["with"], times, strict=True)]
        print(
            f"{given.direction} {way:8} {statistics.median(times):7.2f} s CPU for {given.lines} lines; "
            f"with the account: {statistics.median(ratios):.3f} times ({min(ratios):.3f}–{max(ratios):.3f})"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
