"""Run models that do not translate: classifiers, and language models, which continue a text."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vidrio.engine.engine import Engine
from vidrio.hypothesis import Ids, Options, default_options
from vidrio.model import find as models
from vidrio.model.folder import read_config
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import read_tokenizers


@dataclass(frozen=True)
class Answer:
    """A model's result for a text."""

    source: str
    details: dict[str, Any]  # data for programs
    alternatives: Sequence[str]  # the name of the class, or possible continuations, most probable first
    unknown: Sequence[str]  # the words that are not in the vocabulary

    @property
    def text(self) -> str:
        return self.alternatives[0]

    def to_json(self) -> dict[str, Any]:
        return {"text": self.source, **self.details, "unknown": list(self.unknown)}


class Answers:
    """A classifier or a language model."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.config, self.about = read_config(folder)
        self.options = default_options(self.config)
        self._engine = Engine.load(folder, self.config)
        self._source, self._target = read_tokenizers(folder, self.config)

    @staticmethod
    def load(name: str | Path | None = None) -> "Answers":
        return Answers(models.find(name))

    def answer(self, text: str, options: Options | None = None) -> Answer:
        """Classify or continue a text."""
        tokenizer = self._source if self.config.has_encoder else self._target
        pieces = tokenizer.pieces(valid(text))
        ids = tuple(piece.id for piece in pieces)
        details, said = self._class_of(ids) if self.config.has_encoder else self._gone_on(ids, options or self.options)
        return Answer(text, details, said, [text[piece.start : piece.end] for piece in pieces if piece.unknown])

    def _class_of(self, ids: Ids) -> tuple[dict[str, Any], list[str]]:
        if not ids:
            return {"class": None}, [""]
        [prob_C] = self._engine.classify([[*ids, *self.config.source_close]])
        names = self.about.labels or [f"class {n}" for n in range(len(prob_C))]
        classes = dict(zip(names, prob_C, strict=True))
        name = max(names, key=classes.__getitem__)
        return {"class": name, "probability": classes[name], "classes": classes}, [name]

    def _gone_on(self, ids: Ids, options: Options) -> tuple[dict[str, Any], list[str]]:
        [found] = self._engine.search([[]], replace(options, prefix=ids))
        written = [self._target.decode(hypothesis.ids) for hypothesis in found]
        alternatives = [
            {"written": text, "log_prob": hypothesis.log_prob, "score": hypothesis.score}
            for text, hypothesis in zip(written, found, strict=True)
        ]
        return {"written": written[0], "alternatives": alternatives}, written
