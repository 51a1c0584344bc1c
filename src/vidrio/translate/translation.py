"""What a translator gives back: the text, its sentences, where they stand, how likely each token was."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from vidrio.hypothesis import Hypothesis, Ids, Options
from vidrio.text.mask import Masked
from vidrio.text.words import Place


class Word(NamedTuple):
    """A word, and where it stands; in characters."""

    text: str
    start: int
    end: int
    confidence: float | None = None  # of a word of a translation: the mean probability of its tokens

    def moved(self, by: int) -> "Word":
        return self._replace(start=self.start + by, end=self.end + by)


class Link(NamedTuple):
    """A word of the translation and the source's word that it came from."""

    source: Word
    target: Word
    weight: float  # the share of the target word's attention, 0 to 1

    def __str__(self) -> str:
        return f"{self.source.text} → {self.target.text} {self.weight:.2f}"


def word_at(text: str, place: Place) -> Word:
    return Word(text[slice(*place)], *place)


class Details(NamedTuple):
    """What is computed of a sentence when it is first asked for. Places count from the sentence."""

    alignment: tuple[Link, ...]
    words: tuple[Word, ...]
    tokens: tuple[str, ...]


class Sentence(NamedTuple):
    """A sentence (or a part of one) and what became of it."""

    source: str
    alternatives: tuple[str, ...]  # the texts of the hypotheses
    hypotheses: tuple[Hypothesis, ...]  # best first
    source_ids: Ids
    masked: Masked  # what the model read
    options: Options  # how its translation was searched for
    unknown: tuple[str, ...] = ()  # words that the vocabulary does not hold
    passed_over: str = ""  # what the search liked better, where the lexicon put in another word
    source_start: int = 0  # where it stands in the text, and its translation in the translation; in characters
    target_start: int = 0

    @property
    def text(self) -> str:
        """The translation."""
        return self.alternatives[0]

    @property
    def best(self) -> Hypothesis:
        return self.hypotheses[0]

    @property
    def given(self) -> str:
        """What the model read: `source` on one line, with symbols for what is only copied."""
        return self.masked.given

    @property
    def confidence(self) -> float:
        """The mean probability of a token, the end token included."""
        log_probs = self.best.token_log_probs
        return sum(map(math.exp, log_probs)) / max(1, len(log_probs))


Pieces = tuple[Sentence, ...]  # what a sentence became: itself, or its parts


class Annotator(Protocol):
    """The translator, as its translations know it."""

    folder: Path

    def details(self, sentence: Sentence) -> Details: ...


@dataclass(frozen=True)
class Translation:
    """A text, its translation, and how it came about."""

    source: str
    text: str
    sentences: Pieces
    translator: Annotator = field(repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    @property
    def score(self) -> float:
        """The mean log-probability of a token: 0 is certain, −1 is 37 % for each. 0 where nothing was translated."""
        return self._mean(sentence.best.log_prob for sentence in self.sentences)

    @property
    def confidence(self) -> float:
        """The mean probability of a token, 0 to 1; 1 where nothing was translated."""
        weighed = (sentence.confidence * len(sentence.best.token_log_probs) for sentence in self.sentences)
        return self._mean(weighed) if self.sentences else 1.0

    def _mean(self, sums: Iterable[float]) -> float:
        return sum(sums) / max(1, sum(len(sentence.best.token_log_probs) for sentence in self.sentences))

    @property
    def unknown(self) -> list[str]:
        """The words of the text that the model's vocabulary does not hold."""
        return list(dict.fromkeys(word for sentence in self.sentences for word in sentence.unknown))

    @cached_property
    def alignment(self) -> tuple[Link, ...]:
        """Which word came from which (alignment.py); places are those in the text and the translation."""
        return tuple(
            Link(link.source.moved(sentence.source_start), link.target.moved(sentence.target_start), link.weight)
            for sentence, details in zip(self.sentences, self._details, strict=True)
            for link in details.alignment
        )

    @cached_property
    def words(self) -> tuple[Word, ...]:
        """The words of the translation that have a letter or a digit, each with its confidence."""
        return tuple(
            word.moved(sentence.target_start)
            for sentence, details in zip(self.sentences, self._details, strict=True)
            for word in details.words
        )

    @cached_property
    def _details(self) -> tuple[Details, ...]:
        return tuple(map(self.translator.details, self.sentences))

    def alternative(self, n: int) -> str:
        """The text with the n-th best translation of every sentence; its last one where there are fewer."""
        return put_back(self.source, [(0, self.sentences)], n)[0]

    @property
    def alternatives(self) -> list[str]:
        """The text with the best translation of every sentence, with the second best, and so on; each text once."""
        most = max((len(sentence.alternatives) for sentence in self.sentences), default=1)
        return list(dict.fromkeys(map(self.alternative, range(most))))

    def to_json(self) -> dict[str, Any]:
        """Everything, for a machine to read; places are in bytes of UTF-8."""
        return {
            "text": self.source,
            "translation": self.text,
            "score": self.score,
            "confidence": self.confidence,
            "unknown": self.unknown,
            "alternatives": self.alternatives if self.sentences else [],
            "sentences": list(self._sentences_json()),
        }

    def _sentences_json(self) -> Iterator[dict[str, Any]]:
        for sentence, details in zip(self.sentences, self._details, strict=True):
            at_source, at_target, best = sentence.source_start, sentence.target_start, sentence.best
            yield {
                "source": _bytes(self.source, at_source, sentence.source),
                "target": _bytes(self.text, at_target, sentence.text),
                "log_prob": best.log_prob,
                "score": best.score,
                "confidence": sentence.confidence,
                "alternatives": [
                    {"translation": text, "log_prob": h.log_prob, "score": h.score}
                    for text, h in zip(sentence.alternatives, sentence.hypotheses, strict=True)
                ],
                "tokens": [
                    {"token": token, "log_prob": log_prob}
                    for token, log_prob in zip(details.tokens, best.token_log_probs, strict=True)
                ],
                "alignment": [
                    {
                        "source": _bytes(self.source, at_source + link.source.start, link.source.text),
                        "target": _bytes(self.text, at_target + link.target.start, link.target.text),
                        "weight": link.weight,
                    }
                    for link in details.alignment
                ],
                "words": [
                    {
                        "text": word.text,
                        "bytes": _bytes(self.text, at_target + word.start, word.text),
                        "confidence": word.confidence,
                    }
                    for word in details.words
                ],
            }


def put_back(text: str, found: Iterable[tuple[int, Pieces]], n: int = 0) -> tuple[str, Pieces]:
    """The text with its sentences translated, and the sentences with their places; `found` has the place that theirs
    count from. `n`: of each the n-th best translation, or its last."""
    written: list[str] = []
    placed: list[Sentence] = []
    at = length = 0
    for offset, sentences in found:
        for sentence in sentences:
            start = offset + sentence.source_start
            translation = sentence.alternatives[min(n, len(sentence.alternatives) - 1)]
            written += (text[at:start], translation)
            length += start - at
            placed.append(sentence._replace(source_start=start, target_start=length))
            length += len(translation)
            at = start + len(sentence.source)
    return "".join((*written, text[at:])), tuple(placed)


def _bytes(text: str, start: int, part: str) -> list[int]:
    first = len(text[:start].encode())
    return [first, first + len(part.encode())]
