"""Sentences → their translations: mask → tokens → search → unmask, in at most three rounds.

As usual; then, where something was lost, with names as they stand; then in parts, the words around what must come
through whole, which is copied. A translation that repeats itself is searched once more, one that does not come to an
end is made of its halves.
"""

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import NamedTuple

from vidrio.engine.engine import Engine
from vidrio.engine.workers import Stopped
from vidrio.hypothesis import Hypothesis, Ids, Options, SearchAll
from vidrio.text.mask import Masked, Masker
from vidrio.text.parts import CLOSING, Span, around, in_halves
from vidrio.text.protect import Protected, came_through
from vidrio.text.repetition import repeats
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.translation import Pieces, Sentence, put_back

NO_REPEAT = 3  # tokens that may not come a second time, where a translation repeated itself
GARBLED = "\ufffd"  # what bytes that make no character are decoded to


class Found(NamedTuple):
    """What the search found for a sentence."""

    masked: Masked
    ids: Ids  # of the source
    hypotheses: Sequence[Hypothesis]
    texts: Sequence[str]  # which these are
    options: Options


@dataclass(frozen=True, kw_only=True)
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

    def translate(self, sentences: Iterable[Protected], *, hide_names: bool = True) -> list[Pieces]:
        """What becomes of each sentence."""
        sentences = list(sentences)
        done: dict[Protected, Pieces] = {}
        todo = list(dict.fromkeys(sentences))
        lost: list[Protected] = []
        for names in (True, False) if hide_names else (False,):
            again: list[Protected] = []
            for found in self._searched(todo, self.options, hide_names=names):
                source = found.masked.source
                if pieces := self._translated(found, check=True):
                    done[source] = pieces
                else:
                    (again if found.masked.named else lost).append(source)
            todo = again
        done |= self._in_parts([*lost, *todo])
        done |= self._in_halves(source for source, pieces in done.items() if is_cut(pieces))
        return [done[source] for source in sentences]

    def _in_parts(self, sentences: Sequence[Protected]) -> dict[Protected, Pieces]:
        """The words around all that must come through whole; what stands between is copied."""
        parts_of: dict[Protected, list[Span]] = {}
        for source in sentences:
            taken = sorted((*source.spans, *self.masker.unspellable(source)))
            parts_of[source] = list(around(source.text, 0, len(source.text), taken))
        return self._joined(parts_of, self._parts)

    def _in_halves(self, sentences: Iterable[Protected]) -> dict[Protected, Pieces]:
        """Sentences whose translations did not come to an end."""
        halves_of = {source: halves for source in sentences if (halves := in_halves(source.text))}
        return self._joined(halves_of, replace(self, options=self._free, search=None).translate)

    def _parts(self, parts: Sequence[Protected]) -> list[Pieces]:
        return [self._translated(found, check=False) for found in self._searched(parts, self._free, hide_names=False)]

    @staticmethod
    def _joined(
        parts_of: dict[Protected, list[Span]], translate: Callable[[list[Protected]], list[Pieces]]
    ) -> dict[Protected, Pieces]:
        """Sentences made of the translations of their parts."""
        parts = [(source, start, source.part(start, end)) for source, spans in parts_of.items() for start, end in spans]
        found = iter(translate([part for _, _, part in parts]) if parts else ())
        fitting: dict[Protected, list[tuple[int, Pieces]]] = {source: [] for source in parts_of}
        for source, start, part in parts:
            fitting[source].append((start, fit_in(part.text, next(found))))
        return {source: put_back(source.text, of_it)[1] for source, of_it in fitting.items()}

    @property
    def _free(self) -> Options:
        """For a part of a sentence, which may begin as it likes."""
        return replace(self.options, prefix=()) if self.options.prefix else self.options

    def _searched(self, sentences: Sequence[Protected], options: Options, *, hide_names: bool) -> list[Found]:
        """What the search finds; a second search for what repeats itself, or is no text at all."""
        if self.stopped and self.stopped():
            raise CancelledError
        if not sentences:
            return []
        masked = [self.masker.mask(one, forms=not options.prefix, hide_names=hide_names) for one in sentences]
        ids = [(*given, *self.close) for given in self.source.encode_batch([one.given for one in masked])]
        if self.search and options is self.options:
            searched = self.search(ids, options)
        else:
            searched = self.engine.search(ids, options, self.stopped)
            bad = [n for n, (best, *_) in enumerate(searched) if self._is_bad(ids[n], best)]
            stricter = replace(
                options, no_repeat_ngram=NO_REPEAT, suppressed=(*options.suppressed, *self.target.byte_ids)
            )
            if bad and not options.no_repeat_ngram:
                found = self.engine.search([ids[n] for n in bad], stricter, self.stopped)
                searched = [*searched]
                for n, hypotheses in zip(bad, found, strict=True):
                    searched[n] = hypotheses
        decoded = iter(self.target.decode_batch([one.ids for hypotheses in searched for one in hypotheses]))
        texts = [[next(decoded) for _ in hypotheses] for hypotheses in searched]
        return [Found(*one, options) for one in zip(masked, ids, searched, texts, strict=True)]

    def _is_bad(self, source: Ids, best: Hypothesis) -> bool:
        """Whether a translation repeats itself, or has bytes that make no character."""
        if repeats(source, best.ids):
            return True
        return not self.target.byte_ids.isdisjoint(best.ids) and GARBLED in self.target.decode(best.ids)

    def _translated(self, found: Found, *, check: bool) -> Pieces:
        """The sentence with its translations; nothing, if what must come through did not."""
        masked, hypotheses = found.masked, found.hypotheses
        texts = [masked.restore(text) for text in found.texts]
        if texts[0] is None or (check and masked.source.spans and not came_through(masked.source, texts[0])):
            return ()
        distinct: dict[str, Hypothesis] = {}
        for text, hypothesis in zip(texts, hypotheses, strict=True):
            if text is not None:
                distinct.setdefault(text, hypothesis)
        unknown: tuple[str, ...] = ()
        if self.source.special.unk in found.ids:
            pieces = self.source.pieces(masked.given)
            unknown = tuple(masked.given[piece.start : piece.end] for piece in pieces if piece.unknown)
        best = tuple(distinct), tuple(distinct.values())
        return (Sentence(masked.source.text, *best, found.ids, masked, found.options, unknown),)


def is_cut(pieces: Pieces) -> bool:
    return len(pieces) == 1 and not pieces[0].best.ended


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
