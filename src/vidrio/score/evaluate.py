"""Corpus → scores: how good a model's translations of a test set are, how sure that is, and how fast they came."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from vidrio.hypothesis import Options
from vidrio.score.metrics import Metrics, Score, corpus_scores
from vidrio.translate.translator import Translator


@dataclass(frozen=True)
class Run:
    """A test set, translated."""

    translations: list[str]
    seconds: float
    tokens: int  # in the translations of different sentences, end tokens included
    cut: int  # different sentences that did not come to an end

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)


@dataclass(frozen=True)
class Evaluation:
    """Everything about one model on one test set."""

    lines: int
    beam: int
    length_penalty: float
    scores: list[Score]
    other_scores: list[Score]  # of the system that it was compared with
    bits_per_character: float
    left_out: int  # pairs that are empty or too long for the bits
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
    """Translate a test set and score the translations; `against` are another system's."""
    run = translate_all(translator, sources, options)
    scores, other = corpus_scores(run.translations, references, metrics, against=against)
    bits, left_out = bits_per_character(translator, sources, references[0])
    return Evaluation(len(sources), options.beam, options.length_penalty, scores, other, bits, left_out, run)


def translate_all(translator: Translator, sources: Sequence[str], options: Options | None = None) -> Run:
    """Translate a test set, with the clock on; what loading and the first call cost is not counted."""
    translator.translate(sources[:1], options)
    began = time.perf_counter()
    translated = list(translator.stream(sources, options))
    seconds = time.perf_counter() - began
    # A sentence that comes again is not translated again, and must not count as work done.
    best = {sentence.source: sentence.best for translation in translated for sentence in translation.sentences}.values()
    tokens = sum(len(hypothesis.ids) + hypothesis.ended for hypothesis in best)
    cut = sum(not hypothesis.ended for hypothesis in best)
    return Run([translation.text for translation in translated], seconds, tokens, cut)


def bits_per_character(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> tuple[float, int]:
    """How many bits the model needs for a character of the references: (bits, pairs that were empty or too long).

    Lower is better, and unlike a loss per token it compares models with different vocabularies.
    """
    fitting = [pair for pair in zip(sources, references, strict=True) if translator.fits(*pair)]
    log_prob = sum(map(sum, translator.score(fitting)))
    characters = sum(len(reference) for _, reference in fitting)
    return -log_prob / math.log(2) / max(1, characters), len(sources) - len(fitting)
