"""Measure how well the parts of a logit difference detect hallucinations and omissions, compared with log-probability.

    python benchmarks/in_the_source.py --model en-es --source FILE --reference FILE [--count 500]

There are four tests, each with --count sentences:

- inserted clause: six tokens of another translation are inserted;
- appended sentence: the translation of another sentence is appended;
- sentence left out: the source has a second sentence, which is not translated;
- worst translations: the quarter of the model's own translations with the lowest chrF must be identified.

Hallucinations are scored per token, an omission by the end token, and a translation by the mean over its tokens. For
each test, the script prints the area under the ROC curve of four signals, which should be low where something is wrong
(0.5 is chance):

- share: the source's share of the absolute values of all parts that come from tokens;
- sum: the signed sum of the source's parts;
- lift: log p minus log p with every source word masked in all attention;
- log p.
"""

import argparse
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy is imported

import numpy as np
from sacrebleu.metrics import CHRF

from vidrio.hypothesis import Hidden
from vidrio.look.interventions import engine_of, source_words
from vidrio.look.parts import SOURCE, TARGET, decisions, runner_up
from vidrio.look.run import InEngine, LoadedModel, look, open_model
from vidrio.look.translated import translator_of

SEED = 5
CLAUSE = 6  # length in tokens


class Sentence(NamedTuple):
    source: str
    ids: tuple[int, ...]
    chrf: float


class Signals(NamedTuple):
    """Four signals for each token of a translation, including the end token."""

    share: np.ndarray
    signed: np.ndarray
    lift: np.ndarray
    log_p: np.ndarray


Judged = tuple[Signals, np.ndarray]  # the signals and a mask of the faulty tokens


def signals(model: LoadedModel, source: str, ids: Sequence[int]) -> Signals:
    """Compute the signals of a given translation."""
    this = [*ids, model.config.special.end]
    seen = look(model, source, target=this)
    made = decisions(seen.trace, this, [runner_up(seen.trace, row, token) for row, token in enumerate(this)])
    of_source = [one.values[[reads == SOURCE for _, reads, _ in one.labels]] for one in made]
    of_target = [one.values[[reads == TARGET for _, reads, _ in one.labels]] for one in made]
    sizes = np.array([[np.abs(values).sum() for values in of_side] for of_side in (of_source, of_target)])
    hidden = tuple(Hidden(row) for word in source_words(seen) for row in word.rows)
    [without] = engine_of(seen).forced_changed((seen.source_ids, ids), [(token, -1) for token in this], [hidden])
    log_p = seen.trace.values["out.score"]
    lift = log_p - np.array([log_prob for log_prob, _ in without])
    return Signals(sizes[0] / sizes.sum(axis=0), np.array([one.sum() for one in of_source]), lift, log_p)


def inserted(model: LoadedModel, one: Sentence, other: Sentence, rng: random.Random) -> Iterator[Judged]:
    begins = [n for n, i in enumerate(one.ids) if n and model.target_vocabulary[i].startswith("▁")]
    if len(other.ids) > CLAUSE and begins:
        at, start = rng.choice(begins), rng.randrange(1, len(other.ids) - CLAUSE + 1)
        clause = other.ids[start : start + CLAUSE]
        wrong = np.zeros(len(one.ids) + CLAUSE + 1, bool)
        wrong[at : at + CLAUSE] = True
        yield signals(model, one.source, (*one.ids[:at], *clause, *one.ids[at:])), wrong


def appended(model: LoadedModel, one: Sentence, other: Sentence, rng: random.Random) -> Iterator[Judged]:
    wrong = np.zeros(len(one.ids) + len(other.ids) + 1, bool)
    wrong[len(one.ids) : -1] = True
    yield signals(model, one.source, (*one.ids, *other.ids)), wrong


def left_out(model: LoadedModel, one: Sentence, other: Sentence, rng: random.Random) -> Iterator[Judged]:
    source = f"{one.source} {other.source}"
    for ids, wrong in ((one.ids, True), ((*one.ids, *other.ids), False)):
        yield Signals(*(signal[-1:] for signal in signals(model, source, ids))), np.array([wrong])


def own(model: LoadedModel, sentences: Sequence[Sentence]) -> Iterator[Judged]:
    worst = np.quantile([one.chrf for one in sentences], 0.25)
    for one in sentences:
        found = signals(model, one.source, one.ids)
        yield Signals(*(signal.mean(keepdims=True) for signal in found)), np.array([one.chrf <= worst])


def area(signal: np.ndarray, wrong: np.ndarray) -> float:
    """Return the probability that a faulty token has a lower signal than a correct token. Ties count as one half."""
    right = np.sort(signal[~wrong])
    below = np.searchsorted(right, signal[wrong], "left"), np.searchsorted(right, signal[wrong], "right")
    return float(1 - np.mean(below) / len(right))


def sentences_of(model: LoadedModel, source: Path, reference: Path, count: int) -> tuple[LoadedModel, list[Sentence]]:
    """Sample lines that contain a single sentence, and translate them."""
    translator, chrf, found = translator_of(model), CHRF(), list[Sentence]()
    lines = zip(source.read_text("utf-8").splitlines(), reference.read_text("utf-8").splitlines(), strict=True)
    chosen = random.Random(SEED).sample([pair for pair in lines if 5 <= len(pair[0].split()) <= 30], 2 * count)
    for text, right in chosen:
        [*sentences] = translator.translate(text).sentences
        if len(sentences) == 1 and len(found) < count:
            best = sentences[0]
            score = chrf.sentence_score(best.text, [right]).score
            found.append(Sentence(best.given, best.best.ids, score))
    return replace(model, in_engine=InEngine(translator.engine)), found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en-es")
    parser.add_argument("--source", type=Path, required=True, help="file with one sentence per line")
    parser.add_argument("--reference", type=Path, required=True)
    parser.add_argument("--count", type=int, default=500)
    given = parser.parse_args()
    model, sentences = sentences_of(open_model(given.model), given.source, given.reference, given.count)
    rng = random.Random(SEED)
    pairs = list(zip(sentences, sentences[1:] + sentences[:1], strict=True))
    tests = {name: [j for pair in pairs for j in make(model, *pair, rng)] for name, make in TESTS.items()}
    tests["worst translations"] = list(own(model, sentences))
    print(f"{given.model}, {len(sentences)} sentences; area under the ROC curve")
    print(f"{'':20}  {'share':>6}  {'sum':>6}  {'lift':>6}  {'log p':>6}")
    for name, judged in tests.items():
        wrong = np.concatenate([faults for _, faults in judged])
        areas = [area(np.concatenate(signal), wrong) for signal in zip(*(found for found, _ in judged), strict=True)]
        print(f"{name:20}  " + "  ".join(f"{one:6.3f}" for one in areas))


TESTS = {"inserted clause": inserted, "appended sentence": appended, "sentence left out": left_out}

if __name__ == "__main__":
    main()
