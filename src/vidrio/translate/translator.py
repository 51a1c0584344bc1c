"""Translate texts: split them into sentences, mask, tokenise, search, decode and unmask.

    translator = Translator.load("en-es")          # a name or a folder; by default en-es
    translator.translate("Hello world").text       # "Hola mundo"
    for translation in translator.stream(lines):   # in order, in constant memory
        …

Every translation is compared with its source (text/account.py). If something was lost or invented, another hypothesis
is chosen, or the search is repeated, at most twice (remedies.py).

Text between sentences (spaces, line ends, tabs) is copied byte for byte. An empty text has an empty translation. A
sentence that is too long for the model is translated in parts; nothing is dropped.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import overload

from vidrio.engine.engine import Engine, Stopped
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Hypothesis, Ids, Options, default_options
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import About, read_config
from vidrio.model.shortlist import Shortlist, folder_shortlist
from vidrio.text.lexicon import lexicons
from vidrio.text.mask import Masker
from vidrio.text.sentences import Splitter, split
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.judging import Attempt, Judge, Query, chosen
from vidrio.translate.remedies import REMEDIES, combine
from vidrio.translate.stream import in_chunks, in_order
from vidrio.translate.translation import Details, Pieces, Sentence, Translation, put_back

LONGEST = 128  # tokens; longer sentences are rare in training data, and models translate them badly


class NoTranslator(ModelError):
    """The model is a classifier or a language model (answers.py)."""


class Translator:
    """A model that translates. Threads can share it."""

    def __init__(
        self, folder: Path, config: ModelConfig, about: About, tokenizers: tuple[Tokenizer, Tokenizer], engine: Engine
    ) -> None:
        self.folder, self.config, self.about, self.engine = folder, config, about, engine
        self.options = default_options(config)
        self.shortlist: Shortlist | None = None  # selects the tokens to consider for a sentence; None means all
        self.source, self.target = tokenizers
        self._masker = Masker(self.source, about.symbols)
        self._judge = Judge(self._masker, self.target, lexicons(about.source_language, about.target_language))
        self._close = config.source_close
        longest = max(1, min(LONGEST, config.max_positions - len(self._close)))
        self._splitter = Splitter(self.source, self._masker, longest)

    @staticmethod
    def load(name: str | Path | None = None, workers: int | None = None, *, shortlist: bool = False) -> "Translator":
        """Load a model by name or folder. `workers` is the number of threads that translate in parallel, by default one
        per core. `shortlist` restricts the search to the tokens on the model's shortlist, if it has one."""
        folder = find(name)
        config, about = read_config(folder)
        if config.shape != "encoder-decoder":
            raise NoTranslator(
                f"{folder} does not translate",
                found=f"its shape is {config.shape!r}",
                do="use vidrio translate or vidrio look, which support such models, or another model",
            )
        engine = Engine.load(folder, config, workers=workers or cores())
        translator = Translator(folder, config, about, read_tokenizers(folder, config), engine)
        if shortlist:
            translator.shortlist = folder_shortlist(folder, config, translator.source is translator.target)
        return translator

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
        """Translate a text, or a list of texts as one batch, by default with the model's own search options. `stopped`
        is called regularly; if it returns True, a CancelledError is raised."""
        if isinstance(text, str):
            return self.translate([text], options, stopped)[0]
        plans = [self._sentences(one) for one in text]
        sentences = list(dict.fromkeys(sentence for plan in plans for _, sentence in plan))
        searched = search_options(options or self.options, self.config, self.target.size, self.target.byte_ids)
        pieces_of = self._translated(sentences, searched, stopped)
        return [
            Translation(one, *put_back(one, [(start, pieces_of[sentence]) for start, sentence in plan]), self)
            for one, plan in zip(text, plans, strict=True)
        ]

    def stream(self, texts: Iterable[str], options: Options | None = None) -> Iterator[Translation]:
        """Translate any number of texts, in order and in constant memory. Each text is read only when it is needed."""
        if isinstance(texts, str):
            raise InputError(
                "stream needs several texts", found="one text", do="call translate(text) or stream(text.splitlines())"
            )
        chunks = in_chunks(iter(texts))
        for translations in in_order(chunks, lambda chunk, stopped: self.translate(chunk, options, stopped)):
            yield from translations

    def score(self, pairs: Sequence[tuple[str, str]]) -> list[tuple[float, ...]]:
        """Return the log-probability of each token in the given translations, including the end token. Each pair
        (source, translation) is treated as one sentence."""
        found = self.engine.forced([self._pair_ids(*pair) for pair in pairs])
        return list(map(tuple, found))

    def fits(self, source: str, target: str) -> bool:
        """Return whether a pair can be scored as one sentence. The source must not be empty, and no text too long."""
        source_ids, target_ids = self._pair_ids(source, target)
        there = len(source_ids) > len(self._close)
        return there and max(len(source_ids), len(target_ids) + 1) <= self.config.max_positions

    def _pair_ids(self, source: str, target: str) -> tuple[Ids, Ids]:
        return (*self.source.encode(source), *self._close), tuple(self.target.encode(target))

    def details(self, sentences: Sequence[Sentence]) -> list[Details]:
        """Return the alignment, words and tokens of each sentence. This method imports NumPy."""
        from vidrio.translate.alignment import details

        return [details(sentence, self.source, self.target) for sentence in sentences]

    def unknown(self, sentence: Sentence) -> list[str]:
        """Return the words of a sentence that are not in the vocabulary."""
        return [
            sentence.given[piece.start : piece.end] for piece in self.source.pieces(sentence.given) if piece.unknown
        ]

    def _sentences(self, text: str) -> list[tuple[int, str]]:
        """Return the parts of a text to translate, each with its start position."""
        valid(text)
        sentences = split(text, self.about.source_language)
        return [(start, text[start:end]) for start, end in self._splitter.parts(text, sentences)]

    def _translated(self, sentences: Sequence[str], options: Options, stopped: Stopped) -> dict[str, Pieces]:
        """Translate each sentence with at most three searches, and return the translation with the fewest faults."""
        first = self._attempts([Query(self._masker.mask(source), options) for source in sentences], stopped)
        best = dict(zip(sentences, first, strict=True))
        for remedy in REMEDIES:
            faulty = ((source, attempt) for source, attempt in best.items() if attempt.faults)
            plans = {source: plan for source, attempt in faulty if (plan := remedy(attempt, self._judge))}
            parts = iter(self._attempts([query for plan in plans.values() for _, query in plan.queries], stopped))
            for source, plan in plans.items():
                best[source] = combine(best[source], plan, [next(parts) for _ in plan.queries], self._judge)
        return {source: attempt.pieces for source, attempt in best.items()}

    def _attempts(self, queries: Sequence[Query], stopped: Stopped) -> list[Attempt]:
        """Search for translations of each sentence, and choose the best hypothesis."""
        if stopped and stopped():
            raise CancelledError
        if not queries:
            return []
        encoded = self.source.encode_batch([query.masked.given for query in queries])
        sources = [(*ids, *self._close) for ids in encoded]
        found = self._search(sources, [query.options for query in queries], stopped)
        wanted = [hypotheses[: query.options.n_best] for hypotheses, query in zip(found, queries, strict=True)]
        texts = iter(self.target.decode_batch([one.ids for hypotheses in wanted for one in hypotheses]))
        attempts = []
        for query, ids, first, hypotheses in zip(queries, sources, wanted, found, strict=True):
            candidates = list(self._judge.candidates(query, ids, [(one, next(texts)) for one in first]))
            if any(candidates[0].account) or candidates[0].faults:
                others = hypotheses[len(first) :]
                decoded = self.target.decode_batch([one.ids for one in others])
                candidates += self._judge.candidates(query, ids, list(zip(others, decoded, strict=True)))
            attempts.append(chosen(query, candidates))
        return attempts

    def _search(self, sources: Sequence[Ids], options: Sequence[Options], stopped: Stopped) -> list[list[Hypothesis]]:
        """Return all hypotheses of each beam. Sentences with the same options are searched as one batch."""
        groups: dict[Options, list[int]] = {}
        for n, one in enumerate(options):
            groups.setdefault(one, []).append(n)
        found: dict[int, list[Hypothesis]] = {}
        for one, numbers in groups.items():
            returns_n_best = one.sampling or one.length_penalty == 0  # otherwise, the whole beam costs nothing
            wide = replace(one, n_best=one.n_best if returns_n_best else one.beam)
            some = [sources[n] for n in numbers]
            listed = [self.shortlist.of(source) for source in some] if self.shortlist else None
            found |= zip(numbers, self.engine.search(some, wide, stopped, listed), strict=True)
        return [found[n] for n in range(len(sources))]


@lru_cache
def search_options(options: Options, config: ModelConfig, tokens: int, bytes_: frozenset[int]) -> Options:
    """Return the options for the engine. They leave room for the end token, and exclude byte tokens and embedding rows
    without a token."""
    room = min(options.max_length, max(1, config.max_positions - 1))
    nameless = range(tokens, config.target_vocabulary)
    return replace(options, max_length=room, suppressed=(*options.suppressed, *sorted(bytes_), *nameless))


def cores() -> int:
    if sys.platform == "emscripten":
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
