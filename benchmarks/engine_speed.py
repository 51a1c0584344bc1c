"""Compare the speed of the engine's builds with CTranslate2's, on the same model.

    python benchmarks/engine_speed.py [--model en-es] [--data FOLDER] [--lines 2000] [--what sentence,bulk]

All times include tokenisation and detokenisation. Each competitor runs in a separate process, and the competitors take
turns within every round, so that other load slows all of them equally. Each time is the median over the rounds, and
each ratio is the median of the per-round ratios, followed by the smallest and the largest. CTranslate2 uses the fastest
of several batch sizes, which are tried first, and computes no scores in greedy search. CTranslate2 restricted to AVX2
(CT2_FORCE_CPU_ISA, ONEDNN_MAX_CPU_ISA) is another competitor. `sentence` translates sentences of 20 words one at a time
on one thread, and `bulk` translates whole files on two threads.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared import ENGLISH_SPANISH, processor
from vidrio.engine.library import CHOICES, WISH, native_path, supports
from vidrio.model.find import find
from vidrio.model.folder import read_config

FILES = ("test/tatoeba-test-v2020-07-28.en", "dev/newstest2012.en")
TRIED = 400  # number of lines used to find CTranslate2's best batch size
BATCHES = [*(("examples", n) for n in (32, 64, 128)), *(("tokens", n) for n in (512, 1024, 2048, 4096))]
AS_AVX2 = {"CT2_FORCE_CPU_ISA": "AVX2", "ONEDNN_MAX_CPU_ISA": "AVX2"}
RIVALS: dict[str, dict[str, str]] = {"CTranslate2": {}, "CTranslate2 as AVX2": AS_AVX2}
WORDS = 20
SLOW = ("plain", "wasm-core")  # a whole file would take hours


# --- a competitor, in a separate process ------------------------------------------------------------------------------


class Vidrio:
    """Translates texts with the engine."""

    def __init__(self, folder: Path, workers: int) -> None:
        from tokenizers import Tokenizer

        from vidrio.engine.engine import Engine
        from vidrio.hypothesis import default_options

        self.config, _ = read_config(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.engine = Engine.load(folder, self.config, workers=workers)
        self.options = default_options(self.config)

    def translate(self, lines: Sequence[str], beam: int) -> list[str]:
        encoded = self.tokenizer.encode_batch_fast(list(lines), add_special_tokens=False)
        close = list(self.config.source_close)
        found = self.engine.search([[*one.ids, *close] for one in encoded], replace(self.options, beam=beam))
        return list(self.tokenizer.decode_batch([best[0].ids for best in found]))


class Direct:
    """Translates texts with CTranslate2's standard API and the fastest batch size."""

    def __init__(self, exported: Path, folder: Path, workers: int) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self.config, _ = read_config(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.engine = ctranslate2.Translator(str(exported), inter_threads=workers, intra_threads=1, compute_type="int8")
        self.vocabulary = self.tokenizer.get_vocab()
        self.names = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        self.end = self.tokenizer.id_to_token(self.config.special.end)
        self.batches = {1: ("examples", 32), 4: ("examples", 32)}

    def find_batches(self, lines: Sequence[str], beam: int) -> None:
        times = {}
        for batch in BATCHES:
            self.batches[beam] = batch
            begin = time.perf_counter()
            self.translate(lines[:TRIED], beam)
            times[batch] = time.perf_counter() - begin
        self.batches[beam] = min(times, key=times.__getitem__)

    def translate(self, lines: Sequence[str], beam: int) -> list[str]:
        encoded = self.tokenizer.encode_batch_fast(list(lines), add_special_tokens=False)
        close = [self.end] if self.config.source_end else []
        results = self.engine.translate_batch(
            [[*(self.names[i] for i in one.ids), *close] for one in encoded],
            beam_size=beam,
            batch_type=self.batches[beam][0],
            max_batch_size=self.batches[beam][1],
            max_input_length=0,
            max_decoding_length=self.config.decoding.max_length,
            return_scores=beam > 1,
        )
        found = [[self.vocabulary[token] for token in result.hypotheses[0]] for result in results]
        return list(self.tokenizer.decode_batch(found))


def compete(given: dict[str, Any]) -> None:
    """Answer requests {"lines": …, "beam": …, "one_by_one": …} from standard input with times and translations."""
    folder, rival = Path(given["folder"]), given["exported"]
    who: Vidrio | Direct
    who = Direct(Path(rival), folder, given["workers"]) if rival else Vidrio(folder, given["workers"])
    for line in sys.stdin:
        asked = json.loads(line)
        lines, beam = asked["lines"], asked["beam"]
        if asked["first"]:
            if isinstance(who, Direct) and not asked["one_by_one"]:
                who.find_batches(lines, beam)
            who.translate(lines[:8], beam)
        times, begin = [], time.perf_counter()
        if asked["one_by_one"]:
            found = []
            for one in lines:
                begin = time.perf_counter()
                found += who.translate([one], beam)
                times.append(time.perf_counter() - begin)
        else:
            found = who.translate(lines, beam)
            times.append(time.perf_counter() - begin)
        batch = who.batches[beam] if isinstance(who, Direct) else ""
        print(json.dumps({"seconds": statistics.median(times), "found": found, "batch": batch}), flush=True)


class Competitor:
    """A competitor in a separate process."""

    def __init__(self, name: str, folder: Path, exported: Path, workers: int) -> None:
        self.name = name
        rival = str(exported) if name in RIVALS else ""
        settings = RIVALS.get(name, {WISH: name})
        given = json.dumps({"folder": str(folder), "exported": rival, "workers": workers})
        self.process = subprocess.Popen(
            [sys.executable, __file__, "--compete", given],
            env={**os.environ, **settings},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def translate(self, lines: Sequence[str], beam: int, *, one_by_one: bool, first: bool) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        asked = {"lines": list(lines), "beam": beam, "one_by_one": one_by_one, "first": first}
        print(json.dumps(asked), file=self.process.stdin, flush=True)
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer


# --- rounds -----------------------------------------------------------------------------------------------------------


def builds() -> list[str]:
    """Return the builds of the engine that run on this machine, except `auto`."""
    native = [name for name in ("vnni", "avx2", "plain") if native_path(name).is_file()]
    return [*(name for name in native if name == "plain" or supports(name)), "wasm", "wasm-core"]


def measure(competitors: Sequence[Competitor], lines: Sequence[str], beam: int, rounds: int, one_by_one: bool) -> None:
    answers: dict[str, list[dict[str, Any]]] = {each.name: [] for each in competitors}
    for nth in range(rounds + 1):
        for each in competitors:
            answer = each.translate(lines, beam, one_by_one=one_by_one, first=nth == 0)
            if nth:  # the first round is a warm-up
                answers[each.name].append(answer)
    seconds = {name: [answer["seconds"] for answer in some] for name, some in answers.items()}
    unit, per = ("ms", 1e3) if one_by_one else ("lines/s", 0)
    first = next(name for name in answers if name not in RIVALS)
    for name, times in seconds.items():
        shown = statistics.median(times) * per if per else len(lines) / statistics.median(times)
        ratios = []
        for rival in RIVALS:
            paired = [t / r if one_by_one else r / t for t, r in zip(times, seconds[rival], strict=True)]
            ratios.append(f"{statistics.median(paired):5.2f} × ({min(paired):.2f}–{max(paired):.2f})")
        same = sum(a == b for a, b in zip(answers[name][0]["found"], answers[first][0]["found"], strict=True))
        batch = " ".join(map(str, answers[name][0]["batch"]))
        print(
            f"  {name:20} {shown:9.2f} {unit:8} {'  '.join(ratios)}  {same}/{len(lines)} as {first}  {batch}",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model folder or name")
    parser.add_argument("--data", type=Path, default=ENGLISH_SPANISH)
    parser.add_argument("--files", nargs="+", default=FILES, help="files in that folder, with one sentence per line")
    parser.add_argument("--lines", type=int, default=2000, help="number of lines per file, sampled evenly")
    parser.add_argument("--sentences", type=int, default=40, help=f"number of sentences of {WORDS} words")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beam", type=int, nargs="+", default=(1, 4))
    parser.add_argument(
        "--builds", nargs="+", choices=CHOICES, help="[all that run on this machine; for bulk, only fast ones]"
    )
    parser.add_argument("--what", default="sentence,bulk")
    parser.add_argument("--compete", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.compete:
        compete(json.loads(given.compete))
        return
    from vidrio.interop.to_ctranslate2 import write_engine

    folder = find(given.model)
    print(f"{processor()}; {folder.name}; ratios: to {', to '.join(RIVALS)}")
    with tempfile.TemporaryDirectory() as home:
        exported = Path(home) / "ctranslate2"
        write_engine(folder, exported)
        names = [*RIVALS, *(given.builds or builds())]
        if "sentence" in given.what:
            lines = [line for name in given.files for line in (given.data / name).read_text("utf-8").splitlines()]
            some = [line for line in lines if len(line.split()) == WORDS][: given.sentences]
            competitors = [Competitor(name, folder, exported, 1) for name in names]
            for beam in given.beam:
                print(f"one sentence of {WORDS} words, beam {beam}: median of {len(some)}; less is faster")
                measure(competitors, some, beam, given.rounds, one_by_one=True)
            for each in competitors:
                each.process.communicate()
        if "bulk" in given.what:
            quick = given.builds or [name for name in builds() if name not in SLOW]
            competitors = [Competitor(name, folder, exported, 2) for name in (*RIVALS, *quick)]
            for name in given.files:
                lines = (given.data / name).read_text("utf-8").splitlines()
                some = lines[:: max(1, len(lines) // given.lines)][: given.lines]
                for beam in given.beam:
                    print(f"{len(some):,} lines of {name}, beam {beam}, two threads; more is faster")
                    measure(competitors, some, beam, given.rounds, one_by_one=False)
            for each in competitors:
                each.process.communicate()


if __name__ == "__main__":
    main()
