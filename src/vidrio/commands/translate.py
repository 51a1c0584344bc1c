"""`vidrio translate`: text, files, or standard input, one line out for each line in."""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._doubts import Doubts
from vidrio.commands._lines import reading, skipped
from vidrio.commands._options import (
    BEAM,
    ENGINES,
    SAMPLING,
    SEARCH,
    THERE,
    FileOrAddress,
    as_options,
    json_option,
    model_option,
    ray_option,
    search_options,
)
from vidrio.commands._output import (
    Identity,
    belongs,
    file_identity,
    is_finished,
    opened,
    part_of,
    same_line,
    sample_of,
    whole_lines_of,
)
from vidrio.commands._records import AnswerWork, Work, tell_unknown
from vidrio.documents.suffixes import DOCUMENTS, OTHERS
from vidrio.errors import DataError, ModelError

if TYPE_CHECKING:
    from vidrio.hypothesis import Options
    from vidrio.translate.answers import Answers
    from vidrio.translate.translator import Translator
    from vidrio.wide.bulk import Answer

NAMES = {"html": "a.html", "markdown": "a.md"}
EPILOG = """\b
Examples:
  vidrio translate "Hello world"
  vidrio translate < english.txt > spanish.txt
  vidrio translate -i big.txt -o big.es.txt   (stopped? again, with --resume)
  vidrio translate -i page.html -o page.es.html
  vidrio translate --json --n-best 3 "Good morning"
  vidrio translate --confidence < english.txt > spanish.txt   (what to check?)
"""


@click.command(epilog=EPILOG)
@click.argument("words", metavar="[TEXT]", nargs=-1)
@model_option
@click.option(
    "-i",
    "--input",
    "sources",
    multiple=True,
    type=FileOrAddress(exists=True, dir_okay=False, path_type=Path),
    help="Read lines from this file. With --ray: files, folders, patterns.",
)
@click.option(
    "-o",
    "--output",
    "target",
    type=FileOrAddress(dir_okay=False, path_type=Path),
    help="Write to this file, which appears when all is done. With --ray: a folder.",
)
@ray_option
@click.option("--resume", is_flag=True, help="Go on where an earlier command with this --output was stopped.")
@search_options
@click.option("--n-best", type=BEAM, default=1, help="So many translations, the best first.")
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
@click.option("--engine", type=ENGINES, default="auto", show_default=True, help="CTranslate2, or NumPy as in look.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *NAMES]),
    help="What TEXT or the input is; a file tells it by its name.",
)
@click.option("--glossary", type=THERE, help="Lines of term<TAB>translation; a term alone stays as it is.")
@click.option("--workers", type=click.IntRange(1), help="Batches at a time. [one for each core]")
@click.option(
    "--errors",
    type=click.Choice(["strict", "replace"]),
    default="strict",
    show_default=True,
    help="What to do with bytes that are not UTF-8.",
)
def translate(words: tuple[str, ...], **given: Any) -> None:
    """Translate TEXT, or the lines of a file or of standard input. A classifier tells their classes, and a model that
    writes on goes on from them.

    Each line in gives one line out, always, in order. A line may be a word or a whole paragraph: it is split into
    sentences, and the spaces between them are kept as they are. Files of HTML, Markdown, subtitles (SRT, VTT), DOCX,
    ODT, EPUB and PO are translated as a whole, with their formatting.
    """
    sources, address = given.pop("sources"), given.pop("ray")
    if len(sources) > 1 and address is None:
        raise click.UsageError("Several inputs need --ray.")
    given["source"] = sources[0] if sources and address is None else None
    search = {name: given.pop(name) for name in SEARCH}
    request = Request(text=None if words in ((), ("-",)) else " ".join(words), search=search, **given)
    if address is None:
        request.run()
    else:
        request.run_on_cluster(sources, address)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked on the command line."""

    text: str | None  # None: lines, of a file or of standard input
    model_name: str | None
    source: Path | None
    target: Path | None
    resume: bool
    n_best: int
    start: str
    alternatives: int | None
    alignment: bool
    confidence: bool
    as_json: bool
    jsonl: bool
    engine: str
    workers: int | None
    errors: str
    form: str | None
    glossary: Path | None
    search: Mapping[str, Any]

    def run(self) -> None:
        self.refuse_contradictions()
        if self.marked:
            self.on_document()
            return
        work = self.work()
        if self.text is not None:
            self.on_text(work, self.text)
        elif self.resume and self.target is not None and self.is_complete(self.target, work):
            click.echo(f"vidrio: {self.target} is complete", err=True)
        else:
            self.on_lines(work)
        tell_unknown(work.unknown)

    def work(self) -> Work | AnswerWork:
        from vidrio.translate.engines import NoTranslator

        try:
            translator = self.load()
        except NoTranslator:
            return self.answering()
        doubts = None
        if self.confidence:
            what, table = "line" if self.text is None else "sentence", not (self.as_json or self.jsonl)
            doubts = Doubts(translator.calibration, what, table=table, on_stdout=self.target is None)
        return Work(
            translator=translator,
            options=self.options(translator),
            as_json=self.as_json,
            jsonl=self.jsonl,
            alignment=self.alignment,
            doubts=doubts,
            start=self.start,
            alternatives=self.alternatives or 1,
        )

    def run_on_cluster(self, inputs: tuple[str, ...], address: str) -> None:
        """The lines of many files, on a Ray cluster."""
        from vidrio.commands._wide import answer_on_cluster, columns_of
        from vidrio.wide.bulk import Asked

        if not inputs or self.target is None:
            raise click.UsageError("--ray needs an --input and an --output.")
        self.refuse_contradictions()
        if self.form not in (None, "text") or any(Path(name).suffix.lower() in DOCUMENTS | OTHERS for name in inputs):
            raise click.UsageError("--ray is for lines, not for files that are translated as a whole.")
        if self.draws:
            raise click.UsageError("--ray cannot draw tokens: what is drawn depends on what else is translated.")
        if self.confidence and not (self.as_json or self.jsonl):
            raise click.UsageError("--confidence on a cluster has no table: add --json or --jsonl.")
        work = self.work()
        belongs = self.belongs(work)
        begin, columns = partial(self.begin, belongs), columns_of(work)
        del work  # the model is for the workers
        asked = Asked(inputs, str(self.target), address or None, self.resume, self.workers, belongs, begin, columns)
        answer_on_cluster(asked)

    def begin(self, belongs: Mapping[str, str], cores: int) -> "Answer":
        """On a worker: open the model, and answer lines with it."""
        from vidrio.commands._wide import answering

        work = replace(self, workers=cores).work()
        if self.belongs(work) != belongs:
            raise ModelError(f"{work.folder} is another model here", do="give all machines the same model and Vidrio")
        return answering(work, self.errors, self.printed)

    def answering(self) -> AnswerWork:
        """What a classifier or a model that writes on does."""
        from vidrio.translate.answers import Answers

        answers = Answers.load(self.model_name)
        asked = {
            "--alignment": self.alignment,
            "--confidence": self.confidence,
            "--start": bool(self.start),
            "--alternatives": bool(self.alternatives),
            "--engine fast": self.engine == "fast",
            "--glossary": self.glossary is not None,
        }
        classifies = answers.config.has_encoder
        if classifies:
            asked["--n-best"] = self.n_best > 1
            asked |= {f"--{name.replace('_', '-')}": value is not None for name, value in self.search.items()}
        if unfit := [option for option, is_asked in asked.items() if is_asked]:
            does = "tells classes" if classifies else "writes on"
            raise click.UsageError(f"{answers.folder} {does}: it takes no {', '.join(unfit)}.")
        return AnswerWork(answers=answers, options=self.options(answers), as_json=self.as_json, jsonl=self.jsonl)

    @property
    def marked(self) -> bool:
        """Whether it is marked-up text, or a file that is translated as a whole."""
        if self.form is not None:
            return self.form != "text"
        return self.source is not None and self.source.suffix.lower() in DOCUMENTS | OTHERS

    def on_document(self) -> None:
        from vidrio.commands._documents import translate_whole

        name = NAMES.get(self.form or "", str(self.source))
        translate_whole(self.load(), name, self.source or self.text, self.target, self.glossary)

    @property
    def draws(self) -> bool:
        """Whether tokens are drawn."""
        return any(self.search[name] is not None for name in SAMPLING)

    def refuse_contradictions(self) -> None:
        of_lines = self.text is None
        if not of_lines and self.source is not None:
            raise click.UsageError("Give TEXT or --input, not both.")
        if not of_lines and self.target is not None:
            raise click.UsageError(
                "--output is for the lines of a file or of standard input; TEXT goes to standard output."
            )
        lines_only = self.as_json or self.jsonl or self.n_best > 1 or self.resume or self.alignment or self.start
        if self.marked and lines_only:
            raise click.UsageError("Marked-up text and whole files come out as they are: without --json, --resume, …")
        if self.marked and self.source is None and self.target is not None:
            raise click.UsageError("--output of marked-up text needs a file as --input.")
        if self.glossary and (self.as_json or self.jsonl):
            raise click.UsageError("--glossary is for text: its places in --json would be those of placeholders.")
        if self.resume and self.target is None:
            raise click.UsageError("--resume goes on with an --output, so it needs one.")
        if self.source and self.target and self.target.exists() and self.source.samefile(self.target):
            raise click.UsageError("--input and --output are the same file.")
        if self.n_best > 1 and of_lines and not (self.as_json or self.jsonl):
            raise click.UsageError("--n-best would break the rule of one line out for each line in; add --json.")
        if self.alignment and not self.as_json and (of_lines or self.jsonl):
            raise click.UsageError("--alignment is printed below TEXT; for lines use --json, which tells it always.")
        if (self.start or self.alternatives) and (of_lines or self.jsonl or self.n_best > 1 or self.draws):
            raise click.UsageError("--start and --alternatives are for TEXT, without --n-best, --jsonl and drawing.")

    def load(self) -> "Translator":
        from vidrio.model import find as models
        from vidrio.translate.engines import begin, cores

        opening = begin(self.model_name, self.engine, (self.workers or cores()) if self.text is None else 1)
        from vidrio.translate.translator import Translator  # while the engine is loaded

        translator = Translator.opened(opening, lambda message: click.echo(f"vidrio: {message}", err=True))
        if self.model_name is None and translator.folder == models.packaged().get(models.LESSON):
            click.echo("vidrio: translating with the lesson's model, which knows a handful of words", err=True)
        return translator

    def options(self, translator: "Translator | Answers") -> "Options":
        given = dict(self.search)
        if self.n_best > 1 and not self.draws:
            given["beam"] = max(self.n_best, given["beam"] or translator.options.beam)
        return replace(as_options(translator.config, given), n_best=self.n_best, scores=self.as_json)

    def on_text(self, work: Work | AnswerWork, text: str) -> None:
        if self.glossary is None:
            lines = work.on_text(text)
        else:
            from vidrio.documents.terms import hide, read_terms, reveal

            hidden = hide(text, read_terms(self.glossary))
            lines = [reveal(line, hidden) for line in work.on_text(hidden.text)]
        click.echo("\n".join(lines))

    def on_lines(self, work: Work | AnswerWork) -> None:
        with (
            opened(self.target, self.identity(work), resume=self.resume) as output,
            reading(self.source, self.errors, work.at_once) as (chunks, progress),
        ):
            # The manifest of a part tells its file, but nothing of a standard input.
            part = part_of(self.target) if self.target and self.source is None and output.done else None
            for lines in self.printed(work, self.after(chunks, part, output.done, work), output.done + 1):
                output.write(lines)
                progress()

    def printed(self, work: Work | AnswerWork, chunks: Iterator[list[str]], first: int = 1) -> Iterator[Iterable[str]]:
        """Lines in, lines out, some at a time; `first` is the number of the first one."""
        if self.glossary is None:
            yield from work.on_lines(chunks, first)
            return
        from vidrio.documents.terms import Hidden, hide, read_terms, reveal

        terms, waiting = read_terms(self.glossary), deque[Hidden]()

        def without_terms() -> Iterator[list[str]]:
            for lines in chunks:
                hidden = [hide(line, terms) for line in lines]
                waiting.extend(hidden)
                yield [one.text for one in hidden]

        for lines in work.on_lines(without_terms(), first):
            yield [reveal(line, waiting.popleft()) for line in lines]

    def after(
        self, chunks: Iterator[list[str]], output: Path | None, done: int, work: Work | AnswerWork
    ) -> Iterator[list[str]]:
        """The lines after those that are done. Some of an `output` are translated again, and must be the same."""
        sample = {} if output is None or self.draws else sample_of(output, done)
        quiet = replace(work, unknown={})
        if isinstance(quiet, Work) and not (self.as_json or self.jsonl):
            quiet = replace(quiet, doubts=None)

        def check(lines: dict[int, str]) -> None:
            again = chain.from_iterable(self.printed(quiet, iter([list(lines.values())])))
            for (number, before), now in zip(sample.items(), again, strict=True):
                if not same_line(before, now):
                    raise DataError(
                        f"{output} belongs to another translation",
                        found=f"line {number + 1} is {before[:80]!r}, and would be {now[:80]!r}",
                        do="give the command that it belongs to, or leave out --resume to start afresh",
                    )

        return skipped(chunks, done, check, sample)

    def is_complete(self, target: Path, work: Work | AnswerWork) -> bool:
        """Whether the output is there: as many lines as the input, and it is known to be its translation or some of its
        lines, translated again, come out the same."""
        if not is_finished(target):
            return False
        known = belongs(target, self.identity(work)) and self.source is not None
        if self.draws and not known:
            raise DataError(
                f"it cannot be told what {target} belongs to",
                found="words that were drawn, which come out otherwise in other company",
                do="leave out --resume to start afresh",
            )
        done = whole_lines_of(target)[0]
        with reading(self.source, self.errors, work.at_once) as (chunks, _):
            lines = done + sum(map(len, self.after(chunks, None if known else target, done, work)))
        if lines != done:
            raise DataError(
                f"{target} is not the translation of {self.source or 'this input'}",
                found=f"{done:,} lines for {lines:,}",
                do="leave out --resume to translate it afresh",
            )
        return True

    def identity(self, work: Work | AnswerWork) -> Identity:
        if self.target is None:
            return {}
        source = "standard input" if self.source is None else file_identity(self.source)
        return {"input": source, **self.belongs(work)}

    def belongs(self, work: Work | AnswerWork) -> Identity:
        """The model and the options."""
        files = [work.folder / name for name in ("config.json", "tokenizer.json", "model.safetensors")]
        as_printed = {"json": self.as_json, "jsonl": self.jsonl, "confidence": self.confidence, "errors": self.errors}
        if self.glossary is not None:
            as_printed["glossary"] = file_identity(self.glossary)
        return {
            "model": "; ".join(file_identity(file) for file in files if file.is_file()),
            "options": f"{work.options}, {self.engine}, {as_printed}",
        }
