"""Sentences → their translations: mask → tokens → search → unmask, in at most three rounds.

As usual; then, where something was lost, with names as they stand; then in parts, the words around what must come
through whole, which is copied. A translation that repeats itself is searched once more, one that does not come to an
end is made of its halves.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import NamedTuple

from vidrio.engine.engine import Engine
from vidrio.engine.workers import Stopped
from vidrio.hypothesis import Hypothesis, Ids, Options, SearchAll
from vidrio.text.mask import Masked, Masker
from vidrio.text.parts import CLOSING, Span, around, in_halves
from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected, came_through
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.translation import Pieces, Sentence, put_back

NO_REPEAT = 3  # tokens that may not come a second time, where a translation repeated itself
AGAIN = pattern(r"(.{1,8}?)\1{3}", re.DOTALL)  # a few tokens four times, one after the other; a character is a token
GARBLED = "\ufffd"  # what bytes that make no character are decoded to


class SearchResult(NamedTuple):
    """What the search found for a source."""

    source: Ids
    hypotheses: list[Hypothesis]
    texts: list[str]


@dataclass(frozen=True)
class Rounds:
    """Translates sentences, by a model and its options."""

    masker: Masker
    source: Tokenizer
    target: Tokenizer
    close: Ids  # what closes a source
    engine: Engine
    options: Options
    stopped: Stopped = None  # nobody wants the result any more
    search: SearchAll | None = None  # in place of the engine's, for whole sentences

    def translate(self, sentences: Sequence[Protected], *, hide_names: bool = True) -> list[Pieces]:
        """What becomes of each sentence."""
        done: dict[Protected, Pieces] = {}
        lost = self._round(dict.fromkeys(sentences), done, hide_names=hide_names)
        if named := [masked.source for masked in lost if masked.named]:
            lost = [masked for masked in lost if not masked.named] + self._round(named, done, hide_names=False)
        if lost:
            done |= self._in_parts([masked.source for masked in lost])
        if cut := [source for source, pieces in done.items() if len(pieces) == 1 and not pieces[0].hypotheses[0].ended]:
            done |= self._in_halves(cut)
        return [done[source] for source in sentences]

    def _round(
        self, sentences: Iterable[Protected], done: dict[Protected, Pieces], *, hide_names: bool
    ) -> list[Masked]:
        """Translate sentences; those of which something was lost come back, as they were read."""
        read = [self.masker.mask(source, hide_names=hide_names) for source in sentences]
        lost = []
        for masked, sentence in zip(read, self._attempt(read, self.options, self.search), strict=True):
            source = masked.source
            if sentence and (not source.spans or came_through(source, sentence.alternatives[0])):
                done[source] = (sentence,)
            else:
                lost.append(masked)
        return lost

    def _in_parts(self, sentences: Iterable[Protected]) -> dict[Protected, Pieces]:
        """The words around all that must come through whole; what stands between is copied."""
        parts_of: dict[Protected, list[Span]] = {}
        for source in sentences:
            taken = sorted((*source.spans, *self.masker.unspellable(source)))
            parts_of[source] = list(around(source.text, 0, len(source.text), taken))

        def translate(parts: Sequence[Protected]) -> list[Pieces]:
            read = [self.masker.mask(part, hide_names=False) for part in parts]
            return [(found,) if found else () for found in self._attempt(read, self._free)]

        return _joined(parts_of, translate)

    def _in_halves(self, sentences: Iterable[Protected]) -> dict[Protected, Pieces]:
        """Sentences whose translations did not come to an end."""
        halves_of = {source: halves for source in sentences if (halves := in_halves(source.text))}
        return _joined(halves_of, replace(self, options=self._free, search=None).translate)

    @property
    def _free(self) -> Options:
        """For a part of a sentence, which may begin as it likes."""
        return replace(self.options, prefix=()) if self.options.prefix else self.options

    def _attempt(
        self, read: Sequence[Masked], options: Options, search: SearchAll | None = None
    ) -> list[Sentence | None]:
        """What the search finds, a second one for what repeats itself, or is no text at all; None for a sentence of
        which a symbol was lost."""
        if self.stopped and self.stopped():
            raise CancelledError
        if not read:
            return []
        found = self._search(read, options, search)
        bad = [n for n, (ids, hypotheses, texts) in enumerate(found) if self._is_bad(ids, hypotheses[0].ids, texts[0])]
        if bad and not search and not options.no_repeat_ngram:
            suppressed = (*options.suppressed, *self.target.byte_ids)
            stricter = replace(options, no_repeat_ngram=NO_REPEAT, suppressed=suppressed)
            for n, better in zip(bad, self._search([read[n] for n in bad], stricter), strict=True):
                found[n] = better
        return [self._sentence(*one, options) for one in zip(read, found, strict=True)]

    def _search(self, read: Sequence[Masked], options: Options, search: SearchAll | None = None) -> list[SearchResult]:
        given = self.source.encode_batch([masked.given for masked in read])
        sources = [(*ids, *self.close) for ids in given]
        found = search(sources, options) if search else self.engine.search(sources, options, self.stopped)
        decoded = iter(self.target.decode_batch([one.ids for hypotheses in found for one in hypotheses]))
        return [SearchResult(*one, [next(decoded) for _ in one[1]]) for one in zip(sources, found, strict=True)]

    def _is_bad(self, source: Ids, target: Ids, text: str) -> bool:
        """Whether a translation repeats itself, or has bytes that make no character."""
        return repeats(source, target) or (GARBLED in text and not self.target.byte_ids.isdisjoint(target))

    def _sentence(self, masked: Masked, found: SearchResult, options: Options) -> Sentence | None:
        """The sentence with its translations; None, if the best one has lost a symbol."""
        distinct: dict[str, Hypothesis] = {}
        for hypothesis, written in zip(found.hypotheses, found.texts, strict=True):
            text = masked.restore(written)
            if text is not None:
                distinct.setdefault(text, hypothesis)
            elif not distinct:
                return None
        unknown: tuple[str, ...] = ()
        if self.source.special.unk in found.source:
            pieces = self.source.pieces(masked.given)
            unknown = tuple(masked.given[piece.start : piece.end] for piece in pieces if piece.unknown)
        return Sentence(masked.source.text, (*distinct,), (*distinct.values(),), found.source, masked, options, unknown)


def _joined(
    parts_of: dict[Protected, list[Span]], translate: Callable[[list[Protected]], list[Pieces]]
) -> dict[Protected, Pieces]:
    """Sentences made of the translations of their parts."""
    parts = [(source, start, source.part(start, end)) for source, spans in parts_of.items() for start, end in spans]
    fitting: dict[Protected, list[tuple[int, Pieces]]] = {source: [] for source in parts_of}
    for (source, start, part), pieces in zip(parts, translate([part for _, _, part in parts]), strict=True):
        fitting[source].append((start, fit_in(part.text, pieces)))
    return {source: put_back(source.text, of_it)[1] for source, of_it in fitting.items()}


def fit_in(part: str, pieces: Pieces) -> Pieces:
    """What a part of a sentence became, without what only a whole one has."""
    if len(pieces) != 1:  # parts of it had to be translated by themselves, and fit already
        return pieces
    texts = tuple(fitted(part, text) for text in pieces[0].alternatives)
    return (pieces[0]._replace(alternatives=texts),)


def fitted(part: str, translation: str) -> str:
    """The translation of a part of a sentence, which the model took for a whole one: without the full stop and the
    capital letter that only a whole one has. María is Mary: a name is told by how it begins."""
    if translation.endswith(".") and not translation.endswith("..") and part[-1:] not in CLOSING:
        translation = translation[:-1]
    first, second = translation[:1], translation[1:2]
    names = {word[0] for word in part.split() if word[0].isupper()}
    if part[:1].islower() and first.isupper() and not second.isupper() and first not in names:
        translation = first.lower() + translation[1:]
    return translation


def repeats(source: Ids, target: Ids) -> bool:
    """Whether the target says something again and again that the source does not. A model that meets what it has hardly
    learned (a single word, a line in capital letters, another language) may do so."""
    return AGAIN.search("".join(map(chr, target))) is not None and AGAIN.search("".join(map(chr, source))) is None


def streaming_search(engine: Engine, target: Tokenizer, masked: Masked, on_text: Callable[[str], bool]) -> SearchAll:
    """A search in the place of an engine's, for a sentence that somebody watches: greedy; `on_text` is called with each
    piece of its text as it is written, and returns whether to stop. What was shown stands, unless the sentence has to
    be tried again (a name or a number was lost, it repeated itself): then its translation is another."""
    ids: list[int] = []
    shown = ""

    def on_token(token: int) -> bool:
        nonlocal shown
        ids.append(token)
        text = masked.unmasked(target.decode(ids))
        if GARBLED in text or not text.startswith(shown) or text == shown:
            return False
        piece, shown = text[len(shown) :], text
        return on_text(piece)

    def search(sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
        if ids or len(sources) > 1:  # the first one only is watched
            return engine.search(sources, options)
        source = tuple(sources[0])
        best = engine.watch(source, options, on_token)
        if best.ended and not repeats(source, best.ids):
            return [[best]]
        return engine.search(sources, replace(options, no_repeat_ngram=NO_REPEAT))

    return search
