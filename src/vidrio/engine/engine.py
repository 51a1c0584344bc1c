"""Ids → hypotheses, by the engine: the C in `c/`, as machine code or as WebAssembly (docs/design.md tells why)."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from vidrio.engine.library import Library, opener
from vidrio.engine.weights import read_weights
from vidrio.engine.workers import Batch, Model, Search, Sentence, Stopped, Workers, float_array, int_array, matrix
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Hypothesis, Ids, Options, Pair
from vidrio.model.config import ModelConfig

_loading = threading.Lock()  # the engine keeps the reason of the last refusal only


class Forced(NamedTuple):
    """A given translation, as the model finds it."""

    log_probs: list[float]  # of every target token, and of the end token after them
    attention: "memoryview[float]"  # T × S: the last layer's cross-attention, the mean over its heads


class Engine:
    """A model, loaded. Safe to use from many threads, and in the child of a fork.

    Source ids have their end token, if the model wants one; target ids have neither start nor end.
    """

    def __init__(self, load: Callable[[], Model], config: ModelConfig, workers: int) -> None:
        self._config = config
        self._workers = Workers(lambda: Batch(load), workers)

    @staticmethod
    def load(folder: Path, config: ModelConfig, *, workers: int = 1) -> "Engine":
        """The engine for a model folder. At most `workers` threads work at the same time."""
        return Engine(loader(folder, config, opener()), config, workers)

    def search(
        self, sources: Sequence[Sequence[int]], options: Options, stopped: Stopped = None
    ) -> list[list[Hypothesis]]:
        """For each source the best hypotheses, best first; CancelledError when `stopped` says that nobody wants them
        any more."""
        self._check_lengths(sources, options.max_length)
        return self._workers.run([Sentence(source, options) for source in sources], stopped)

    def watch(self, source: Ids, options: Options, on_token: Callable[[int], bool]) -> Hypothesis:
        """The greedy translation of one source; `on_token` is called with every token as it is chosen, and returns
        whether to stop: then it ends in a CancelledError."""
        self._check_lengths([source], options.max_length)
        [best] = self._workers.run([partial(_watch, source, replace(options, beam=1, n_best=1), on_token)])
        return best

    def forced(self, pairs: Sequence[Pair]) -> list[Forced]:
        """Each pair of source and target, as the model finds it."""
        self._check_pairs(pairs)
        return self._workers.run([partial(_force, *pair) for pair in pairs])

    def classify(self, sources: Sequence[Sequence[int]]) -> list[list[float]]:
        """The probabilities of a classifier's classes for each source."""
        self._check_lengths(sources, 0)
        return self._workers.run([partial(_classify, source, self._config.n_classes) for source in sources])

    def quantities(self, source: Sequence[int], target: Sequence[int] = ()) -> dict[str, "memoryview[float]"]:
        """Every quantity of a pass over both by its address (enc.0.self.Q.h1), as it was in the engine's memory; of a
        classifier there is no target."""
        self._check_pairs([(source, target)])

        def record(model: Model) -> dict[str, "memoryview[float]"]:
            functions = model.library.functions
            address = functions.record_new()
            try:
                if self._config.has_decoder:
                    _force(source, target, model, address)
                else:
                    _classify(source, self._config.n_classes, model, address)
                return _read_record(model.library, address)
            finally:
                functions.record_free(address)

        [found] = self._workers.run([record])
        return found

    def _check_pairs(self, pairs: Sequence[Pair]) -> None:
        self._check_lengths([source for source, _ in pairs], 1 + max((len(target) for _, target in pairs), default=0))

    def _check_lengths(self, sources: Sequence[Sequence[int]], longest_target: int) -> None:
        limit = self._config.max_positions
        longest = max((len(ids) for ids in sources), default=0)
        if longest > limit or longest_target > limit:
            raise InputError(
                "the text is longer than the model's positions",
                found=f"{longest} tokens to read and up to {longest_target} to write; the model holds {limit}",
                do="shorten or split the text; nothing was cut off silently",
            )


def loader(folder: Path, config: ModelConfig, open_library: Callable[[], Library]) -> Callable[[], Model]:
    """What gives the folder's model: one for all threads, or one for each where a library cannot share it. It is
    loaded at once, so that whoever opens it hears what is wrong with it."""

    def load() -> Model:
        library, weights = open_library(), read_weights(folder, config)
        with _loading:
            try:
                address = library.load(*weights)
                problem = "" if address else _text(library, library.functions.model_problem())
            except MemoryError as error:
                address, problem = 0, f"no memory for {len(weights.data):,} bytes: {error}"
        if not address:
            raise ModelError(f"the engine cannot use {folder}", found=problem, do="use an undamaged model folder")
        return Model(library, address)

    first = load()
    if first.library.shares_models:
        return lambda: first
    loaded = iter([first])
    return lambda: next(loaded, None) or load()


def _watch(source: Ids, options: Options, on_token: Callable[[int], bool], model: Model) -> Hypothesis | Exception:
    from concurrent.futures import CancelledError

    search, heard = Search(model), len(options.prefix)
    sentence = Sentence(source, options)
    address = search.add(sentence)
    try:
        while True:
            search.run(1)
            best = search.read(address, sentence)[0] if search.next() else None
            for token in (best.ids if best else search.written(address, sentence))[heard:]:
                heard += 1
                if on_token(token):
                    return CancelledError()
            if best:
                return best
    except Exception as error:  # of `on_token`: raised where it was asked for
        return error


def _force(source: Sequence[int], target: Sequence[int], model: Model, record: int = 0) -> Forced:
    read, written = int_array(source), int_array(target)
    log_probs, attention = (
        float_array(len(target) + 1),
        float_array((len(target) + 1) * len(source)),
    )  # a row for the end token
    given = (read, len(read), written, len(written), log_probs, attention)
    _check_ids(model.library.functions.forced(model.address, record, *given))
    return Forced(list(log_probs), matrix(attention, (len(target), len(source))))


def _classify(source: Sequence[int], classes: int, model: Model, record: int = 0) -> list[float]:
    read, probabilities = int_array(source), float_array(classes)
    _check_ids(model.library.functions.classify(model.address, record, read, len(read), probabilities))
    return list(probabilities)


def _check_ids(result: int) -> None:
    if result < 0:
        raise InputError(
            "these ids are none of this model's", found="a token beyond its vocabulary, or none", do="give its own ids"
        )


def _read_record(library: Library, record: int) -> dict[str, "memoryview[float]"]:
    found, functions = {}, library.functions
    for nth in range(functions.record_count(record)):
        rows, columns = functions.record_rows(record, nth), functions.record_columns(record, nth)
        size = 4 * rows * (columns or 1)
        values = library.read(functions.record_values(record, nth), size)
        shape = (rows, columns) if columns else (rows,)
        found[_text(library, functions.record_address(record, nth))] = matrix(values, shape)
    return found


def _text(library: Library, address: Any) -> str:
    """The C string at an address."""
    return library.read(address).decode()
