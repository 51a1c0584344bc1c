"""Compare translation quality with JoeyNMT 2.3.0 after the same training time: Multi30k English to German, two cores.

    python benchmarks/train_quality.py [--minutes 20] [--data ../shared/data/multi30k] [--to FOLDER] [--threads 2]
        [--only vidrio|joeynmt]

`vidrio train` runs first, on the raw files and with only the time specified, followed by JoeyNMT; the two never run at
the same time. JoeyNMT uses the sizes, tokens and recipe that Vidrio has chosen: batch size, peak learning rate,
dropout, label smoothing, and warm-up (limited to a tenth of the steps). It supports neither a learning rate that decays
to 0 in a given time nor averaged parameters, and computes in float32; its learning rate decays with the inverse square
root of the step. Vidrio's time includes validation, but JoeyNMT's does not, because its validation is slower. About
once a minute, each program translates the same 300 validation sentences greedily, and the same sacreBLEU call scores
both. Finally, the best model of each program on the validation set translates test_2016_flickr with beam 4, and is
scored with BLEU (13a, cased, detokenised).

Results are stored in --to (vidrio.json and joeynmt.json, with the curves and test scores) and are not computed again.
After an interruption, Vidrio resumes, whereas JoeyNMT starts over. JoeyNMT is installed into a separate environment in
--work, which is kept.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from pathlib import Path

import numpy as np

import joeynmt_peer as peer
from shared import MULTI30K, processor
from train_speed import sentences
from vidrio.commands._lines import read_lines
from vidrio.learn.plan import Plan, read_plan
from vidrio.learn.validate import JUDGED, translated
from vidrio.look.history import metrics, when
from vidrio.model.folder import read_config
from vidrio.model.parameters import count
from vidrio.score.metrics import corpus_scores, quick_scores, usual_metrics
from vidrio.text.tokens.tokenizer import Tokenizer

TEST = "test_2016_flickr"
PROBE = 40  # steps used to estimate JoeyNMT's speed, before its time starts
NAMES = {"vidrio": "Vidrio", "joeynmt": "JoeyNMT 2.3.0"}


@dataclass(frozen=True)
class Found:
    """The training curve and test score of a program."""

    minutes: float  # time limit
    curve: list[tuple[float, float]]  # (minutes, BLEU on the validation sentences)
    test: float  # BLEU
    signature: str
    model: str  # description of the model and its settings


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=MULTI30K, help="with raw/train.en.xz")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--to", type=Path, help="folder for results and runs [a temporary folder]")
    parser.add_argument(
        "--only", choices=list(NAMES), help="run only one of them, and print the results available so far"
    )
    parser.add_argument("--work", type=Path, default=Path(tempfile.gettempdir()) / "vidrio-benchmarks")
    given = parser.parse_args()
    home = (given.to or Path(tempfile.mkdtemp(prefix="vidrio-quality-"))).absolute()
    raw = home / "raw"
    raw.mkdir(parents=True, exist_ok=True)
    for side in ("en", "de"):
        (raw / f"train.{side}").write_text("\n".join(sentences(given.data, side)) + "\n", encoding="utf-8")
        for part in ("val", TEST):
            shutil.copyfile(given.data / "raw" / f"{part}.{side}", raw / f"{part}.{side}")
    found = {}
    for name, learn in (("vidrio", ours), ("joeynmt", theirs)):
        path = home / f"{name}.json"
        if given.only in (None, name) and not is_done(path, given.minutes):
            path.write_text(json.dumps(asdict(learn(home, given)), indent=1) + "\n", encoding="utf-8")
        if is_done(path, given.minutes):
            found[name] = Found(**json.loads(path.read_text(encoding="utf-8")))
    print("\n".join(table(found)))
    print(f"\nkept in {home}")


def is_done(path: Path, minutes: float) -> bool:
    """Return whether results with the same time limit already exist."""
    return path.exists() and json.loads(path.read_text(encoding="utf-8"))["minutes"] == minutes


def test_score(home: Path, translations: list[str]) -> tuple[float, str]:
    """Return BLEU on the test set, with its signature."""
    (bleu, *_), _ = corpus_scores(translations, [read_lines(home / "raw" / f"{TEST}.de")], usual_metrics())
    return bleu.value, bleu.signature


# --- the two programs -------------------------------------------------------------------------------------------------


def ours(home: Path, given: argparse.Namespace) -> Found:
    """Run the command that a new user would run, on the raw files."""
    raw, folder = home / "raw", home / "vidrio"
    command = [sys.executable, "-m", "vidrio", "train", *(str(raw / f"train.{side}") for side in ("en", "de"))]
    for option, part in (("--dev", "val"), ("--test", TEST)):
        command += [word for side in ("en", "de") for word in (option, str(raw / f"{part}.{side}"))]
    command += ["--to", str(folder), "--time", f"{round(60 * given.minutes)}s", "--languages", "en,de"]
    command += ["--threads", str(given.threads)]
    subprocess.run(command, check=True)
    records, plan = metrics(folder / "run"), plan_of(home)
    minutes = when([record for record in records if record["kind"] == "step"])
    validations = [record for record in records if record["kind"] == "validation"]
    at = np.interp([r["step"] for r in validations], *zip(*minutes, strict=True)).tolist()
    curve = [(minute, r["bleu"]) for minute, r in zip(at, validations, strict=True)]
    (bleu, *_) = read_config(folder)[1].scores
    steps = max(record["step"] for record in records)
    told = f"{steps:,} steps of {plan.recipe.batch_tokens:,} tokens, {plan.recipe.precision}; {sizes(plan)}"
    return Found(given.minutes, curve, bleu["value"], bleu["signature"], told)


def plan_of(home: Path) -> Plan:
    plan = read_plan(home / "vidrio" / "run")
    if plan is None:
        raise SystemExit("JoeyNMT gets the sizes that Vidrio has chosen: do --only vidrio first, in the same --to")
    return plan


def sizes(plan: Plan) -> str:
    c = plan.config
    return (
        f"{count(c):,} parameters: {c.n_encoder_layers} + {c.n_decoder_layers} layers, {c.d_model} wide, {c.n_heads} "
        f"heads, feed-forward {c.d_ff}, {c.target_vocabulary:,} tokens; rate {plan.recipe.rate:g}, dropout "
        f"{plan.recipe.dropout:g}"
    )


def theirs(home: Path, given: argparse.Namespace) -> Found:
    """Train JoeyNMT for the same time, with the same tokens and sizes."""
    plan, raw, folder = plan_of(home), home / "raw", home / "joeynmt"
    tokenizer = Tokenizer.load(home / "vidrio" / "tokenizer.json")
    given.work.mkdir(parents=True, exist_ok=True)
    python = peer.python(given.work)
    folder.mkdir(exist_ok=True)
    (folder / "vocabulary.txt").write_text("\n".join(tokenizer.vocabulary()) + "\n", encoding="utf-8")
    texts = {part: {side: read_lines(raw / f"{part}.{side}") for side in ("en", "de")} for part in ("train", "val")}
    texts["test"] = {side: read_lines(raw / f"{TEST}.{side}") for side in ("en", "de")}
    some = translated(len(texts["val"]["en"]), JUDGED)
    texts["val"] = {side: [lines[i] for i in some] for side, lines in texts["val"].items()}
    for part, sides in texts.items():
        for side, lines in sides.items():
            peer.write_tokens(folder / f"{part}.{side}", tokenizer, lines)
    speed = steps_a_minute(python, folder, plan, given.threads)
    every, warmup = 10 * max(1, round(speed / 10)), min(plan.recipe.warmup, max(1, round(speed * given.minutes / 10)))
    print(f"JoeyNMT validates every {every:,} steps and warms up for {warmup:,}", file=sys.stderr)
    plan = replace(plan, recipe=replace(plan.recipe, warmup=warmup))
    settings = {"logging_freq": 10, "validation_freq": every}
    log = learn(python, folder, plan, settings, given.threads, 60 * given.minutes)
    times = [trained / 60 for trained in validated(log)]
    hypotheses = sorted((folder / "model").glob("*.hyps"), key=lambda path: int(path.stem))
    read = (quick_scores(peer.read_tokens(path, tokenizer), texts["val"]["de"])["bleu"] for path in hypotheses)
    curve = list(zip(times, read, strict=False))  # the last validation may be incomplete
    subprocess.run(
        [python, "-m", "joeynmt", "test", folder / "test.yaml", "-o", folder / "translations"],
        env=peer.environment(given.threads),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    bleu, signature = test_score(home, peer.read_tokens(folder / "translations.test", tokenizer))
    steps = [int(step) for _, step in peer.moments(log, r".*?Step:\s+(\d+)")]
    told = f"{steps[-1]:,} steps of {plan.recipe.batch_tokens // 2:,} tokens on the longer side, float32; {sizes(plan)}"
    return Found(given.minutes, curve, bleu, signature, told)


def steps_a_minute(python: Path, folder: Path, plan: Plan, threads: int) -> float:
    """Measure JoeyNMT's speed on this machine from its log."""
    log = learn(python, folder, plan, {"logging_freq": 10, "validation_freq": 10**6, "updates": PROBE}, threads, 0)
    (first, _), *_, (last, _) = peer.moments(log, r".*?Step:\s+(\d+)")
    return 60 * (PROBE - 10) / (last - first)


def learn(python: Path, folder: Path, plan: Plan, settings: dict[str, int], threads: int, seconds: float) -> str:
    """Run `joeynmt train` until it ends or has trained for this many seconds (0: no limit), and return its log."""
    data = {"train": "train", "dev": "val"}
    peer.write_configuration(folder / "train.yaml", folder, plan.config, plan.recipe, data, **settings)
    peer.write_configuration(folder / "test.yaml", folder, plan.config, plan.recipe, {"test": "test"}, **settings)
    shutil.rmtree(folder / "model", ignore_errors=True)
    path = folder / "log"
    command = [str(python), "-m", "joeynmt", "train", str(folder / "train.yaml"), "--skip-test"]
    with path.open("w") as log:
        environment = peer.environment(threads)
        # Restore the handling of interrupts, which shells make background processes ignore.
        process = subprocess.Popen(
            command,
            env=environment,
            stdout=log,
            stderr=subprocess.STDOUT,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            while process.poll() is None:
                time.sleep(0.2)
                if seconds and trained(path.read_text(), time.time()) > seconds:
                    os.kill(process.pid, signal.SIGINT)  # JoeyNMT then saves its state
                    process.wait(120)
        finally:
            process.kill()
            process.wait()
    text = path.read_text()
    if "Checkpoint saved" not in text:
        raise SystemExit(f"JoeyNMT has not learned:\n{text[-3000:]}")
    return text


def trained(log: str, now: float) -> float:
    """Return JoeyNMT's training time so far from its log, since the start of its first epoch, without validation."""
    began = peer.moments(log, r"(EPOCH 1)$")
    stops = [at for at, _ in peer.moments(log, r"(Predicting) \d+ example") if at <= now]
    goes_on = [at for at, _ in peer.moments(log, r"(Generation took)") if at <= now]
    if not began:
        return 0.0
    return now - began[0][0] - sum(end - start for start, end in zip_longest(stops, goes_on, fillvalue=now))


def validated(log: str) -> list[float]:
    """Return the training time at each validation."""
    return [trained(log, at) for at, _ in peer.moments(log, r"(Predicting) \d+ example")]


# --- results ----------------------------------------------------------------------------------------------------------


def table(found: dict[str, Found]) -> list[str]:
    """Return the lines of a table with the curve and the final score of each program."""
    lines = [f"Multi30k English to German, {processor()}"]
    for name, one in found.items():
        lines += ["", f"{NAMES[name]}, {one.minutes:g} minutes: {one.model}"]
        lines += [f"  minute {minute:5.1f}  BLEU {bleu:5.1f}" for minute, bleu in one.curve]
        lines += [f"  {TEST}: BLEU {one.test:.2f}   {one.signature}"]
    return lines


if __name__ == "__main__":
    main()
