"""Ids → hypotheses, by the engine: the C in `c/`, as machine code or as WebAssembly (docs/design.md tells why)."""

import threading
from array import array
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from vidrio.engine.batch import Batch
from vidrio.engine.library import Library, opener
from vidrio.engine.native import float_rows, numbers
from vidrio.engine.searching import Model, Sentence
from vidrio.engine.weights import read_weights
from vidrio.engine.workers import Workers
from vidrio.errors import InputError, ModelError
from vidrio.hypothesis import Hypothesis, Ids, Options, Pair
from vidrio.model.config import ModelConfig

_loading = threading.Lock()  # the engine keeps the reason of the last refusal only


def never() -> bool:
    return False


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
        return Engine(Models(folder, config, opener()).load, config, workers)

    def search(
        self, sources: Sequence[Sequence[int]], options: Options, stopped: Callable[[], bool] = never
    ) -> list[list[Hypothesis]]:
        """For each source the best hypotheses, best first; CancelledError when `stopped` says that nobody wants them
        any more."""
        self._check_lengths(sources, options.max_length)
        return self._workers.run([Sentence(source, options) for source in sources], stopped)

    def watch(self, source: Ids, options: Options, tell: Callable[[int], bool]) -> Hypothesis:
        """The greedy translation of one source; `tell` hears every token as it is chosen, and says whether to stop:
        then it ends in a CancelledError."""
        self._check_lengths([source], options.max_length)
        greedily = replace(options, beam=1, n_best=1)
        sentence, told = Sentence(source, greedily, watched=True), len(options.prefix)

        def tell_more() -> bool:
            nonlocal told
            while told < len(sentence.written):
                told += 1
                if tell(sentence.written[told - 1]):
                    return True
            return False

        [[best]] = self._workers.run([sentence], tell_more)
        sentence.written = list(best.ids)
        tell_more()
        return best

    def score(self, pairs: Sequence[Pair]) -> list[list[float]]:
        """For each pair the log-probability of every target token and of the end token after them."""
        self._check_pairs(pairs)
        return self._workers.run([partial(_score, *pair) for pair in pairs], never)

    def attend(self, pairs: Sequence[Pair]) -> list["memoryview[float]"]:
        """For each pair what the decoder looked at when it chose each target token, T × S: the last layer's
        cross-attention, the mean over its heads."""
        self._check_pairs(pairs)
        return self._workers.run([partial(_attend, *pair) for pair in pairs], never)

    def classify(self, sources: Sequence[Sequence[int]]) -> list[list[float]]:
        """The probabilities of a classifier's classes for each source."""
        self._check_lengths(sources, 0)
        return self._workers.run([partial(_classify, source, self._config.n_classes) for source in sources], never)

    def quantities(self, source: Sequence[int], target: Sequence[int] = ()) -> dict[str, "memoryview[float]"]:
        """Every quantity of a pass over both by its address (enc.0.self.Q.h1), as it was in the engine's memory; of a
        classifier there is no target."""
        self._check_pairs([(source, target)])
        [found] = self._workers.run([partial(_quantities, source, target, self._config)], never)
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


class Models:
    """A folder's model in memory: once, or for each thread by itself where a library cannot share it."""

    def __init__(self, folder: Path, config: ModelConfig, open_library: Callable[[], Library]) -> None:
        self._folder, self._config, self._open = folder, config, open_library
        self._ready = [self._read()]  # at once, so that what is wrong with the model is told to who opens it

    def load(self) -> Model:
        if self._ready and self._ready[0].library.shares_models:
            return self._ready[0]
        try:
            return self._ready.pop()
        except IndexError:
            return self._read()

    def _read(self) -> Model:
        library, weights = self._open(), read_weights(self._folder, self._config)
        with _loading:
            try:
                address = library.load(*weights)
                problem = "" if address else library.text(library.call("model_problem"))
            except MemoryError as error:
                address, problem = 0, f"no memory for {len(weights.data):,} bytes: {error}"
        if not address:
            raise ModelError(f"the engine cannot use {self._folder}", found=problem, do="use an undamaged model folder")
        return Model(library, address)


def _score(source: Sequence[int], target: Sequence[int], model: Model) -> list[float]:
    log_probs = numbers(len(target) + 1)
    _forced(model, 0, source, target, log_probs, None)
    return log_probs.tolist()


def _attend(source: Sequence[int], target: Sequence[int], model: Model) -> "memoryview[float]":
    looked = numbers((len(target) + 1) * len(source))  # a row for the end token, too
    _forced(model, 0, source, target, None, looked)
    return float_rows(looked[: len(target) * len(source)], (len(target), len(source)))


def _classify(source: Sequence[int], classes: int, model: Model) -> list[float]:
    probabilities = numbers(classes)
    _refuse(model.library.call("classify", model.address, 0, array("i", source), len(source), probabilities))
    return probabilities.tolist()


def _quantities(
    source: Sequence[int], target: Sequence[int], config: ModelConfig, model: Model
) -> dict[str, "memoryview[float]"]:
    call = model.library.call
    record = call("record_new")
    try:
        if config.has_decoder:
            _forced(model, record, source, target, None, None)
        else:
            ids, probabilities = array("i", source), numbers(config.n_classes)
            _refuse(call("classify", model.address, record, ids, len(ids), probabilities))
        found = {}
        for nth in range(call("record_count", record)):
            rows, columns = call("record_rows", record, nth), call("record_columns", record, nth)
            values = model.library.floats(call("record_values", record, nth), rows * (columns or 1))
            address = model.library.text(call("record_address", record, nth))
            found[address] = float_rows(values, (rows, columns) if columns else (rows,))
        return found
    finally:
        call("record_free", record)


def _forced(
    model: Model,
    record: int,
    source: Sequence[int],
    target: Sequence[int],
    log_probs: "array[float] | None",
    looked: "array[float] | None",
) -> None:
    read, written = array("i", source), array("i", target)
    given = (read, len(read), written, len(written), log_probs, looked)
    _refuse(model.library.call("forced", model.address, record, *given))


def _refuse(result: int) -> None:
    if result < 0:
        raise InputError(
            "these ids are none of this model's", found="a token beyond its vocabulary, or none", do="give its own ids"
        )
