"""Text → text, on one screen: sentences, translated in rounds (rounds.py), put back.

    translator = Translator.load("en-es")          # a name, a folder, or nothing: the default model
    translator.translate("Hello world").text       # "Hola mundo"
    for translation in translator.stream(lines):   # any number of lines, in order, in constant memory
        …

Whatever stands between sentences (spaces, line ends, tabs) comes back byte for byte; an empty text is an empty
translation; a sentence that is too long for the model is translated in parts. Nothing is ever cut off.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from vidrio.engine.engine import Engine, never
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Hypothesis, Ids, Options, SearchAll, default_options, diverging
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import About, read_config
from vidrio.text.mask import Masker
from vidrio.text.parts import Splitter
from vidrio.text.protect import Protected, protected
from vidrio.text.sentences import splitter
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.lexicon import Lexicon, UnknownWords
from vidrio.translate.live import Live
from vidrio.translate.rounds import Rounds
from vidrio.translate.stream import in_chunks, in_order, remembering
from vidrio.translate.translation import Details, Pieces, Scored, Sentence, Translation, put_back

LONGEST = 128  # tokens in a sentence; training sees few that are longer, and learns to translate them badly

Look = Callable[[Path, Translation, int], Any]  # a model's folder, a translation, which sentence → the run
Memory = dict[str, Pieces]


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
        self.look: Look = without_glass  # how `Translation.look` looks; given by vidrio.load
        self._workers: int | None = None
        self._is_loaded = False  # by `load`
        self._source, self._target = tokenizers
        self._masker = Masker(self._source, about.symbols, about.translated, about.source_language)
        self._close = config.source_close
        longest = max(1, min(LONGEST, config.max_positions - len(self._close)))
        self._splitter = Splitter(self._source, longest, splitter(about.source_language))

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
        translator = Translator(folder, config, about, read_tokenizers(folder, config), engine)
        translator._workers, translator._is_loaded = workers, True
        return translator

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its folder and options: it is opened anew where it is needed."""
        if not self._is_loaded:
            raise InputError(
                "this translator cannot be pickled",
                found="it was not opened by Translator.load or vidrio.load",
                do="pickle the name of its folder, and open it there",
            )
        return _reopened, (self.folder.absolute(), self._workers, self.options, self.look)

    def __copy__(self) -> "Translator":
        """Another with the same engine, tokenizers and folder, and options of its own."""
        copy = object.__new__(Translator)
        vars(copy).update(vars(self))
        return copy

    def __deepcopy__(self, memo: Any) -> "Translator":
        return self.__copy__()

    @overload
    def translate(  # type: ignore[overload-overlap]
        self, text: str, options: Options | None = None, stopped: Callable[[], bool] = never
    ) -> Translation: ...
    @overload
    def translate(
        self, text: Sequence[str], options: Options | None = None, stopped: Callable[[], bool] = never
    ) -> list[Translation]: ...

    def translate(
        self, text: str | Sequence[str], options: Options | None = None, stopped: Callable[[], bool] = never
    ) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are the model's own unless given. When `stopped` says that
        nobody wants them any more, it ends in a CancelledError."""
        texts = [text] if isinstance(text, str) else text
        found = self._translate(texts, options or self.options, {}, stopped)
        return found[0] if isinstance(text, str) else found

    async def translate_async(self, text: str, options: Options | None = None) -> Translation:
        """`translate` for an event loop: it works in another thread."""
        import asyncio

        return await asyncio.to_thread(self.translate, text, options)

    def stream(self, texts: Iterable[str], options: Options | None = None) -> Iterator[Translation]:
        """A translation for each text, in order; texts are read as needed, and answered soon if they come slowly."""
        if isinstance(texts, str):
            raise InputError(
                "a stream is of many texts", found="one text", do="translate(text), or stream(text.splitlines())"
            )
        for translations in self.stream_chunks(in_chunks(iter(texts)), options):
            yield from translations

    def stream_chunks(
        self, chunks: Iterable[Sequence[str]], options: Options | None = None
    ) -> Iterator[list[Translation]]:
        """The same for texts that come in chunks. An empty chunk means: no more for now, finish what there is."""
        memory: Memory = {}
        yield from in_order(
            chunks, lambda texts, stopped: self._translate(texts, options or self.options, memory, stopped)
        )

    def begin_with(self, text: str, start: str = "", count: int = 1, options: Options | None = None) -> Translation:
        """The translation of one sentence that begins with `start`; or, with a `count`, so many that begin with it and
        differ in the token after it, the likeliest of those tokens first."""
        options = options or self.options
        asked = 2 * count if count > 1 else 1  # some differ only in how a word is split
        options = replace(
            options, n_best=asked, beam=max(options.beam, asked), prefix=tuple(self._target.encode(start))
        )
        plan = self._sentences(text)
        if len(plan) != 1:
            found = f"{len(plan)} sentences (or parts of one that is too long)"
            raise InputError("only one sentence can be told how to begin", found=found, do="give one sentence")
        [(first, source)] = plan

        def differing(sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
            return [diverging(self.engine.search, ids, options) for ids in sources]

        rounds = self._rounds(options, search=differing if count > 1 else None)
        [pieces] = rounds.translate([source], hide_names=not start)
        pieces = tuple(
            one._replace(alternatives=one.alternatives[:count], hypotheses=one.hypotheses[:count]) for one in pieces
        )
        return Translation(text, *put_back(text, [(first, pieces)]), self)

    def live(self, text: str, tell: Callable[[str], bool]) -> Iterator[str]:
        """The greedy translation, sentence by sentence, each with what follows it. `tell` hears the pieces of a
        sentence as they are written, and says whether to stop: then it ends in a CancelledError."""
        plan, at = self._sentences(text), 0
        options = replace(self.options, beam=1, n_best=1)
        for (start, source), end in zip(plan, [*(start for start, _ in plan[1:]), len(text)], strict=True):
            watched = Live(self.engine, self._target, self._masker.mask(source), tell)
            [pieces] = self._rounds(options, search=watched.search).translate([source])
            yield put_back(text[at:end], [(start - at, pieces)])[0]
            at = end
        if text[at:]:
            yield text[at:]

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Scored]:
        """How likely the model finds given translations: each pair as one sentence, whatever it holds."""
        ids = [self._pair_ids(*pair) for pair in pairs]
        return [
            Scored(self._names(target, ended=True), tuple(log_probs))
            for (_, target), log_probs in zip(ids, self.engine.score(ids), strict=True)
        ]

    def fits(self, source: str, target: str) -> bool:
        """Whether a pair can be scored as one sentence: there is something to read, and it is not too long."""
        source_ids, target_ids = self._pair_ids(source, target)
        return bool(source_ids) and max(len(source_ids), len(target_ids) + 1) <= self.config.max_positions

    def details(self, sentence: Sentence) -> Details:
        """Its alignment, words and tokens; for this NumPy is imported."""
        from vidrio.translate.alignment import confident_words, links, source_tokens, target_tokens

        best = sentence.best
        target = target_tokens(best.ids, sentence.masked, self._target, sentence.text)
        source = source_tokens(sentence.masked, self._source)
        return Details(
            links((sentence.source, source), (sentence.text, target), best.attention),
            confident_words(sentence.text, target, best.token_log_probs),
            self._names(best.ids, ended=best.ended),
        )

    def look_at(self, translation: Translation, sentence: int) -> Any:
        return self.look(self.folder, translation, sentence)

    def _names(self, ids: Sequence[int], *, ended: bool) -> tuple[str, ...]:
        """The tokens of a translation, the end token included if it ended."""
        return tuple(map(self._target.token, (*ids, *[self.config.special.end] * ended)))

    def _pair_ids(self, source: str, target: str) -> tuple[Ids, Ids]:
        return (*self._source.encode(source), *self._close), tuple(self._target.encode(target))

    def _translate(
        self, texts: Sequence[str], options: Options, memory: Memory, stopped: Callable[[], bool]
    ) -> list[Translation]:
        plans = []
        for text in texts:
            if stopped():
                raise CancelledError
            plans.append(self._sentences(text))
        wanted = {sentence.text: sentence for plan in plans for _, sentence in plan}
        rounds = self._rounds(options, stopped)

        def find(new: list[str]) -> list[Pieces]:
            found = rounds.translate([wanted[sentence] for sentence in new])
            if self.lexicon and options.beam > 1 and not options.prefix:
                return UnknownWords(self.lexicon, self._source, self._target, self.engine).put_right(found)
            return found

        pieces_of = remembering(memory, list(wanted), find)
        placed = (
            (text, [(start, pieces_of[one.text]) for start, one in plan])
            for text, plan in zip(texts, plans, strict=True)
        )
        return [Translation(text, *put_back(text, found), self) for text, found in placed]

    def _sentences(self, text: str) -> list[tuple[int, Protected]]:
        """What of a text is translated, each with the place where it begins."""
        source = protected(valid(text))
        return [(start, source.part(start, end)) for start, end in self._splitter.parts(source)]

    def _rounds(self, options: Options, stopped: Callable[[], bool] = never, search: SearchAll | None = None) -> Rounds:
        room = min(options.max_length, max(1, self.config.max_positions - 1))  # scoring adds the end token
        nameless = range(self._target.size, self.config.target_vocabulary)  # embedding rows without a token
        return Rounds(
            masker=self._masker,
            source=self._source,
            target=self._target,
            close=self._close,
            engine=self.engine,
            options=replace(options, max_length=room, suppressed=(*options.suppressed, *nameless)),
            stopped=stopped,
            search=search,
        )


def _reopened(folder: Path, workers: int | None, options: Options, look: Look) -> Translator:
    """A translator that was pickled."""
    translator = Translator.load(folder, workers)
    translator.options, translator.look = options, look
    return translator


def without_glass(folder: Path, translation: Translation, sentence: int) -> Any:
    """In the place of the glass, which is above."""
    raise InputError("this translator was loaded without the glass", do="load it by vidrio.load")


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
