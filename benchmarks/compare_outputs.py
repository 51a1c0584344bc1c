"""What every command prints, of one source tree and of another: the same, byte for byte?

python benchmarks/compare_outputs.py record before.jsonl.gz --source ../old/src
python benchmarks/compare_outputs.py against before.jsonl.gz                    this tree's src
python benchmarks/compare_outputs.py against before.jsonl.gz --only look --every 5
python benchmarks/compare_outputs.py compare before.jsonl.gz after.jsonl.gz

Some 2,700 texts go through `translate`, `look`, `why`, `check`, `lesson` and `evaluate` of the packaged models and the
lesson's: the behaviour cases, the examples of the docs, addresses of every kind. All runs of a tree are made in one
process on one core, and none may write anything. Left out of the comparison: times, the package's version, where the
tree lies; of a page everything but its title and its numbers by address.
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
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from difflib import unified_diff
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, NamedTuple

REPOSITORY = Path(__file__).resolve().parent.parent
DIFFERENCES = 3  # shown in full for each verb
LINES = 24  # of a difference

# --- what is run ------------------------------------------------------------------------------------------------------


class Run(NamedTuple):
    """One command line."""

    arguments: tuple[str, ...]
    stdin: str = ""

    @property
    def verb(self) -> str:
        return self.arguments[0]


TRANSLATE = ((), ("--json", "--n-best", "3"), ("--beam", "1"), ("--beam", "4"))
ONE_TEXT = (("--json",), ("--confidence",), ("--json", "--n-best", "2"))
LOOK = (
    *((), (), ("--json",)),
    *(("--at", "dec.1.cross"), ("--at", "out.prob"), ("--json", "--at", "memory"), ("--precision", "8")),
    *(("--as-typed",), ("--heads-off", "enc.1.self.h0"), ("--at", "enc.0.self.weights.h0", "--at", "src.ids")),
    *(("--temperature", "2", "--top-k", "5", "--seed", "3"), ("--set", "enc.0.self.bO[3]=2", "--max-length", "12")),
    *(("--at", "dec.0.self.weights.h1"), ("--dtype", "float32")),
)
SLOW_LOOK = (
    *(("--html", "-"), ("--without", "cross", "--max-length", "8")),
    *(("--softmax", "naive", "--max-length", "10"), ("--mask", "off", "--max-length", "8")),
)
LESSON_LOOK = (
    *((), ("--json",)),
    *(("--html", "-"), ("--at", "enc.0"), ("--at", "dec.5.cross")),
    *(
        ("--at", "enc.0.self", "--at", "memory"),
        ("--at", "out.logits"),
        ("--at", "dec.5.cross.weights.h0[mundo,world]"),
    ),
    *(("--at", "nonsense"), ("--at", "src.ids"), ("--at", "src.embed"), ("--at", "dec.0")),
    *(("--temperature", "2", "--top-k", "3", "--seed", "1"), ("--scale", "src.embed=1000000", "--softmax", "naive")),
    *(("--set", "out.b[mundo]=5"), ("--without", "layer-norm"), ("--without", "residual", "--json"), ("--mask", "off")),
    *(("--mask", "zero-after", "--html", "-"), ("--softmax", "naive", "--divisor", "0.0001"), ("--positions", "none")),
    *(("--change-dtype", "float16"), ("--norm-epsilon", "1"), ("--target", "hola mundo"), ("--target", "mundo hola")),
    *(("--heads-off", "dec.5.cross.h0", "--heads-off", "enc.0.self.h1"), ("--no-repeat", "1"), ("--min-length", "5")),
    *(("--length-penalty", "2", "--beam", "3"), ("--dtype", "float32", "--json")),
    *(("--history",), ("--history", "--json")),
)
WHY = (
    *("enc.0.self.scores.h0[0,1]", "dec.0.cross.weights.h1[1,0]", "out.prob[0,0]", "enc.in[0,3]", "out.logits[0,5]"),
    *("enc.0.ffn.W1[0,0]", "enc.0.self.norm.out[0,1]", "src.embed[3,1]", "src.positions[1,0]", "src.ids[0]"),
    *("out.choice[0]", "out.score[0]", "dec.0.self.masked.h0[1,0]", "dec.0.self.weights.h1[1,0]", "memory[0,0]"),
)
WHY_OPTIONS = ((), ("--json",), ("--deep", "--limit", "8"), *(("--as", k) for k in ("python", "spreadsheet", "latex")))
CHECK = ((), ("enc.0", "out.prob[0,0]"), ("--json",), ("--heads-off", "enc.0.self.h0"))
LESSON = (
    *("", "errata", "errata --all", "errata 3", "nan --draws 20"),
    *("nan --draws 20 --softmax stable --residual --layer-norm", "nan --as trained", "sizes"),
    *("sizes --preset lesson", "sizes --glossary", "sizes --d-model 256 --heads 4", "sizes --model en-es", "notes"),
    *("notes all", "notes mask", "exercises"),
    *(f"exercises {n} --answer" for n in range(1, 9)),
    *("random-transformer", "random-transformer --list", "random-transformer --step 10"),
    *(
        "random-transformer --as corrected",
        "random-transformer --as trained",
    ),
    *("random-transformer --step 10 --why dec.0.cross.weights.h0[0,0]", "random-transformer --step 99", "nonsense"),
)
ODD = (
    *(
        "   ",
        "\U0001f44d",
        "{name}",
        "€18.10",
        "你好",
        "https://example.org/a?b=c",
        "user@example.org",
        "",
        "\n",
        "Hello",
    ),
    *("Hello world", "HELLO WORLD", "Is this seat taken?", "Ask Przybylski about {name}", "Good morning. How are you?"),
    *("The old man gave Tom three books yesterday, but he did not read them.", "I paid £1,250.50 for it (in May)."),
    *("She said: “I don't know.”", "It was the best of times, it was the worst of times.", "<b>Stop</b>", "x = y + 1"),
)


def runs() -> Iterator[Run]:
    """Every command line, in an order that mixes nothing: verb after verb."""
    cases = {direction: _cases(direction) for direction in ("en-es", "es-en")}
    for direction, topics in cases.items():
        model = ("--model", direction)
        for n, texts in enumerate(topics):
            lines = "".join(re.sub(r"[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]", " ", text) + "\n" for text in texts)
            yield Run(("translate", *model, *TRANSLATE[n % len(TRANSLATE)]), lines)
            objects = "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts))
            yield Run(("translate", *model, "--jsonl"), objects)
        for n, text in enumerate(text for texts in topics for text in texts[1::9]):
            yield Run(("translate", *model, *ONE_TEXT[n % len(ONE_TEXT)], "--", text))
    for text in ODD:
        yield Run(("translate", "--", text))
        yield Run(("translate", "--json", "--", text))
        yield Run(("look", "--", text))
        yield Run(("check", "--", text))
    for direction, topics in cases.items():
        short = [text for texts in topics for text in texts[:2] if len(text) < 160]
        for n, text in enumerate(short):
            yield Run(("look", "--model", direction, *LOOK[n % len(LOOK)], "--", text))
        for n, text in enumerate(text for text in short[::6] if len(text) < 60):
            yield Run(("look", "--model", direction, *SLOW_LOOK[n % len(SLOW_LOOK)], "--", text))
        for n, text in enumerate(short[::5]):
            options = WHY_OPTIONS[n % len(WHY_OPTIONS)]
            yield Run(("why", "--model", direction, *options, "--", WHY[n % len(WHY)], text))
        for n, text in enumerate(text for text in short[::7] if len(text) < 40):
            yield Run(("check", "--model", direction, text, *CHECK[n % len(CHECK)]))
    for options in LESSON_LOOK:
        yield Run(("look", "Hello world", "--model", "lesson", *options))
    for address in WHY:
        for options in WHY_OPTIONS[: 3 if "[0" in address else 6]:
            yield Run(("why", address, "hello world", "--model", "lesson", *options))
    for options in (*CHECK, ("--mask", "off"), ("--set", "enc.0.self.out[0,0]=1")):
        yield Run(("check", "hello world", "--model", "lesson", *options))
    for line in LESSON:
        yield Run(("lesson", *line.split()))
    for n, direction in enumerate(cases):
        for topic in ("everyday", "names"):
            texts = [text for text in _topic(direction, topic) if "\n" not in text]
            options = (("--json",), ())[n]
            yield Run(("evaluate", direction, *options), "\n".join(texts) + "\n")
    for verb in ("translate", "look", "why", "check", "lesson", "evaluate"):
        yield Run((verb, "--help"))


def _cases(direction: str) -> list[list[str]]:
    """The sources of the behaviour cases, topic by topic."""
    files = sorted((REPOSITORY / "tests" / "behaviour").glob(f"{direction}-*.tsv"))
    return [_topic(direction, path.stem.removeprefix(f"{direction}-")) for path in files]


def _topic(direction: str, topic: str) -> list[str]:
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from behaviour.cases import read_cases  # type: ignore[import-not-found, unused-ignore]

    return [case.source for case in read_cases(direction) if case.topic == topic]


# --- how it is run ----------------------------------------------------------------------------------------------------


def record(file: Path, source: Path, only: str | None, every: int) -> None:
    """Run everything with one source tree, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(source.resolve()), "OMP_NUM_THREADS": "1", "COLUMNS": "80"}
    with tempfile.TemporaryDirectory() as folder:
        environment |= {"XDG_CACHE_HOME": folder, "NO_COLOR": "1"}
        words = [sys.executable, __file__, "run", str(file.resolve()), "--every", str(every)]
        subprocess.run([*words, *(["--only", only] if only else [])], env=environment, check=True, cwd=folder)


def run_all(file: Path, only: str | None, every: int) -> None:
    """In that process: every output into a file, a JSON object a line."""
    import vidrio

    package = Path(vidrio.__file__).parent
    chosen = [run for n, run in enumerate(runs()) if (only is None or run.verb == only) and n % every == 0]
    began = time.monotonic()
    with gzip.open(file, "wt", encoding="utf-8", compresslevel=3) as out:
        for run in chosen:
            json.dump(_output(run, package), out)
            out.write("\n")
    print(f"{len(chosen):,} runs with {package}: {time.monotonic() - began:.0f} s", file=sys.stderr)


def _output(run: Run, package: Path) -> dict[str, Any]:
    from vidrio.cli import main

    arguments, given = list(run.arguments), sys.stdin
    if run.verb == "evaluate" and run.stdin:  # a test set: the sources themselves are as good a reference as any
        Path("set.txt").write_text(run.stdin, encoding="utf-8")
        arguments += ["--src", "set.txt", "--ref", "set.txt"]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    Path("stdin").write_text(run.stdin, encoding="utf-8", newline="")
    with open("stdin", encoding="utf-8") as sys.stdin, redirect_stdout(out), redirect_stderr(err):
        try:
            code: object = main(arguments)
        except BaseException as error:
            code = repr(error)  # an output like any other, to be compared
    sys.stdin = given
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(normalised(stream.buffer.getvalue().decode("utf-8"), package))
    if "--html" in run.arguments:
        texts[0] = the_page_says(texts[0])
    return {"arguments": run.arguments, "stdin": run.stdin, "code": code, "out": texts[0], "err": texts[1]}


def normalised(text: str, package: Path) -> str:
    """Without what differs from run to run."""
    from vidrio import __version__

    text = text.replace(str(package), "PACKAGE").replace(__version__, "VERSION")
    text = re.sub(r'("seconds"|"minutes"): [0-9.e-]+', r"\1: TIME", text)
    return re.sub(r"\b[0-9][0-9.,]*( s\b| ms\b| seconds| tokens/s| lines/s)", r"TIME\1", text)


class _Page(HTMLParser):
    """A page's title, and its numbers by address."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []
        self.wanted = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wanted = (dict(attrs).get("data-address") or "") if tag == "td" else tag if tag in ("title", "h2") else ""

    def handle_endtag(self, tag: str) -> None:
        self.wanted = ""

    def handle_data(self, data: str) -> None:
        if self.wanted:
            self.lines.append(f"{self.wanted} = {data.strip()}")


def the_page_says(text: str) -> str:
    page = _Page()
    page.feed(text)
    return "\n".join(page.lines)


# --- how it is compared -----------------------------------------------------------------------------------------------


def read(file: Path) -> dict[tuple[str, str], dict[str, Any]]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        entries = map(json.loads, lines)
        return {(" ".join(entry["arguments"]), entry["stdin"]): entry for entry in entries}


def compare(before: Path, after: Path) -> int:
    """Print how many outputs are the same, and the first differences of every verb."""
    old, new = read(before), read(after)
    same, differ, shown = Counter[str](), Counter[str](), Counter[str]()
    for key in old.keys() & new.keys() if len(new) < len(old) else old:
        verb = old[key]["arguments"][0]
        parts = [part for part in ("code", "out", "err") if key not in new or old[key][part] != new[key][part]]
        (differ if parts else same)[verb] += 1
        if parts and shown[verb] < DIFFERENCES:
            shown[verb] += 1
            print(f"\n=== vidrio {key[0]}" + f"   (stdin: {key[1][:60]!r}…)" * bool(key[1]))
            for part in parts:
                print(f"--- {part}")
                a, b = (str(entry[part]).splitlines() if entry else ["(not run)"] for entry in (old[key], new.get(key)))
                lines = list(unified_diff(a, b, lineterm="", n=1))[2:]
                print("\n".join(line[:200] for line in lines[:LINES]))
    print("\nverb         the same   different")
    for verb in sorted({*same, *differ}):
        print(f"{verb:12} {same[verb]:8,}   {differ[verb]:9,}")
    return 1 if differ else 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("record", "against", "compare", "run"))
    parser.add_argument("file", type=Path)
    parser.add_argument("other", type=Path, nargs="?")
    parser.add_argument("--source", type=Path, default=REPOSITORY / "src", help="the folder that holds vidrio/")
    parser.add_argument("--only", metavar="VERB", help="only look, for one")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="only every N-th run")
    given = parser.parse_args(arguments)
    if given.verb == "run":
        run_all(given.file, given.only, given.every)
    elif given.verb == "record":
        record(given.file, given.source, given.only, given.every)
    elif given.verb == "compare":
        return compare(given.file, given.other)
    else:
        with tempfile.TemporaryDirectory() as folder:
            record(Path(folder) / "now.jsonl.gz", given.source, given.only, given.every)
            return compare(given.file, Path(folder) / "now.jsonl.gz")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
