"""Corpus → scores: how good a model's translations of a test set are, how sure that is, and how fast they came.

How scores are counted is told in metrics.py.
"""

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vidrio.data.progress import Progress, Work
from vidrio.errors import DataError
from vidrio.hypothesis import Options
from vidrio.model.files import sha256
from vidrio.score.metrics import Metrics, Score, chrf_of_each, chrf_signature, corpus_scores
from vidrio.text.utf8 import Decoder
from vidrio.translate.confidence import Confidence, calibrated, in_reference, sentence_feature
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
        return self.tokens / self.seconds if self.seconds else 0.0


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
    options = replace(options or translator.options, scores=False)
    translator.translate(sources[:1], options)
    began = time.perf_counter()
    translated = list(translator.stream(sources, options))
    seconds = time.perf_counter() - began
    # A sentence that comes again is not translated again, and must not count as work done.
    best = {sentence.source: sentence.best for translation in translated for sentence in translation.sentences}.values()
    tokens = sum(len(hypothesis.ids) + hypothesis.ended for hypothesis in best)
    cut = sum(not hypothesis.ended for hypothesis in best)
    return Run([translation.text for translation in translated], seconds, tokens, cut)


def calibrate(
    translator: Translator,
    sources: Sequence[str],
    references: Sequence[str],
    options: Options | None = None,
    *,
    about: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Confidence:
    """How far the model's probabilities tell the quality of its translations. Pairs that it has not learned from are
    translated; one half fits the curves of confidence.py, the other measures them. Only single sentences count.

    `about` is kept with it, for people: which files these are.
    """
    measuring = Work("measuring confidence", len(sources))
    if progress:
        progress.work = measuring
    plain = []
    for translation in translator.stream(sources, options):
        plain.append(translation)
        measuring.done += 1
    translations = translator.with_token_scores(plain)
    pairs = zip(translations, references, strict=True)
    single = [(translation, reference) for translation, reference in pairs if len(translation.sentences) == 1]
    qualities = chrf_of_each([translation.text for translation, _ in single], [reference for _, reference in single])
    sentences, words = [], []
    for (translation, reference), quality in zip(single, qualities, strict=True):
        (sentence,) = translation.sentences
        sentences.append((sentence_feature(sentence.best.token_log_probs), quality / 100))
        features = translator.word_features(sentence)
        right = in_reference([word.text for word, _ in features], reference)
        words.append([(probability, there) for (_, probability), there in zip(features, right, strict=True)])
    on = {**(about or {}), "lines": len(sources), "one sentence": len(sentences), "chrF": chrf_signature()}
    on["beam"] = (options or translator.options).beam
    return calibrated(sentences, words, sha256(translator.folder / "model.safetensors"), on)


def bits_per_character(translator: Translator, sources: Sequence[str], references: Sequence[str]) -> tuple[float, int]:
    """How many bits the model needs for a character of the references: (bits, pairs that were empty or too long).

    Lower is better, and unlike a loss per token it compares models with different vocabularies.
    """
    fitting = [pair for pair in zip(sources, references, strict=True) if translator.fits(*pair)]
    log_prob = sum(scored.log_prob for scored in translator.score(fitting))
    characters = sum(len(reference) for _, reference in fitting)
    return -log_prob / math.log(2) / max(1, characters), len(sources) - len(fitting)


def read_lines(path: Path) -> list[str]:
    """The lines of a test set's file."""
    raw, decode = path.read_bytes(), Decoder(str(path))
    lines = raw.removesuffix(b"\n").split(b"\n") if raw else []
    return [decode(line).removesuffix("\r") for line in lines]


def read_aligned(paths: Sequence[Path]) -> list[list[str]]:
    """Files whose lines belong together."""
    files = [read_lines(path) for path in paths]
    if not any(files):
        raise DataError("there is nothing to score", found=f"{paths[0]} is empty", do="give a line for each sentence")
    if len({len(lines) for lines in files}) > 1:
        counts = ", ".join(f"{path} has {len(lines):,}" for path, lines in zip(paths, files, strict=True))
        raise DataError(
            "the lines of these files do not belong together", found=counts, do="give as many lines in each"
        )
    return files
