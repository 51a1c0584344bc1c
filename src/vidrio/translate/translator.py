"""Text → text: sentences, protect, mask, tokens, search, unmask.

    translator = Translator.load("en-es")          # a name, a folder, or nothing: the default model
    translator.translate("Hello world").text       # "Hola mundo"
    for translation in translator.stream(lines):   # any number of lines, in order, in constant memory
        …

Where a translation lost something, the sentence is translated in parts: the words around what must come through whole,
which is copied. A translation that repeats itself is searched for once more.

Whatever stands between sentences (spaces, line ends, tabs) comes back byte for byte; an empty text is an empty
translation; a sentence that is too long for the model is translated in parts. Nothing is ever cut off.
"""

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import overload

from vidrio.engine.engine import Engine, Stopped
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Ids, Options, default_options
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import About, read_config
from vidrio.text.mask import Masker
from vidrio.text.protect import Protected, came_through, protected
from vidrio.text.sentences import Splitter, around, split
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.stream import in_chunks, in_order
from vidrio.translate.translation import Details, Pieces, Sentence, Translation, fitted, put_back, sentence_of

NO_REPEAT = 3  # tokens that may not come a second time, where a translation repeated itself
AGAIN = r"(?s)(.{1,8}?)\1{3}"  # a few tokens four times, one after the other; a character is a token
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
        self.source, self.target = tokenizers
        self._masker = Masker(self.source, about.symbols)
        self._close = config.source_close
        longest = max(1, min(LONGEST, config.max_positions - len(self._close)))
        self._splitter = Splitter(self.source, longest)

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
        if isinstance(text, str):
            return self.translate([text], options, stopped)[0]
        plans = [self._sentences(one) for one in text]
        sentences = list(dict.fromkeys(sentence for plan in plans for _, sentence in plan))
        searched = search_options(options or self.options, self.config, self.target.size)
        pieces_of = self._translated(sentences, searched, stopped)
        return [
            Translation(one, *put_back(one, [(start, pieces_of[sentence]) for start, sentence in plan]), self)
            for one, plan in zip(text, plans, strict=True)
        ]

    def stream(self, texts: Iterable[str], options: Options | None = None) -> Iterator[Translation]:
        """A translation for each text, in order; texts are read as needed, and answered soon if they come slowly."""
        if isinstance(texts, str):
            raise InputError(
                "a stream is of many texts", found="one text", do="translate(text), or stream(text.splitlines())"
            )
        chunks = in_chunks(iter(texts))
        for translations in in_order(chunks, lambda chunk, stopped: self.translate(chunk, options, stopped)):
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

    def _pair_ids(self, source: str, target: str) -> tuple[Ids, Ids]:
        return (*self.source.encode(source), *self._close), tuple(self.target.encode(target))

    def details(self, sentences: Sequence[Sentence]) -> list[Details]:
        """Alignment, words and tokens of each; for this NumPy is imported."""
        from vidrio.translate.alignment import details

        return [details(sentence, self.source, self.target) for sentence in sentences]

    def unknown(self, sentence: Sentence) -> list[str]:
        """Its words that the vocabulary does not hold."""
        return [
            sentence.given[piece.start : piece.end] for piece in self.source.pieces(sentence.given) if piece.unknown
        ]

    def _sentences(self, text: str) -> list[tuple[int, Protected]]:
        """What of a text is translated, each with the place where it begins."""
        source = protected(text if text.isascii() else valid(text))
        sentences = split(text, self.about.source_language)
        return [
            (start, source if (start, end) == (0, len(text)) else source.part(start, end))
            for start, end in self._splitter.parts(source, sentences)
        ]

    def _translated(
        self, sentences: Sequence[Protected], options: Options, stopped: Stopped
    ) -> dict[Protected, Pieces]:
        """What becomes of each sentence: it is translated as a whole, or in parts if something of it was lost."""
        found: dict[Protected, Pieces] = {}
        for source, sentence in zip(sentences, self._attempt(sentences, options, stopped), strict=True):
            if sentence and (not source.spans or came_through(source, sentence.text)):
                found[source] = (sentence,)
        lost = [source for source in sentences if source not in found]
        return found | self._in_parts(lost, options, stopped) if lost else found

    def _in_parts(self, sentences: Sequence[Protected], options: Options, stopped: Stopped) -> dict[Protected, Pieces]:
        """The words around all that must come through whole are translated; what stands between is copied."""
        places, parts = list[tuple[Protected, int]](), list[Protected]()
        for source in sentences:
            taken = sorted((*source.spans, *self._masker.unspellable(source)))
            for start, end in around(source.text, 0, len(source.text), taken):
                places.append((source, start))
                parts.append(source.part(start, end))
        found: dict[Protected, list[tuple[int, Pieces]]] = {source: [] for source in sentences}
        attempts = self._attempt(parts, options, stopped, hide_names=False)
        for (source, start), sentence in zip(places, attempts, strict=True):
            if sentence:
                texts = tuple(fitted(sentence.source, text) for text in sentence.alternatives)
                found[source].append((start, (sentence._replace(alternatives=texts),)))
        return {source: put_back(source.text, pieces)[1] for source, pieces in found.items()}

    def _attempt(
        self, sentences: Sequence[Protected], options: Options, stopped: Stopped, *, hide_names: bool = True
    ) -> list[Sentence | None]:
        """What the search finds, a second one where a translation repeats itself; None for a sentence of which a symbol
        was lost."""
        if stopped and stopped():
            raise CancelledError
        if not sentences:
            return []
        read = [self._masker.mask(source, hide_names=hide_names) for source in sentences]
        sources = [(*ids, *self._close) for ids in self.source.encode_batch([masked.given for masked in read])]
        found = self.engine.search(sources, options, stopped)
        again = [n for n, ids in enumerate(sources) if repeats(ids, found[n][0].ids)]
        if again and not options.no_repeat_ngram:
            stricter = replace(options, no_repeat_ngram=NO_REPEAT)
            better = self.engine.search([sources[n] for n in again], stricter, stopped)
            for n, hypotheses in zip(again, better, strict=True):
                found[n] = hypotheses
        written = iter(self.target.decode_batch([one.ids for hypotheses in found for one in hypotheses]))
        return [
            sentence_of(masked, [(next(written), one) for one in hypotheses], options)
            for masked, hypotheses in zip(read, found, strict=True)
        ]


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


def repeats(source: Ids, target: Ids) -> bool:
    """Whether the target says something again and again that the source does not. A model that meets what it has hardly
    learned (a single word, a line in capital letters, another language) may do so."""
    found, there = (re.search(AGAIN, "".join(map(chr, ids))) for ids in (target, source))
    return bool(found and not there)
