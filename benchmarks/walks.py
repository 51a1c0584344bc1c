"""The functions that a text calls on its way to a translation, and pairs on their way to a model: files, calls, hops.

    python benchmarks/walks.py [--json] [--what translate,train]

Counted by `sys.setprofile`, in Vidrio's own functions (lambdas and comprehensions belong to the function that contains
them), without what runs on import.

`translate`: one text through `Translator.translate`, once the translator is loaded and has translated something, the
engine's host included. `changes` are calls that go into another file than the call before them.

`train`: some pairs through `vidrio train` to a model's folder, as far as they walk in `ROOMS`. A hop is a call from
one file into another, counted once for the two files, however often it happens; a return is a hop into a file that was
entered before.
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
    """A function that was called, and the file that called it."""

    file: str
    function: str
    caller: str


@dataclass(frozen=True)
class Walk:
    """What was counted."""

    files: int
    functions: int
    calls: int
    changes: int  # of file


def walk_of(calls: list[Call]) -> Walk:
    """The calls of a text, one after the other."""
    changes = sum(one.file != other.file for one, other in pairwise(calls))
    functions = {(call.file, call.function) for call in calls}
    return Walk(len({call.file for call in calls}), len(functions), len(calls), changes)


@contextmanager
def traced() -> Iterator[list[Call]]:
    """Every call of a function of the package, in order. A generator counts once, however often it resumes."""
    calls: list[Call] = []
    places: dict[str, str] = {}  # of each file of code its path in the package; nothing for others
    generators: dict[int, FrameType] = {}  # those that were called

    def file_of(code: CodeType) -> str:
        if code.co_filename not in places:
            path = Path(code.co_filename)
            places[code.co_filename] = path.relative_to(PACKAGE).as_posix() if PACKAGE in path.parents else ""
        return places[code.co_filename]

    def note(frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        if event != "call" or code.co_name.startswith("<") or not file_of(code):
            return
        if not code.co_flags & CO_OPTIMIZED:  # the body of a class, while its file is imported
            return
        if code.co_flags & (CO_GENERATOR | CO_COROUTINE):
            if id(frame) in generators:
                return
            generators[id(frame)] = frame  # kept, so that no other gets its place in memory
        before = frame.f_back
        while before and not file_of(before.f_code):
            before = before.f_back
        if before and before.f_code.co_name == "<module>":  # while a file is imported, which no batch walks through
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
    """The walk of each text through `Translator.translate`."""
    vidrio.load("en-es", workers=1).translate(list(TEXTS.values()))  # regular expressions are compiled at first use
    translator = vidrio.load("en-es", workers=1)
    # What is done only once, also for each sign.
    translator.translate(['A first one, with €1 at example.com, a "quotation" (and brackets).', "Hello there"])
    walks = {}
    for name, text in TEXTS.items():
        with traced() as calls:
            translator.translate(text)
        walks[name] = walk_of(calls)
    return walks


def training() -> dict[str, int]:
    """The walk of some pairs through `vidrio train`, from file to file."""
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
    parser.add_argument("--what", default="translate,train", help="which walks")
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
