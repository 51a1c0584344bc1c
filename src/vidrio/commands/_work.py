"""Translate texts, and format the results as plain text, as JSON or as additional fields of a JSON object."""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import SAMPLING, as_options
from vidrio.errors import DataError
from vidrio.model.files import sha256
from vidrio.model.json_text import json_data, json_text

if TYPE_CHECKING:
    from vidrio.documents.terms import Terms
    from vidrio.hypothesis import Options
    from vidrio.translate.answers import Answers
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator

SHOWN = 20  # maximum number of line numbers in a summary
DOUBTFUL = 0.5  # words with a lower probability are reported


@dataclass(frozen=True, kw_only=True)
class Request:
    """The arguments and options of `vidrio translate`."""

    text: str | None  # None means that lines are read from a file or standard input
    sources: tuple[str, ...]
    target: str | None
    models: tuple[str, ...]  # applied in sequence; empty means the default model
    ray: str | None
    resume: bool
    n_best: int
    confidence: bool
    as_json: bool
    jsonl: bool
    form: str | None
    glossary: Path | None
    workers: int | None
    shortlist: bool
    search: Mapping[str, Any]

    @property
    def samples(self) -> bool:
        """Whether tokens are sampled."""
        return any(self.search[name] is not None for name in SAMPLING)


@dataclass(frozen=True, kw_only=True)
class Work:
    """Processes texts with the models and options of a request, and formats the results."""

    request: Request
    first: "Sequence[Translator]"  # all models of a chain except for the last
    model: "Translator | Answers"
    options: "Options"
    terms: "Terms"
    doubtful: Counter[int] = field(default_factory=Counter)  # lines to check, by number; 0 stands for further lines

    @staticmethod
    def begin(request: Request, cores: int | None) -> "Work":
        """Load the requested models, which may use this many cores."""
        from vidrio.documents.terms import read_terms
        from vidrio.translate.chain import load_chain
        from vidrio.translate.translator import NoTranslator

        first: list[Translator]
        model: Any
        try:
            *first, model = load_chain(request.models, cores, shortlist=request.shortlist)
        except NoTranslator:
            from vidrio.translate.answers import Answers

            if len(request.models) > 1:
                raise
            if request.confidence or request.glossary:
                raise click.UsageError("--confidence and --glossary require a translation model.") from None
            first, model = [], Answers.load(next(iter(request.models), None))
        search = dict(request.search)
        if request.n_best > 1 and not request.samples:
            search["beam"] = max(request.n_best, search["beam"] or model.options.beam)
        options = replace(as_options(model.config, search), n_best=request.n_best)
        return Work(request=request, first=first, model=model, options=options, terms=read_terms(request.glossary))

    def on_text(self, text: str) -> list[str]:
        """Process one text, which may contain line breaks. Return its translations, or one line of JSON."""
        from vidrio.documents.terms import hide, reveal

        hidden = hide(text, self.terms)
        [answer] = self._answers([hidden.text])
        self._warn(1, answer)
        if self.request.as_json or self.request.jsonl:
            return [self._json({"text": text}, answer)]
        return [reveal(line, hidden) for line in (answer.text, *answer.alternatives[1:])]

    def on_lines(self, lines: Iterable[str], first: int = 1) -> Iterator[str]:
        """Process each input line and yield its result; `first` is the first line's number."""
        from vidrio.documents.terms import Hidden, hide, reveal

        waiting: deque[tuple[dict[str, Any], Hidden]] = deque()

        def texts() -> Iterator[str]:
            for number, line in enumerate(lines, first):
                record = read_record(line, number) if self.request.jsonl else {"text": line}
                waiting.append((record, hide(record["text"], self.terms)))
                yield waiting[-1][1].text

        for number, answer in enumerate(self._answers(texts()), first):
            record, hidden = waiting.popleft()
            self._warn(number, answer)
            if self.request.as_json or self.request.jsonl:
                yield self._json(record, answer)
            else:
                yield reveal(answer.text if self.translates else " ".join(answer.text.splitlines()), hidden)

    @property
    def translates(self) -> bool:
        return self.model.config.shape == "encoder-decoder"

    def checksum(self) -> str:
        """Return a checksum of the models. Hashing each config is enough, because it contains the checksums of the
        other files."""
        return " ".join(sha256(model.folder / "config.json") for model in (*self.first, self.model))

    def _answers(self, texts: Iterable[str]) -> Iterator[Any]:
        model: Any = self.model
        for before in self.first:
            texts = (answer.text for answer in before.stream(texts))
        if self.translates:
            return model.stream(texts, self.options)
        return (model.answer(text, self.options) for text in texts)

    def _json(self, record: dict[str, Any], answer: Any) -> str:
        """Return one line of JSON describing a text and its translation, with all fields or only the main ones."""
        if self.request.as_json:
            through = {"text": record["text"], "through": answer.source} if self.first else {}
            return json_text({**record, **answer.to_json(), **through})
        if not self.translates:
            return json_text({**record, **answer.details})
        warnings = {"warnings": list(map(str, answer.warnings))} if answer.warnings else {}
        return json_text({**record, "translation": answer.text, "confidence": answer.confidence, **warnings})

    def _warn(self, number: int, translation: "Translation") -> None:
        """Count a line that should be checked. With --confidence, print its confidence, unlikely words and warnings."""
        if self.translates and translation.warnings:
            self.doubtful[number if len(self.doubtful) < SHOWN else 0] += 1
        if self.request.confidence:
            unlikely = (
                word for word in translation.words if word.confidence is not None and word.confidence < DOUBTFUL
            )
            words = ", ".join(f"{word.text} {word.confidence:.2f}" for word in unlikely)
            notes = "; ".join(filter(None, (words, *map(str, translation.warnings))))
            click.echo(f"{number:8}{translation.confidence:8.2f}  {notes}".rstrip(), err=True)

    def summary(self, lines: int) -> str:
        """Return a sentence that lists the lines to check, or an empty string if no line needs checking."""
        shown = ", ".join(f"{number or '…'}" for number in self.doubtful)
        return f"{self.doubtful.total():,} of {lines:,} lines should be checked: {shown}" if self.doubtful else ""


def read_record(line: str, number: int) -> dict[str, Any]:
    """Parse one input line of --jsonl."""
    try:
        record = json_data(line)
    except ValueError as error:
        raise DataError(f"line {number} is not JSON", found=str(error), do="write one JSON object per line") from None
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str):
        raise DataError(f'line {number} has no "text"', found=line[:80], do='write objects such as {"text": "Hello"}')
    return record
