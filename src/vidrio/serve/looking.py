"""What the server may ask of the glass: run a text, its numbers by address, the receipt of one of them.

All that this room uses of the rooms below passes through here. Nothing is computed here that has no address: a run is
`look`'s, a number the trace's, a term a part of the receipt's own expression.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from vidrio.errors import ConfigError, InputError, ModelError
from vidrio.glass.trace import Trace
from vidrio.hypothesis import Options, default_options
from vidrio.look.changed import BeforeAfter, with_changes
from vidrio.look.run import LoadedModel, Look, Printed, look, open_model
from vidrio.model import find as models
from vidrio.search import Tree
from vidrio.translate.translation import Sentence, Translation
from vidrio.translate.translator import Translator

RUNS = 6  # kept, the last ones asked for; a long sentence of the packaged model has 100 MB of numbers
NUMBERS: dict[str, type | None] = {"": None, "float64": np.float64, "float32": np.float32}

K = TypeVar("K")
V = TypeVar("V")


def remembered(size: int, make: Callable[[K], V]) -> Callable[[K], V]:
    """`make`, whose last results are kept; what several ask for at the same time is worked out once."""
    lock, cached = threading.RLock(), lru_cache(size)(make)

    def get(key: K) -> V:
        with lock:
            return cached(key)

    return get


@dataclass(frozen=True)
class Asked:
    """One request, whole: the same words give the same numbers, today and after a restart."""

    text: str
    model: str
    sentence: int = 0
    changes: tuple[tuple[str, str], ...] = ()
    beam: int | None = None
    numbers: str = ""  # what to compute in; empty: as translating does


@dataclass(frozen=True)
class Loaded:
    """A model in the glass, and its translator where it translates."""

    name: str
    glass: LoadedModel
    translator: Translator | None

    @property
    def engine(self) -> str:
        return "glass" if self.translator is None else "Vidrio"


@dataclass(frozen=True)
class Run:
    """One sentence of a text, looked into."""

    translation: str  # of the whole text
    sentences: tuple[Sentence, ...]
    tried: BeforeAfter  # as the model is, and as it ran: changed, if changes were asked for
    milliseconds: dict[str, float]

    @property
    def look(self) -> Look:
        return self.tried.after

    @property
    def trace(self) -> Trace:
        return self.look.trace


def _folders(default: str | None) -> dict[str, Path]:
    """The default model, known by its name if it is a packaged one, and the other packaged ones."""
    packaged, first = models.packaged(), models.find(default)
    known = next((name for name, path in packaged.items() if path == first), first.name)
    return {known: first, **{name: path for name, path in packaged.items() if name != known}}


class Looking:
    """The models that may be looked into, and the runs of late."""

    def __init__(self, default: str | None = None, folders: Mapping[str, Path] | None = None, runs: int = RUNS) -> None:
        """The folders are looked into when they are first asked for; without, they are the default's and the packaged
        ones."""
        self.folders = dict(folders) if folders is not None else _folders(default)
        self.default = default if folders is not None and default else next(iter(self.folders))
        self.models = list(self.folders)
        self._load = remembered(2 * len(self.models), self._loaded)
        self._translate = lru_cache(64)(self._translated)
        self._search = remembered(runs, self._searched)
        self.run = remembered(runs, self._run)

    def loaded(self, name: str, numbers: str = "") -> Loaded:
        if name not in self.models:
            raise ModelError(f"this server has no model {name!r}", found=", ".join(self.models), do="name one of them")
        if numbers not in NUMBERS:
            raise ConfigError(f"there are no numbers {numbers!r}", found=", ".join(filter(None, NUMBERS)))
        return self._load((name, numbers))

    def _loaded(self, key: tuple[str, str]) -> Loaded:
        name, numbers = key
        glass = open_model(self.folders[name], NUMBERS[numbers])
        translates = glass.config.shape == "encoder-decoder" and name not in models.WORKED_EXAMPLES
        return Loaded(name, glass, Translator.load(self.folders[name]) if translates else None)

    def learned(self, name: str) -> LoadedModel:
        """As it is trained: in floating point."""
        return self.loaded(name).glass.in_floating_point()

    def translated(self, asked: Asked) -> Translation | None:
        """By the engine; nothing for a model that does not translate."""
        if self.loaded(asked.model).translator is None:
            return None
        return self._translate(Asked(asked.text, asked.model, beam=asked.beam))

    def _translated(self, asked: Asked) -> Translation:
        translator: Any = self.loaded(asked.model).translator
        options = replace(translator.options, beam=asked.beam or translator.options.beam)
        found: Translation = translator.translate(asked.text, options)
        return found

    def searched(self, asked: Asked) -> Look:
        """A search by the glass, with every hypothesis that it considered."""
        return self._search(replace(asked, changes=()))

    def _searched(self, asked: Asked) -> Look:
        loaded, (given, options, _) = self.loaded(asked.model, asked.numbers), self._given(asked)
        return look(loaded.glass, given, options=options, tree=Tree())

    def _given(self, asked: Asked) -> tuple[str, Options, Sentence | None]:
        """What the model reads of the text, and how it searches: one sentence, as the translator gave and searched it;
        as is asked, where nothing was translated."""
        translation = self.translated(asked)
        sentences = translation.sentences if translation else ()
        if not sentences:
            options = default_options(self.loaded(asked.model, asked.numbers).glass.config)
            return asked.text, replace(options, beam=asked.beam or options.beam), None
        if asked.sentence >= len(sentences):
            raise InputError(f"the text has no sentence {asked.sentence}", found=f"{len(sentences)} sentences")
        sentence = sentences[asked.sentence]
        return sentence.given, sentence.options, sentence

    def _run(self, asked: Asked) -> Run:
        loaded, start = self.loaded(asked.model, asked.numbers), time.perf_counter()
        translation = self.translated(asked)
        given, options, sentence = self._given(asked)
        between = time.perf_counter()
        if asked.changes:
            before = self.run(replace(asked, changes=())).look
            tried = with_changes(before, loaded.glass, asked.changes, tree=Tree())
        else:
            printed = Printed(sentence.best, sentence.options) if sentence is not None else None
            tried = BeforeAfter.of_one(look(loaded.glass, given, options=options, target=printed))
        done = time.perf_counter()
        return Run(
            translation.text if translation else tried.after.translation,
            translation.sentences if translation else (),
            tried,
            {"translate": 1000 * (between - start), "glass": 1000 * (done - between)},
        )
