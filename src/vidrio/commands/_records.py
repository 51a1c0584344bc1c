"""Texts in, lines to print out: as they are, as JSON, or as fields that are added to a JSON object."""

import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from vidrio.commands._doubts import Doubts
from vidrio.errors import DataError
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.hypothesis import Options
    from vidrio.translate.answers import Answer, Answers
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator

SURROGATES = re.compile("[\ud800-\udfff]")
UNKNOWN_TOLD = 20  # words that the vocabulary does not hold; the rest are counted


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
    raise ValueError(f"{constant} is no JSON")


@dataclass(frozen=True, kw_only=True)
class AnswerWork:
    """How texts are answered by a model that does not translate, and what is printed of it."""

    answers: "Answers"
    options: "Options"
    as_json: bool
    jsonl: bool
    unknown: dict[str, None] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.answers.folder

    def at_once(self) -> int:
        """Characters that are read before some are answered."""
        return 1

    def on_text(self, text: str) -> list[str]:
        answer = self._answer(text)
        if self.as_json or self.jsonl:
            return [json_text(answer.to_json())]
        return list(answer.alternatives)

    def on_lines(self, chunks: Iterable[Sequence[str]], first: int = 1) -> Iterator[list[str]]:
        """A line for each line, one at a time; `first` is the number of the first one."""
        for number, line in enumerate(chain.from_iterable(chunks), first):
            if self.jsonl:
                record = Record.read(line, number)
                yield [record.with_fields(self._answer(record.fields["text"]).details)]
            else:
                answer = self._answer(line)
                yield [json_text(answer.to_json()) if self.as_json else " ".join(answer.text.splitlines())]

    def _answer(self, text: str) -> "Answer":
        answer = self.answers.answer(text, self.options)
        note_unknown(answer.unknown, self.unknown)
        return answer


@dataclass(frozen=True, kw_only=True)
class Work:
    """How texts are translated, and what is printed of it."""

    translator: "Translator"
    options: "Options"
    as_json: bool
    jsonl: bool
    alignment: bool
    doubts: Doubts | None
    start: str
    alternatives: int
    unknown: dict[str, None] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        return self.translator.folder

    def at_once(self) -> int:
        """Characters that are read before some are translated."""
        return self.translator.at_once

    def on_text(self, text: str) -> list[str]:
        """One text, whatever line ends it holds."""
        if self.start or self.alternatives > 1:
            translation = self.translator.begin_with(text, self.start, self.alternatives, self.options)
        else:
            translation = self.translator.translate(text, self.options)
        if self.as_json or self.jsonl:
            record = Record({"text": text}, json_text({"text": text}))
            return self._lines([translation], [record] if self.jsonl else [])
        note_unknown(translation.unknown, self.unknown)
        lines = [translation.text, *translation.alternatives[1:]]
        if self.doubts is not None:
            [translation] = self.translator.with_confidence([translation])
            for sentence in translation.sentences:
                self.doubts.tell(sentence.confidence or 0.0, sentence.words or ())
            lines[0] = self.doubts.marked(translation)
        return [*lines, *map(str, translation.alignment)] if self.alignment else lines

    def on_lines(self, chunks: Iterable[Sequence[str]], first: int = 1) -> Iterator[list[str]]:
        """A line for each line, some at a time; `first` is the number of the first one."""
        records: deque[Record] = deque()
        numbers = count(first)
        if self.doubts is not None:
            self.doubts.number = first

        def texts() -> Iterator[list[str]]:
            for lines in chunks:
                some: list[str] = []
                try:
                    for line in lines:
                        records.append(record := Record.read(line, next(numbers)))
                        some.append(record.fields["text"])
                except DataError:  # those before it are translated
                    yield some
                    raise
                yield some

        for translations in self.translator.stream_chunks(texts() if self.jsonl else chunks, self.options):
            yield self._lines(translations, [records.popleft() for _ in translations] if self.jsonl else [])

    def _lines(self, translations: Sequence["Translation"], records: Sequence[Record]) -> list[str]:
        """What is printed; with `records`, these with more fields."""
        if self.doubts is not None:
            translations = self.translator.with_confidence(translations)
        elif self.as_json:
            translations = self.translator.with_token_scores(translations)
        if self.as_json:
            translations = self.translator.with_alignment(translations)
        for translation in translations:
            note_unknown(translation.unknown, self.unknown)
        if self.as_json or self.jsonl:
            fields = [
                translation.to_json() if self.as_json else self._fields(translation) for translation in translations
            ]
            if not records:
                return list(map(json_text, fields))
            return [record.with_fields(added) for record, added in zip(records, fields, strict=True)]
        if self.doubts is None:
            return [translation.text for translation in translations]
        for translation in translations:
            self.doubts.tell(translation.confidence, translation.words)
        return [self.doubts.marked(translation) for translation in translations]

    def _fields(self, translation: "Translation") -> dict[str, Any]:
        """What is added to a line of JSON that only asks for its translation."""
        added: dict[str, Any] = {"translation": translation.text}
        if self.options.n_best > 1:
            added["alternatives"] = translation.alternatives
        if self.doubts is not None:
            added |= {"confidence": translation.confidence, "words": translation.words_json(translation.words)}
        return added


def note_unknown(words: Sequence[str], noted: dict[str, None]) -> None:
    """Keep the first words that the vocabulary does not hold."""
    for word in words[:UNKNOWN_TOLD]:
        if len(noted) < UNKNOWN_TOLD:
            noted[word] = None


def tell_unknown(noted: dict[str, None]) -> None:
    if noted:
        more = " …" if len(noted) >= UNKNOWN_TOLD else ""
        words = ", ".join(list(noted)[:UNKNOWN_TOLD])
        click.echo(f"vidrio: not in the model's vocabulary: {words}{more}", err=True)
