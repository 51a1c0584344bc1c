"""The result of a translation: the text, its sentences with their positions, and the probability of each token."""

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from vidrio.errors import InputError
from vidrio.hypothesis import Hypothesis, Options
from vidrio.text.lexicon import NONE, Lexicon, folded
from vidrio.text.mask import Masked
from vidrio.text.sentences import CLOSING
from vidrio.text.words import Place, words


class Word(NamedTuple):
    """A word and its position, in characters."""

    text: str
    start: int
    end: int
    confidence: float | None = None  #: the mean probability of its tokens; only for words of a translation


class Link(NamedTuple):
    """A word of the translation and the source word that it is aligned with."""

    source: Word
    target: Word
    weight: float  #: the share of the target word's attention that the source word gets, from 0 to 1

    def __str__(self) -> str:
        return f"{self.source.text} → {self.target.text} {self.weight:.2f}"


class Details(NamedTuple):
    """Data computed for a sentence on first use. Positions refer to the whole text and the whole translation."""

    alignment: tuple[Link, ...]
    words: tuple[Word, ...]  # the words of the translation that contain a letter or a digit
    tokens: tuple[str, ...]


class FactWarning(NamedTuple):
    """A fact that is missing from the source or the translation, or that differs between them."""

    kind: str
    source: str  #: empty if only the translation states the fact
    target: str  #: empty if the translation lacks the fact

    def __str__(self) -> str:
        """Return the reason for the doubt."""
        if self.source and self.target:
            return f"the source says {self.source}, the translation {self.target}"
        return f"the translation lacks {self.source}" if self.source else f"the source lacks {self.target}"


class Sentence(NamedTuple):
    """A sentence, or a part of a long sentence, with its translations."""

    source: str
    alternatives: tuple[str, ...]  #: the texts of the hypotheses, in the same order
    hypotheses: tuple[Hypothesis, ...]  #: best first
    masked: Masked  #: the sentence and the model's input for it
    options: Options  #: the options of the search that found the translations
    warnings: tuple["FactWarning", ...] = ()  #: facts that seem lost or invented
    source_start: int = 0  #: the position of the sentence in the text, in characters
    target_start: int = 0  #: the position of its translation in the whole translation, in characters

    @property
    def text(self) -> str:
        """The translation."""
        return self.alternatives[0]

    @property
    def best(self) -> Hypothesis:
        """The best hypothesis."""
        return self.hypotheses[0]

    @property
    def given(self) -> str:
        """The model's input: `source` on one line, with symbols as placeholders for text that is copied."""
        return self.masked.given


Pieces = tuple[Sentence, ...]  # a sentence, or its parts if it was translated in parts


@dataclass(frozen=True)
class Translation:
    """A text, its translation, and how it was produced. `str()` returns the translation."""

    source: str  #: the source text
    text: str  #: the translation
    sentences: Pieces  #: the translated sentences
    translator: Any = field(repr=False, compare=False)  # the Translator that made this translation

    def __str__(self) -> str:
        return self.text

    @property
    def score(self) -> float:
        """The mean log-probability of the tokens, or 0 if nothing was translated. A score of −1 corresponds to an
        average probability of 37 % per token."""
        return mean([log_prob for sentence in self.sentences for log_prob in sentence.best.token_log_probs], 0.0)

    @property
    def confidence(self) -> float:
        """The mean probability of the tokens, from 0 to 1, or 1 if nothing was translated."""
        return confidence(self.sentences)

    @property
    def unknown(self) -> list[str]:
        """The words of the text that are not in the model's vocabulary."""
        return list(dict.fromkeys(word for one in self.sentences for word in self.translator.unknown(one)))

    @property
    def warnings(self) -> list[FactWarning]:
        """Facts that seem lost or invented, and that a person should check."""
        return [warning for sentence in self.sentences for warning in sentence.warnings]

    @property
    def alignment(self) -> tuple[Link, ...]:
        """The words of the translation and the source words that they are aligned with."""
        return tuple(link for details in self.details for link in details.alignment)

    @property
    def words(self) -> tuple[Word, ...]:
        """The words of the translation, each with its confidence."""
        return tuple(word for details in self.details for word in details.words)

    @cached_property
    def details(self) -> list[Details]:
        """The alignment, words and tokens of each sentence."""
        found: list[Details] = self.translator.details(self.sentences)
        return found

    @property
    def alternatives(self) -> list[str]:
        """Translations of the whole text: one with the best translation of each sentence, one with the second-best, and
        so on, without duplicates. A sentence with fewer translations contributes its last one."""
        most = max((len(sentence.alternatives) for sentence in self.sentences), default=1)
        return list(dict.fromkeys(put_back(self.source, [(0, self.sentences)], n)[0] for n in range(most)))

    def without(self, word: str) -> "Translation":
        """Delete all occurrences of a word from the source, and translate the rest."""
        places = words(self.source)
        deleted = [(start, end) for start, end in places if self.source[start:end].casefold() == word.casefold()]
        if not deleted:
            raise InputError(
                f"there is no {word!r} in the source",
                found=", ".join(dict.fromkeys(self.source[start:end] for start, end in places)),
                do="name one of these words",
            )
        again: Translation = self.translator.translate(without_places(self.source, deleted))
        return again

    def to_json(self) -> dict[str, Any]:
        """Return the data that `vidrio translate --json` prints. Positions are byte offsets in UTF-8."""
        return {
            "text": self.source,
            "translation": self.text,
            "score": self.score,
            "confidence": self.confidence,
            "unknown": self.unknown,
            "alternatives": self.alternatives if self.sentences else [],
            "sentences": list(map(self._sentence_json, self.sentences, self.details)),
        }

    def _sentence_json(self, sentence: Sentence, details: Details) -> dict[str, Any]:
        best = sentence.best
        return {
            "source": place(self.source, sentence.source_start, sentence.source),
            "target": place(self.text, sentence.target_start, sentence.text),
            "log_prob": best.log_prob,
            "score": best.score,
            "confidence": confidence([sentence]),
            "warnings": [
                {
                    "kind": warning.kind,
                    "reason": str(warning),
                    "source": place_of(self.source, sentence.source_start, sentence.source, warning.source),
                    "target": place_of(self.text, sentence.target_start, sentence.text, warning.target),
                }
                for warning in sentence.warnings
            ],
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
                    "source": place(self.source, source.start, source.text),
                    "target": place(self.text, target.start, target.text),
                    "weight": weight,
                }
                for source, target, weight in details.alignment
            ],
            "words": [
                {"text": word.text, "bytes": place(self.text, word.start, word.text), "confidence": word.confidence}
                for word in details.words
            ],
        }


def place(text: str, start: int, part: str) -> list[int]:
    """Return the start and end of a part of a text, in bytes."""
    first = len(text[:start].encode())
    return [first, first + len(part.encode())]


def place_of(text: str, start: int, sentence: str, part: str) -> list[int] | None:
    """Return the start and end of a part of a sentence, in bytes of the whole text. If the part is not found, return
    the start and end of the sentence."""
    if not part:
        return None
    at = sentence.find(part)
    return place(text, start + at, part) if at >= 0 else place(text, start, sentence)


def confidence(sentences: Sequence[Sentence]) -> float:
    """Return the mean probability of all tokens, including end tokens, or 1 if there are none."""
    return mean([math.exp(log_prob) for sentence in sentences for log_prob in sentence.best.token_log_probs], 1.0)


def put_back(text: str, found: Iterable[tuple[int, Pieces]], n: int = 0) -> tuple[str, Pieces]:
    """Replace each sentence of a text with its n-th best translation (or its last, if it has fewer). Return the new
    text, and the sentences with their positions. `found` contains offsets with sentences relative to them."""
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


def without_places(text: str, places: Iterable[Place]) -> str:
    """Delete the words at these positions, each with one adjacent space."""
    for start, end in sorted(places, reverse=True):
        before, after = text[:start], text[end:]
        if before.endswith(" ") and not after[:1].isalnum():
            before = before[:-1]
        text = before + after if before else after.lstrip(" ")
    return text


def fitted(part: str, translation: str, lexicon: Lexicon = NONE) -> str:
    """Adapt the translation of a part of a sentence to its context: remove the full stop and the capital of a whole
    sentence, and add the part's final comma, semicolon or colon."""
    if translation.endswith(".") and not translation.endswith("..") and part[-1:] not in CLOSING:
        translation = translation[:-1]
    if part[-1:] in ",;:" and translation[-1:].isalnum():
        translation += part[-1]
    first, second = translation[:1], translation[1:2]
    names = {word[0] for word in part.split() if word[0].isupper()}
    word = folded(re.split(r"\W", translation, maxsplit=1)[0])
    is_name = first in names or (lexicon.capitals and (word in lexicon.calendar or word == "i"))
    if part[:1].islower() and first.isupper() and not second.isupper() and not is_name:
        translation = first.lower() + translation[1:]
    return translation


def mean(numbers: Sequence[float], of_none: float) -> float:
    return sum(numbers) / len(numbers) if numbers else of_none
