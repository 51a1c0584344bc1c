"""How fast Vidrio translates, beside CTranslate2 called directly on the same files, Argos Translate and `transformers`.

    python benchmarks/translate_speed.py --model MODEL --source FILE … --beam 1,4 --peers PYTHON [--what cold,…]

MODEL is a model folder (default: the default model), a FILE has a sentence a line: everyday sentences and news, unless
told otherwise. Throughput is measured for all of them and for every beam, the rest for the first. Every figure is
the median of five rounds, in which the competitors take turns, so that a busy machine slows them alike; CPU seconds
are told beside seconds. CTranslate2's own settings are the best of those tried here, first. PYTHON is that of an
environment with argostranslate and transformers (docs/benchmarks.md tells how to make one); what is missing there takes
no part. Peers work in processes of their own. Argos has our weights, the same beam and its own number of threads; it
takes one text at a time. `transformers` has a MarianMT model of the same sizes with random weights, since it is the
time that is compared.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vidrio.translate.engines import exported

from argos_package import environment
from vidrio.interop.to_argos import export_argos
from vidrio.model import find as models
from vidrio.model.folder import read_config
from vidrio.translate.translator import Translator

ROUNDS = 5
SOURCE = "../shared/data/en-es/test/tatoeba-test-v2020-07-28.en"
NEWS = "../shared/data/en-es/dev/newstest2012.en"
TRIED = 2_000  # lines, to find CTranslate2's best settings
BATCHES = [*(("examples", n) for n in (32, 64, 128)), *(("tokens", n) for n in (512, 1024, 2048, 4096))]
FEW = 256  # lines for the peers, which are slow
PLAIN = re.compile(r"[A-Za-z ,']+[.?!]")  # a sentence with nothing that Vidrio treats and Argos does not
HERE = Path(__file__).parent

Cost = tuple[float, float]  # seconds, CPU seconds


@dataclass(frozen=True)
class Given:
    """What is asked: the model, the lines, the beam, and the peers that are there."""

    folder: Path
    lines: Sequence[str]
    beam: int
    peers: "Peers"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model folder or name")
    parser.add_argument("--source", type=Path, nargs="+", default=[Path(SOURCE), Path(NEWS)], help="a sentence a line")
    parser.add_argument("--lines", type=int, default=10_000, help="so many of its lines")
    parser.add_argument("--words", type=int, help="only lines of so many words")
    parser.add_argument("--beam", default="1,4")
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="has argostranslate, transformers")
    parser.add_argument("--what", default="agreement,cold,throughput,latency")
    given = parser.parse_args()
    folder = models.find(given.model)
    asked = [(source, int(beam)) for source in given.source for beam in given.beam.split(",")]
    parts = {"agreement": agreement, "cold": cold, "throughput": throughput, "latency": latency}
    with tempfile.TemporaryDirectory() as home:
        peers = Peers(given.peers, folder, Path(home))
        for what in given.what.split(","):
            for source, beam in asked if what == "throughput" else asked[:1]:
                every = source.read_text(encoding="utf-8").splitlines()
                lines = [line for line in every if given.words in (None, len(line.split()))][: given.lines]
                print(
                    f"\n{folder.name}, {len(lines):,} lines of {source.name}, beam {beam}, {cores()} cores", flush=True
                )
                parts[what](Given(folder, lines, beam, peers))


# --- the competitors --------------------------------------------------------------------------------------------------


class Direct:
    """CTranslate2 and the tokenizer, with nothing between: what anybody would write first."""

    def __init__(self, folder: Path, beam: int, *, workers: int, batch: tuple[str, int] = ("tokens", 1024)) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self.config, _ = read_config(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.engine = ctranslate2.Translator(str(exported(folder)), inter_threads=workers, intra_threads=1)
        self.vocabulary = self.tokenizer.get_vocab()
        self.names = sorted(self.vocabulary, key=self.vocabulary.__getitem__)
        self.end = self.tokenizer.id_to_token(self.config.special.end)
        self.beam, self.batch = beam, batch

    def ids(self, line: str) -> list[int]:
        return list(self.tokenizer.encode(line, add_special_tokens=False).ids)

    def translate(self, lines: Sequence[str]) -> list[str]:
        encoded = self.tokenizer.encode_batch_fast(list(lines), add_special_tokens=False)
        close = [self.end] if self.config.source_end else []
        results = self.engine.translate_batch(
            [[*(self.names[i] for i in one.ids), *close] for one in encoded],
            beam_size=self.beam,
            batch_type=self.batch[0],
            max_batch_size=self.batch[1],
            max_decoding_length=self.config.decoding.max_length,
        )
        found = [[self.vocabulary[token] for token in result.hypotheses[0]] for result in results]
        return [str(text) for text in self.tokenizer.decode_batch(found)]


class Peers:
    """The peers' environment, with our model in their forms, and all that they write in a temporary folder."""

    def __init__(self, python: str, folder: Path, home: Path) -> None:
        self.python, self.home, self.marian = python, home, home / "marian"
        self.config, self.about = read_config(folder)
        quiet = {"HF_HOME": str(home), "HF_HUB_OFFLINE": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        self.environment = {**environment(home), **quiet}
        self.has_argos = self._has("argostranslate", "spacy")
        # Its tokenizer takes the SentencePiece file that is made for Argos.
        self.has_marian = self.has_argos and self._has("transformers", "torch")
        if self.has_argos:
            Translator.load(folder, engine="fast")  # makes fast/ where it is missing
            package = home / "model.argosmodel"
            export_argos(folder, package)
            self._run(str(HERE / "argos_package.py"), str(package), self.about.source_language)
            install = "import sys; from argostranslate import package; package.install_from_path(sys.argv[1])"
            self._run("-c", install, str(package))
        if self.has_marian:
            (sentencepiece,) = home.glob("packages/*/sentencepiece.model")
            script = str(HERE / "translate_peers.py")
            self._run(script, "save", str(folder), str(sentencepiece), str(self.marian))

    def argos(self, beam: int) -> "Peer":
        languages = [self.about.source_language, self.about.target_language]
        return Peer([*self.script("serve", "argos"), *languages], {**self.environment, "ARGOS_BEAM_SIZE": str(beam)})

    def transformers(self, beam: int, tokens: int) -> "Peer":
        return Peer(self.script("serve", "marian", str(self.marian), str(beam), str(tokens)), self.environment)

    def script(self, *arguments: str) -> list[str]:
        return [self.python, str(HERE / "translate_peers.py"), *arguments]

    def _has(self, *modules: str) -> bool:
        probe = "import sys\nfrom importlib.util import find_spec\nsys.exit(not all(map(find_spec, sys.argv[1:])))"
        found = subprocess.run([self.python, "-c", probe, *modules], check=False).returncode == 0
        if not found:
            print(f"({' or '.join(modules)} is not installed in --peers; docs/benchmarks.md tells how)")
        return found

    def _run(self, *arguments: str) -> None:
        subprocess.run([self.python, *arguments], env=self.environment, check=True)


class Peer:
    """A peer at work in a process of its own, which measures itself."""

    def __init__(self, command: Sequence[str], environment: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)

    def __call__(self, jobs: Iterable[object]) -> dict[str, Any]:
        assert self.process.stdin
        assert self.process.stdout
        print(json.dumps(list(jobs)), file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"{' '.join(map(str, self.process.args))} failed")  # type: ignore[arg-type]
        time.sleep(0.5)  # its threads go on spinning for a while and would slow the others
        return dict(json.loads(answer))

    def cost(self, jobs: Iterable[object]) -> Cost:
        answer = self(jobs)
        return sum(answer["seconds"]), answer["cpu"]


# --- what is measured -------------------------------------------------------------------------------------------------


def agreement(given: Given) -> None:
    """Is it the same translator? Argos and Vidrio, on plain sentences."""
    if not given.peers.has_argos:
        return
    plain = [line for line in dict.fromkeys(given.lines) if PLAIN.fullmatch(line)][:100]
    theirs = given.peers.argos(given.beam)(plain)["found"]
    ours = Translator.load(given.folder, engine="fast")
    options = replace(ours.options, beam=given.beam, length_penalty=0.2)  # which Argos does not let one choose
    same = sum(one.text == other for one, other in zip(ours.stream(plain, options), theirs, strict=True))
    print(f"{same} of {len(plain)} plain sentences have the same translation by Argos Translate")


def cold(given: Given) -> None:
    """A whole process for two words."""
    direct = (
        "import sys, ctranslate2, tokenizers\n"
        "folder = sys.argv[1]\n"
        "tokenizer = tokenizers.Tokenizer.from_file(folder + '/tokenizer.json')\n"
        "engine = ctranslate2.Translator(folder + '/fast', inter_threads=1, intra_threads=1)\n"
        "tokens = tokenizer.encode('Hello world', add_special_tokens=False).tokens\n"
        "found = engine.translate_batch([[*tokens, '</s>']], beam_size=1, max_decoding_length=64)[0].hypotheses[0]\n"
        "print(tokenizer.decode([tokenizer.token_to_id(token) for token in found]))\n"
    )
    folder, peers = str(given.folder), given.peers
    commands = {
        "vidrio translate": [sys.executable, "-m", "vidrio", "translate", "-m", folder, "Hello world"],
        "a script on CTranslate2": [sys.executable, "-c", direct, folder],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    if peers.has_argos:
        argos = str(Path(peers.python).with_name("argos-translate"))
        languages = ["--from", peers.about.source_language, "--to", peers.about.target_language]
        commands["argos-translate"] = [argos, *languages, "Hello world"]
    if peers.has_marian:
        commands["a script on transformers"] = peers.script("hello", str(peers.marian), "5", "Hello world")
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(ROUNDS + 1):
        for name, command in commands.items():
            taken[name].append(process_cost(command, peers.environment))
    print("cold start, a whole process")
    medians = {}
    for name, costs in taken.items():
        columns = zip(*costs[1:], strict=True)  # the first round fills the disk's cache
        medians[name] = [statistics.median(column) for column in columns]
        print("  {:<26} {:6.3f} s   {:5.0f} MB".format(name, *medians[name]))
    ours, *_ = medians.values()
    for name in list(medians)[3:]:
        seconds, memory = (theirs / our for our, theirs in zip(ours, medians[name], strict=True))
        print(f"  {name} : vidrio translate = {seconds:.1f}, in memory {memory:.1f}")


def throughput(given: Given) -> None:
    """Many lines, all cores."""
    folder, lines, beam, peers = given.folder, given.lines, given.beam, given.peers
    ours = Translator.load(folder, engine="fast", workers=cores())
    options = replace(ours.options, beam=beam, scores=False)
    best = min(BATCHES, key=lambda batch: trial(Direct(folder, beam, workers=cores(), batch=batch), lines[:TRIED]))
    direct = Direct(folder, beam, workers=cores(), batch=best)
    counts = [sum(len(s.best.ids) + 1 for s in one.sentences) for one in ours.stream(lines, options)]
    tokens = sum(counts)
    entries: dict[str, tuple[int, Callable[[], Cost]]] = {
        "vidrio": (tokens, lambda: cost(lambda: list(ours.stream(lines, options)))),
        f"CTranslate2, {best[1]} {best[0]}": (tokens, lambda: cost(lambda: direct.translate(lines))),
    }
    some = {line: count for line, count in zip(lines, counts, strict=True) if line}  # Argos remembers its last text
    some = dict(list(some.items())[:FEW])
    if peers.has_argos:
        argos = peers.argos(beam)
        argos(list(some)[:8])
        entries["Argos Translate"] = (sum(some.values()), lambda: argos.cost(some))
    if peers.has_marian:
        mean = round(statistics.mean(counts))
        ids = sorted((direct.ids(line) for line in some), key=len)
        batches = [ids[n : n + 32] for n in range(0, len(ids), 32)]
        transformers = peers.transformers(beam, mean)
        transformers(batches[:1])
        entries["transformers, 32 at a time"] = (mean * len(some), lambda: transformers.cost(batches))
    print(f"throughput, {tokens:,} target tokens")
    report(entries)


def latency(given: Given) -> None:
    """One sentence after the other, one thread; the peers with as many threads as they take."""
    some, peers = list(dict.fromkeys(filter(None, given.lines)))[:200], given.peers
    ours = Translator.load(given.folder, engine="fast", workers=1)
    options = replace(ours.options, beam=given.beam, scores=False)
    direct = Direct(given.folder, given.beam, workers=1)
    entries: dict[str, Callable[[], Sequence[float]]] = {
        "vidrio": lambda: one_by_one(lambda line: ours.translate(line, options), some),
        "CTranslate2": lambda: one_by_one(lambda line: direct.translate([line]), some),
    }
    if peers.has_argos:
        argos = peers.argos(given.beam)
        argos(some[:8])
        entries["Argos Translate"] = lambda: argos(some)["seconds"]
    if peers.has_marian:
        tokens = [len(s.best.ids) + 1 for one in ours.stream(some, options) for s in one.sentences]
        transformers = peers.transformers(given.beam, round(statistics.mean(tokens)))
        rows = [[direct.ids(line)] for line in some]
        transformers(rows[:8])
        entries["transformers"] = lambda: transformers(rows)["seconds"]
    print(f"one sentence at a time, {len(some)} sentences")
    taken: dict[str, list[float]] = {name: [] for name in entries}
    for _ in range(ROUNDS):
        for name, run in entries.items():
            taken[name] += [1000 * seconds for seconds in run()]
    medians = {name: statistics.median(times) for name, times in taken.items()}
    for name, times in taken.items():
        late = sorted(times)[len(times) * 99 // 100]
        print(f"  {name:<26} median {medians[name]:7.2f} ms   99 % within {late:7.2f} ms")
    for name in list(medians)[1:]:
        print(f"  {name} : vidrio = {medians[name] / medians['vidrio']:.2f}")


# --- how --------------------------------------------------------------------------------------------------------------


def one_by_one(translate: Callable[[str], object], lines: Sequence[str]) -> list[float]:
    taken = []
    for line in lines:
        began = time.perf_counter()
        translate(line)
        taken.append(time.perf_counter() - began)
    return taken


def cost(run: Callable[[], object]) -> Cost:
    began, cpu = time.perf_counter(), time.process_time()
    run()
    return time.perf_counter() - began, time.process_time() - cpu


def report(entries: dict[str, tuple[int, Callable[[], Cost]]]) -> None:
    """Medians of rounds in which the entries (tokens, what to run) take turns, and the first one beside the others: of
    the medians, and round by round the least and the most."""
    taken: dict[str, list[Cost]] = {name: [] for name in entries}
    for _ in range(ROUNDS):
        for name, (_, run) in entries.items():
            taken[name].append(run())
    rates = []
    for name, costs in taken.items():
        seconds, cpu_seconds = (statistics.median(column) for column in zip(*costs, strict=True))
        rates.append((entries[name][0] / seconds, entries[name][0] / cpu_seconds))
        print(f"  {name:<26} {rates[-1][0]:8,.0f} tokens/s   {rates[-1][1]:8,.0f} tokens for a CPU second")
    first, *others = entries
    for name, rate in zip(others, rates[1:], strict=True):
        ratio, by_cpu = (ours / theirs for ours, theirs in zip(rates[0], rate, strict=True))
        share = entries[first][0] / entries[name][0]
        rounds = [share * theirs / ours for (ours, _), (theirs, _) in zip(taken[first], taken[name], strict=True)]
        spread = f"{min(rounds):.2f}–{max(rounds):.2f}"
        print(f"  {first} : {name} = {ratio:.2f} ({spread}), by CPU time {by_cpu:.2f}")


def trial(direct: Direct, lines: Sequence[str]) -> float:
    """Seconds for one translation of the lines, the better of two."""
    return min(cost(lambda: direct.translate(lines))[0] for _ in range(2))


MEASURE = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, status)
"""


def process_cost(command: Sequence[str], environment: dict[str, str] | None = None) -> tuple[float, float]:
    """(seconds, megabytes at its peak) of a process. A small one starts it: a child's peak counts its parent's."""
    starter = [sys.executable, "-c", MEASURE, *command]
    measured = subprocess.run(starter, capture_output=True, text=True, check=True, env=environment)
    seconds, memory, status = measured.stdout.split()
    if status != "0":
        raise SystemExit(f"{' '.join(command)} failed")
    return float(seconds), int(memory) / (1024 * 1024 if sys.platform == "darwin" else 1024)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
