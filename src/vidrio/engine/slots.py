"""Manage the models in the engine's memory, and assign them to threads.

In native code, all threads share one model. A WebAssembly instance has its own memory and model, and runs one thread
at a time, so there can be one instance per worker thread. Instances are opened on demand, and each thread uses the
instance with the fewest users.
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from vidrio.engine.library import Library
from vidrio.engine.weights import read_weights
from vidrio.errors import ModelError, VidrioError
from vidrio.model.config import ModelConfig

GROWN = 32 << 20  # idle instances that have grown by more bytes than this are dropped: their memory never shrinks
NO_MEMORY = "no memory is left"  # the engine's message


@dataclass(frozen=True)
class Model:
    """A model in a library's memory."""

    library: Library
    address: int
    config: ModelConfig
    size: int  # size of the library's memory after the model was loaded

    def __del__(self) -> None:
        if self.library.shares_models:  # otherwise, the model is dropped along with its instance
            self.library.functions.model_free(self.address)

    def problem(self) -> str:
        """Return the reason why this thread's last call failed, or "" if the engine rejected the arguments."""
        return problem(self.library)


def problem(library: Library) -> str:
    return library.read(library.functions.model_problem(), 80).partition(b"\0")[0].decode()


def load_model(folder: Path, config: ModelConfig, library: Library) -> Model:
    """Load the model in a folder. Raises ModelError if the model is damaged or does not fit in memory."""
    try:
        weights = read_weights(folder, config)
        address = library.functions.model_load(*weights.arguments)
        found = problem(library)
    except MemoryError:
        address, found = 0, NO_MEMORY
    if not address:
        do = "give the process more memory, or use a smaller model" if found == NO_MEMORY else "use an undamaged folder"
        raise ModelError(f"the engine cannot use {folder}", found=found, do=do)
    return Model(library, address, config, library.size())


@dataclass
class Slot:
    """A slot for a model, which is opened on demand."""

    model: Model | None = None
    users: int = 0
    opening: threading.Lock = field(default_factory=threading.Lock)


class Slots:
    """The models of an engine, shared by any number of threads."""

    def __init__(self, load: Callable[[], Model], most: int) -> None:
        first = load()  # raises ModelError if the model is damaged
        self.config = first.config
        self._load, self._most = load, 1 if first.library.shares_models else most
        self._begin(first)

    def _begin(self, first: Model | None) -> None:
        self._slots = [Slot(first), *(Slot() for _ in range(self._most - 1))]
        self._lock, self._process = threading.Lock(), os.getpid()

    @contextmanager
    def model(self) -> Iterator[Model]:
        """Yield a model to the calling thread. Several threads may use the same model."""
        if self._process != os.getpid():  # after a fork, the parent's threads cannot release their locks and slots
            first = self._slots[0].model
            self._begin(first if first and first.library.shares_models else None)
        slot, model = self._take()
        try:
            yield model
        finally:
            with self._lock:
                slot.users -= 1
                if not slot.users and model.library.size() > model.size + GROWN:
                    slot.model = None

    def _take(self) -> tuple[Slot, Model]:
        """Take the slot with the fewest users. If no more models can be opened, consider only slots that
        already have a model."""
        while True:
            with self._lock:
                slot = min(self._slots, key=lambda slot: (slot.users, slot.model is None))
                slot.users += 1
            try:
                with slot.opening:
                    slot.model = slot.model or self._load()
                    return slot, slot.model
            except BaseException as error:
                with self._lock:
                    slot.users -= 1
                    opened = [other for other in self._slots if other.model]
                    if not opened or not isinstance(error, (MemoryError, VidrioError)):
                        raise
                    self._slots = opened
