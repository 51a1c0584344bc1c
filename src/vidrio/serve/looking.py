"""What the server may ask of the glass: run a text, its numbers by address, the receipt of one of them.

All that this room uses of the rooms below passes through here. Nothing is computed here that has no address: a run is
`look`'s, a number the trace's, a term a part of the receipt's own expression.
"""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from vidrio.errors import ConfigError, InputError, ModelError
from vidrio.glass.trace import Trace
from vidrio.hypothesis import Options, default_options
from vidrio.lessons import values_file
from vidrio.lessons.runs import MOST_WORDS, Lesson
from vidrio.look.changed import BeforeAfter, with_changes
from vidrio.look.run import LoadedModel, Look, Printed, look, open_model
from vidrio.model import find as models
from vidrio.model.config import DecodingDefaults
from vidrio.model.folder import About
from vidrio.search import Tree
from vidrio.translate.translation import Sentence, Translation
from vidrio.translate.translator import Translator

RUNS = 6  # kept, the last ones asked for; a long sentence of the packaged model has 100 MB of numbers
EXAMPLES = {"worked-example": "corrected", "worked-example-printed": "printed"}  # the lesson's machine, and its modes
NUMBERS: dict[str, type | None] = {"": None, "float64": np.float64, "float32": np.float32}

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """The last results, each worked out once, however many ask for it at the same time."""

    def __init__(self, size: int) -> None:
        self._size, self._lock = size, threading.Lock()
        self._kept: OrderedDict[K, V] = OrderedDict()
        self._working: dict[K, threading.Lock] = {}

    def get(self, key: K, make: Callable[[], V]) -> V:
        with self._lock:
            mine = self._working.setdefault(key, threading.Lock())
        with mine:
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    return self._kept[key]
            made = make()
            with self._lock:
                self._kept[key] = made
                while len(self._kept) > self._size:
                    self._kept.popitem(last=False)
                self._working.pop(key, None)
            return made


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


class Looking:
    """The models that may be looked into, and the runs of late."""

    def __init__(self, default: str | None = None) -> None:
        packaged = models.packaged()
        first = models.find(default)
        known = next((name for name, path in packaged.items() if path == first), first.name)
        self.folders: dict[str, Path] = {known: first, **{n: p for n, p in packaged.items() if n != known}}
        self.default = known
        self.models = [*self.folders, *(name for name in EXAMPLES if name not in self.folders)]
        self._loaded: Recent[tuple[str, str], Loaded] = Recent(2 * len(self.models))
        self._translated: Recent[Asked, Translation] = Recent(64)
        self._searched: Recent[Asked, Look] = Recent(RUNS)
        self._runs: Recent[Asked, Run] = Recent(RUNS)

    def loaded(self, name: str, numbers: str = "") -> Loaded:
        if name not in self.models:
            raise ModelError(f"this server has no model {name!r}", found=", ".join(self.models), do="name one of them")
        if numbers not in NUMBERS:
            raise ConfigError(f"there are no numbers {numbers!r}", found=", ".join(filter(None, NUMBERS)))
        if name not in self.folders:
            return self._loaded.get((name, ""), lambda: _example(name))
        return self._loaded.get((name, numbers), lambda: _load(name, self.folders[name], NUMBERS[numbers]))

    def learned(self, name: str) -> LoadedModel:
        """As it is trained: in floating point."""
        return self.loaded(name).glass.in_floating_point()

    def translated(self, asked: Asked) -> Translation | None:
        """By the engine; nothing for a model that does not translate."""
        translator = self.loaded(asked.model).translator
        if translator is None:
            return None
        only_text = Asked(asked.text, asked.model, beam=asked.beam)
        options = replace(translator.options, beam=asked.beam or translator.options.beam)
        return self._translated.get(only_text, lambda: translator.translate(asked.text, options))

    def searched(self, asked: Asked) -> Look:
        """A search by the glass, with every hypothesis that it considered."""
        loaded, (given, options, _) = self.loaded(asked.model, asked.numbers), self._given(asked)
        unchanged = replace(asked, changes=())
        return self._searched.get(unchanged, lambda: look(loaded.glass, given, options=options, tree=Tree()))

    def run(self, asked: Asked) -> Run:
        return self._runs.get(asked, lambda: self._run(asked))

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


def _load(name: str, folder: Path, dtype: type | None) -> Loaded:
    glass = open_model(folder, dtype)
    translator = Translator.load(folder) if glass.config.shape == "encoder-decoder" else None
    return Loaded(name, glass, translator)


def _example(name: str) -> Loaded:
    """The first document's worked example: its matrices, computed right or as it prints."""
    lesson = Lesson(EXAMPLES[name], values_file.of_the_post())
    values = lesson.values
    decoding = DecodingDefaults(beam=1, max_length=MOST_WORDS)
    config = replace(values.config, decoding=decoding)
    machine = replace(lesson.machine, config=config)
    about = About(name=name, source_language="en", target_language="es", provenance={"about": values.about})
    nowhere = Path(values_file.__file__).parent  # no folder holds its numbers
    glass = LoadedModel(config, about, machine, values.tokenizer, values.tokenizer, nowhere)
    return Loaded(name, glass, None)
