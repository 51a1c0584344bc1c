"""The models that a server was given, each loaded when it is first asked for."""

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.serve.languages import Pair
from vidrio.translate.translator import Translator

log = logging.getLogger("vidrio.serve")


def folders_of(names: tuple[str, ...]) -> dict[Pair, Path]:
    """The models by what they translate. Of two for the same pair the one that was named first counts."""
    named = [find.find(name) for name in names]
    packaged = [folder for name, folder in find.packaged().items() if name not in find.LESSONS]
    folders: dict[Pair, Path] = {}
    for folder in named or packaged or [find.find()]:
        config, about = read_config(folder)
        if config.shape == "encoder-decoder":
            pair = (about.source_language or folder.name, about.target_language or f"{folder.name}-target")
            folders.setdefault(pair, folder)
    return folders


class Pool:
    """Safe to use from many threads."""

    def __init__(self, folders: dict[Pair, Path], load: Callable[[Path], Translator]) -> None:
        self.folders = folders
        self._load, self._lock = load, threading.Lock()
        self._loaded: dict[Pair, Future[Translator]] = {}

    def begin(self) -> None:
        """Load the first model, so that nobody waits for it."""
        try:
            self.translator(next(iter(self.folders)))
        except Exception:
            log.exception("a model cannot be loaded")

    def at_hand(self, pair: Pair) -> Translator | None:
        """The model for a pair, if nobody has to wait for it."""
        return self._loaded[pair].result() if self.states()["-".join(pair)] == "ready" else None

    def translator(self, pair: Pair) -> Translator:
        """The model for a pair; who asks for it while it is loaded waits for the same. After a failure it is tried
        again."""
        with self._lock:
            future = self._loaded.get(pair)
            mine = future is None or (future.done() and future.exception() is not None)
            if future is None or mine:
                future = self._loaded[pair] = Future()
        if mine:
            try:
                future.set_result(self._load(self.folders[pair]))
            except BaseException as error:
                future.set_exception(error)
        return future.result()

    def states(self) -> dict[str, str]:
        """What each model is: not loaded, loading, ready, or failed when it was last loaded."""
        return {"-".join(pair): _state(self._loaded.get(pair)) for pair in self.folders}


def _state(loading: "Future[Translator] | None") -> str:
    if loading is None:
        return "not loaded"
    if not loading.done():
        return "loading"
    return "failed" if loading.exception() else "ready"
