"""Check whether the commands of two source trees produce byte-for-byte identical output.

    python benchmarks/compare_outputs.py record before.jsonl.gz --source ../old/src
    python benchmarks/compare_outputs.py against before.jsonl.gz                    # compares this tree's src
    python benchmarks/compare_outputs.py against before.jsonl.gz --only look --every 5

Each tree runs `translate` on all cases in tests/behaviour, and `look`, `why` and `check` on some of the cases and on
addresses of every kind, with the packaged models and the lesson model. All its commands run in one process on one core.
Times and the tree's path are ignored.
"""

import argparse
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from difflib import unified_diff
from pathlib import Path
from typing import Any, NamedTuple

from shared import REPOSITORY, TESTS

SHOWN, LINES = 3, 24  # maximum number of differences per command, and of lines per difference
DIRECTIONS = ("en-es", "es-en")
LOOK = (
    *("", "--json", "--at dec.1.cross", "--at out.prob", "--as-typed", "--heads-off enc.1.self.h0", "--dtype float64"),
    *("--temperature 2 --top-k 5 --seed 3", "--without cross --max-length 8", "--set enc.0.self.bO[3]=2"),
)
LESSON_LOOK = (
    *(*LOOK, "--at enc.0", "--at dec.5.cross.weights.h0[mundo,world]", "--at nonsense", "--mask off", "--target mundo"),
    *("--scale src.embed=1000000 --softmax naive", "--without layer-norm", "--without residual --json"),
    *("--mask zeros", "--positions none", "--change-dtype float16"),
)
WHY = (
    *("enc.0.self.scores.h0[0,1]", "dec.0.cross.weights.h1[1,0]", "out.prob[0,0]", "enc.in[0,3]", "out.logits[0,5]"),
    *("enc.0.ffn.W1[0,0]", "enc.0.self.norm.out[0,1]", "src.embed[3,1]", "src.positions[1,0]", "out.score[0]"),
)
WHY_OPTIONS = ("", "--json", "--as python", "--as spreadsheet")


class Run(NamedTuple):
    """A command line and its standard input."""

    arguments: tuple[str, ...]
    stdin: str = ""


def runs() -> Iterator[Run]:
    """Yield every command line to run."""
    sys.path.insert(0, str(TESTS))
    from behaviour.cases import read_cases  # type: ignore[import-not-found, unused-ignore]

    for direction in DIRECTIONS:
        model = ("--model", direction)
        texts = [case.source for case in read_cases(direction)]
        objects = "".join(json.dumps({"id": number, "text": text}) + "\n" for number, text in enumerate(texts))
        yield Run(("translate", *model, "--jsonl"), objects)
        for text in texts[::9]:
            yield Run(("translate", *model, "--json", "--n-best", "2", "--", text))
        short = [text for text in texts if 0 < len(text.strip()) < 60]
        for number, text in enumerate(short[::20]):
            yield Run(("look", *model, *LOOK[number % len(LOOK)].split(), "--", text))
            options = WHY_OPTIONS[number % len(WHY_OPTIONS)].split()
            yield Run(("why", *model, *options, "--", WHY[number % len(WHY)], text))
        for text in short[::60]:
            yield Run(("check", *model, "--", text))
    for given in LESSON_LOOK:
        yield Run(("look", "Hello world", "--model", "lesson", *given.split()))
    for address in WHY:
        for given in WHY_OPTIONS:
            yield Run(("why", address, "hello world", "--model", "lesson", *given.split()))
    for given in ("", "enc.0", "--json", "--mask off"):
        yield Run(("check", "hello world", "--model", "lesson", *given.split()))


def record(file: Path, source: Path, only: str, every: int) -> None:
    """Run all commands with one source tree, in a separate process."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
        environment |= {"XDG_CACHE_HOME": folder, "NO_COLOR": "1"}
        words = [sys.executable, __file__, "run", str(file.resolve()), "--only", only, "--every", str(every)]
        subprocess.run(words, env=environment, check=True, cwd=folder)


def run_all(file: Path, only: str, every: int) -> None:
    """Run all commands in this process, and write each output as a line of JSON."""
    chosen = [run for number, run in enumerate(runs()) if only in ("", run.arguments[0]) and number % every == 0]
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=3) as out:
        for run in chosen:
            print(json.dumps(output_of(run)), file=out)


def output_of(run: Run) -> dict[str, Any]:
    import vidrio
    from vidrio.cli import main

    streams = [io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2)]
    Path("stdin").write_text(run.stdin, encoding="utf-8", newline="")
    given = sys.stdin
    with open("stdin", encoding="utf-8") as sys.stdin, redirect_stdout(streams[0]), redirect_stderr(streams[1]):
        try:
            code: object = main(list(run.arguments))
        except BaseException as error:
            code = repr(error)  # recorded like any other output
    sys.stdin = given
    texts = []
    for stream in streams:
        stream.flush()
        text = stream.buffer.getvalue().decode("utf-8").replace(str(Path(vidrio.__file__).parent), "PACKAGE")
        text = re.sub(r'("seconds"|"minutes"): [0-9.e-]+', r"\1: TIME", text)
        texts.append(re.sub(r"\b[0-9][0-9.,]*( s\b| ms\b| seconds)", r"TIME\1", text))
    return {"arguments": run.arguments, "stdin": run.stdin, "code": code, "out": texts[0], "err": texts[1]}


def read(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        return {(" ".join(entry["arguments"]), entry["stdin"]): entry for entry in map(json.loads, lines)}


def compare(before: Path, after: Path) -> int:
    """Print the number of identical outputs and the first differences for each command."""
    old, new = read(before), read(after)
    same, different = Counter[str](), Counter[str]()
    for key in old.keys() & new.keys():
        verb = key[0].split()[0]
        parts = [part for part in ("code", "out", "err") if old[key][part] != new[key][part]]
        (different if parts else same)[verb] += 1
        if parts and different[verb] <= SHOWN:
            print(f"\n=== vidrio {key[0]}")
            for part in parts:
                a, b = (str(entries[key][part]).splitlines() for entries in (old, new))
                print(
                    f"--- {part}",
                    *(line[:200] for line in list(unified_diff(a, b, lineterm="", n=1))[2:LINES]),
                    sep="\n",
                )
    for verb in sorted({*same, *different}):
        print(f"{verb:12} {same[verb]:8,} the same, {different[verb]:,} different")
    return 1 if different else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("record", "against", "run"))
    parser.add_argument("file", type=Path)
    parser.add_argument("--source", type=Path, default=REPOSITORY / "src", help="the folder that contains vidrio/")
    parser.add_argument("--only", default="", metavar="VERB", help="run only this command, such as look")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="run only every Nth command line")
    given = parser.parse_args()
    if given.verb == "run":
        run_all(given.file, given.only, given.every)
    elif given.verb == "record":
        record(given.file, given.source, given.only, given.every)
    else:
        with tempfile.TemporaryDirectory() as folder:
            record(Path(folder) / "now.jsonl.gz", given.source, given.only, given.every)
            return compare(given.file, Path(folder) / "now.jsonl.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main())
