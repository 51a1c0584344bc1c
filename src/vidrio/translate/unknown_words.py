"""Words that the model does not know: where it invents one, or what it writes has no translation of a word that it has
no token for, the lexicon that lies with it (text/reading/lexicon.py) has translations, and the model chooses.

A small model has seen a rare word too seldom to know it, and yet often enough for counting: *surname* is *apellido*,
and not *momento*. The word that goes is the one that the decoder wrote when it looked at it (alignment.py); what comes,
model and lexicon say together, by log p of the sentence + log p of the word (Arthur, Neubig and Nakamura 2016,
"Incorporating Discrete Translation Lexicons into Neural Machine Translation", join the two in every step of a search).
The result is a hypothesis like any other, and less likely than the one before: the model knows no better.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from math import log
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from vidrio.hypothesis import Hypothesis, Ids, score_of
from vidrio.text.reading.lexicon import Lexicon
from vidrio.text.reading.prepared import reveal
from vidrio.text.reading.word_list import LETTERS, WordList, words_of
from vidrio.text.reading.words import Place, token_places
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.engines import Engine
from vidrio.translate.translation import Link, Sentence, Word

if TYPE_CHECKING:
    import numpy as np

SURE_ON_AVERAGE = -0.45  # log p of a token; a sentence of more than that is not looked through (translator.py)
SURE = 0.4  # probability of a translation that has to be there
MOST = 3  # translations that are tried in the place of an invented word
UNSURE = -1.25  # log p of a word, below which it may go
SHARE = 0.3  # of a word's attention, that tells what it translates
ALIKE = 4  # letters at their beginnings, that two forms of a word have in common; of short ones three


class Doubt(NamedTuple):
    """A sentence with words that the model does not know, and what the model wrote."""

    sentence: Sentence
    written: str
    missing: set[Place]  # words of what was given
    invented: set[str]
    copied: set[str]  # what stands in the source, too, stays


class Gap(NamedTuple):
    """A word of what was written, and what may stand in its place, each with its probability."""

    start: int
    end: int
    tokens: slice  # which it has
    source: Word  # that the decoder looked at
    candidates: dict[str, float]


Filled = list[tuple[Gap, str]]  # gaps with words, from left to right


@dataclass(frozen=True)
class UnknownWords:
    """Finds them, and puts others in their place."""

    lexicon: Lexicon
    words: WordList | None  # of the language that it writes
    source: Tokenizer
    target: Tokenizer
    engine: Engine
    looked_at: "Mapping[tuple[Ids, Ids], np.ndarray]"  # what searches noted: all but the first row

    def put_right(self, sentences: Mapping[int, Sentence]) -> dict[int, Sentence]:
        """Those that change, each by its number, in words that exist and translate theirs."""
        doubts = {at: doubt for at, sentence in sentences.items() if (doubt := self._doubt(sentence))}
        if not doubts:
            return {}
        found = zip(doubts.items(), self._gaps(list(doubts.values())), strict=True)
        changed = {at: (doubt, gaps) for (at, doubt), gaps in found if gaps}
        hypotheses = self._filled(list(changed.values()))
        return {at: self._with(sentences[at], best) for at, best in zip(changed, hypotheses, strict=True)}

    def _doubt(self, sentence: Sentence) -> Doubt | None:
        text, given, ids = sentence.alternatives[0], sentence.prepared.given, sentence.hypotheses[0].ids
        read = f"{sentence.source} {given}"
        missing, invented = self._missing(given, text), set[str]()
        if self.words is not None and not self.target.within_words.isdisjoint(ids):
            invented = self.words.invented(read, text)
        if not missing and not invented:
            return None
        return Doubt(sentence, self.target.decode(ids), missing, invented, words_of(read))

    def _missing(self, given: str, translation: str) -> set[Place]:
        """Words that are no tokens, and of which the translation has no translation."""
        several = [word for word in LETTERS.finditer(given) if self.source.count(word[0]) > 1]
        known = {word.span(): self.lexicon.translations(word[0]) for word in several}
        sure = {place: found for place, found in known.items() if max(found.values(), default=0) >= SURE}
        there = plain(words_of(translation)) if sure else set()
        return {place for place, found in sure.items() if not any_alike(plain(found), there)}

    def _gaps(self, doubts: Sequence[Doubt]) -> list[list[Gap]]:
        """The words of each that are to go, from left to right: those that the model has not found likely itself."""
        from vidrio.translate.alignment import links  # needs NumPy

        scored = self.engine.score([(doubt.sentence.source_ids, doubt.sentence.best.ids) for doubt in doubts])
        gaps = []
        for doubt, log_probs, attention_TS in zip(doubts, scored, self._attention(doubts, scored), strict=True):
            given, ids = doubt.sentence.given, doubt.sentence.best.ids
            read = [(piece.start, piece.end) for piece in self.source.pieces(given)]
            wrote = token_places(ids, self.target.decode)
            aligned = links((given, read), (doubt.written, wrote), attention_TS)
            found = [gap for link in aligned if (gap := self._gap(doubt, wrote, link))]
            gaps.append(unlikely(found, log_probs))
        return gaps

    def _attention(self, doubts: Sequence[Doubt], scored: Sequence[Sequence[float]]) -> "list[np.ndarray]":
        """What the decoder looked at for each token: as the search noted it; asked now, where it did not, and for the
        first token, if the first word may go."""
        import numpy as np

        found = [self.looked_at.get((doubt.sentence.source_ids, doubt.sentence.best.ids)) for doubt in doubts]
        asked: dict[int, Ids] = {}
        for at, (doubt, log_probs) in enumerate(zip(doubts, scored, strict=True)):
            ids = doubt.sentence.best.ids
            word = 1 + sum(1 for _ in takewhile(self.target.within_words.__contains__, ids[1:]))
            if found[at] is None:
                asked[at] = ids
            elif sum(log_probs[:word]) < UNSURE:
                asked[at] = ids[:1]
        rows = self.engine.attend([(doubts[at].sentence.source_ids, ids) for at, ids in asked.items()])
        for at, attention_TS in zip(asked, rows, strict=True):
            noted = found[at]
            found[at] = attention_TS if noted is None else np.concatenate([attention_TS, noted[1:]])
        return [attention_TS for attention_TS in found if attention_TS is not None]

    def _gap(self, doubt: Doubt, wrote: Sequence[Place], link: Link) -> Gap | None:
        source, (word, start, end, *_) = link.source, link.target
        invented = word.casefold() in doubt.invented
        if not invented:
            missing = (source.start, source.end) in doubt.missing and link.weight >= SHARE and LETTERS.fullmatch(word)
            if not missing or word.casefold() in doubt.copied:
                return None
            if not plain([word]).isdisjoint(plain(self.lexicon.of_its_kind(source.text))):  # another form has this one
                return None
        translations = sorted(self.lexicon.translations(source.text).items(), key=lambda one: -one[1])
        candidates: dict[str, float] = {}
        for translation, probability in translations[: MOST if invented else 1]:
            candidates.setdefault(written_like(word, translation), probability)
            if source.text.islower() and word.islower():
                candidates.setdefault(translation.lower(), probability)
        tokens = [number for number, token in enumerate(wrote) if token[0] < end and token[1] > start]
        return Gap(start, end, slice(tokens[0], tokens[-1] + 1), source, candidates) if candidates else None

    def _filled(self, doubts: Sequence[tuple[Doubt, list[Gap]]]) -> list[Hypothesis]:
        """What was written with the best words in its gaps: each gap by itself, with what is the sentence likeliest?"""
        several = [(doubt, gap) for doubt, gaps in doubts for gap in gaps if len(gap.candidates) > 1]
        tried = [(doubt, gap, word) for doubt, gap in several for word in gap.candidates]
        found = self._hypotheses([(doubt, [(gap, word)]) for doubt, gap, word in tried])
        known = {(id(gap), word): one for (_, gap, word), one in zip(tried, found, strict=True)}

        def best(gap: Gap) -> str:
            if len(gap.candidates) == 1:
                return next(iter(gap.candidates))
            return max(gap.candidates, key=lambda word: known[id(gap), word].log_prob + log(gap.candidates[word]))

        filled = [(doubt, [(gap, best(gap)) for gap in gaps]) for doubt, gaps in doubts]
        alone = [known.get((id(gaps[0][0]), gaps[0][1])) if len(gaps) == 1 else None for _, gaps in filled]
        rest = iter(self._hypotheses([change for change, there in zip(filled, alone, strict=True) if there is None]))
        return [there or next(rest) for there in alone]

    def _hypotheses(self, changes: Sequence[tuple[Doubt, Filled]]) -> list[Hypothesis]:
        """What was written with its gaps filled, as likely as the model finds it; as it was, if that is too long."""
        pairs = []
        for (sentence, text, *_), filled in changes:
            for gap, word in reversed(filled):
                text = f"{text[: gap.start]}{word}{text[gap.end :]}"
            ids = tuple(self.target.encode(text))
            pairs.append((sentence.source_ids, ids if len(ids) < sentence.options.max_length else sentence.best.ids))
        hypotheses = []
        for (doubt, _), (_, ids), log_probs in zip(changes, pairs, self.engine.score(pairs), strict=True):
            log_prob, options = sum(log_probs), doubt.sentence.options
            score = score_of(log_prob, len(log_probs), options)
            hypotheses.append(Hypothesis(ids, log_prob, score, (), ended=True))
        return hypotheses

    def _with(self, sentence: Sentence, hypothesis: Hypothesis) -> Sentence:
        """The sentence with another best hypothesis, if everything came through."""
        text = reveal(self.target.decode(hypothesis.ids), sentence.prepared)
        if text in (None, sentence.text):
            return sentence
        others = zip(sentence.alternatives, sentence.hypotheses, strict=True)
        kept = [(text, hypothesis), *(other for other in others if other[0] != text)][: sentence.options.n_best]
        texts, hypotheses = zip(*kept, strict=True)
        passed_over = sentence.passed_over or sentence.text
        return sentence._replace(alternatives=texts, hypotheses=hypotheses, passed_over=passed_over)


def unlikely(gaps: Sequence[Gap], log_probs: Sequence[float]) -> list[Gap]:
    """Of those that came of the same source word the least likely; none that the model has found likely."""
    of_gap = {gap.start: sum(log_probs[gap.tokens]) for gap in gaps}
    least = {gap.source: gap for gap in sorted(gaps, key=lambda gap: -of_gap[gap.start])}
    return [gap for gap in gaps if gap is least[gap.source] and of_gap[gap.start] < UNSURE]


def written_like(word: str, other: str) -> str:
    """The other with the capital letters of a word."""
    if word.isupper():
        return other.upper()
    return other[:1].upper() + other[1:] if word[:1].isupper() else other


def plain(words: Iterable[str]) -> set[str]:
    """In small letters, without accents."""
    return {"".join(filter(str.isalnum, normalize("NFD", word.casefold()))) for word in words}


def any_alike(some: set[str], others: set[str]) -> bool:
    """Whether a word of some may be a form of one of the others."""
    return any(alike(one, other) for one in some for other in others)


def alike(one: str, other: str) -> bool:
    if one[:ALIKE] == other[:ALIKE]:
        return True
    return one[: ALIKE - 1] == other[: ALIKE - 1] and min(len(one), len(other)) in (ALIKE - 1, ALIKE)
