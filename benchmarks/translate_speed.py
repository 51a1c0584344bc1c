"""How fast Vidrio translates, beside CTranslate2 called directly on the same files, and beside `transformers`.

    python benchmarks/translate_speed.py --model MODEL --source FILE [--what cold,throughput,latency]

MODEL is a model folder (default: the default model), FILE has a sentence a line. Every figure is the median of five
rounds, in which the competitors take turns, so that a busy machine slows them alike; CPU seconds are told beside
seconds. CTranslate2's own settings are the best of those tried here, first. `transformers` takes part where it is
installed: a MarianMT model of the same sizes with random weights, since it is the time that is compared.
"""

import argparse
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from vidrio import models
from vidrio.config import ModelConfig
from vidrio.folder import read_config
from vidrio.translator import Translator

ROUNDS = 5
SOURCE = "shared/data/en-es/test/tatoeba-test-v2020-07-28.en"
BATCHES = [("examples", 16), ("examples", 32), ("examples", 64), ("tokens", 512), ("tokens", 1024), ("tokens", 2048)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", help="a model folder or name")
    parser.add_argument("--source", type=Path, default=Path(SOURCE), help="what to translate, a sentence a line")
    parser.add_argument("--lines", type=int, default=10_000, help="so many of its lines")
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--what", default="cold,throughput,latency")
    given = parser.parse_args()
    folder = models.find(given.model)
    lines = given.source.read_text(encoding="utf-8").splitlines()[: given.lines]
    print(f"{folder.name}, {len(lines):,} lines of {given.source.name}, beam {given.beam}, {cores()} cores\n")
    parts = {"cold": cold, "throughput": throughput, "latency": latency}
    for what in given.what.split(","):
        parts[what](folder, lines, given.beam)
        print()


# --- the competitors --------------------------------------------------------------------------------------------------


class Direct:
    """CTranslate2 and the tokenizer, with nothing between: what anybody would write first."""

    def __init__(self, folder: Path, beam: int, *, workers: int, batch: tuple[str, int] = ("tokens", 1024)) -> None:
        import ctranslate2
        from tokenizers import Tokenizer

        self.config, _ = read_config(folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.engine = ctranslate2.Translator(str(folder / "fast"), inter_threads=workers, intra_threads=1)
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


class Transformers:
    """Hugging Face's generate, float32, on a MarianMT model of the same sizes with random weights."""

    def __init__(self, config: ModelConfig, beam: int, tokens: int) -> None:
        import torch
        from transformers import MarianConfig, MarianMTModel  # type: ignore[import-not-found]

        torch.set_num_threads(cores())
        self.model = MarianMTModel(
            MarianConfig(
                vocab_size=config.source_vocabulary,
                decoder_vocab_size=config.target_vocabulary,
                d_model=config.d_model,
                encoder_layers=config.n_encoder_layers,
                decoder_layers=config.n_decoder_layers,
                encoder_attention_heads=config.n_heads,
                decoder_attention_heads=config.n_heads,
                encoder_ffn_dim=config.d_ff,
                decoder_ffn_dim=config.d_ff,
                pad_token_id=max(config.special.pad, 0),
                eos_token_id=config.special.end,
                decoder_start_token_id=config.special.start,
            )
        ).eval()
        self.beam, self.tokens = beam, tokens

    def translate(self, ids: Sequence[Sequence[int]]) -> int:
        """Translate a batch of token ids into `tokens` tokens each; how many tokens there are then."""
        import torch

        longest = max(map(len, ids))
        padded = torch.tensor([[*row, *[0] * (longest - len(row))] for row in ids])
        mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in ids])
        with torch.inference_mode():
            found = self.model.generate(
                input_ids=padded,
                attention_mask=mask,
                num_beams=self.beam,
                min_new_tokens=self.tokens,
                max_new_tokens=self.tokens,
            )
        return int(found.shape[0] * (found.shape[1] - 1))


def has_transformers() -> bool:
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("  (transformers is not installed: pip install transformers)")
        return False
    return True


# --- what is measured -------------------------------------------------------------------------------------------------


def cold(folder: Path, lines: Sequence[str], beam: int) -> None:
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
    commands = {
        "vidrio translate": [sys.executable, "-m", "vidrio", "translate", "-m", str(folder), "Hello world"],
        "a script on CTranslate2": [sys.executable, "-c", direct, str(folder)],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(ROUNDS + 1):
        for name, command in commands.items():
            taken[name].append(process_cost(command))
    print("cold start, a whole process")
    for name, costs in taken.items():
        seconds, megabytes = zip(*costs[1:], strict=True)  # the first round fills the disk's cache
        print(f"  {name:<26} {statistics.median(seconds):6.3f} s   {statistics.median(megabytes):5.0f} MB")


def throughput(folder: Path, lines: Sequence[str], beam: int) -> None:
    """Many lines, all cores."""
    ours = Translator.load(folder, engine="fast", workers=cores())
    options = replace(ours.options, beam=beam, scores=False)
    best = min(BATCHES, key=lambda batch: cpu_cost(Direct(folder, beam, workers=cores(), batch=batch), lines))
    direct = Direct(folder, beam, workers=cores(), batch=best)
    tokens = sum(len(s.best.ids) + 1 for one in ours.stream(lines, options) for s in one.sentences)
    print(f"throughput, {tokens:,} target tokens")
    ours_rate = report(
        {
            "vidrio": (tokens, lambda: list(ours.stream(lines, options))),
            f"CTranslate2, {best[1]} {best[0]}": (tokens, lambda: direct.translate(lines)),
        }
    )
    if has_transformers():  # afterwards: its threads go on spinning for a while and would slow the others
        mean, some = round(tokens / len(lines)), lines[:256]
        peer = Transformers(ours.config, beam, mean)
        ids = sorted((direct.ids(line) for line in some), key=len)
        batches = [ids[n : n + 32] for n in range(0, len(ids), 32)]
        rate = report({"transformers, 32 at a time": (mean * len(some), lambda: [peer.translate(b) for b in batches])})
        print(f"  vidrio : transformers = {ours_rate / rate:.1f}")


def latency(folder: Path, lines: Sequence[str], beam: int) -> None:
    """One sentence after the other, one thread."""
    some = lines[:200]
    ours = Translator.load(folder, engine="fast", workers=1)
    options = replace(ours.options, beam=beam, scores=False)
    direct = Direct(folder, beam, workers=1)
    print(f"one sentence at a time, {len(some)} sentences")
    one_by_one(
        {"vidrio": lambda line: ours.translate(line, options), "CTranslate2": lambda line: direct.translate([line])},
        some,
        ROUNDS,
    )
    if has_transformers():
        tokens = [len(s.best.ids) + 1 for one in ours.stream(some, options) for s in one.sentences]
        peer = Transformers(ours.config, beam, round(statistics.mean(tokens)))
        one_by_one({"transformers": lambda line: peer.translate([direct.ids(line)])}, some, 1)


def one_by_one(entries: dict[str, Callable[[str], object]], lines: Sequence[str], rounds: int) -> None:
    taken: dict[str, list[float]] = {name: [] for name in entries}
    for _ in range(rounds):
        for name, translate in entries.items():
            for line in lines:
                began = time.perf_counter()
                translate(line)
                taken[name].append(1000 * (time.perf_counter() - began))
    for name, times in taken.items():
        late = sorted(times)[len(times) * 99 // 100]
        print(f"  {name:<26} median {statistics.median(times):7.2f} ms   99 % within {late:7.2f} ms")


# --- how --------------------------------------------------------------------------------------------------------------


def report(entries: dict[str, tuple[int, Callable[[], object]]]) -> float:
    """Medians of rounds in which the entries (tokens, what to run) take turns; the first one's tokens a second."""
    taken: dict[str, list[tuple[float, float]]] = {name: [] for name in entries}
    for _ in range(ROUNDS):
        for name, (_, run) in entries.items():
            began, cpu = time.perf_counter(), time.process_time()
            run()
            taken[name].append((time.perf_counter() - began, time.process_time() - cpu))
    rates = []
    for name, costs in taken.items():
        seconds, cpu_seconds = (statistics.median(column) for column in zip(*costs, strict=True))
        rates.append((entries[name][0] / seconds, entries[name][0] / cpu_seconds))
        print(f"  {name:<26} {rates[-1][0]:8,.0f} tokens/s   {rates[-1][1]:8,.0f} tokens for a CPU second")
    for name, rate in zip(list(entries)[1:], rates[1:], strict=True):
        ratio, by_cpu = (ours / theirs for ours, theirs in zip(rates[0], rate, strict=True))
        print(f"  {next(iter(entries))} : {name} = {ratio:.2f}, by CPU time {by_cpu:.2f}")
    return rates[0][0]


def cpu_cost(direct: Direct, lines: Sequence[str]) -> float:
    """CPU seconds of one translation of the lines, after a small one."""
    direct.translate(lines[:64])
    began = time.process_time()
    direct.translate(lines)
    return time.process_time() - began


MEASURE = """
import os, subprocess, sys, time
began = time.perf_counter()
process = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(process.pid, 0)
print(time.perf_counter() - began, usage.ru_maxrss, status)
"""


def process_cost(command: Sequence[str]) -> tuple[float, float]:
    """(seconds, megabytes at its peak) of a process. A small one starts it: a child's peak counts its parent's."""
    measured = subprocess.run([sys.executable, "-c", MEASURE, *command], capture_output=True, text=True, check=True)
    seconds, memory, status = measured.stdout.split()
    if status != "0":
        raise SystemExit(f"{' '.join(command)} failed")
    return float(seconds), int(memory) / (1024 * 1024 if sys.platform == "darwin" else 1024)


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


if __name__ == "__main__":
    main()
