"""Compare training speed with JoeyNMT 2.3.0, on the same machine and in the same run.

    python benchmarks/train_speed.py [--data ../shared/data/multi30k] [--seconds 60] [--rounds 2]

Both programs train on the same sentences (Multi30k, English to German), split into the same tokens (our BPE, 8,000
tokens for both languages), with the same model (d 256, feed-forward 1024, 8 heads, 4 + 2 layers, one embedding for
source, target and output), the same batch size (4,096 tokens in the longer language), dropout 0.1 (which JoeyNMT also
applies to attention weights and within the feed-forward layers), label smoothing 0.1 and Adam. JoeyNMT computes in
float32, the only option it offers on a CPU; Vidrio computes in the precision that it chooses for the machine. Speed is
given in source and target tokens per second of training, excluding padding and validation. The two programs take turns.

JoeyNMT is installed into a separate environment in --work, which is kept.
"""

import argparse
import lzma
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

from vidrio.learn.machine import keep_memory, settle

settle()  # must run before PyTorch is imported

import numpy as np  # noqa: E402
import torch  # noqa: E402

import joeynmt_peer as peer  # noqa: E402
from shared import MULTI30K, processor  # noqa: E402
from vidrio.learn.batches import Examples, in_memory  # noqa: E402
from vidrio.learn.loop import Training, loop  # noqa: E402
from vidrio.learn.parameters import Parameters  # noqa: E402
from vidrio.learn.plan import Recipe, choose_precision, sized  # noqa: E402
from vidrio.learn.state import State  # noqa: E402
from vidrio.learn.task import Stop  # noqa: E402
from vidrio.model.config import ModelConfig  # noqa: E402
from vidrio.model.parameters import count, random_parameters  # noqa: E402
from vidrio.text.tokens.tokenizer import Tokenizer  # noqa: E402

VOCABULARY, BATCH, DROPOUT = 8000, 4096, 0.1
WARM = 10  # the first seconds of each turn, which are not counted


def sentences(data: Path, side: str) -> list[str]:
    with lzma.open(data / "raw" / f"train.{side}.xz", "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def recipe(seconds: float = 1.0) -> Recipe:
    """Return the training settings for both programs."""
    return Recipe(
        stop=Stop(seconds=seconds),
        rate=5e-4,
        schedule="constant",
        batch_tokens=2 * BATCH,
        dropout=DROPOUT,
        precision=choose_precision(torch.device("cpu")),
        validations=1,
    )


def ours(examples: Examples, config: ModelConfig, seconds: float) -> float:
    """Return the speed of the real training loop in tokens per second, after a warm-up."""
    parameters = Parameters.from_arrays(config, random_parameters(config, np.random.default_rng(0)))
    told: list[dict[str, Any]] = []
    how = recipe(seconds + WARM)
    training = Training(examples, how, lambda net: {"loss": 0.0})
    told += loop(training, State.start(parameters))
    steps = [record for record in told if record["kind"] == "step"]
    return mean_speed([(r["seconds"], r["tokens_per_second"]) for r in steps])


def mean_speed(told: list[tuple[float, float]]) -> float:
    """Return the time-weighted mean of the reported speeds after the warm-up. Each speed applies to the time since the
    previous report."""
    warm = [pair for pair in told if pair[0] >= told[0][0] + WARM]
    if len(warm) < 2:
        raise SystemExit("too few measurements: give more --seconds")
    spans = [(b[0] - a[0], b[1]) for a, b in pairwise(warm)]
    return sum(span * speed for span, speed in spans) / sum(span for span, _ in spans)


def theirs(python: Path, folder: Path, seconds: float, threads: int, both_sides: float, config: ModelConfig) -> float:
    """Return the speed of `joeynmt train`. Its log gives target tokens per second, which are scaled to all tokens."""
    path = folder / "config.yaml"
    data = {"train": "train", "dev": "dev"}
    peer.write_configuration(path, folder, config, recipe(), data, logging_freq=2, validation_freq=1_000_000)
    command = [str(python), "-m", "joeynmt", "train", str(path), "--skip-test"]
    shutil.rmtree(folder / "model", ignore_errors=True)
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, env=peer.environment(threads), stdout=log, stderr=subprocess.STDOUT)
        told: list[tuple[float, float]] = []
        try:
            while process.poll() is None and (len(told) < 3 or told[-1][0] - told[0][0] < seconds + WARM):
                time.sleep(1)
                lines = peer.moments((folder / "log").read_text(), r".*?Tokens per Sec:\s+([\d.]+)")
                told = [(when, float(speed)) for when, speed in lines]
        finally:
            process.kill()
            process.wait()
    if len(told) < 3:
        raise SystemExit(f"JoeyNMT reported no speed:\n{(folder / 'log').read_text()[-3000:]}")
    return both_sides * mean_speed(told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="with raw/train.en.xz")
    parser.add_argument("--seconds", type=float, default=60, help="duration of each turn, without the warm-up")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "vidrio-benchmarks")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    keep_memory()

    english, german = sentences(given.data, "en"), sentences(given.data, "de")
    tokenizer = Tokenizer.learn([*english, *german], VOCABULARY)
    ids = [tokenizer.encode_batch(side) for side in (english, german)]
    examples = in_memory(list(zip(*ids, strict=True)))
    counts = [sum(map(len, side)) + len(side) for side in ids]  # including the end tokens
    config = sized("small", tokenizer.size)

    given.work.mkdir(parents=True, exist_ok=True)
    python = peer.python(given.work)
    folder = given.work / "data"
    folder.mkdir(exist_ok=True)
    for language, side in (("en", english), ("de", german)):
        peer.write_tokens(folder / f"train.{language}", tokenizer, side)
        peer.write_tokens(folder / f"dev.{language}", tokenizer, side[:10])
    (folder / "vocabulary.txt").write_text("\n".join(tokenizer.vocabulary()) + "\n", encoding="utf-8")

    speeds: dict[str, list[float]] = {"vidrio": [], "joeynmt": []}
    for turn in range(given.rounds):
        speeds["vidrio"].append(ours(examples, config, given.seconds))
        speeds["joeynmt"].append(theirs(python, folder, given.seconds, given.threads, sum(counts) / counts[1], config))
        print(
            f"turn {turn + 1}: " + ", ".join(f"{name} {told[-1]:,.0f}" for name, told in speeds.items()),
            file=sys.stderr,
        )

    print(f"model: {count(config):,} parameters; {sum(counts):,} tokens a pass; {given.threads} threads; {processor()}")
    print(f"vidrio computes in {choose_precision(torch.device('cpu'))}, torch {torch.__version__}")
    middle = {name: statistics.median(told) for name, told in speeds.items()}
    for name, told in speeds.items():
        print(f"{name:32} {middle[name]:8,.0f} tokens/s   (turns: {min(told):,.0f} to {max(told):,.0f})")
    print(f"ratio: {middle['vidrio'] / middle['joeynmt']:.1f}")


if __name__ == "__main__":
    main()
