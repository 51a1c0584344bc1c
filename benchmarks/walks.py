"""Count the files, functions and calls involved in translating a text and in training a model.

    python benchmarks/walks.py [--json] [--what translate,train]

`sys.setprofile` counts the calls of Vidrio's own functions. Lambdas and comprehensions count as part of the function
that contains them. Code that runs on import is not counted.

`translate`: one text is passed to `Translator.translate`, including the engine's host code, after the translator has
been loaded and warmed up. `changes` is the number of calls into a different file from the preceding call.

`train`: a few pairs are passed to `vidrio train`, within the packages in `ROOMS`. A hop is a call from one file into
another, counted once per pair of files. A return is a hop into a file that was entered before.
"""

import argparse
import contextlib
import io
import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from inspect import CO_COROUTINE, CO_GENERATOR, CO_OPTIMIZED
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import vidrio

PACKAGE = Path(vidrio.__file__).parent
ROOMS = ("commands", "data", "learn")
TEXTS = {
    "hello": "Hello world",
    "marks": '"The ticket costs €18.10 (with tax)," he said, "see www.example.com/shop."',
}
SIZES = "--d-model 24 --heads 2 --d-ff 48 --encoder-layers 1 --decoder-layers 1 --steps 20 --vocabulary 400"
PAIRS = 60


@dataclass(frozen=True)
class Call:
    """A call: the function, its file, and the file of the caller."""

    file: str
    function: str
    caller: str


@dataclass(frozen=True)
class Walk:
    """The counts for one text."""

    files: int
    functions: int
    calls: int
    changes: int  # file changes


def walk_of(calls: list[Call]) -> Walk:
    """Summarise the calls made for a text."""
    changes = sum(one.file != other.file for one, other in pairwise(calls))
    functions = {(call.file, call.function) for call in calls}
    return Walk(len({call.file for call in calls}), len(functions), len(calls), changes)


@contextmanager
def traced() -> Iterator[list[Call]]:
    """Record every call of a function in the package, in order. Resuming a generator does not count as a call."""
    calls: list[Call] = []
    places: dict[str, str] = {}  # the path of each code file within the package, or an empty string
    generators: dict[int, FrameType] = {}  # the generators called so far

    def file_of(code: CodeType) -> str:
        if code.co_filename not in places:
            path = Path(code.co_filename)
            places[code.co_filename] = path.relative_to(PACKAGE).as_posix() if PACKAGE in path.parents else ""
        return places[code.co_filename]

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not file_of(code):
            return
        if not code.co_flags & CO_OPTIMIZED:  # a class body, executed on import
            return
        if code.co_flags & (CO_GENERATOR | CO_COROUTINE):
            if id(frame) in generators:
                return
            generators[id(frame)] = frame  # keep the frame alive, so that its id is not reused
        before = frame.f_back
        while before and not file_of(before.f_code):
            before = before.f_back
        if before and before.f_code.co_name == "<module>":  # a call made during import
            return
        calls.append(Call(file_of(code), code.co_qualname, file_of(before.f_code) if before else ""))

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        threading.setprofile(None)


def translating() -> dict[str, Walk]:
    """Return the counts for each text passed to `Translator.translate`."""
    vidrio.load("en-es", workers=1).translate(list(TEXTS.values()))  # compiles the regular expressions
    translator = vidrio.load("en-es", workers=1)
    # Trigger all work that is done only once, including the work for each placeholder.
    translator.translate(['A first one, with €1 at example.com, a "quotation" (and brackets).', "Hello there"])
    walks = {}
    for name, text in TEXTS.items():
        with traced() as calls:
            translator.translate(text)
        walks[name] = walk_of(calls)
    return walks


def training() -> dict[str, int]:
    """Return the counts for a run of `vidrio train` on a few pairs."""
    from vidrio.cli import main

    with tempfile.TemporaryDirectory() as folder:
        pairs = Path(folder) / "pairs.tsv"
        numbers = ["one", "two", "three", "four", "five", "six", "seven", "eight"]
        things = {"books": "libros", "houses": "casas", "dogs": "perros", "cats": "gatos", "trees": "árboles"}
        numeros = ["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho"]
        rows = [
            f"{n} {a} and {b}\t{m} {things[a]} y {things[b]}"
            for n, m in zip(numbers, numeros, strict=True)
            for a in things
            for b in things
        ]
        pairs.write_text("\n".join(rows[:PAIRS]) + "\n", encoding="utf-8")
        command = ["train", str(pairs), "--to", str(Path(folder) / "model"), "--languages", "en,es", *SIZES.split()]
        with traced() as calls, contextlib.redirect_stderr(io.StringIO()), contextlib.redirect_stdout(io.StringIO()):
            code = main(command)
        if code:
            raise SystemExit(f"vidrio {' '.join(command)} ended with {code}")
    inside = [call for call in calls if call.file.split("/")[0] in ROOMS]
    hops = {(call.caller, call.file) for call in inside if call.caller != call.file}
    files = {call.file for call in inside}
    return {"files": len(files), "hops": len(hops), "returns": len(hops) - len(files)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--what", default="translate,train", help="what to count")
    given = parser.parse_args()
    walks: dict[str, dict[str, int]] = {}
    if "translate" in given.what:
        walks |= {name: asdict(walk) for name, walk in translating().items()}
    if "train" in given.what:
        walks["train"] = training()
    if given.json:
        print(json.dumps(walks, indent=2))
    for name, walk in {} if given.json else walks.items():
        print(f"{name}: " + ", ".join(f"{count} {what}" for what, count in walk.items()))


if __name__ == "__main__":
    main()
