"""What the server may ask of the glass: run a text, its numbers by address, the receipt of one of them.

All that this room uses of the rooms below passes through here. Nothing is computed here that has no address: a run is
`look`'s, a number the trace's, a term a part of the receipt's own expression.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from vidrio.errors import ConfigError, InputError
from vidrio.glass.trace import Trace
from vidrio.hypothesis import Options, default_options
from vidrio.look.changed import BeforeAfter, with_changes
from vidrio.look.run import LoadedModel, Look, Printed, look, open_model
from vidrio.model import find as models
from vidrio.search import Tree
from vidrio.serve.translating import Asked, Translating, remembered
from vidrio.translate.translation import Sentence

RUNS = 6  # kept, the last ones asked for; a long sentence of the packaged model has 100 MB of numbers
NUMBERS: dict[str, type | None] = {"": None, "float64": np.float64, "float32": np.float32}


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
    """The default model, known by its name if it has one, and the other models with a name."""
    available, first = models.available(), models.find(default)
    known = next((name for name, path in available.items() if path == first), first.name)
    return {known: first, **{name: path for name, path in available.items() if name != known}}


class Looking:
    """The models that may be looked into, and the runs of late."""

    def __init__(self, default: str | None = None, translating: Translating | None = None, runs: int = RUNS) -> None:
        """The default model and the packaged ones, unless others are given."""
        self.translating = translating or Translating(_folders(default))
        self.default, self.models = self.translating.default, self.translating.models
        self._load = remembered(2 * len(self.models), self._loaded)
        self._search = remembered(runs, self._searched)
        self.run = remembered(runs, self._run)

    def loaded(self, name: str, numbers: str = "") -> LoadedModel:
        """The model in the glass."""
        self.translating.translator(name)  # refuses an unknown name
        if numbers not in NUMBERS:
            raise ConfigError(f"there are no numbers {numbers!r}", found=", ".join(filter(None, NUMBERS)))
        return self._load((name, numbers))

    def _loaded(self, key: tuple[str, str]) -> LoadedModel:
        name, numbers = key
        return open_model(self.translating.folders[name], NUMBERS[numbers])

    def learned(self, name: str) -> LoadedModel:
        """As it is trained: in floating point."""
        return self.loaded(name).in_floating_point()

    def searched(self, asked: Asked) -> Look:
        """A search by the glass, with every hypothesis that it considered."""
        return self._search(replace(asked, changes=()))

    def _searched(self, asked: Asked) -> Look:
        glass, (given, options, _) = self.loaded(asked.model, asked.numbers), self._given(asked)
        return look(glass, given, options=options, tree=Tree())

    def _given(self, asked: Asked) -> tuple[str, Options, Sentence | None]:
        """What the model reads of the text, and how it searches: one sentence, as the translator gave and searched it;
        as is asked, where nothing was translated."""
        translation = self.translating.translated(asked)
        sentences = translation.sentences if translation else ()
        if not sentences:
            options = default_options(self.loaded(asked.model, asked.numbers).config)
            return asked.text, replace(options, beam=asked.beam or options.beam), None
        if asked.sentence >= len(sentences):
            raise InputError(f"the text has no sentence {asked.sentence}", found=f"{len(sentences)} sentences")
        sentence = sentences[asked.sentence]
        return sentence.given, sentence.options, sentence

    def _run(self, asked: Asked) -> Run:
        glass, start = self.loaded(asked.model, asked.numbers), time.perf_counter()
        translation = self.translating.translated(asked)
        given, options, sentence = self._given(asked)
        between = time.perf_counter()
        if asked.changes:
            before = self.run(replace(asked, changes=())).look
            tried = with_changes(before, glass, asked.changes, tree=Tree())
        else:
            translator = self.translating.translator(asked.model)
            printed = Printed(sentence.best, sentence.options, translator.engine) if translator and sentence else None
            tried = BeforeAfter.of_one(look(glass, given, options=options, target=printed))
        done = time.perf_counter()
        return Run(
            translation.text if translation else tried.after.translation,
            translation.sentences if translation else (),
            tried,
            {"translate": 1000 * (between - start), "glass": 1000 * (done - between)},
        )
