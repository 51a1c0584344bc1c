"""Texts in, lines to print out: as they are, as JSON, or as fields that are added to a JSON object."""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from vidrio.errors import DataError
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.documents.terms import Terms
    from vidrio.hypothesis import Options
    from vidrio.translate.answers import Answers
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator

SURROGATES = re.compile("[\ud800-\udfff]")
MOST_UNKNOWN = 20  # words that are listed
DOUBTFUL = 0.5  # words with a lower probability are listed


class Record(NamedTuple):
    """A JSON object that came in, and how it was written: a number may be 2.50."""

    fields: dict[str, Any]
    line: str

    @staticmethod
    def read(line: str, number: int) -> "Record":
        """One line of JSON-lines input."""
        try:
            fields = json.loads(line, parse_constant=_refuse)
        except (ValueError, RecursionError) as error:
            raise DataError(f"line {number} is not JSON", found=str(error), do="give one JSON object a line") from None
        if not isinstance(fields, dict) or not isinstance(fields.get("text"), str):
            raise DataError(f'line {number} has no "text"', found=line[:80], do='give objects like {"text": "Hello"}')
        if SURROGATES.search(fields["text"]):
            raise DataError(
                f"the text of line {number} holds half a character", found=line[:80], do="write it in UTF-8"
            )
        return Record(fields, line)

    def with_fields(self, added: dict[str, Any]) -> str:
        """The object as it was written, with more fields; written anew where it has some of them already."""
        if self.fields.keys() & added.keys() - {"text"}:
            return json_text({**self.fields, **added})
        added = {name: value for name, value in added.items() if name not in self.fields}
        return f"{self.line.rstrip()[:-1].rstrip()}, {json_text(added)[1:]}"


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


@dataclass(frozen=True, kw_only=True)
class Work:
    """How texts are answered, and what is printed of the answers."""

    model: "Translator | Answers"
    options: "Options"
    as_json: bool = False
    jsonl: bool = False
    confidence: bool = False
    terms: "Terms" = ()
    unknown: dict[str, None] = field(default_factory=dict)  # the first words that the vocabulary does not hold

    def on_text(self, text: str, start: str) -> list[str]:
        """One text, whatever line ends it holds: its translations, or one line of JSON."""
        if self.terms:
            from vidrio.documents.terms import hide, reveal

            hidden = hide(text, self.terms)
            lines = replace(self, terms=()).on_text(hidden.text, start)
            return [reveal(line, hidden) for line in lines]
        if start:
            translator: Any = self.model
            answers = iter([translator.begin_with(text, start, self.options.n_best, self.options)])
        else:
            answers = self._answers([text])
        [answer] = answers
        self._note(answer)
        if self.as_json or self.jsonl:
            return [json_text(answer.to_json() if self.as_json else {"text": text, **self._fields(answer)})]
        if self.confidence:
            warn_of_doubts(1, answer)
        return [answer.text, *answer.alternatives[1:]]

    def on_lines(self, lines: Iterable[str], first: int = 1) -> Iterator[str]:
        """A line for each line; `first` is the number of the first one."""
        if self.terms:
            yield from self._with_terms(lines, first)
            return
        records = deque[Record]()

        def texts() -> Iterator[str]:
            for number, line in enumerate(lines, first):
                records.append(Record.read(line, number))
                yield records[-1].fields["text"]

        answers = self._answers(texts() if self.jsonl else lines)
        for number, answer in enumerate(answers, first):
            self._note(answer)
            if self.jsonl:
                yield records.popleft().with_fields(answer.to_json() if self.as_json else self._fields(answer))
            elif self.as_json:
                yield json_text(answer.to_json())
            else:
                if self.confidence:
                    warn_of_doubts(number, answer)
                yield answer.text if self.translates else " ".join(answer.text.splitlines())

    def _with_terms(self, lines: Iterable[str], first: int) -> Iterator[str]:
        from vidrio.documents.terms import Hidden, hide, reveal

        waiting = deque[Hidden]()

        def texts() -> Iterator[str]:
            for line in lines:
                waiting.append(hide(line, self.terms))
                yield waiting[-1].text

        for line in replace(self, terms=()).on_lines(texts(), first):
            yield reveal(line, waiting.popleft())

    @property
    def translates(self) -> bool:
        return self.model.config.shape == "encoder-decoder"

    def _answers(self, texts: Iterable[str]) -> Iterator[Any]:
        model: Any = self.model
        if self.translates:
            return model.stream(texts, self.options)
        return (model.answer(text, self.options) for text in texts)

    def _fields(self, answer: Any) -> dict[str, Any]:
        """What is added to a line of JSON."""
        if not self.translates:
            return dict(answer.details)
        return {"translation": answer.text, **({"confidence": answer.confidence} if self.confidence else {})}

    def _note(self, answer: Any) -> None:
        for word in answer.unknown:
            if len(self.unknown) < MOST_UNKNOWN:
                self.unknown[word] = None


def warn_of_doubts(number: int, translation: "Translation") -> None:
    """How likely a translation is, and the words of it that are not."""
    doubts = (word for word in translation.words if word.confidence is not None and word.confidence < DOUBTFUL)
    words = ", ".join(f"{word.text} {word.confidence:.2f}" for word in doubts)
    click.echo(f"{number:8}{translation.confidence:8.2f}  {words}".rstrip(), err=True)


def warn_of_unknown(words: Sequence[str]) -> None:
    if words:
        more = " …" if len(words) >= MOST_UNKNOWN else ""
        click.echo(f"vidrio: not in the model's vocabulary: {', '.join(words)}{more}", err=True)
