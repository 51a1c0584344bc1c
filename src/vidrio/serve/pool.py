"""The models that a server was given, each loaded when it is first asked for, the latest ones kept in memory."""

import logging
import threading
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import NamedTuple

from vidrio.errors import ConfigError
from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.serve.languages import Pair
from vidrio.translate.translator import Translator

OVERHEAD = 3  # times the size of its files is what a loaded model takes: parameters, tokenizers, room to work in

log = logging.getLogger("vidrio.serve")


class Spec(NamedTuple):
    """A model, as it lies on the disk."""

    folder: Path
    mebibytes: float  # that it takes when it is loaded


def read_specs(names: tuple[str, ...]) -> dict[Pair, Spec]:
    """The models by what they translate. Of two for the same pair the one that was named first counts."""
    named = [find.find(name) for name in names]
    packaged = [folder for name, folder in find.packaged().items() if name != find.LESSON]
    specs: dict[Pair, Spec] = {}
    for folder in named or packaged or [find.find()]:
        config, about = read_config(folder)
        if config.shape == "encoder-decoder":
            pair = (about.source_language or folder.name, about.target_language or f"{folder.name}-target")
            specs.setdefault(pair, Spec(folder, OVERHEAD * _size(folder) / (1 << 20)))
    return specs


def _size(folder: Path) -> int:
    fast = folder / "fast" / "model.bin"
    weights = fast if fast.is_file() else folder / "model.safetensors"
    return weights.stat().st_size if weights.is_file() else 0


class Pool:
    """Safe to use from many threads. A model that is let go of ends when its last translation does."""

    def __init__(self, specs: dict[Pair, Spec], mebibytes: float, load: Callable[[Path], Translator]) -> None:
        self.specs = specs
        self._most, self._load = mebibytes, load
        self._lock = threading.Lock()
        self._loaded: OrderedDict[Pair, Future[Translator]] = OrderedDict()
        largest = max(specs.values(), key=lambda spec: spec.mebibytes, default=None)
        if largest is not None and largest.mebibytes > mebibytes:
            raise ConfigError(
                f"{largest.folder} does not fit into the memory for models",
                found=f"it takes some {largest.mebibytes:.0f} MiB of {mebibytes:.0f}",
                do="give more by --memory",
            )

    def begin(self) -> None:
        """Load the first model, so that nobody waits for it."""
        try:
            self.translator(next(iter(self.specs)))
        except Exception:
            log.exception("a model cannot be loaded")

    def at_hand(self, pair: Pair) -> Translator | None:
        """The model for a pair, if nobody has to wait for it."""
        with self._lock:
            future = self._loaded.get(pair)
            if future is None or _state(future) != "ready":
                return None
            self._loaded.move_to_end(pair)
            return future.result()

    def translator(self, pair: Pair) -> Translator:
        """The model for a pair; who asks for it while it is loaded waits for the same."""
        with self._lock:
            future = self._loaded.get(pair)
            mine = future is None or (future.done() and future.exception() is not None)  # it is tried again
            if future is None or mine:
                self._loaded.pop(pair, None)
                self._make_room(self.specs[pair].mebibytes)
                future = self._loaded[pair] = Future()
            self._loaded.move_to_end(pair)
        if mine:
            try:
                future.set_result(self._load(self.specs[pair].folder))
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def states(self) -> dict[str, str]:
        """What each model is: not loaded, loading, ready, or failed when it was last loaded."""
        with self._lock:
            return {"-".join(pair): _state(self._loaded.get(pair)) for pair in self.specs}

    def _make_room(self, mebibytes: float) -> None:
        while self._loaded and sum(self.specs[pair].mebibytes for pair in self._loaded) + mebibytes > self._most:
            self._loaded.popitem(last=False)


def _state(loading: "Future[Translator] | None") -> str:
    if loading is None:
        return "not loaded"
    if not loading.done():
        return "loading"
    return "failed" if loading.exception() else "ready"
