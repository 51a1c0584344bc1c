"""Evaluate a model on a test set: scores, confidence intervals and speed."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from vidrio.hypothesis import Options
from vidrio.score.metrics import Metrics, Score, corpus_scores
from vidrio.translate.translator import Translator


@dataclass(frozen=True)
class Run:
    """The translations of a test set."""

    translations: list[str]
    seconds: float
    tokens: int  # number of tokens in the translations of distinct sentences, including end tokens
    cut: int  # number of distinct sentences whose translation was cut short

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class Evaluation:
    """The results of evaluating a model on a test set."""

    lines: int
    beam: int
    length_penalty: float
    scores: list[Score]
    other_scores: list[Score]  # the scores of the other system; empty if there is none
    bits_per_character: float
    left_out: int  # number of pairs that are empty or too long to score
    run: Run


def evaluate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[Sequence[str]],
    metrics: Metrics,
    options: Options,
    *,
    against: Sequence[str] | None = None,
) -> Evaluation:
    """Translate a test set and score it, optionally `against` the translations of another system."""
    run = translate_all(translator, sources, options)
    scores, other = corpus_scores(run.translations, references, metrics, against=against)
    bits, left_out = bits_per_character(translator, sources, references[0])
    return Evaluation(len(sources), options.beam, options.length_penalty, scores, other, bits, left_out, run)


def translate_all(translator: Translator, sources: Sequence[str], options: Options | None = None) -> Run:
    """Translate a test set and measure the time, excluding loading and the first call."""
    translator.translate(sources[:1], options)
    began = time.perf_counter()
    translated = list(translator.stream(sources, options))
    seconds = time.perf_counter() - began
    # Within a chunk, repeated sentences are translated only once; here, they are counted once in all.
    best = {sentence.source: sentence.best for translation in translated for sentence in translation.sentences}.values()
    tokens = sum(len(hypothesis.ids) + hypothesis.ended for hypothesis in best)
    cut = sum(not hypothesis.ended for hypothesis in best)
    return Run([translation.text for translation in translated], seconds, tokens, cut)


def bits_per_character(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> tuple[float, int]:
    """Return the bits per character of the references, and the number of pairs that were empty or too long.

    Lower is better. Unlike loss per token, this measure can be compared between models with different vocabularies.
    """
    fitting = [pair for pair in zip(sources, references, strict=True) if translator.fits(*pair)]
    log_prob = sum(map(sum, translator.score(fitting)))
    characters = sum(len(reference) for _, reference in fitting)
    return -log_prob / math.log(2) / max(1, characters), len(sources) - len(fitting)
