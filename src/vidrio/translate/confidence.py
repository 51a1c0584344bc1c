"""How far a translation can be trusted, told from the probabilities that the model gave to its tokens.

    a sentence: the mean probability of its tokens   → the chrF to expect against a reference translation, 0 to 1
    a word: the product of its tokens' probabilities → the chance that the word stands in the reference translation

Each by a logistic curve 1 / (1 + e^−(bias + slope · x)), never falling, fitted on every other pair of a set that the
model has not learned from. How well it predicts is measured on the pairs between. Whether a word stands in the
reference is not whether it is right: a good synonym counts as wrong here, and a right word in a wrong place as right.
`confidence.json` in the model's folder holds it all, with the checksum of the weights that it was measured on.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import DataError, ModelError
from vidrio.model.files import read_json, sha256, write_atomically
from vidrio.model.json_record import record
from vidrio.model.json_text import json_text
from vidrio.text.reading.words import Place, word_of_each, worded, words
from vidrio.translate.translation import Word, word_at

NAME, FORMAT = "confidence.json", 1
LOW = 0.4  # chrF; a translation below it rarely keeps the meaning
DOUBTFUL = 0.5  # a word that is more likely missing in the reference than not
FEWEST = 20  # pairs to fit and measure on
BINS = 10  # of the calibration error
PRIOR = 1e-2  # pulls a curve towards 0, far less than one pair does, so that it stays finite where all are alike
NEAR = 1e-9  # of a curve's numbers: no step further than that is taken


@dataclass(frozen=True)
class Curve:
    """1 / (1 + e^−(bias + slope · x))."""

    bias: float
    slope: float  # 0 or more

    def __call__(self, x: float) -> float:
        odds = self.bias + self.slope * x
        return 1 / (1 + math.exp(-odds)) if odds >= 0 else math.exp(odds) / (1 + math.exp(odds))


@dataclass(frozen=True)
class Measured:
    """How well a curve predicts what it was not fitted on."""

    count: int  # of sentences, or words
    mean: float  # of the truth
    pearson: float
    spearman: float
    low: float  # the threshold of the next one
    auc: float | None  # how often one whose truth is below `low` gets less than one whose truth is not; ½ is chance
    calibration_error: float  # |predicted − true|, the mean over ten bins with equally many in each


@dataclass(frozen=True)
class Confidence:
    """What `confidence.json` holds."""

    weights: str  # sha256 of model.safetensors
    sentence: Curve
    word: Curve
    sentences: Measured
    words: Measured
    measured_on: dict[str, Any]  # for people: files, lines, how chrF was counted

    def told(self) -> str:
        """In a sentence."""
        of = self.sentences
        auc = "" if of.auc is None else f", AUC {of.auc:.2f} for chrF below {of.low:g}"
        return f"confidence predicts chrF with r = {of.pearson:.2f} on {of.count:,} held-out sentences{auc}"


# --- what it is told from ---------------------------------------------------------------------------------------------


def sentence_feature(token_log_probs: Sequence[float]) -> float:
    """The mean probability of the tokens, the end token included."""
    return sum(map(math.exp, token_log_probs)) / max(1, len(token_log_probs))


def word_features(text: str, tokens: Sequence[Place], token_log_probs: Sequence[float]) -> list[tuple[Word, float]]:
    """The words that have a letter or a digit, each with the probability of its tokens, whose places are `tokens`."""
    places = words(text)
    log_probs = [0.0] * (len(places) + 1)  # the last for what comes after the last word, −1
    for number, log_prob in zip(word_of_each(tokens, places), token_log_probs, strict=False):  # the end token is left
        log_probs[number] += log_prob
    probable = [(word_at(text, place), math.exp(log_probs[number])) for number, place in enumerate(places)]
    return [(word, probability) for word, probability in probable if worded(word.text)]


def in_reference(candidates: Sequence[str], reference: str) -> list[bool]:
    """Whether each word stands in the reference, up to case, and as often."""
    left = Counter(reference[slice(*place)].casefold() for place in words(reference))
    truth = []
    for word in map(str.casefold, candidates):
        truth.append(left[word] > 0)
        left[word] -= 1
    return truth


# --- fitting and measuring --------------------------------------------------------------------------------------------


def fit(x_N: np.ndarray, truth_N: np.ndarray) -> Curve:
    """The curve with the least cross-entropy to the truth (0 to 1), of those that do not fall."""
    ones_N = np.ones(len(x_N))
    bias, slope = _newton(np.stack([ones_N, x_N], axis=1), truth_N)
    if slope >= 0:
        return Curve(float(bias), float(slope))
    return Curve(float(_newton(ones_N[:, None], truth_N)[0]), 0.0)


def _newton(X: np.ndarray, truth_N: np.ndarray) -> np.ndarray:
    """The weights w that make 1 / (1 + e^−Xw) most like the truth. Steps that would overshoot are halved."""
    w = np.zeros(X.shape[1])
    for _ in range(100):
        p_N = 0.5 * (1 + np.tanh((X @ w) / 2))  # the same curve, and it cannot overflow
        gradient = X.T @ (p_N - truth_N) + PRIOR * w
        curvature = X.T @ (X * (p_N * (1 - p_N))[:, None]) + PRIOR * np.eye(len(w))
        step = np.linalg.solve(curvature, gradient)
        while _loss(X, truth_N, w - step) > _loss(X, truth_N, w) and np.abs(step).max() > NEAR:
            step /= 2
        w = w - step
        if np.abs(step).max() <= NEAR:
            break
    return w


def _loss(X: np.ndarray, truth_N: np.ndarray, w: np.ndarray) -> float:
    odds = X @ w
    return float(np.sum(np.logaddexp(0, odds) - truth_N * odds) + PRIOR / 2 * w @ w)


def measure(predicted_N: np.ndarray, truth_N: np.ndarray, low: float) -> Measured:
    """Predictions held to the truth."""
    return Measured(
        len(truth_N),
        float(truth_N.mean()),
        correlation(predicted_N, truth_N),
        correlation(ranks(predicted_N), ranks(truth_N)),
        low,
        auc(predicted_N, truth_N < low),
        calibration_error(predicted_N, truth_N),
    )


def correlation(a_N: np.ndarray, b_N: np.ndarray) -> float:
    """Pearson's; 0 where one of them is all the same."""
    a_N, b_N = a_N - a_N.mean(), b_N - b_N.mean()
    size = float(np.sqrt((a_N @ a_N) * (b_N @ b_N)))
    return float(a_N @ b_N) / size if size > 1e-12 else 0.0


def ranks(a_N: np.ndarray) -> np.ndarray:
    """1 for the smallest; equals share the mean of theirs."""
    _, which_N, count = np.unique(a_N, return_inverse=True, return_counts=True)
    last = np.cumsum(count)
    mean: np.ndarray = last - (count - 1) / 2
    return mean[which_N]


def auc(predicted_N: np.ndarray, bad_N: np.ndarray) -> float | None:
    """How often a bad one gets less than a good one, equals counting half; None without one of each."""
    bad, good = int(bad_N.sum()), int((~bad_N).sum())
    if not bad or not good:
        return None
    return float(1 - (ranks(predicted_N)[bad_N].sum() - bad * (bad + 1) / 2) / (bad * good))


def calibration_error(predicted_N: np.ndarray, truth_N: np.ndarray) -> float:
    """How far the mean prediction is from the mean truth, in bins of equally many by prediction."""
    bins = np.array_split(np.argsort(predicted_N, kind="stable"), min(BINS, len(predicted_N)))
    return float(sum(abs((predicted_N[of] - truth_N[of]).sum()) for of in bins) / len(predicted_N))


def calibrated(
    sentences: Sequence[tuple[float, float]],
    words_of: Sequence[Sequence[tuple[float, bool]]],
    weights: str,
    measured_on: dict[str, Any],
) -> Confidence:
    """Fit on every other sentence and its words, measure on those between: of each the feature and the truth."""
    if len(sentences) < FEWEST:
        raise DataError(
            "there are too few sentence pairs to tell confidence from",
            found=f"{len(sentences)} pairs that are one sentence each",
            do=f"give at least {FEWEST}, better some thousands, that the model has not learned from",
        )

    def curve(pairs: Sequence[Sequence[tuple[float, float]]], low: float) -> tuple[Curve, Measured]:
        fitted, held_out = (np.array([pair for some in pairs[half::2] for pair in some]) for half in (0, 1))
        if not len(fitted) or not len(held_out):
            raise DataError("the translations have no words to tell confidence from", do="give other pairs")
        fitted_curve = fit(*fitted.T)
        return fitted_curve, measure(np.array([fitted_curve(x) for x in held_out[:, 0]]), held_out[:, 1], low)

    sentence, sentences_measured = curve([[pair] for pair in sentences], LOW)
    word, words_measured = curve(words_of, DOUBTFUL)
    return Confidence(weights, sentence, word, sentences_measured, words_measured, measured_on)


# --- the file ---------------------------------------------------------------------------------------------------------


def write(folder: Path, confidence: Confidence) -> None:
    """Write `confidence.json`."""
    text = json_text({"format": FORMAT, **asdict(confidence)}, indent=2)
    write_atomically(folder / NAME, f"{text}\n".encode())


def read(folder: Path) -> Confidence:
    """Read `confidence.json`; refused if it is not there, not whole, or belongs to other weights."""
    path = folder / NAME
    do = f"make one from held-out pairs: vidrio evaluate {folder} --src FILE --ref FILE --calibrate"
    if not path.is_file():
        raise ModelError("this model does not tell how far it can be trusted", found=f"there is no {path}", do=do)
    data = read_json(path, what="the confidence")
    try:
        if data.pop("format") != FORMAT:
            raise ValueError(f"not of format {FORMAT}")
        confidence = record(Confidence, data)
        if min(confidence.sentence.slope, confidence.word.slope) < 0:
            raise ValueError("a curve that falls")
    except (TypeError, KeyError, ValueError) as error:
        raise ModelError(f"{path} cannot be used", found=f"{type(error).__name__}: {error}", do=do) from None
    weights = folder / "model.safetensors"
    if weights.is_file() and sha256(weights) != confidence.weights:
        raise ModelError(
            f"{path} belongs to other weights",
            found=f"it was measured on weights with the sha256 {confidence.weights[:16]}…",
            do=do,
        )
    return confidence
