"""Texts in, lines to print out: as they are, as JSON, or as fields that are added to a JSON object."""

import json
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import click

from vidrio.errors import DataError
from vidrio.model.json_text import encodable, json_text

if TYPE_CHECKING:
    from vidrio.documents.terms import Hidden, Terms
    from vidrio.hypothesis import Options
    from vidrio.translate.answers import Answers
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator

MOST_UNKNOWN = 20  # words that are listed
DOUBTFUL = 0.5  # words with a lower probability are listed


@dataclass(frozen=True, kw_only=True)
class Work:
    """How texts are answered, and what is printed of the answers."""

    model: "Translator | Answers"
    options: "Options"
    as_json: bool = False
    jsonl: bool = False
    confidence: bool = False
    terms: "Terms" = ()
    unknown: dict[str, None] = field(default_factory=dict)  # the first words that the vocabulary lacks, in order

    def on_text(self, text: str, start: str) -> list[str]:
        """One text, whatever line ends it holds: its translations, or one line of JSON."""
        hidden = self._hide(text)
        if start:
            model: Any = self.model
            answer = model.begin_with(hidden.text if hidden else text, start, self.options.n_best, self.options)
        else:
            [answer] = self._answers([hidden.text if hidden else text])
        self._note(answer)
        if self.as_json or self.jsonl:
            return [json_text(answer.to_json() if self.as_json else {"text": text, **self._fields(answer)})]
        if self.confidence:
            warn_of_doubts(1, answer)
        return [_revealed(line, hidden) for line in (answer.text, *answer.alternatives[1:])]

    def on_lines(self, lines: Iterable[str], first: int = 1) -> Iterator[str]:
        """A line for each line; `first` is the number of the first one."""
        waiting: deque[tuple[dict[str, Any], Hidden | None]] = deque()

        def texts() -> Iterator[str]:
            for number, line in enumerate(lines, first):
                record = read_record(line, number) if self.jsonl else {"text": line}
                hidden = self._hide(record["text"])
                waiting.append((record, hidden))
                yield hidden.text if hidden else record["text"]

        for number, answer in enumerate(self._answers(texts()), first):
            record, hidden = waiting.popleft()
            self._note(answer)
            if self.as_json:
                yield json_text({**record, **answer.to_json()})
            elif self.jsonl:
                yield json_text({**record, **self._fields(answer)})
            else:
                if self.confidence:
                    warn_of_doubts(number, answer)
                yield _revealed(answer.text if self.translates else " ".join(answer.text.splitlines()), hidden)

    @property
    def translates(self) -> bool:
        return self.model.config.shape == "encoder-decoder"

    def _hide(self, text: str) -> "Hidden | None":
        if not self.terms:
            return None
        from vidrio.documents.terms import hide

        return hide(text, self.terms)

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


def read_record(line: str, number: int) -> dict[str, Any]:
    """One line of --jsonl."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {number} is not JSON", found=str(error), do="give one JSON object per line") from None
    text = record.get("text") if isinstance(record, dict) else None
    if not isinstance(text, str) or not encodable(text):
        raise DataError(f'line {number} has no "text"', found=line[:80], do='give objects like {"text": "Hello"}')
    return record


def _revealed(translation: str, hidden: "Hidden | None") -> str:
    if hidden is None:
        return translation
    from vidrio.documents.terms import reveal

    return reveal(translation, hidden)


def warn_of_doubts(number: int, translation: "Translation") -> None:
    """How likely a translation is, and the words of it that are not."""
    doubts = (word for word in translation.words if word.confidence is not None and word.confidence < DOUBTFUL)
    words = ", ".join(f"{word.text} {word.confidence:.2f}" for word in doubts)
    click.echo(f"{number:8}{translation.confidence:8.2f}  {words}".rstrip(), err=True)


def warn_of_unknown(words: Sequence[str]) -> None:
    if words:
        more = " …" if len(words) >= MOST_UNKNOWN else ""
        click.echo(f"vidrio: not in the model's vocabulary: {', '.join(words)}{more}", err=True)
