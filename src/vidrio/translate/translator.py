"""Text → text: sentences, protect, mask, tokens, search, unmask, in at most three rounds.

    translator = Translator.load("en-es")          # a name, a folder, or nothing: the default model
    translator.translate("Hello world").text       # "Hola mundo"
    for translation in translator.stream(lines):   # any number of lines, in order, in constant memory
        …

The rounds: as usual; then, where something was lost, with names as they stand; then in parts, the words around what
must come through whole, which is copied. A translation that repeats itself is searched for once more.

Whatever stands between sentences (spaces, line ends, tabs) comes back byte for byte; an empty text is an empty
translation; a sentence that is too long for the model is translated in parts. Nothing is ever cut off.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple, overload

from vidrio.engine.engine import Engine, Stopped
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Hypothesis, Ids, Options, default_options
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import About, read_config
from vidrio.text.mask import Masked, Masker
from vidrio.text.pattern import pattern
from vidrio.text.protect import Protected, came_through, protected
from vidrio.text.sentences import Splitter, around, split
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.stream import REMEMBERED, in_chunks, in_order
from vidrio.translate.translation import Details, Link, Pieces, Sentence, Translation, fitted, put_back

NO_REPEAT = 3  # tokens that may not come a second time, where a translation repeated itself
AGAIN = pattern(r"(.{1,8}?)\1{3}", re.DOTALL)  # a few tokens four times, one after the other; a character is a token
LONGEST = 128  # tokens in a sentence; training sees few that are longer, and learns to translate them badly


class NoTranslator(ModelError):
    """The model is a classifier, or one that writes on (answers.py)."""


class Translator:
    """A model that translates. Safe to use from many threads."""

    def __init__(
        self, folder: Path, config: ModelConfig, about: About, tokenizers: tuple[Tokenizer, Tokenizer], engine: Engine
    ) -> None:
        self.folder, self.config, self.about, self.engine = folder, config, about, engine
        self.options = default_options(config)
        self._source, self._target = tokenizers
        self._masker = Masker(self._source, about.symbols)
        self._close = config.source_close
        self._rounds = Rounds(self._masker, *tokenizers, self._close, engine, self.options)
        longest = max(1, min(LONGEST, config.max_positions - len(self._close)))
        self._splitter = Splitter(self._source, longest)

    @staticmethod
    def load(name: str | Path | None = None, workers: int | None = None) -> "Translator":
        """A model by name or folder; `workers` threads work at the same time, by default one for each core."""
        folder = find(name)
        config, about = read_config(folder)
        if config.shape != "encoder-decoder":
            raise NoTranslator(
                f"{folder} does not translate",
                found=f"its shape is {config.shape!r}",
                do="use vidrio translate or vidrio look, which know such models; or another model",
            )
        engine = Engine.load(folder, config, workers=workers or cores())
        return Translator(folder, config, about, read_tokenizers(folder, config), engine)

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: str, options: Options | None = None, stopped: Stopped = None
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Sequence[str], options: Options | None = None, stopped: Stopped = None
    ) -> list[Translation]: ...

    def translate(
        self, text: str | Sequence[str], options: Options | None = None, stopped: Stopped = None
    ) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are the model's own unless given. When `stopped` says that
        nobody wants them any more, it ends in a CancelledError."""
        texts = [text] if isinstance(text, str) else text
        found = self._translate(texts, options or self.options, {}, stopped)
        return found[0] if isinstance(text, str) else found

    def stream(self, texts: Iterable[str], options: Options | None = None) -> Iterator[Translation]:
        """A translation for each text, in order; texts are read as needed, and answered soon if they come slowly."""
        if isinstance(texts, str):
            raise InputError(
                "a stream is of many texts", found="one text", do="translate(text), or stream(text.splitlines())"
            )
        known: dict[str, Pieces] = {}
        chunks = in_chunks(iter(texts))
        for translations in in_order(
            chunks, lambda chunk, stopped: self._translate(chunk, options or self.options, known, stopped)
        ):
            yield from translations

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, ...]]:
        """How likely the model finds given translations: the log-probability of each token, and of the end token. Each
        pair is one sentence, whatever it holds."""
        found = self.engine.forced([self._pair_ids(*pair) for pair in pairs])
        return list(map(tuple, found))

    def fits(self, source: str, target: str) -> bool:
        """Whether a pair can be scored as one sentence: there is something to read, and it is not too long."""
        source_ids, target_ids = self._pair_ids(source, target)
        there = len(source_ids) > len(self._close)
        return there and max(len(source_ids), len(target_ids) + 1) <= self.config.max_positions

    def details(self, sentence: Sentence) -> Details:
        """Its alignment, words and tokens; for this NumPy is imported."""
        from vidrio.translate.alignment import confident_words, links, source_tokens, target_tokens

        best = sentence.best
        source = source_tokens(sentence.masked, self._source)
        target = target_tokens(best.ids, sentence.masked, self._target, sentence.text)
        found = links((sentence.source, source), (sentence.text, target), best.attention)
        words = confident_words(sentence.text, target, best.token_log_probs)
        at_source, at_target = sentence.source_start, sentence.target_start
        return Details(
            tuple(Link(one.moved(at_source), other.moved(at_target), weight) for one, other, weight in found),
            tuple(word.moved(at_target) for word in words),
            tuple(map(self._target.token, (*best.ids, *[self.config.special.end] * best.ended))),
        )

    def _pair_ids(self, source: str, target: str) -> tuple[Ids, Ids]:
        return (*self._source.encode(source), *self._close), tuple(self._target.encode(target))

    def _translate(
        self, texts: Sequence[str], options: Options, known: dict[str, Pieces], stopped: Stopped = None
    ) -> list[Translation]:
        """Each text; `known` are sentences that have been translated, and remembers these."""
        plans = []
        for text in texts:
            if stopped and stopped():
                raise CancelledError
            plans.append(self._sentences(text))
        sources = {source.text: source for plan in plans for _, source in plan}
        pieces_of = {sentence: there for sentence in sources if (there := known.get(sentence))}
        new = [source for sentence, source in sources.items() if sentence not in pieces_of]
        found = replace(self._rounds, options=self._searched(options), stopped=stopped).translate(new)
        for source, pieces in zip(new, found, strict=True):
            pieces_of[source.text] = known[source.text] = pieces
        for sentence in list(known)[:-REMEMBERED]:  # the oldest
            known.pop(sentence, None)
        return [
            Translation(text, *put_back(text, [(start, pieces_of[one.text]) for start, one in plan]), self)
            for text, plan in zip(texts, plans, strict=True)
        ]

    def _sentences(self, text: str) -> list[tuple[int, Protected]]:
        """What of a text is translated, each with the place where it begins."""
        source = protected(text if text.isascii() else valid(text))
        sentences = split(text, self.about.source_language)
        return [
            (start, source if (start, end) == (0, len(text)) else source.part(start, end))
            for start, end in self._splitter.parts(source, sentences)
        ]

    def _searched(self, options: Options) -> Options:
        return search_options(options, self.config, self._target.size)


@lru_cache
def search_options(options: Options, config: ModelConfig, tokens: int) -> Options:
    """The options as they are searched with: there is room for scoring, which adds the end token, and no row of the
    embedding without a token is chosen."""
    room = min(options.max_length, max(1, config.max_positions - 1))
    nameless = range(tokens, config.target_vocabulary)
    return replace(options, max_length=room, suppressed=(*options.suppressed, *nameless))


def cores() -> int:
    if sys.platform == "emscripten":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# --- rounds -----------------------------------------------------------------------------------------------------------


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

    def translate(self, sentences: Sequence[Protected]) -> list[Pieces]:
        """What becomes of each sentence."""
        done: dict[Protected, Pieces] = {}
        lost = self._round(dict.fromkeys(sentences), done, hide_names=True)
        if named := [masked.source for masked in lost if masked.named]:
            lost = [masked for masked in lost if not masked.named] + self._round(named, done, hide_names=False)
        if lost:
            done |= self._in_parts([masked.source for masked in lost])
        return [done[source] for source in sentences]

    def _round(
        self, sentences: Iterable[Protected], done: dict[Protected, Pieces], *, hide_names: bool
    ) -> list[Masked]:
        """Translate sentences; those of which something was lost come back, as they were read."""
        read = [self.masker.mask(source, hide_names=hide_names) for source in sentences]
        lost = []
        for masked, sentence in zip(read, self._attempt(read), strict=True):
            source = masked.source
            if sentence and (not source.spans or came_through(source, sentence.text)):
                done[source] = (sentence,)
            else:
                lost.append(masked)
        return lost

    def _in_parts(self, sentences: Sequence[Protected]) -> dict[Protected, Pieces]:
        """The words around all that must come through whole are translated; what stands between is copied."""
        places, parts = list[tuple[Protected, int]](), list[Masked]()
        for source in sentences:
            taken = sorted((*source.spans, *self.masker.unspellable(source)))
            for start, end in around(source.text, 0, len(source.text), taken):
                places.append((source, start))
                parts.append(self.masker.mask(source.part(start, end), hide_names=False))
        found: dict[Protected, list[tuple[int, Pieces]]] = {source: [] for source in sentences}
        for (source, start), sentence in zip(places, self._attempt(parts), strict=True):
            if sentence:
                texts = tuple(fitted(sentence.source, text) for text in sentence.alternatives)
                found[source].append((start, (sentence._replace(alternatives=texts),)))
        return {source: put_back(source.text, pieces)[1] for source, pieces in found.items()}

    def _attempt(self, read: Sequence[Masked]) -> list[Sentence | None]:
        """What the search finds, a second one where a translation repeats itself; None for a sentence of which a symbol
        was lost."""
        if self.stopped and self.stopped():
            raise CancelledError
        if not read:
            return []
        found = self._search(read, self.options)
        bad = [n for n, (ids, hypotheses, _) in enumerate(found) if repeats(ids, hypotheses[0].ids)]
        if bad and not self.options.no_repeat_ngram:
            stricter = replace(self.options, no_repeat_ngram=NO_REPEAT)
            for n, better in zip(bad, self._search([read[n] for n in bad], stricter), strict=True):
                found[n] = better
        return [self._sentence(*one) for one in zip(read, found, strict=True)]

    def _search(self, read: Sequence[Masked], options: Options) -> list[SearchResult]:
        given = self.source.encode_batch([masked.given for masked in read])
        sources = [(*ids, *self.close) for ids in given]
        found = self.engine.search(sources, options, self.stopped)
        decoded = iter(self.target.decode_batch([one.ids for hypotheses in found for one in hypotheses]))
        return [SearchResult(*one, [next(decoded) for _ in one[1]]) for one in zip(sources, found, strict=True)]

    def _sentence(self, masked: Masked, found: SearchResult) -> Sentence | None:
        """The sentence with its translations; None, if the best one has lost a symbol."""
        distinct: dict[str, Hypothesis] = {}
        for hypothesis, written in zip(found.hypotheses, found.texts, strict=True):
            text = masked.restore(written) if masked.symbols else written
            if text is not None:
                distinct.setdefault(text, hypothesis)
            elif not distinct:
                return None
        unknown: tuple[str, ...] = ()
        if self.source.special.unk in found.source:
            pieces = self.source.pieces(masked.given)
            unknown = tuple(masked.given[piece.start : piece.end] for piece in pieces if piece.unknown)
        return Sentence(
            masked.source.text, (*distinct,), (*distinct.values(),), found.source, masked, self.options, unknown
        )


def repeats(source: Ids, target: Ids) -> bool:
    """Whether the target says something again and again that the source does not. A model that meets what it has hardly
    learned (a single word, a line in capital letters, another language) may do so."""
    return AGAIN.search("".join(map(chr, target))) is not None and AGAIN.search("".join(map(chr, source))) is None
