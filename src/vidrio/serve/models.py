"""The models that a server was given, each loaded when it is first asked for."""

import asyncio
from collections.abc import Callable
from pathlib import Path

from vidrio.model import find
from vidrio.model.folder import read_config
from vidrio.serve.languages import Pair
from vidrio.translate.translator import Translator


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


class Models:
    """Used on the event loop only; models are loaded in threads."""

    def __init__(self, folders: dict[Pair, Path], load: Callable[[Path], Translator]) -> None:
        self.folders, self._load = folders, load
        self._loaded: dict[Pair, asyncio.Future[Translator]] = {}

    async def translator(self, pair: Pair) -> Translator:
        """The model for a pair. All who ask while it is loaded wait for the same; after a failure it is tried again."""
        loading = self._loaded.get(pair)
        if loading is None or (loading.done() and loading.exception()):
            loading = self._loaded[pair] = asyncio.ensure_future(asyncio.to_thread(self._load, self.folders[pair]))
        return await asyncio.shield(loading)  # one that leaves does not end the loading for the others

    def states(self) -> dict[str, str]:
        """What each model is: not loaded, loading, ready, or failed when it was last loaded."""
        return {"-".join(pair): self._state(pair) for pair in self.folders}

    def _state(self, pair: Pair) -> str:
        loading = self._loaded.get(pair)
        if loading is None:
            return "not loaded"
        if not loading.done():
            return "loading"
        return "failed" if loading.exception() else "ready"
