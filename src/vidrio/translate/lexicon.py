"""Words that the model does not know, from a lexicon beside it: where it invents a word, or has no translation of one
that is no token, the lexicon has translations, and the model chooses.

A small model has seen a rare word too seldom to know it, and yet often enough for counting: *surname* is *apellido*,
and not *momento*. The word that goes is the one that the decoder wrote when it looked at it (alignment.py); what comes
is told by log p of the sentence + log p of the word (Arthur, Neubig and Nakamura 2016, "Incorporating Discrete
Translation Lexicons into Neural Machine Translation").

`lexicon.tsv` has source word, translation and probability on each line, `words.txt` a word of the target language;
source words and words in small letters, lines sorted by their bytes.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import log
from pathlib import Path
from typing import NamedTuple
from unicodedata import normalize

from vidrio.engine.engine import Engine
from vidrio.errors import ModelError, about_file
from vidrio.hypothesis import Hypothesis, score_of
from vidrio.model.files import write_atomically
from vidrio.text.pattern import pattern
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import Place, token_places
from vidrio.translate.translation import Link, Pieces, Sentence, Word

NAME, WORDS = "lexicon.tsv", "words.txt"
LARGEST = 1 << 26  # bytes
REMEMBERED = 1 << 14  # words that were asked for
LETTERS = pattern(r"[^\W\d_]{2,}")  # one letter alone is a sign
STEM, ENDING, LONGER = 4, 3, 5  # letters: a stem at least, an ending at most, and what another ending may differ by

SURE_ON_AVERAGE = -0.45  # log p of a token; a sentence of more than that is not looked through
SURE = 0.4  # probability of a translation that has to be there
MOST = 3  # translations that are tried in the place of an invented word
UNSURE = -1.25  # log p of a word, below which it may go
SHARE = 0.3  # of a word's attention, by which it translates another
ALIKE = 4  # letters at their beginnings that two forms of a word have in common; of short ones three

Entry = tuple[str, str, float]  # a word, its translation, with what probability


def words_of(text: str) -> set[str]:
    return set(LETTERS.findall(text.casefold()))


def write(model: Path, entries: Iterable[Entry]) -> None:
    write_sorted(model / NAME, (f"{word}\t{translation}\t{p:.2f}" for word, translation, p in entries))


def write_sorted(path: Path, lines: Iterable[str]) -> None:
    write_atomically(path, "".join(f"{line}\n" for line in sorted(lines, key=str.encode)).encode())


class SortedLines:
    """A file whose lines are sorted by their bytes: it is searched as it lies, and nothing is parsed."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __iter__(self) -> Iterator[str]:
        return (line for line in self._bytes.decode(errors="replace").split("\n") if line)

    def __contains__(self, line: str) -> bool:
        return next(self.beginning(line), None) == line

    def beginning(self, start: str) -> Iterator[str]:
        """The lines that begin with this."""
        wanted = start.encode()
        at = bisect_left(range(len(self._bytes)), wanted, key=self._line)
        while (line := self._line(at)).startswith(wanted) and at < len(self._bytes):
            yield line.decode(errors="replace")
            at = self._bytes.find(b"\n", at) + 1

    def _line(self, place: int) -> bytes:
        """The line that a place lies in."""
        start, end = self._bytes.rfind(b"\n", 0, place) + 1, self._bytes.find(b"\n", place)
        return self._bytes[start:end]

    @cached_property
    def _bytes(self) -> bytes:
        with about_file(self._path):
            if self._path.stat().st_size > LARGEST:
                raise ModelError(f"{self._path} is too large", found=f"more than {LARGEST:,} bytes", do="shorten it")
            data = self._path.read_bytes()
        return data if data.endswith(b"\n") else data + b"\n"


class Lexicon:
    """Which words translate which, and which words there are, as far as files in a model's folder say."""

    def __init__(self, model: Path) -> None:
        words = model / WORDS
        self.words = SortedLines(words) if words.is_file() else None
        self._lines = SortedLines(model / NAME)
        self.translations = lru_cache(REMEMBERED)(self._translations)

    @staticmethod
    def of(model: Path) -> "Lexicon | None":
        """A model's, if it has one."""
        return Lexicon(model) if (model / NAME).is_file() else None

    def __iter__(self) -> Iterator[Entry]:
        return (one for line in self._lines if (one := entry(line)))

    def _translations(self, word: str) -> dict[str, float]:
        found = map(entry, self._lines.beginning(f"{word.casefold()}\t"))
        return {one[1]: one[2] for one in found if one}

    def of_its_kind(self, word: str) -> set[str]:
        """The translations of all words that begin as this one does and may be other forms of it."""
        word = word.casefold()
        entries = map(entry, self._lines.beginning(word[: max(STEM, len(word) - ENDING)]))
        return {one[1] for one in entries if one and abs(len(one[0]) - len(word)) <= LONGER}

    def invented(self, source: str, translation: str) -> set[str]:
        """The words of a translation that are none, and do not stand in its source either."""
        words = self.words
        if words is None:
            return set()
        return {word for word in words_of(translation) - words_of(source) if word not in words}


def entry(line: str) -> Entry | None:
    """What a line says; a damaged one says nothing."""
    match line.split("\t"):
        case [word, translation, number] if translation:
            try:
                probability = float(number)
            except ValueError:
                return None
            return (word, translation, probability) if 0 < probability <= 1 else None
    return None


class Gap(NamedTuple):
    """A word of what was written, and what may stand in its place, each with its probability."""

    start: int
    end: int
    log_prob: float
    source: Word  # that the decoder looked at
    candidates: dict[str, float]


@dataclass(frozen=True)
class UnknownWords:
    """Finds words that the model does not know, and puts others in their place."""

    lexicon: Lexicon
    source: Tokenizer
    target: Tokenizer
    engine: Engine

    def put_right(self, found: list[Pieces]) -> list[Pieces]:
        """Those sentences of which the model is unsure in words that exist and translate theirs; others as they are."""
        gaps_of: dict[int, tuple[Sentence, list[Gap]]] = {}
        for number, pieces in enumerate(found):
            best = pieces[0].hypotheses[0] if len(pieces) == 1 else None
            is_unsure = best and best.log_prob < SURE_ON_AVERAGE * len(best.token_log_probs)
            if is_unsure and (gaps := self._gaps(pieces[0])):
                gaps_of[number] = pieces[0], gaps
        changed = dict(enumerate(found))
        for number, hypothesis in (self._filled(gaps_of) if gaps_of else {}).items():
            changed[number] = (self._with(found[number][0], hypothesis),)
        return list(changed.values())

    def _gaps(self, sentence: Sentence) -> list[Gap]:
        """The words of what the model wrote that are to go, of each source word the least likely one."""
        given, ids = sentence.given, sentence.best.ids
        read = f"{sentence.source} {given}"
        is_spelled = not self.target.within_words.isdisjoint(ids)  # some word is not a token
        invented = self.lexicon.invented(read, sentence.text) if is_spelled else set()
        missing = self._missing(given, sentence.text)
        if not missing and not invented:
            return []
        from vidrio.translate.alignment import links  # needs NumPy

        wrote = token_places(ids, self.target.decode)
        places = [(piece.start, piece.end) for piece in self.source.pieces(given)]
        least: dict[Word, Gap] = {}
        for link in links((given, places), (self.target.decode(ids), wrote), sentence.best.attention):
            word, start, end, _ = link.target
            tokens = zip(wrote, sentence.best.token_log_probs, strict=False)
            log_prob = sum(p for (first, last), p in tokens if first < end and last > start)
            is_missing = (link.source.start, link.source.end) in missing and word.casefold() not in words_of(read)
            if word.casefold() in invented or (is_missing and self._may_go(link)):
                candidates = self._candidates(link, MOST if word.casefold() in invented else 1)
                gap = Gap(start, end, log_prob, link.source, candidates)
                if candidates and log_prob < min(UNSURE, least.get(link.source, gap).log_prob + 1e-9):
                    least[link.source] = gap
        return sorted(least.values())

    def _missing(self, given: str, translation: str) -> set[Place]:
        """Words that are no tokens, of which the lexicon is sure and the translation has no translation."""
        several = [word for word in LETTERS.finditer(given) if self.source.count(word[0]) > 1]
        known = {word.span(): self.lexicon.translations(word[0]) for word in several}
        sure = {place: found for place, found in known.items() if max(found.values(), default=0) >= SURE}
        there = plain(words_of(translation)) if sure else set()
        return {place for place, found in sure.items() if not any_alike(plain(found), there)}

    def _may_go(self, link: Link) -> bool:
        """Whether a word clearly stands where the missing one should, and is not of another form of that."""
        if link.weight < SHARE or not LETTERS.fullmatch(link.target.text):
            return False
        return plain([link.target.text]).isdisjoint(plain(self.lexicon.of_its_kind(link.source.text)))

    def _candidates(self, link: Link, most: int) -> dict[str, float]:
        found = sorted(self.lexicon.translations(link.source.text).items(), key=lambda one: -one[1])[:most]
        candidates = {written_like(link.target.text, translation): p for translation, p in reversed(found)}
        if link.source.text.islower() and link.target.text.islower():
            candidates = {translation.lower(): p for translation, p in reversed(found)} | candidates
        return candidates

    def _filled(self, gaps_of: Mapping[int, tuple[Sentence, list[Gap]]]) -> dict[int, Hypothesis]:
        """What was written with the best words in its gaps: each gap by itself, with what is the sentence likeliest?"""
        tried = [(n, gap, word) for n, (_, gaps) in gaps_of.items() for gap in gaps for word in gap.candidates]
        scored = self._hypotheses([(gaps_of[n][0], [(gap, word)]) for n, gap, word in tried])
        best: dict[int, dict[int, tuple[float, Gap, str]]] = {n: {} for n in gaps_of}
        for (n, gap, word), hypothesis in zip(tried, scored, strict=True):
            likely = hypothesis.log_prob + log(gap.candidates[word])
            if likely > best[n].get(gap.start, (-float("inf"),))[0]:
                best[n][gap.start] = likely, gap, word
        changes = [(gaps_of[n][0], [(gap, word) for _, gap, word in of.values()]) for n, of in best.items()]
        filled = self._hypotheses(changes)
        return dict(zip(best, filled, strict=True))

    def _hypotheses(self, changes: Sequence[tuple[Sentence, list[tuple[Gap, str]]]]) -> list[Hypothesis]:
        """What was written with its gaps filled, as likely as the model finds it; as it was, if that is too long."""
        pairs = []
        for sentence, filled in changes:
            text = self.target.decode(sentence.best.ids)
            for gap, word in sorted(filled, reverse=True):
                text = f"{text[: gap.start]}{word}{text[gap.end :]}"
            ids = tuple(self.target.encode(text))
            pairs.append((sentence.source_ids, ids if len(ids) < sentence.options.max_length else sentence.best.ids))
        hypotheses = []
        for (_, ids), (sentence, _), (log_probs, attention) in zip(
            pairs, changes, self.engine.forced(pairs), strict=True
        ):
            log_prob = sum(log_probs)
            score = score_of(log_prob, len(log_probs), sentence.options)
            hypotheses.append(Hypothesis(ids, log_prob, score, tuple(log_probs), True, attention))
        return hypotheses

    def _with(self, sentence: Sentence, hypothesis: Hypothesis) -> Sentence:
        """The sentence with another best hypothesis, if everything came through."""
        text = sentence.masked.restore(self.target.decode(hypothesis.ids))
        if text is None or text == sentence.text:
            return sentence
        others = dict(zip(sentence.alternatives, sentence.hypotheses, strict=True))
        texts, hypotheses = zip(*[*({text: hypothesis} | others).items()][: sentence.options.n_best], strict=True)
        return sentence._replace(alternatives=texts, hypotheses=hypotheses, passed_over=sentence.text)


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
