"""`vidrio translate`: text, files, or standard input, one line out for each line in."""

import json
import os
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

import click
from click.exceptions import Exit

from vidrio.commands._doubts import Doubts
from vidrio.commands._lines import Output, chunks_of_pipe, lines_of_file, skipped
from vidrio.commands._options import as_options, json_option, model_option, search_options
from vidrio.errors import DataError
from vidrio.text.utf8 import Decoder

if TYPE_CHECKING:
    from vidrio.search import Options
    from vidrio.translate.translation import Translation
    from vidrio.translate.translator import Translator

SAMPLING = ("temperature", "top_k", "top_p", "min_p", "seed")
SURROGATES = re.compile("[\ud800-\udfff]")
UNKNOWN_TOLD = 20  # words that the vocabulary does not hold; the rest are counted

EPILOG = """\b
Examples:
  vidrio translate "Hello world"
  vidrio translate < english.txt > spanish.txt
  vidrio translate -i big.txt -o big.es.txt   (stopped? again, with --resume)
  vidrio translate --json --n-best 3 "Good morning"
  vidrio translate --confidence < english.txt > spanish.txt   (what to check?)
"""


@click.command(epilog=EPILOG, short_help="Translate text, files or standard input.")
@click.argument("words", metavar="[TEXT]", nargs=-1)
@model_option
@click.option(
    "-i",
    "--input",
    "source",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Read lines from this file.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Write to this file, which appears when all is done.",
)
@click.option("--resume", is_flag=True, help="Go on where an earlier command with this --output was stopped.")
@search_options
@click.option("--n-best", type=click.IntRange(1), default=1, help="So many translations, the best first.")
@click.option("--start", default="", metavar="WORDS", help="The translation of TEXT, one sentence, begins with this.")
@click.option(
    "--alternatives", type=click.IntRange(2, 64), help="So many translations that differ in the token after --start."
)
@click.option("--alignment", is_flag=True, help="Below the translation of TEXT: which word came from which.")
@click.option("--confidence", is_flag=True, help="How far to trust each sentence and word; a table on stderr.")
@json_option
@click.option(
    "--jsonl", is_flag=True, help='Input lines are JSON objects with a "text"; their other fields come through.'
)
@click.option(
    "--engine",
    type=click.Choice(["auto", "fast", "glass"]),
    default="auto",
    show_default=True,
    help="CTranslate2, or NumPy as in look.",
)
@click.option("--workers", type=click.IntRange(1), help="Batches at a time. [one for each core]")
@click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="What to do with bytes that are not UTF-8.",
)
def translate(
    words: tuple[str, ...],
    model_name: str | None,
    source: Path | None,
    target: Path | None,
    resume: bool,
    n_best: int,
    start: str,
    alternatives: int | None,
    alignment: bool,
    confidence: bool,
    as_json: bool,
    jsonl: bool,
    engine: str,
    workers: int | None,
    errors: str,
    **given: Any,
) -> None:
    """Translate TEXT, or the lines of a file or of standard input.

    Each line in gives one line out, always, in order. A line may be a word or a whole paragraph: it is split into
    sentences, and the spaces between them are kept as they are.
    """
    text = None if words in ((), ("-",)) else " ".join(words)
    _refuse_contradictions(text, source, target, resume, n_best, as_json or jsonl)
    if alignment and not as_json and (text is None or jsonl):
        raise click.UsageError("--alignment is printed below TEXT; for lines use --json, which tells it always.")
    if start or alternatives:
        drawn = any(given[name] is not None for name in SAMPLING)
        if text is None or jsonl or n_best > 1 or drawn:
            raise click.UsageError("--start and --alternatives are for TEXT, without --n-best, --jsonl and drawing.")
    translator = _load(model_name, engine, 1 if text is not None else workers)
    if n_best > 1 and not any(given[name] is not None for name in SAMPLING):
        given["beam"] = max(n_best, given["beam"] or translator.options.beam)
    options = replace(as_options(translator.config, given), n_best=n_best, scores=as_json)
    doubts = None
    if confidence:
        what = "line" if text is None else "sentence"
        doubts = Doubts(translator.calibration, what, table=not (as_json or jsonl), on_stdout=target is None)
    work = _Work(translator, options, as_json, jsonl, alignment, doubts, start, alternatives or 1)
    if text is not None:
        click.echo("\n".join(work.on_text(text)))
    else:
        with _opened(target, resume) as output, _reading(source, errors, translator) as (chunks, progress):
            if doubts is not None:
                doubts.number = output.done + 1
            for lines in work.on_lines(skipped(chunks, output.done)):
                output.write(lines)
                progress()
    work.tell_unknown()


def _refuse_contradictions(
    text: str | None, source: Path | None, target: Path | None, resume: bool, n_best: int, as_json: bool
) -> None:
    if text is not None and source is not None:
        raise click.UsageError("Give TEXT or --input, not both.")
    if text is not None and target is not None:
        raise click.UsageError(
            "--output is for the lines of a file or of standard input; TEXT goes to standard output."
        )
    if resume and target is None:
        raise click.UsageError("--resume goes on with an --output, so it needs one.")
    if source is not None and target is not None and target.exists() and source.samefile(target):
        raise click.UsageError("--input and --output are the same file.")
    if n_best > 1 and text is None and not as_json:
        raise click.UsageError("--n-best would break the rule of one line out for each line in; add --json.")


def _load(model_name: str | None, engine: str, workers: int | None) -> "Translator":
    from vidrio.model import find as models
    from vidrio.translate.translator import Translator

    translator = Translator.load(
        model_name, engine=engine, workers=workers, tell=lambda message: click.echo(f"vidrio: {message}", err=True)
    )
    if model_name is None and translator.folder == models.packaged().get(models.LESSON):
        click.echo("vidrio: translating with the lesson's model, which knows a handful of words", err=True)
    return translator


@dataclass
class _Work:
    """Texts in, lines to print out."""

    translator: "Translator"
    options: "Options"
    as_json: bool
    jsonl: bool
    alignment: bool
    doubts: Doubts | None
    start: str = ""
    alternatives: int = 1
    unknown: dict[str, None] = field(default_factory=dict)

    def on_text(self, text: str) -> list[str]:
        """One text, whatever line ends it holds."""
        if self.start or self.alternatives > 1:
            translation = self.translator.begin_with(text, self.start, self.alternatives, self.options)
        else:
            translation = self.translator.translate(text, self.options)
        if self.as_json or self.jsonl:
            return self._lines([translation], [{}])
        self._note(translation)
        most = max((len(sentence.alternatives) for sentence in translation.sentences), default=1)
        lines = [translation.text, *(translation.alternative(n) for n in range(1, most))]
        if self.doubts is not None:
            [translation] = self.translator.with_confidence([translation])
            for sentence in translation.sentences:
                self.doubts.tell(sentence.confidence or 0.0, sentence.words or ())
            lines[0] = self.doubts.marked(translation)
        return [*lines, *map(str, translation.alignment)] if self.alignment else lines

    def on_lines(self, chunks: Iterable[Sequence[str]]) -> Iterator[list[str]]:
        """A line for each line, some at a time."""
        records: deque[dict[str, Any]] = deque()
        number = 0

        def texts(lines: Sequence[str]) -> list[str]:
            nonlocal number
            found = []
            for line in lines:
                number += 1
                record = _record(line, number)
                records.append(record)
                found.append(record["text"])
            return found

        read = (texts(lines) for lines in chunks) if self.jsonl else chunks
        for translations in self.translator.stream_chunks(read, self.options):
            yield self._lines(translations, [records.popleft() if self.jsonl else {} for _ in translations])

    def _lines(self, translations: Sequence["Translation"], passed: Sequence[dict[str, Any]]) -> list[str]:
        if self.doubts is not None:
            translations = self.translator.with_confidence(translations)
        elif self.as_json:
            translations = self.translator.with_token_scores(translations)
        if self.as_json:
            translations = self.translator.with_alignment(translations)
        for translation in translations:
            self._note(translation)
        pairs = zip(translations, passed, strict=True)
        if self.as_json or self.jsonl:
            return [_json({**more, **(one.to_json() if self.as_json else self._told(one))}) for one, more in pairs]
        if self.doubts is None:
            return [translation.text for translation in translations]
        for translation in translations:
            self.doubts.tell(translation.confidence, translation.words)
        return [self.doubts.marked(translation) for translation in translations]

    def _told(self, translation: "Translation") -> dict[str, Any]:
        """What is added to a line of JSON that only asks for its translation."""
        told: dict[str, Any] = {"translation": translation.text}
        if self.doubts is not None:
            told |= {"confidence": translation.confidence, "words": translation.words_json(translation.words)}
        return told

    def _note(self, translation: "Translation") -> None:
        self.unknown.update(dict.fromkeys(translation.unknown[:UNKNOWN_TOLD]))
        for word in list(self.unknown)[UNKNOWN_TOLD:]:
            del self.unknown[word]

    def tell_unknown(self) -> None:
        if self.unknown:
            more = " …" if len(self.unknown) == UNKNOWN_TOLD else ""
            click.echo(f"vidrio: not in the model's vocabulary: {', '.join(self.unknown)}{more}", err=True)


def _json(record: dict[str, Any]) -> str:
    """In UTF-8 where that can be; a field that came through may hold half a character (\\ud83d), which cannot."""
    text = json.dumps(record, ensure_ascii=False)
    return text if text.isascii() or not SURROGATES.search(text) else json.dumps(record)


def _record(line: str, number: int) -> dict[str, Any]:
    """One line of JSON-lines input."""
    try:
        record = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise DataError(f"line {number} is not JSON", found=str(error), do="give one JSON object a line") from None
    if not isinstance(record, dict) or not isinstance(record.get("text"), str):
        raise DataError(f'line {number} has no "text"', found=line[:80], do='give objects like {"text": "Hello"}')
    if SURROGATES.search(record["text"]):
        raise DataError(f"the text of line {number} holds half a character", found=line[:80], do="write it in UTF-8")
    return record


@contextmanager
def _opened(target: Path | None, resume: bool) -> Iterator[Output]:
    """Where lines go to. A file grows under another name until all of it is there."""
    if target is None:
        yield Output(None)
        return
    part = target.with_name(target.name + ".part")
    if not resume:
        part.unlink(missing_ok=True)
    elif not part.exists() and target.exists():
        click.echo(f"vidrio: {target} is complete", err=True)
        raise Exit(0)
    with closing(Output(part)) as output:
        try:
            yield output
            output.finish()
        except BaseException:
            click.echo(f"vidrio: what is done so far is in {part}; the same command with --resume goes on", err=True)
            raise
    os.replace(part, target)


@contextmanager
def _reading(
    source: Path | None, errors: str, translator: "Translator"
) -> Iterator[tuple[Iterator[list[str]], Callable[[], None]]]:
    """Chunks of lines, and what to call when some of them are done."""
    from vidrio.translate.stream import in_chunks

    do = "convert it to UTF-8, or go on with --errors replace"
    decode = Decoder("standard input" if source is None else str(source), errors, do)
    if source is None:
        if sys.stdin.isatty():
            click.echo("vidrio: type a line and press Enter; Ctrl-D ends", err=True)
        yield chunks_of_pipe(sys.stdin.fileno(), decode, lambda: translator.at_once), lambda: None
    else:
        with source.open("rb") as file, _progress(file) as progress:
            yield in_chunks(lines_of_file(file, decode), lambda: translator.at_once), progress
    if decode.replaced:
        click.echo(f"vidrio: {decode.replaced} lines were not UTF-8; what could not be read is now �", err=True)


@contextmanager
def _progress(file: BinaryIO) -> Iterator[Callable[[], None]]:
    """A bar on the terminal, if stderr is one."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("translating", total=os.fstat(file.fileno()).st_size)
        yield lambda: bar.update(task, completed=file.tell())
