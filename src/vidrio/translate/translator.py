"""Text → text, on one screen: sentences, translated in rounds (rounds.py), put back.

    translator = Translator.load("en-es")          # a name, a folder, or nothing: the default model
    translator.translate("Hello world").text       # "Hola mundo"
    for translation in translator.stream(lines):   # any number of lines, in order, in constant memory
        …

Whatever stands between sentences (spaces, line ends, tabs) comes back byte for byte; an empty text is an empty
translation; a sentence that is too long for the model is translated in parts. Nothing is ever cut off.
"""

import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import overload

from vidrio.engine.engine import Engine
from vidrio.engine.workers import Stopped
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Hypothesis, Ids, Options, default_options, diverging
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import About, read_config
from vidrio.text.mask import Masker
from vidrio.text.parts import Splitter
from vidrio.text.protect import Protected, protected
from vidrio.text.sentences import split
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.lexicon import Lexicon, UnknownWords
from vidrio.translate.rounds import Rounds, streaming_search
from vidrio.translate.stream import REMEMBERED, in_chunks, in_order
from vidrio.translate.translation import Details, Pieces, Sentence, Translation, put_back

LONGEST = 128  # tokens in a sentence; training sees few that are longer, and learns to translate them badly


class NoTranslator(ModelError):
    """The model is a classifier, or one that writes on (answers.py)."""


class Translator:
    """A model that translates. Safe to use from many threads."""

    def __init__(
        self, folder: Path, config: ModelConfig, about: About, tokenizers: tuple[Tokenizer, Tokenizer], engine: Engine
    ) -> None:
        self.folder, self.config, self.about, self.engine = folder, config, about, engine
        self.lexicon = Lexicon.of(folder)
        self.options = default_options(config)
        self._source, self._target = tokenizers
        self._masker = Masker(self._source, about.symbols, about.translated)
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

    def begin_with(self, text: str, start: str = "", count: int = 1, options: Options | None = None) -> Translation:
        """The translation of one sentence that begins with `start`; or, with a `count`, so many that begin with it and
        differ in the token after it, the likeliest of those tokens first."""
        options = options or self.options
        beam = 2 * count if count > 1 else 1  # some differ only in how a word is split
        options = replace(options, n_best=beam, beam=max(options.beam, beam), prefix=tuple(self._target.encode(start)))
        plan = self._sentences(text)
        if len(plan) != 1:
            found = f"{len(plan)} sentences (or parts of one that is too long)"
            raise InputError("only one sentence can be given a beginning", found=found, do="give one sentence")
        [(first, source)] = plan

        def differing(sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
            return [diverging(self.engine.search, ids, options) for ids in sources]

        rounds = replace(self._rounds, options=self._searched(options), search=differing if count > 1 else None)
        [pieces] = rounds.translate([source], hide_names=not start)
        pieces = tuple(
            one._replace(alternatives=one.alternatives[:count], hypotheses=one.hypotheses[:count]) for one in pieces
        )
        return Translation(text, *put_back(text, [(first, pieces)]), self)

    def live(self, text: str, on_text: Callable[[str], bool]) -> Iterator[str]:
        """The greedy translation, sentence by sentence, each with what follows it. `on_text` is called with the pieces
        of a sentence as they are written, and returns whether to stop: then it ends in a CancelledError."""
        plan, at = self._sentences(text), 0
        options = self._searched(replace(self.options, beam=1, n_best=1))
        for (start, source), end in zip(plan, [*(start for start, _ in plan[1:]), len(text)], strict=True):
            search = streaming_search(self.engine, self._target, self._masker.mask(source), on_text)
            [pieces] = replace(self._rounds, options=options, search=search).translate([source])
            yield put_back(text[at:end], [(start - at, pieces)])[0]
            at = end
        if text[at:]:
            yield text[at:]

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, ...]]:
        """How likely the model finds given translations: the log-probability of each token, and of the end token. Each
        pair is one sentence, whatever it holds."""
        found = self.engine.forced([self._pair_ids(*pair) for pair in pairs])
        return [tuple(log_probs) for log_probs, _ in found]

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
        return Details(
            links((sentence.source, source), (sentence.text, target), best.attention),
            confident_words(sentence.text, target, best.token_log_probs),
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
        if self.lexicon and options.beam > 1 and not options.prefix:
            found = UnknownWords(self.lexicon, self._source, self._target, self.engine).put_right(found)
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
    return (
        1
        if sys.platform == "emscripten"
        else len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count() or 1
    )
