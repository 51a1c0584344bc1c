"""Text → text, on one screen: split into sentences, encode, search, decode, put back.

    translator = Translator.load("en-es")          # a name, a folder, or nothing: the default model
    translator.translate("Hello world").text       # "Hola mundo."
    for translation in translator.stream(lines):   # any number of lines, in order, in constant memory
        …

Whatever stands between sentences (spaces, line ends, tabs) comes back byte for byte; an empty text is an empty
translation; a sentence that is too long for the model is translated in parts. Nothing is ever cut off.
"""

import os
import re
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import overload

from vidrio import models
from vidrio.alignment import Word, links, source_tokens, target_tokens
from vidrio.chunks import CHUNKS, FEWEST, FIRST, MOST, REMEMBERED, SECONDS, Memory, in_chunks
from vidrio.confidence import Confidence, sentence_feature, word_features
from vidrio.confidence import read as read_confidence
from vidrio.config import ModelConfig
from vidrio.engines import Engine, open_engine
from vidrio.errors import InputError
from vidrio.folder import About, read_config
from vidrio.search import Hypothesis, Options, SearchAll, best_first, default_options, diverging, score_of
from vidrio.text.capitals import SEVERAL, came_back
from vidrio.text.loops import circles
from vidrio.text.masks import Masked, reveal
from vidrio.text.normalise import valid
from vidrio.text.parts import around, fitted, in_halves, translatable, without_brackets, without_lost
from vidrio.text.reader import Reader
from vidrio.text.tokenizer import Tokenizer
from vidrio.text.vocabulary import BYTES
from vidrio.text.words import Place
from vidrio.translation import Scored, Sentence, Translation, put_back

LONGEST = 128  # tokens in a sentence; training sees few that are longer, and learns to translate them badly
NO_REPEAT = 3  # tokens that may not come a second time, where the translation went round in circles
CLEARLY = 1.0  # in log p, by which one reading must be likelier than another
GARBLED = "\ufffd"  # what bytes that make no character are read as
NOBODY_WAITS = nullcontext()
LINE_BREAK = re.compile(r"\s*[\r\n]\s*")


class Translator:
    """A model that translates. Safe to use from many threads."""

    def __init__(
        self, folder: Path, config: ModelConfig, about: About, tokenizers: tuple[Tokenizer, Tokenizer], engine: Engine
    ) -> None:
        self.folder, self.config, self.about, self.engine = folder, config, about, engine
        self._source, self._target = tokenizers
        self._longest = min(LONGEST, config.max_positions - config.source_end)
        self._bytes = frozenset(i for token in BYTES if (i := tokenizers[1].id(token)) is not None)
        self._nameless = tuple(range(self._target.size, config.target_vocabulary))  # embedding rows without a token
        self.reader = Reader(tokenizers[0], about.translated)
        self.options = default_options(config)
        self.at_once = FIRST  # characters in a chunk of a stream; follows the speed

    @staticmethod
    def load(
        name: str | Path | None = None,
        *,
        engine: str = "auto",
        workers: int | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> "Translator":
        """A model by name or folder; `workers` batches are worked on at the same time, by default one for each core."""
        folder = models.find(name)
        config, about = read_config(folder)
        ready = open_engine(folder, config, engine, workers=workers or _cores(), tell=tell)
        return Translator(folder, config, about, models.read_tokenizers(folder, config), ready)

    @overload
    def translate(self, text: str, options: Options | None = None) -> Translation: ...  # type: ignore[overload-overlap]
    @overload
    def translate(self, text: Sequence[str], options: Options | None = None) -> list[Translation]: ...

    def translate(self, text: str | Sequence[str], options: Options | None = None) -> Translation | list[Translation]:
        """Translate a text, or each of several; the options are the model's own unless given."""
        texts = [text] if isinstance(text, str) else text
        found = self._translate(texts, options or self.options, Memory(0))
        return found[0] if isinstance(text, str) else found

    def begin_with(self, text: str, start: str = "", count: int = 1, options: Options | None = None) -> Translation:
        """The translation of one sentence that begins with `start`; or, with a `count`, so many that begin with it and
        differ in the token after it, the likeliest of those tokens first."""
        options = options or self.options
        asked = 2 * count if count > 1 else 1  # some differ only in how a word is split
        options = replace(
            options, n_best=asked, beam=max(options.beam, asked), prefix=tuple(self._target.encode(start))
        )
        options = self._within(options)
        plan = list(translatable(valid(text), self._source, self._longest))
        if len(plan) != 1:
            found = f"{len(plan)} sentences (or parts of one that is too long)"
            raise InputError("only one sentence can be told how to begin", found=found, do="give one sentence")
        [(first, last)] = plan

        def differing(sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
            return [diverging(self.engine.search, ids, options) for ids in sources]

        search = differing if count > 1 else None
        sentences = self._find([text[first:last]], options, hide_names=not start, search=search)[0]
        sentences = tuple(distinct(sentence, count) for sentence in sentences)
        return Translation(text, *put_back(text, [(first, sentences)]), self)

    def given(self, text: str) -> list[str]:
        """What the model is given first for each sentence of a text. If it loses a name, another reading follows;
        `Sentence.given` is the one that counted."""
        plan = translatable(valid(text), self._source, self._longest)
        return [LINE_BREAK.sub(" ", self.reader.read(text[a:b], self.about.symbols).text) for a, b in plan]

    def token(self, id: int) -> str:  # noqa: A002
        """A token of the translations by its id."""
        return self._target.token(id)

    async def translate_async(self, text: str, options: Options | None = None) -> Translation:
        """`translate` for an event loop: it works in another thread."""
        import asyncio

        return await asyncio.to_thread(self.translate, text, options)

    def stream(self, texts: Iterable[str], options: Options | None = None) -> Iterator[Translation]:
        """A translation for each text, in order; texts are read as they are needed."""
        for translations in self.stream_chunks(in_chunks(iter(texts), lambda: self.at_once), options):
            yield from translations

    def stream_chunks(
        self, chunks: Iterable[Sequence[str]], options: Options | None = None
    ) -> Iterator[list[Translation]]:
        """The same for texts that come in chunks. An empty chunk means: no more for now, finish what there is."""
        memory = Memory(REMEMBERED)
        pending: deque[Future[list[Translation]]] = deque()
        pool = ThreadPoolExecutor(CHUNKS)
        try:
            for chunk in chunks:
                if chunk:
                    pending.append(pool.submit(self._timed, chunk, options or self.options, memory))
                while pending and (len(pending) >= CHUNKS or not chunk):
                    yield pending.popleft().result()
            while pending:
                yield pending.popleft().result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def with_token_scores(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, every token with its log-probability (the fast engine's search leaves them out)."""
        pairs = [(s.source_ids, s.best.ids) for translation in translations for s in translation.sentences]
        told = iter(self.engine.score(pairs))

        def scored(sentence: Sentence) -> Sentence:
            taken = len(sentence.best.ids) + sentence.best.ended  # a hypothesis that was cut took no end token
            best = replace(sentence.best, token_log_probs=tuple(next(told)[:taken]))
            return sentence._replace(hypotheses=(best, *sentence.hypotheses[1:]))

        return [replace(one, sentences=tuple(map(scored, one.sentences))) for one in translations]

    def with_alignment(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, with the words of each sentence aligned."""
        pairs = [(s.source_ids, s.best.ids) for translation in translations for s in translation.sentences]
        told = iter(self.engine.attend(pairs))

        def aligned(sentence: Sentence) -> Sentence:
            masked = sentence.masked
            breaks = [match.span() for match in LINE_BREAK.finditer(masked.text)]
            source = source_tokens(sentence.source, masked, breaks, sentence.given, self._source)
            found = links((sentence.source, source), (sentence.text, self._target_tokens(sentence)), next(told))
            return sentence._replace(alignment=found)

        return [replace(one, sentences=tuple(map(aligned, one.sentences))) for one in translations]

    def with_confidence(self, translations: Sequence[Translation]) -> list[Translation]:
        """The same, each sentence and word with the confidence that the model's folder tells how to judge."""
        confidence = self.calibration

        def judged(sentence: Sentence) -> Sentence:
            words = tuple(
                word._replace(confidence=confidence.word(probability))
                for word, probability in self.word_features(sentence)
            )
            feature = sentence_feature(sentence.best.token_log_probs)
            return sentence._replace(confidence=confidence.sentence(feature), words=words)

        scored = self.with_token_scores(translations)
        return [replace(one, sentences=tuple(map(judged, one.sentences))) for one in scored]

    @cached_property
    def calibration(self) -> Confidence:
        """What the model's folder tells of its confidence."""
        return read_confidence(self.folder)

    def word_features(self, sentence: Sentence) -> list[tuple[Word, float]]:
        """The words of a translation whose tokens have scores, each with its probability."""
        return word_features(sentence.text, self._target_tokens(sentence), sentence.best.token_log_probs)

    def _target_tokens(self, sentence: Sentence) -> list[Place]:
        return target_tokens(sentence.best.ids, sentence.masked, self._target)

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[Scored]:
        """How likely the model finds given translations: each pair as one sentence, whatever it holds."""
        ids = [self._pair_ids(*pair) for pair in pairs]
        end = self._target.token(self.config.special.end)
        return [
            Scored((*map(self._target.token, target), end), tuple(log_probs))
            for (_, target), log_probs in zip(ids, self.engine.score(ids), strict=True)
        ]

    def fits(self, source: str, target: str) -> bool:
        """Whether a pair can be scored as one sentence."""
        source_ids, target_ids = self._pair_ids(source, target)
        return max(len(source_ids), len(target_ids) + 1) <= self.config.max_positions

    def _pair_ids(self, source: str, target: str) -> tuple[list[int], list[int]]:
        close = [self.config.special.end] if self.config.source_end else []
        return [*self._source.encode(source), *close], self._target.encode(target)

    def _timed(self, texts: Sequence[str], options: Options, memory: "Memory") -> list[Translation]:
        began = time.perf_counter()
        translations = self._translate(texts, options, memory)
        per_second = sum(map(len, texts)) / (time.perf_counter() - began)
        if options.sampling is None:  # draws do depend on the batch: they shall not on the clock
            self.at_once = round(min(max(SECONDS * per_second, FEWEST), MOST))
        return translations

    def _translate(self, texts: Sequence[str], options: Options, memory: "Memory") -> list[Translation]:
        options = self._within(options)
        with memory.turn:
            plans = [list(translatable(valid(text), self._source, self._longest)) for text in texts]
        wanted = dict.fromkeys(text[start:end] for text, plan in zip(texts, plans, strict=True) for start, end in plan)
        found = memory.share(wanted, lambda new: self._find(new, options, turn=memory.turn))
        return [
            Translation(text, *put_back(text, ((start, found[text[start:end]]) for start, end in plan)), self)
            for text, plan in zip(texts, plans, strict=True)
        ]

    def _within(self, options: Options) -> Options:
        """The same, for what this model has room for, and tokens for."""
        room = min(options.max_length, max(1, self.config.max_positions - 1))  # scoring adds the end token
        return replace(options, max_length=room, suppressed=(*options.suppressed, *self._nameless))

    def _find(
        self,
        sentences: Sequence[str],
        options: Options,
        *,
        hide_names: bool = True,
        several: int = SEVERAL,
        search: SearchAll | None = None,
        turn: AbstractContextManager[object] = NOBODY_WAITS,
    ) -> list[tuple[Sentence, ...]]:
        """The translation of each sentence by itself, or of parts of it, with what stands between them to be copied.

        Parts are the words around a number, an address or a placeholder that did not come through (what is copied
        cannot be lost); and its halves, where the translation did not come to an end. A word or two in small letters
        are read as they stand, and if one of them comes back as it was, once more as a sentence (`several`).
        """
        close = [self.config.special.end] if self.config.source_end else []
        read, symbols, forms = self.reader.read, self.about.symbols, self.reader.knows_forms and not options.prefix
        with turn:
            masked = [read(one, symbols, forms=forms, hide_names=hide_names, several=several) for one in sentences]
            one_line = [LINE_BREAK.sub(" ", one.text) for one in masked]  # text may be wrapped at a fixed width
            sources = [(*ids, *close) for ids in self._source.encode_batch(one_line)]
        searched = (search or self._search)(sources, options)
        texts = iter(self._target.decode_batch([one.ids for hypotheses in searched for one in hypotheses]))
        judged = [
            self._read(*one, [next(texts) for _ in one[-1]])
            for one in zip(sentences, masked, one_line, sources, searched, strict=True)
        ]
        found = [sentence for sentence, _ in judged]
        parts = {n: spans for n, (_, spans) in enumerate(judged) if spans is not None}
        back = [n for n, text in enumerate(sentences) if forms and several > 1 and is_back(text, found[n])]
        told = [sentences[n] for n in back]
        other = self._find(told, options, hide_names=hide_names, several=1, search=search) if back else []
        for n, sentence in zip(back, other, strict=True):
            if not is_back(sentences[n], sentence) and self._log_p(sentence) > self._log_p(found[n]) + CLEARLY:
                found[n] = sentence
        # Rather a name that the model misspells than words that stand each by themselves around it.
        unnamed = [n for n in parts if masked[n].named]
        told = [sentences[n] for n in unnamed]
        plain = self._find(told, options, hide_names=False, search=search) if unnamed else []
        for n, sentence in zip(unnamed, plain, strict=True):
            found[n] = sentence
            del parts[n]
        wanted = list(dict.fromkeys(sentences[n][a:b] for n, spans in parts.items() for a, b in spans))
        again = self._find(wanted, replace(options, prefix=())) if wanted else []
        by_itself = {part: fit_in(part, sentences) for part, sentences in zip(wanted, again, strict=True)}
        for n, spans in parts.items():
            found[n] = put_back(sentences[n], ((a, by_itself[sentences[n][a:b]]) for a, b in spans))[1]
        return found

    def _search(self, sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
        """The engine's search; of what goes round in circles there, another one that may not say the same again; of
        what is no text, because the bytes in it make no characters, one without bytes."""
        found = self.engine.search(sources, options)
        repairs: dict[Options, list[int]] = {}
        for n, ids in enumerate(sources):
            best = found[n][0].ids
            if not self._bytes.isdisjoint(best) and self._bytes.isdisjoint(options.suppressed):
                if GARBLED in self._target.decode(best):
                    repairs.setdefault(replace(options, suppressed=(*options.suppressed, *self._bytes)), []).append(n)
            elif not options.no_repeat_ngram and circles(ids, best):
                repairs.setdefault(replace(options, no_repeat_ngram=NO_REPEAT), []).append(n)
        for other, which in repairs.items():
            again = self.engine.search([sources[n] for n in which], other)
            for n, hypotheses in zip(which, again, strict=True):
                found[n] = self._rescored(sources[n], hypotheses, options)
        return found

    def _log_p(self, sentences: tuple[Sentence, ...]) -> float:
        """Of a translation, as the model itself finds it."""
        return sum(map(sum, self.engine.score([(one.source_ids, one.best.ids) for one in sentences])))

    def _rescored(self, source: Sequence[int], hypotheses: Sequence[Hypothesis], options: Options) -> list[Hypothesis]:
        """As likely as the model itself finds them: a search that forbids tokens makes the others likelier."""
        told = self.engine.score([(source, hypothesis.ids) for hypothesis in hypotheses])
        found = []
        for hypothesis, log_probs in zip(hypotheses, told, strict=True):
            steps = len(hypothesis.ids) + hypothesis.ended
            log_prob = sum(log_probs[:steps])
            found.append(replace(hypothesis, log_prob=log_prob, score=score_of(log_prob, steps, options)))
        return best_first(found)

    def _read(
        self,
        sentence: str,
        masked: Masked,
        given: str,
        ids: Sequence[int],
        hypotheses: Sequence[Hypothesis],
        decoded: Sequence[str],
    ) -> tuple[tuple[Sentence, ...], list[tuple[int, int]] | None]:
        """A sentence with its translations; and what of it to translate again by itself, if it did not come through."""
        texts = [reveal(text, sentence, masked) for text in decoded]
        if texts[0] is None:
            return (), list(around(sentence, 0, len(sentence), masked.places))
        whole = [(text, hypothesis) for text, hypothesis in zip(texts, hypotheses, strict=True) if text is not None]
        texts_kept, kept = zip(*whole, strict=True)
        one = Sentence(sentence, texts_kept, kept, tuple(ids), self._unknown(given, ids), given=given, masked=masked)
        again = without_brackets(sentence, one.text)
        if again is None:
            again = without_lost(sentence, one.text)
        if again is None and not one.best.ended:
            again = in_halves(sentence)
        return (one,), again

    def _unknown(self, sentence: str, ids: Sequence[int]) -> tuple[str, ...]:
        if self.config.special.unk not in ids:
            return ()
        return tuple(sentence[piece.start : piece.end] for piece in self._source.pieces(sentence) if piece.unknown)


def is_back(text: str, sentences: tuple[Sentence, ...]) -> bool:
    return any(came_back(text, sentence.text) for sentence in sentences)


def distinct(sentence: Sentence, count: int) -> Sentence:
    """With its first so many alternatives that read differently."""
    first = dict(zip(reversed(sentence.alternatives), reversed(sentence.hypotheses), strict=True))
    kept = [(text, first[text]) for text in dict.fromkeys(sentence.alternatives)][:count]
    texts, hypotheses = zip(*kept, strict=True)
    return sentence._replace(alternatives=texts, hypotheses=hypotheses)


def fit_in(part: str, sentences: tuple[Sentence, ...]) -> tuple[Sentence, ...]:
    """What a part of a sentence became, without what only a whole one has."""
    if len(sentences) != 1:  # parts of it had to be translated by themselves, and fit already
        return sentences
    texts = tuple(fitted(part, text) for text in sentences[0].alternatives)
    return (sentences[0]._replace(alternatives=texts),)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
