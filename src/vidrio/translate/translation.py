"""What a translator gives back: the text, its sentences, where they stand, how likely each token was."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from vidrio.errors import InputError
from vidrio.hypothesis import Hypothesis, Options
from vidrio.text.reading.prepared import Prepared
from vidrio.text.reading.words import Place


class Word(NamedTuple):
    """A word, and where it stands; in characters."""

    text: str
    start: int
    end: int
    confidence: float | None = None  # how likely it is right (confidence.py), if that was asked for

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


class Sentence(NamedTuple):
    """A sentence (or a part of one) and what became of it."""

    source: str
    alternatives: tuple[str, ...]  # the texts of the hypotheses
    hypotheses: tuple[Hypothesis, ...]  # best first
    source_ids: tuple[int, ...]
    prepared: Prepared  # how it was read
    options: Options  # how its translation was searched for
    unknown: tuple[str, ...] = ()  # words that the vocabulary does not hold
    avoided: str = ""  # what a first search had found, and another one had to avoid (attempts.py)
    passed_over: str = ""  # what the same search liked best, where something was lost in that, or a word not known
    source_start: int = 0  # where it stands in the text, and its translation in the translation; in characters
    target_start: int = 0
    # What costs another pass through the model, and is there when it was asked for. Places count from the sentence.
    alignment: tuple[Link, ...] | None = None
    confidence: float | None = None  # the chrF to expect, 0 to 1
    words: tuple[Word, ...] | None = None  # each with the chance that it stands in a reference

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
        return self.prepared.given


Pieces = tuple[Sentence, ...]  # what a sentence became: itself, or its parts


Look = Callable[[Path, "Translation", int], Any]  # a model's folder, a translation, which sentence → the run


class Annotator(Protocol):
    """What can tell more of a translation than it holds: what costs another pass through the model, and the glass."""

    folder: Path
    look: Look

    def with_alignment(self, translations: Sequence["Translation"]) -> list["Translation"]: ...
    def with_confidence(self, translations: Sequence["Translation"]) -> list["Translation"]: ...
    def token_names(self, hypothesis: Hypothesis) -> list[str]: ...


@dataclass(frozen=True)
class Translation:
    """A text, its translation, and how it came about. Pickled, it goes without its translator."""

    source: str
    text: str
    sentences: tuple[Sentence, ...]
    _annotator: Annotator | None = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return self.text

    def __copy__(self) -> "Translation":
        return self

    def __deepcopy__(self, memo: Any) -> "Translation":
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        asked = (self.__dict__.get(name, self).sentences for name in ("_aligned", "_judged"))  # what was ever asked
        sentences = tuple(
            sentence._replace(alignment=aligned.alignment, confidence=judged.confidence, words=judged.words)
            for sentence, aligned, judged in zip(self.sentences, *asked, strict=True)
        )
        return Translation, (self.source, self.text, sentences)

    @property
    def annotator(self) -> Annotator:
        """What tells more of it."""
        if self._annotator is None:
            raise InputError(
                "this translation has no translator any more",
                found="it was pickled: alignment, confidence, token names and look() need the model",
                do="ask for them before, by translator.with_alignment and with_confidence; or translate again",
            )
        return self._annotator

    @property
    def score(self) -> float:
        """The mean log-probability of a token: 0 is certain, −1 is 37 % for each. 0 where nothing was translated."""
        tokens = sum(len(sentence.best.ids) + sentence.best.ended for sentence in self.sentences)
        return sum(sentence.best.log_prob for sentence in self.sentences) / max(1, tokens)

    @property
    def unknown(self) -> list[str]:
        """The words of the text that the model's vocabulary does not hold."""
        return list(dict.fromkeys(word for sentence in self.sentences for word in sentence.unknown))

    @cached_property
    def alignment(self) -> tuple[Link, ...]:
        """Which word came from which (alignment.py); places are those in the text and the translation."""
        return tuple(
            Link(link.source.moved(sentence.source_start), link.target.moved(sentence.target_start), link.weight)
            for sentence in self._aligned.sentences
            for link in sentence.alignment or ()
        )

    @cached_property
    def _aligned(self) -> "Translation":
        asked = any(sentence.alignment is None for sentence in self.sentences)
        return self.annotator.with_alignment([self])[0] if asked else self

    @property
    def confidence(self) -> float:
        """The chrF to expect against a reference (confidence.py), 0 to 1; 1 where nothing was translated."""
        weighed = [(len(one.best.ids) + one.best.ended, one.confidence or 0.0) for one in self._judged.sentences]
        tokens = sum(length for length, _ in weighed)
        return sum(length * confidence for length, confidence in weighed) / tokens if tokens else 1.0

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the translation, each with the chance that it stands in a reference."""
        return tuple(
            word.moved(sentence.target_start) for sentence in self._judged.sentences for word in sentence.words or ()
        )

    @cached_property
    def _judged(self) -> "Translation":
        asked = any(sentence.confidence is None for sentence in self.sentences)
        return self.annotator.with_confidence([self])[0] if asked else self

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
            "unknown": self.unknown,
            "alternatives": self.alternatives if self.sentences else [],
            "sentences": [self._sentence_json(sentence) for sentence in self.sentences],
        }

    def _sentence_json(self, sentence: Sentence) -> dict[str, Any]:
        names = self.annotator.token_names(sentence.best) if sentence.best.token_log_probs else []
        tokens = zip(names, sentence.best.token_log_probs, strict=True)
        told: dict[str, Any] = {
            "source": _bytes(self.source, sentence.source_start, sentence.source),
            "target": _bytes(self.text, sentence.target_start, sentence.text),
            "log_prob": sentence.best.log_prob,
            "score": sentence.best.score,
            "alternatives": [
                {"translation": text, "log_prob": h.log_prob, "score": h.score}
                for text, h in zip(sentence.alternatives, sentence.hypotheses, strict=True)
            ],
            "tokens": [{"token": token, "log_prob": log_prob} for token, log_prob in tokens],
        }
        if sentence.alignment is not None:
            told["alignment"] = [
                {
                    "source": _bytes(self.source, sentence.source_start + link.source.start, link.source.text),
                    "target": _bytes(self.text, sentence.target_start + link.target.start, link.target.text),
                    "weight": link.weight,
                }
                for link in sentence.alignment
            ]
        if sentence.confidence is not None:
            told["confidence"] = sentence.confidence
            told["words"] = self.words_json([word.moved(sentence.target_start) for word in sentence.words or ()])
        return told

    def words_json(self, words: Iterable[Word]) -> list[dict[str, Any]]:
        """Words of the translation with their confidence, for a machine to read."""
        return [
            {"text": word.text, "bytes": _bytes(self.text, word.start, word.text), "confidence": word.confidence}
            for word in words
        ]

    def look(self, sentence: int = 0) -> Any:
        """Look inside the translation of one sentence: every number on the way, computed again by `glass/`."""
        return self.annotator.look(self.annotator.folder, self, sentence)


@dataclass(frozen=True)
class Scored:
    """A given translation, token by token: the end token comes last."""

    tokens: tuple[str, ...]
    log_probs: tuple[float, ...]

    @property
    def log_prob(self) -> float:
        return sum(self.log_probs)


def put_back(
    text: str, found: Iterable[tuple[int, Sequence[Sentence]]], n: int = 0
) -> tuple[str, tuple[Sentence, ...]]:
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
            stays = start == sentence.source_start and length == sentence.target_start
            placed.append(sentence if stays else sentence._replace(source_start=start, target_start=length))
            length += len(translation)
            at = start + len(sentence.source)
    return "".join((*written, text[at:])), tuple(placed)


def _bytes(text: str, start: int, part: str) -> list[int]:
    first = len(text[:start].encode())
    return [first, first + len(part.encode())]
