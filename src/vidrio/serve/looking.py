"""Trace texts for the page, and cache the models, the search results and the runs."""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from vidrio.engine.engine import Stopped
from vidrio.errors import ConfigError, InputError
from vidrio.glass.trace import Trace
from vidrio.hypothesis import Options, default_options
from vidrio.look.changed import BeforeAfter, with_changes
from vidrio.look.run import LoadedModel, Look, Printed, look, open_model, with_tree
from vidrio.look.run_data import search_data
from vidrio.model import find as models
from vidrio.search import Tree
from vidrio.serve.memo import Memo
from vidrio.serve.translating import RunRequest, Translating
from vidrio.translate.translation import Translation

KEPT = 24 << 20  # maximum bytes of cached runs; in a packaged model, 90 tokens take 43 MB, a short sentence 5 MB
MAX_NODES = 10_000  # maximum number of nodes in the cached search trees
LOADED = 48 << 20  # maximum bytes of the models' NumPy parameters; values computed from them take twice as much
NUMBERS: dict[str, type | None] = {"": None, "float64": np.float64, "float32": np.float32}


@dataclass(frozen=True)
class Run:
    """The trace of one sentence of a text."""

    whole: Translation | None  # the translation of the whole text; None if the model does not translate
    tried: BeforeAfter  # the run of the original model, and the run with any changes

    @property
    def translation(self) -> str:
        return self.whole.text if self.whole else self.look.translation

    @property
    def look(self) -> Look:
        return self.tried.after

    @property
    def trace(self) -> Trace:
        return self.look.trace

    def size(self) -> int:
        """Return the size of the run in bytes."""
        before = self.tried.before.trace
        return size_of(self.trace.values) + (0 if before is self.trace else size_of(before.values))


def size_of(arrays: Mapping[str, np.ndarray]) -> int:
    """Return the total size of the arrays in bytes."""
    return sum(array.nbytes for array in arrays.values())


def folders_of(default: str | None, *others: str) -> dict[str, Path]:
    """Return the folders of all models by name, the given models first. A model without a name is named after its
    folder."""
    available = models.available()
    chosen = models.by_name(map(models.find, (default, *others)), available)
    return chosen | {name: path for name, path in available.items() if name not in chosen}


class Looking:
    """The models that can be inspected, and their recent runs."""

    def __init__(self, default: str | None = None, translating: Translating | None = None, kept: float = KEPT) -> None:
        """Use the default model and all available models, unless `translating` is given."""
        self.translating = translating = translating or Translating(folders_of(default))
        self.default, self.models = translating.default, translating.models
        self.stopped = cast(Stopped, None)
        self._load = Memo(self._loaded, most=LOADED, size=lambda model: size_of(model.machine.parameters))
        self._search = Memo(self._searched, most=MAX_NODES, size=lambda found: len(found["nodes"]))
        self._runs = Memo(self._run, most=kept, size=Run.size)

    def until(self, stopped: Stopped) -> "Looking":
        """Return a copy that shares the models and runs, for a request that `stopped` can cancel."""
        same = copy(self)
        same.stopped = stopped
        return same

    def is_kept(self, request: RunRequest) -> bool:
        return request in self._runs

    def forget(self, seconds: float) -> None:
        """Drop models and results that were last requested at least `seconds` ago. Keep the translators."""
        for memo in (self._load, self._search, self._runs, self.translating.latest):
            memo.forget(seconds)

    def run(self, request: RunRequest) -> Run:
        return self._runs(request, self.stopped)

    def read(self, request: RunRequest) -> str:
        """Return the model's input for the requested sentence."""
        return self._given(request, self.translating.translated(request, self.stopped))[0]

    def loaded(self, name: str, numbers: str = "") -> LoadedModel:
        """Return the model, opened for tracing."""
        self.translating.translator(name)  # raises an error if the name is unknown
        if numbers not in NUMBERS:
            raise ConfigError(f"unknown number type {numbers!r}", found=", ".join(filter(None, NUMBERS)))
        return self._load((name, numbers), self.stopped)

    def _loaded(self, key: tuple[str, str], stopped: Stopped) -> LoadedModel:
        name, numbers = key
        return open_model(self.translating.folders[name], NUMBERS[numbers])

    def searched(self, request: RunRequest) -> dict[str, Any]:
        """Search with the reference implementation, and return every hypothesis considered. The result is plain data,
        because a run would take far more memory."""
        return self._search(request, self.stopped)

    def _searched(self, request: RunRequest, stopped: Stopped) -> dict[str, Any]:
        if request.changes:
            seen = with_tree(self._runs(request, stopped).look, stopped)
        else:
            given, options, _ = self._given(request, self.translating.translated(request, stopped))
            seen = look(
                self.loaded(request.model, request.numbers), given, options=options, tree=Tree(), stopped=stopped
            )
        return search_data(seen)

    def _given(self, request: RunRequest, translation: Translation | None) -> tuple[str, Options, Printed | None]:
        """Return the model's input for one sentence, the search options, and the engine's translation. If nothing was
        translated, return the text itself, the requested options and None."""
        if not (translation and translation.sentences):
            options = default_options(self.loaded(request.model, request.numbers).config)
            return request.text, replace(options, beam=request.beam or options.beam), None
        if request.sentence >= len(translation.sentences):
            found = f"{len(translation.sentences)} sentences"
            raise InputError(f"the text does not have a sentence {request.sentence}", found=found)
        sentence = translation.sentences[request.sentence]
        printed = Printed(sentence.best, sentence.options, translation.translator.engine)
        return sentence.given, sentence.options, printed

    def _run(self, request: RunRequest, stopped: Stopped) -> Run:
        glass = self.loaded(request.model, request.numbers)
        translation = self.translating.translated(request, stopped)
        given, options, printed = self._given(request, translation)
        if request.changes:
            before = self._runs(replace(request, changes=()), stopped).look
            tried = with_changes(before, glass, request.changes, tree=Tree(), stopped=stopped)
        else:
            tried = BeforeAfter.of_one(look(glass, given, options=options, target=printed, stopped=stopped))
        return Run(translation, tried)
