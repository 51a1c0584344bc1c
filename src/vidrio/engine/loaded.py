"""A model in a library's memory, and what it computes of given ids in one pass. How it searches is in engine.py."""

import ctypes
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from vidrio.engine.library import Library
from vidrio.engine.weights import read_weights
from vidrio.errors import InputError, ModelError
from vidrio.model.config import ModelConfig


@dataclass(frozen=True)
class Model:
    """A loaded model."""

    library: Library
    address: int

    def __del__(self) -> None:
        self.library.free("model_free", self.address)


class Forced(NamedTuple):
    """A given translation, as the model sees it."""

    log_probs: list[float]  # of every target token, and of the end token after them
    attention: "memoryview[float]"  # T × S: the last layer's cross-attention, the mean over its heads


def loader(folder: Path, config: ModelConfig, open_library: Callable[[], Library]) -> Callable[[], Model]:
    """What returns the folder's model: one for all threads, or one for each where a library cannot share it. The
    first is loaded now, so that a damaged one is refused here."""

    def load() -> Model:
        library, weights = open_library(), read_weights(folder, config)
        try:
            address = library.load(*weights)
            problem = "" if address else library.read(library.functions.model_problem()).decode()
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


def forced(source: Sequence[int], target: Sequence[int], model: Model, record: int = 0) -> Forced:
    """The log-probabilities of a target. `record` gets all quantities of the pass."""
    rows = len(target) + 1  # one for the end token
    log_probs, attention = (ctypes.c_float * rows)(), (ctypes.c_float * (rows * len(source)))()
    given = array("i", source).tobytes(), len(source), array("i", target).tobytes(), len(target)
    _check_ids(model.library.functions.forced(model.address, record, *given, log_probs, attention))
    size = 4 * len(target) * len(source)
    return Forced(list(log_probs), matrix(memoryview(attention).cast("B")[:size], (len(target), len(source))))


def classify(source: Sequence[int], classes: int, model: Model, record: int = 0) -> list[float]:
    """The probabilities of a classifier's classes."""
    probabilities = (ctypes.c_float * classes)()
    given = array("i", source).tobytes(), len(source), probabilities
    _check_ids(model.library.functions.classify(model.address, record, *given))
    return list(probabilities)


def _check_ids(result: int) -> None:
    if result < 0:
        raise InputError(
            "these ids are none of this model's", found="a token beyond its vocabulary, or none", do="give its own ids"
        )


def quantities(
    source: Sequence[int], target: Sequence[int], config: ModelConfig, model: Model
) -> dict[str, "memoryview[float]"]:
    """Every quantity of a pass by its address."""
    library, functions = model.library, model.library.functions
    record, found = functions.record_new(), {}
    try:
        if config.has_decoder:
            forced(source, target, model, record)
        else:
            classify(source, config.n_classes, model, record)
        size = functions.record_count(record) * library.quantity.size
        told = list(library.quantity.iter_unpack(library.read(functions.record_quantity(record, 0), size)))
        places = [(place, 4 * rows * (columns or 1)) for _, rows, columns, place in told]
        for (address, rows, columns, _), values in zip(told, library.read_all(places), strict=True):
            shape = (rows, columns) if columns else (rows,)
            found[address.partition(b"\0")[0].decode()] = matrix(memoryview(values), shape)
    finally:
        functions.record_free(record)
    return found


def matrix(raw: "memoryview[int]", shape: tuple[int, ...]) -> "memoryview[float]":
    """The bytes as a matrix of float32, without a copy; NumPy reads it as an array."""
    return raw.cast("f", shape) if len(raw) else raw.cast("f")
