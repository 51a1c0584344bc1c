"""Text → text, on one screen: split into sentences, encode, search, decode, put back.

    translator = Translator.load("en-es")          # a name, a folder, or nothing: the default model
    translator.translate("Hello world").text       # "Hola mundo."
    for translation in translator.stream(lines):   # any number of lines, in order, in constant memory
        …

Whatever stands between sentences (spaces, line ends, tabs) comes back byte for byte; an empty text is an empty
translation; a sentence that is too long for the model is translated in parts. Nothing is ever cut off.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from vidrio.errors import InputError
from vidrio.hypothesis import Hypothesis, Noted, Options, Pair, SearchAll, default_options, diverging
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About
from vidrio.text.reading.lexicon import Lexicon
from vidrio.text.reading.parts import DASHES, is_plain, translatable
from vidrio.text.reading.prepared import Reader
from vidrio.text.reading.protect import Protected, protected
from vidrio.text.reading.sentences import splitter
from vidrio.text.reading.word_list import WordList
from vidrio.text.reading.words import Place
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.allocator import give_back
from vidrio.translate.attempts import Attempts, fit_in
from vidrio.translate.engines import Engine, Opening, begin, cores, open_engine
from vidrio.translate.live import Live
from vidrio.translate.stream import CHUNKS, FIRST, REMEMBERED, Memory, answered, in_chunks, size_at, waited_for
from vidrio.translate.translation import Look, Pieces, Scored, Sentence, Translation, Word, put_back
from vidrio.translate.unknown_words import SURE_ON_AVERAGE, UnknownWords

if TYPE_CHECKING:
    from vidrio.translate.confidence import Confidence

LONGEST = 128  # tokens in a sentence; training sees few that are longer, and learns to translate them badly
never: Callable[[], bool] = bool  # bool() is False: nobody stops it


class Translator:
    """A model that translates. Safe to use from many threads."""

    def __init__(
        self, folder: Path, config: ModelConfig, about: About, tokenizers: tuple[Tokenizer, Tokenizer], engine: Engine
    ) -> None:
        self.folder, self.config, self.about, self.engine = folder, config, about, engine
        self.reader = Reader(tokenizers[0], about.symbols, about.translated, about.source_language)
        self.words, self.lexicon = WordList.of(folder), Lexicon.of(folder)
        self.options = default_options(config)
        self.at_once = FIRST  # characters in a chunk of a stream; follows the speed
        self.look: Look = without_glass  # how `Translation.look` looks; given by vidrio.load
        self._opened_as: tuple[str, int | None] | None = None  # engine and workers, where `load` has opened it
        self._source, self._target = tokenizers
        self._split = splitter(about.source_language)
        self._close = config.source_close
        self._longest = max(1, min(LONGEST, config.max_positions - len(self._close)))
        self._nameless = tuple(range(self._target.size, config.target_vocabulary))  # embedding rows without a token
        self._within = lru_cache(16)(self._made_to_fit)

    @staticmethod
    def load(
        name: str | Path | None = None,
        *,
        engine: str = "auto",
        workers: int | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> "Translator":
        """A model by name or folder; `workers` batches are worked on at the same time, by default one for each core."""
        translator = Translator.opened(begin(name, engine, workers or cores()), tell)
        translator._opened_as = engine, workers
        return translator

    @staticmethod
    def opened(opening: Opening, tell: Callable[[str], None] | None = None) -> "Translator":
        """The same, once it has begun to open."""
        folder, config = opening.folder, opening.config
        tokenizers = read_tokenizers(folder, config)
        ready = opening.ready.result()
        engine = ready or open_engine(folder, config, opening.wish, workers=opening.workers, tell=tell)
        return Translator(folder, config, opening.about, tokenizers, engine)

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled, it is its folder and options: it is opened anew where it is needed."""
        if self._opened_as is None:
            raise InputError(
                "this translator cannot be pickled",
                found="it was not opened by Translator.load or vidrio.load",
                do="pickle the name of its folder, and open it there",
            )
        return _reopened, (self.folder.absolute(), *self._opened_as, self.options, self.look)

    def __copy__(self) -> "Translator":
        """Another with the same engine, tokenizers and folder, and options of its own."""
        copy = object.__new__(Translator)
        vars(copy).update(vars(self))
        return copy

    def __deepcopy__(self, memo: Any) -> "Translator":
        return self.__copy__()

    @overload
    def translate(self, text: str, options: Options | None = None) -> Translation: ...  # type: ignore[overload-overlap]
    @overload
    def translate(self, text: Sequence[str], options: Options | None = None) -> list[Translation]: ...

    def translate(self, text: str | Sequence[str], options: Options | None = None) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are the model's own unless given."""
        texts = [text] if isinstance(text, str) else text
        found = self._translate(texts, options or self.options)
        return found[0] if isinstance(text, str) else found

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

        attempts = self._attempts(options, search=differing if count > 1 else None)
        [pieces] = attempts.translate([source], hide_names=not start)
        pieces = tuple(distinct(sentence, count) for sentence in pieces)
        return Translation(text, *put_back(text, [(first, pieces)]), self)

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
        for translations in self.stream_chunks(in_chunks(iter(texts), lambda: self.at_once), options):
            yield from translations

    def stream_chunks(
        self, chunks: Iterable[Sequence[str]], options: Options | None = None
    ) -> Iterator[list[Translation]]:
        """The same for texts that come in chunks. An empty chunk means: no more for now, finish what there is."""
        memory = Memory[Pieces](REMEMBERED)
        pending: deque[Future[list[Translation]]] = deque()
        pool = ThreadPoolExecutor(CHUNKS)
        try:
            for chunk in answered(chunks):
                if chunk:
                    give_back()
                    pending.append(pool.submit(self._timed, chunk, options or self.options, memory))
                while pending and (len(pending) >= CHUNKS or not chunk or pending[0].done()):
                    yield waited_for(pending.popleft())
            while pending:
                yield waited_for(pending.popleft())
        finally:
            memory.left.set()
            pool.shutdown(wait=False, cancel_futures=True)

    def live(self, text: str, tell: Callable[[str], bool]) -> Iterator[str]:
        """The greedy translation, sentence by sentence, each with what follows it. `tell` hears the pieces of a
        sentence as they are written, and says whether to stop: then it ends in a CancelledError."""
        plan, at = self._sentences(text), 0
        options = replace(self.options, beam=1, n_best=1)
        for (start, source), end in zip(plan, [*(start for start, _ in plan[1:]), len(text)], strict=True):
            watched = Live(self.engine, self._target, self.reader.prepare(source), tell)
            [pieces] = self._attempts(options, search=watched.search).translate([source])
            yield put_back(text[at:end], [(start - at, after_dash(text, start, source, pieces))])[0]
            at = end
        if text[at:]:
            yield text[at:]

    # What costs another pass through the model. Alignment and confidence need NumPy, which is imported only for them.

    def with_token_scores(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, every token with its log-probability (the fast engine's search leaves them out)."""
        log_probs = iter(self.engine.score(pairs_of(translations)))

        def scored(sentence: Sentence) -> Sentence:
            taken = len(sentence.best.ids) + sentence.best.ended  # a hypothesis that was cut took no end token
            best = sentence.best._replace(token_log_probs=tuple(next(log_probs)[:taken]))
            return sentence._replace(hypotheses=(best, *sentence.hypotheses[1:]))

        return each(translations, scored)

    def with_alignment(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, with the words of each sentence aligned."""
        from vidrio.translate.alignment import links, source_tokens

        attention = iter(self.engine.attend(pairs_of(translations)))

        def aligned(sentence: Sentence) -> Sentence:
            source = source_tokens(sentence.prepared, self._source)
            found = links((sentence.source, source), (sentence.text, self._target_tokens(sentence)), next(attention))
            return sentence._replace(alignment=found)

        return each(translations, aligned)

    def with_confidence(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, each sentence and word with the confidence that the model's folder tells how to judge."""
        from vidrio.translate.confidence import sentence_feature

        confidence = self.calibration

        def judged(sentence: Sentence) -> Sentence:
            words = tuple(
                word._replace(confidence=confidence.word(probability))
                for word, probability in self.word_features(sentence)
            )
            feature = sentence_feature(sentence.best.token_log_probs)
            return sentence._replace(confidence=confidence.sentence(feature), words=words)

        return each(self.with_token_scores(translations), judged)

    @cached_property
    def calibration(self) -> "Confidence":
        """What the model's folder tells of its confidence."""
        from vidrio.translate.confidence import read

        return read(self.folder)

    def word_features(self, sentence: Sentence) -> list[tuple[Word, float]]:
        """The words of a translation whose tokens have scores, each with its probability."""
        from vidrio.translate.confidence import word_features

        return word_features(sentence.text, self._target_tokens(sentence), sentence.best.token_log_probs)

    def _target_tokens(self, sentence: Sentence) -> list[Place]:
        from vidrio.translate.alignment import target_tokens

        return target_tokens(sentence.best.ids, sentence.prepared, self._target)

    def token_names(self, hypothesis: Hypothesis) -> list[str]:
        """The tokens of a translation, the end token included if it ended."""
        return list(map(self._target.token, (*hypothesis.ids, *[self.config.special.end] * hypothesis.ended)))

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Scored]:
        """How likely the model finds given translations: each pair as one sentence, whatever it holds."""
        ids = [self._pair_ids(*pair) for pair in pairs]
        end = self._target.token(self.config.special.end)
        return [
            Scored((*map(self._target.token, target), end), tuple(log_probs))
            for (_, target), log_probs in zip(ids, self.engine.score(ids), strict=True)
        ]

    def fits(self, source: str, target: str) -> bool:
        """Whether a pair can be scored as one sentence: there is something to read, and it is not too long."""
        source_ids, target_ids = self._pair_ids(source, target)
        return bool(source_ids) and max(len(source_ids), len(target_ids) + 1) <= self.config.max_positions

    def _pair_ids(self, source: str, target: str) -> tuple[list[int], list[int]]:
        return [*self._source.encode(source), *self.config.source_close], self._target.encode(target)

    def _timed(self, texts: Sequence[str], options: Options, memory: Memory[Pieces]) -> list[Translation]:
        began = time.perf_counter()
        translations = self._translate(texts, options, memory)
        per_second = sum(map(len, texts)) / (time.perf_counter() - began)
        if options.sampling is None:  # draws do depend on the batch: they shall not on the clock
            self.at_once = size_at(per_second)
        return translations

    def _translate(
        self, texts: Sequence[str], options: Options, memory: Memory[Pieces] | None = None
    ) -> list[Translation]:
        stopped = memory.left.is_set if memory else never
        with memory.turn if memory else nullcontext():
            plans = [self._sentences(text, stopped) for text in texts]
        wanted = {sentence.text: sentence for plan in plans for _, sentence in plan}
        searched = options.beam > 1 and not options.prefix  # what was drawn, or asked for, stays as it is
        note = Noted(SURE_ON_AVERAGE) if self.lexicon and searched else None
        attempts = self._attempts(options, memory, note=note)

        def translated(new: Iterable[str]) -> list[Pieces]:
            pieces = attempts.translate([wanted[sentence] for sentence in new])
            unsure: dict[int, Sentence] = {}
            for at, of_it in enumerate(pieces if note else ()):
                best = of_it[0].hypotheses[0] if len(of_it) == 1 else None
                if best and best.log_prob < SURE_ON_AVERAGE * (len(best.ids) + best.ended):
                    unsure[at] = of_it[0]
            if self.lexicon and note and unsure:
                tokenizers = self._source, self._target
                words = UnknownWords(self.lexicon, self.words, *tokenizers, self.engine, note.looked_at)
                for at, sentence in words.put_right(unsure).items():
                    pieces[at] = (sentence,)
            return pieces

        pieces_of = memory.share(wanted, translated) if memory else dict(zip(wanted, translated(wanted), strict=True))
        translations = []
        for text, plan in zip(texts, plans, strict=True):
            pieces = pieces_of[plan[0][1].text] if len(plan) == 1 else ()
            if len(pieces) == 1 and len(pieces[0].source) == len(text):  # true of most: the text is one sentence
                translations.append(Translation(text, pieces[0].alternatives[0], pieces, self))
            else:
                found = [(start, after_dash(text, start, of, pieces_of[of.text])) for start, of in plan]
                translations.append(Translation(text, *put_back(text, found), self))
        return translations

    def _sentences(self, text: str, stopped: Callable[[], bool] = never) -> list[tuple[int, Protected]]:
        """What of a text is translated, each with the place where it begins."""
        if is_plain(text, self._longest):
            return [(0, Protected(text))]
        source = protected(valid(text))
        if stopped():
            raise CancelledError
        sentences = []
        for start, end in translatable(source, self._source, self._longest, self._split):
            if stopped():
                raise CancelledError
            sentences.append((start, source.part(start, end)))
        return sentences

    def _made_to_fit(self, options: Options) -> Options:
        """The same, for what this model has room for, and tokens for."""
        room = min(options.max_length, max(1, self.config.max_positions - 1))  # scoring adds the end token
        return replace(options, max_length=room, suppressed=(*options.suppressed, *self._nameless))

    def _attempts(
        self,
        options: Options,
        memory: Memory[Pieces] | None = None,
        search: SearchAll | None = None,
        note: Noted | None = None,
    ) -> Attempts:
        return Attempts(
            unknown=self.config.special.unk,
            close=self._close,
            reader=self.reader,
            source=self._source,
            target=self._target,
            engine=self.engine,
            options=self._within(options),
            turn=memory.turn if memory else nullcontext(),
            stopped=memory.left.is_set if memory else never,
            search=search,
            words=self.words,
            note=note,
        )


def _reopened(folder: Path, engine: str, workers: int | None, options: Options, look: Look) -> Translator:
    """A translator that was pickled."""
    translator = Translator.load(folder, engine=engine, workers=workers)
    translator.options, translator.look = options, look
    return translator


def without_glass(folder: Path, translation: Translation, sentence: int) -> Any:
    """In the place of the glass, which is above."""
    raise InputError("this translator was loaded without the glass", do="load it by vidrio.load")


def pairs_of(translations: Iterable[Translation]) -> list[Pair]:
    """The ids of all sentences and of their best translations."""
    return [(one.source_ids, one.best.ids) for translation in translations for one in translation.sentences]


def each(translations: Iterable[Translation], change: Callable[[Sentence], Sentence]) -> list[Translation]:
    """The translations with all their sentences changed."""
    return [replace(one, sentences=tuple(map(change, one.sentences))) for one in translations]


def after_dash(text: str, start: int, source: Protected, pieces: Pieces) -> Pieces:
    """What a sentence became; as a part of one, if it goes on after a dash: —¿Vienes? —preguntó Juan."""
    return fit_in(source.text, pieces) if start and text[start - 1] in DASHES else pieces


def distinct(sentence: Sentence, count: int) -> Sentence:
    """With its first so many alternatives that read differently."""
    first = dict(zip(reversed(sentence.alternatives), reversed(sentence.hypotheses), strict=True))
    kept = [(text, first[text]) for text in dict.fromkeys(sentence.alternatives)][:count]
    texts, hypotheses = zip(*kept, strict=True)
    return sentence._replace(alternatives=texts, hypotheses=hypotheses)
