"""Ids → hypotheses, by CTranslate2, with the options of `search.py`."""

import ctypes
import json
import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import ctranslate2

from vidrio.errors import InputError, ModelError
from vidrio.fast.batches import Batches
from vidrio.hypothesis import Hypothesis, Ids, Options, Pair
from vidrio.model.config import ModelConfig
from vidrio.model.files import LARGEST_JSON
from vidrio.model.json_text import encodable

if TYPE_CHECKING:
    import numpy as np


_seeding = threading.Lock()  # CTranslate2's seed belongs to the whole process
_reloading = threading.Lock()


class Engine:
    """An exported model, loaded, as the Engine of translate/engines.py. Safe to use from many threads at once.

    `workers` batches are worked on at the same time, each by one thread: on sentences of usual length a second thread
    inside an operation waits more than it works.

    A batch holds sources of one length only. Padding would change the shape of attention's float32 products, hence the
    last bit of their sums, hence here and there the 8 bits that an activation is rounded to, and so a translation could
    depend on its neighbours. It costs nothing: what is not padded need not be computed.
    """

    def __init__(self, fast: Path, config: ModelConfig, *, workers: int = 1) -> None:
        self._folder, self._config, self._workers = fast, config, workers
        sizes = config.source_vocabulary, config.target_vocabulary
        self._source_tokens, self._target_tokens = _vocabularies(fast, *sizes)
        self._target_ids = {token: i for i, token in enumerate(self._target_tokens)}
        self._open()

    def _open(self) -> None:
        self._translator, self._batches = self._load(self._workers), Batches(self._workers)
        self._process = os.getpid()

    def warm(self) -> None:
        """Translate something, so that nobody waits for what the first search does: it makes the machine code of its
        matrix products, which takes as long as ten sentences."""
        self._translator.translate_batch([self._source_tokens[-2:]], beam_size=1, max_decoding_length=1)

    def _ready(self) -> tuple[Any, Batches]:
        """The translator and its batches. Threads do not come along into the child of a fork: there it is loaded anew,
        and what is the parent's is never freed, since that would wait for its threads."""
        if self._process != os.getpid():
            with _reloading:
                if self._process != os.getpid():
                    ctypes.pythonapi.Py_IncRef(ctypes.py_object(self._translator))
                    self._open()
        return self._translator, self._batches

    def _load(self, workers: int) -> Any:
        try:
            return ctranslate2.Translator(
                str(self._folder),
                device="cpu",
                inter_threads=workers,
                intra_threads=1,
                compute_type="default",
                max_queued_batches=-1,  # else who submits has to wait, and nobody takes what is done
            )
        except (RuntimeError, ValueError) as error:
            raise ModelError(
                f"{self._folder} cannot be loaded", found=str(error), do=f"delete {self._folder}; it is made again"
            ) from None

    def search(
        self,
        sources: Sequence[Sequence[int]],
        options: Options,
        stopped: Callable[[], bool] = lambda: False,
    ) -> list[list[Hypothesis]]:
        """The best hypotheses, without the log-probabilities of their tokens: `score` tells them."""
        self._check_lengths(sources, options.max_length)
        translator, batches = self._ready()
        if options.sampling is not None:  # draws depend on the batch, so there are no others in it
            translator, batches = self._seeded(options.sampling.seed), Batches(1)
        [prefix] = self._named([options.prefix], self._target_tokens)
        told = self._told(options)

        def submit(batch: Sequence[Sequence[int]]) -> list[Any]:
            sent = translator.translate_batch(
                self._named(batch, self._source_tokens),
                target_prefix=[prefix] * len(batch) if prefix else None,
                return_scores=True,
                asynchronous=True,
                **told,
            )
            return [_Coming(result, found) for result in sent]

        def found(result: Any) -> list[Hypothesis]:
            return list(map(self._hypothesis, result.hypotheses, result.scores, repeat(options)))

        lengths = [(len(ids), options.beam) for ids in sources]
        searched = batches.ask(("search", options), sources, lengths, submit, stopped)
        return self._completed(sources, searched)

    def _completed(self, sources: Sequence[Sequence[int]], searched: list[list[Hypothesis]]) -> list[list[Hypothesis]]:
        """With the log-probabilities and the attention of every token."""
        pairs = [(ids, one.ids) for ids, found in zip(sources, searched, strict=True) for one in found]
        scores, attention = iter(self.score(pairs)), iter(self.attend(pairs))

        def completed(one: Hypothesis) -> Hypothesis:
            log_probs = tuple(next(scores)[: len(one.ids) + one.ended])
            return one._replace(token_log_probs=log_probs, attention=next(attention))

        return [list(map(completed, found)) for found in searched]

    def watch(self, source: Ids, options: Options, tell: Callable[[int], bool]) -> Hypothesis:
        self._check_lengths([source], options.max_length)
        end, hearing = self._config.special.end, [tell]
        try:
            [result] = self._ready()[0].translate_batch(
                self._named([source], self._source_tokens),
                return_scores=True,
                callback=lambda step: step.token_id != end and hearing[0](step.token_id),
                **self._told(replace(options, beam=1, n_best=1)),
            )
        finally:  # CTranslate2's thread drops the callback later, and must not be the last to hold this engine: it
            hearing.clear()  # would have to wait for its own end
        found = self._hypothesis(result.hypotheses[0], result.scores[0], options)
        return self._completed([source], [[found]])[0][0]

    def score(self, pairs: Sequence[Pair]) -> list[list[float]]:
        self._check_lengths([source for source, _ in pairs], 1 + max((len(target) for _, target in pairs), default=0))

        translator, batches = self._ready()

        def submit(batch: Sequence[Pair]) -> Any:
            return translator.score_batch(
                self._named([source for source, _ in batch], self._source_tokens),
                self._named([target for _, target in batch], self._target_tokens),
                max_input_length=0,
                asynchronous=True,
            )

        lengths = [(len(source), len(target)) for source, target in pairs]
        results = batches.ask("score", pairs, lengths, submit)
        return [list(result.log_probs) for result in results]

    def attend(self, pairs: Sequence[Pair]) -> "list[np.ndarray]":
        """The target is forced, token by token: nearly a search again, which one that notes it spares (`Noted`)."""
        import numpy as np

        self._check_lengths([source for source, _ in pairs], max((len(target) for _, target in pairs), default=0))

        translator, batches = self._ready()

        def submit(batch: Sequence[Pair]) -> Any:
            return translator.translate_batch(
                self._named([source for source, _ in batch], self._source_tokens),
                target_prefix=self._named([target for _, target in batch], self._target_tokens),
                beam_size=1,
                max_input_length=0,
                max_decoding_length=max(len(target) for _, target in batch),  # the shorter ones go on, to no harm
                return_attention=True,
                asynchronous=True,
            )

        written = [pair for pair in pairs if pair[1]]
        results = iter(batches.ask("attend", written, [(len(source),) for source, _ in written], submit))
        return [
            np.array(next(results).attention[0][: len(target)]) if target else np.zeros((0, len(source)))
            for source, target in pairs
        ]

    @staticmethod
    def _named(many: Sequence[Sequence[int]], tokens: Sequence[str]) -> list[list[str]]:
        """The tokens of ids."""
        return [list(map(tokens.__getitem__, ids)) for ids in many]

    def _hypothesis(self, tokens: Sequence[str], score: float, options: Options) -> Hypothesis:
        # The end token takes the last step of those that end, so only a hypothesis that was cut is this long.
        ended = len(tokens) < options.max_length
        log_prob = score * (len(tokens) + ended) ** options.length_penalty
        return Hypothesis(tuple(map(self._target_ids.__getitem__, tokens)), log_prob, score, (), ended)

    def _told(self, options: Options) -> dict[str, Any]:
        """Our options in CTranslate2's words; every one that matters, since its defaults are not ours."""
        sampling = options.sampling
        return {
            "beam_size": options.beam,
            "patience": 1,
            "num_hypotheses": options.n_best,
            "length_penalty": options.length_penalty,
            "coverage_penalty": 0,
            "no_repeat_ngram_size": options.no_repeat_ngram,
            "suppress_sequences": [[self._target_tokens[i]] for i in options.suppressed] or None,
            "max_input_length": 0,  # 0: it would cut the rest off without a word
            "max_decoding_length": options.max_length,
            "min_decoding_length": options.min_length,
            "sampling_topk": 1 if sampling is None else min(sampling.top_k, len(self._target_tokens)),
            "sampling_topp": 1.0 if sampling is None else sampling.top_p,
            "sampling_temperature": 1.0 if sampling is None else sampling.temperature,
        }

    def _check_lengths(self, sources: Sequence[Sequence[int]], longest_target: int) -> None:
        limit = self._config.max_positions
        longest = max((len(ids) for ids in sources), default=0)
        if longest > limit or longest_target > limit:
            raise InputError(
                "the text is longer than the model's positions",
                found=f"{longest} tokens to read and up to {longest_target} to write; the model holds {limit}",
                do="shorten or split the text; nothing was cut off silently",
            )

    def _seeded(self, seed: int) -> Any:
        """A translator of its own: CTranslate2 reads the seed once, when a thread first draws."""
        with _seeding:
            ctranslate2.set_random_seed(seed)
            return self._load(workers=1)


class _Coming(NamedTuple):
    """A result of CTranslate2, made ours as soon as it is there: with its attention it is large."""

    sent: Any
    ours: Callable[[Any], Any]

    def result(self) -> Any:
        return self.ours(self.sent.result())


def _vocabularies(fast: Path, source: int, target: int) -> tuple[list[str], list[str]]:
    """The tokens of the source and of the target; one list, where they share one."""
    shared = fast / "shared_vocabulary.json"
    if shared.is_file() and source == target:
        tokens = _vocabulary(shared, source)
        return tokens, tokens
    paths = [shared if shared.is_file() else fast / f"{side}_vocabulary.json" for side in ("source", "target")]
    return _vocabulary(paths[0], source), _vocabulary(paths[1], target)


def _vocabulary(path: Path, rows: int) -> list[str]:
    try:
        if path.stat().st_size > LARGEST_JSON:
            raise ValueError(f"more than {LARGEST_JSON:,} bytes")
        tokens: list[str] = json.loads(path.read_text(encoding="utf-8"))
        if type(tokens) is not list or set(map(type, tokens)) - {str} or not encodable("".join(tokens)):
            raise TypeError("it is no list of texts of whole characters")
        if len(tokens) != rows or len(set(tokens)) != rows:
            raise ValueError(f"{len(tokens):,} tokens, {len(set(tokens)):,} of them different, for {rows:,} rows")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise ModelError(
            f"{path} cannot be read", found=f"{error!s:.300}", do=f"delete {path.parent}; it is made again"
        ) from None
    return tokens
