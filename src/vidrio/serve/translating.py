"""Handle the page's first request, for the translation. This needs only the engine, so that the page can start in a
browser without NumPy or the reference implementation (looking.py)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from typing import Any, ClassVar

from vidrio.engine.engine import Stopped
from vidrio.errors import ModelError
from vidrio.model import find as models
from vidrio.serve.memo import Memo
from vidrio.translate.translation import Translation
from vidrio.translate.translator import NoTranslator, Translator

LONGEST_TEXT = 4_000  # characters
MAX_TENSORS = 512  # per request
MAX_CHANGES = 64
SHORT = 300  # maximum characters of an address or a change
TRANSLATIONS = 64  # the number of translations to cache


@dataclass(frozen=True)
class RunRequest:
    """A request for a run. Identical requests give identical numbers, even after a restart."""

    text: str
    model: str
    sentence: int = 0
    changes: tuple[tuple[str, str], ...] = ()
    beam: int | None = None
    numbers: str = ""  # the number type of the computation; empty means the same as in translation


@dataclass(frozen=True)
class Question:
    """A request from the page. It specifies a run (text, model, changes) and which of its results to return."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}

    text: str = ""
    model: str = ""
    sentence: int = 0
    changes: tuple[tuple[str, str], ...] = ()
    beam: int | None = None
    numbers: str = ""
    # A decoding step, and the sampling options to apply at that step
    step: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    # The address of a number and the format to copy it in; the addresses of tensors, and whether to omit missing ones
    address: str = ""
    kind: str = ""
    addresses: tuple[str, ...] = ()
    if_there: bool = False
    answer: str = ""  # the correct translation
    word: str = ""  # a word of the translation, instead of a step
    rival: str = ""  # a token or word that was not chosen; empty means the runner-up
    other: str = ""  # another text; the rows of a run on it are substituted one at a time

    def __post_init__(self) -> None:
        texts = [self.model, self.numbers, self.address, self.kind, self.word, self.rival]
        short = [*texts, *self.addresses, *(word for change in self.changes for word in change)]
        within = (
            max(len(self.text), len(self.answer), len(self.other)) <= LONGEST_TEXT
            and max(map(len, short)) <= SHORT
            and len(self.changes) <= MAX_CHANGES
            and len(self.addresses) <= MAX_TENSORS
            and min(self.sentence, self.step) >= 0
            and 1 <= (self.beam or 1) <= 16
        )
        if not within:
            raise ValueError(f"a text has at most {LONGEST_TEXT} characters, an address {SHORT}")

    def request(self, default: str) -> RunRequest:
        return RunRequest(self.text, self.model or default, self.sentence, self.changes, self.beam, self.numbers)


def opened(*, shortlist: bool = False) -> Memo[Path, Translator]:
    """Return a cache of translators. A translator is loaded from its folder on first use."""
    return Memo(lambda folder, stopped: Translator.load(folder, shortlist=shortlist), most=inf)


class Translating:
    """The models by name, the default model first. Each model is loaded on first use."""

    def __init__(self, folders: Mapping[str, Path], translators: Memo[Path, Translator] | None = None) -> None:
        self.folders = dict(folders)
        self.models = list(self.folders)
        self.default = self.models[0]
        self._translators = translators or opened()
        self.latest = Memo(self._translated, most=TRANSLATIONS)

    def translator(self, name: str) -> Translator | None:
        """Return a model's translator, or None if the model does not translate."""
        if name not in self.models:
            raise ModelError(
                f"this server has no model {name!r}", found=", ".join(self.models), do="choose one of them"
            )
        if name in models.WORKED_EXAMPLES:
            return None
        try:
            return self._translators(self.folders[name])
        except NoTranslator:
            return None

    def translated(self, request: RunRequest, stopped: Stopped = None) -> Translation | None:
        """Return the engine's translation, or None if the model does not translate."""
        translator = self.translator(request.model)
        return self.latest((request.text, request.model, request.beam), stopped) if translator else None

    def _translated(self, key: tuple[str, str, int | None], stopped: Stopped) -> Translation:
        text, model, beam = key
        translator = self.translator(model)
        assert translator
        options = replace(translator.options, beam=beam or translator.options.beam)
        return translator.translate(text, options, stopped)

    def answer(self, q: Question, stopped: Stopped = None) -> Any:
        """Return the translation and its warnings, without tracing."""
        translation = self.translated(q.request(self.default), stopped)
        warnings = [
            {"reason": str(warning), **warning._asdict()} for warning in (translation.warnings if translation else ())
        ]
        return {"translation": translation.text if translation else None, "warnings": warnings}
