"""Models that do not translate: a classifier names the class of a text, a writer goes on from it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vidrio.engine.engine import Engine
from vidrio.hypothesis import Options, default_options
from vidrio.model import find as models
from vidrio.model.folder import read_config
from vidrio.text.tokens.normalise import valid
from vidrio.text.tokens.tokenizer import Piece, read_tokenizers


@dataclass(frozen=True)
class Answer:
    """What a model says of a text."""

    source: str
    text: str  # the name of the class, or the text with what was written on
    details: dict[str, Any]  # for a machine to read
    alternatives: Sequence[str]
    unknown: Sequence[str] = field(default=())  # words that the vocabulary does not hold

    def to_json(self) -> dict[str, Any]:
        return {"text": self.source, **self.details, "unknown": list(self.unknown)}


class Answers:
    """A classifier or a writer."""

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
        """What the model says of a text."""
        tokenizer = self._source if self.config.has_encoder else self._target
        pieces = tokenizer.pieces(valid(text))
        answer = self._class_of(text, pieces) if self.config.has_encoder else self._gone_on(text, pieces, options)
        return replace(answer, unknown=[text[piece.start : piece.end] for piece in pieces if piece.unknown])

    def _class_of(self, text: str, pieces: Sequence[Piece]) -> Answer:
        if not pieces:
            return Answer(text, "", {"class": None}, [""])
        [prob_C] = self._engine.classify([[*(piece.id for piece in pieces), *self.config.source_close]])
        names = self.about.labels or [f"class {n}" for n in range(len(prob_C))]
        classes = dict(zip(names, prob_C, strict=True))
        name = max(names, key=classes.__getitem__)
        return Answer(text, name, {"class": name, "probability": classes[name], "classes": classes}, [name])

    def _gone_on(self, text: str, pieces: Sequence[Piece], options: Options | None) -> Answer:
        options = replace(options or self.options, prefix=tuple(piece.id for piece in pieces))
        [found] = self._engine.search([[]], options)
        written = [self._target.decode(hypothesis.ids) for hypothesis in found]
        alternatives = [
            {"written": text, "log_prob": hypothesis.log_prob, "score": hypothesis.score}
            for text, hypothesis in zip(written, found, strict=True)
        ]
        return Answer(text, written[0], {"written": written[0], "alternatives": alternatives}, written)
