"""`vidrio translate`: text, files, or standard input, one line out for each line in."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import (
    BEAM,
    SAMPLING,
    SEARCH,
    THERE,
    as_options,
    json_option,
    model_option,
    ray_option,
    search_options,
)
from vidrio.documents.suffixes import DOCUMENTS, OTHERS
from vidrio.errors import DataError

if TYPE_CHECKING:
    from vidrio.commands._work import Work
    from vidrio.translate.answers import Answers
    from vidrio.translate.translator import Translator

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
    metavar="FILE",
    help="Read lines from this file. With --ray: files, folders, patterns.",
)
@click.option(
    "-o",
    "--output",
    "target",
    metavar="FILE",
    help="Write to this file, which appears when all is done. With --ray: a folder.",
)
@ray_option
@click.option("--resume", is_flag=True, help="Continue where an earlier command with this --output was stopped.")
@search_options
@click.option(
    "--n-best", type=BEAM, default=1, help="So many translations of TEXT, the best first; of lines in --json."
)
@click.option("--start", default="", metavar="WORDS", help="The translation of TEXT, one sentence, begins with this.")
@click.option("--confidence", is_flag=True, help="On stderr: how likely each line is, and the words that are not.")
@json_option
@click.option(
    "--jsonl", is_flag=True, help='Input lines are JSON objects with a "text"; their other fields come through.'
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *NAMES]),
    help="What TEXT or the input is. [a file's name says it]",
)
@click.option("--glossary", type=THERE, help="Lines of term<TAB>translation; a term alone stays as it is.")
@click.option("--workers", type=click.IntRange(1), help="Batches at a time. [one for each core]")
def translate(words: tuple[str, ...], sources: tuple[str, ...], ray: str | None, **given: Any) -> None:
    """Translate TEXT, or the lines of a file or of standard input. A classifier names their classes, and a language
    model continues them.

    Each line in gives one line out, always, in order. A line may be a word or a whole paragraph: it is split into
    sentences, and the spaces between them are kept as they are. Files of HTML, Markdown, subtitles (SRT, VTT), DOCX,
    ODT, EPUB and PO are translated as a whole, with their formatting.
    """
    search = {name: given.pop(name) for name in SEARCH}
    request = Request(text=None if words in ((), ("-",)) else " ".join(words), search=search, sources=sources, **given)
    if ray is None:
        request.run()
    else:
        request.run_on_cluster(ray or None)


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line asks for."""

    text: str | None  # None: lines, of a file or of standard input
    model_name: str | None
    sources: tuple[str, ...]
    target: str | None
    resume: bool
    n_best: int
    start: str
    confidence: bool
    as_json: bool
    jsonl: bool
    workers: int | None
    form: str | None
    glossary: Path | None
    search: Mapping[str, Any]

    def run(self) -> None:
        if len(self.sources) > 1:
            raise click.UsageError("Several inputs need --ray.")
        source = Path(self.sources[0]) if self.sources else None
        self.refuse_contradictions(source)
        if self.is_document(source):
            from vidrio.commands._documents import translate_document

            name = NAMES.get(self.form or "", str(source))
            translate_document(self.load(), name, source or self.text, self.output, self.glossary)
            return
        from vidrio.commands._work import warn_of_unknown

        work = self.work()
        if self.text is not None:
            click.echo("\n".join(work.on_text(self.text, self.start)))
        else:
            self.on_lines(work, source)
        warn_of_unknown(list(work.unknown))

    def run_on_cluster(self, address: str | None) -> None:
        """The lines of many files, on a Ray cluster."""
        from vidrio.commands._wide import answer_on_cluster, worker_start
        from vidrio.wide.bulk import Bulk

        if not self.sources or self.target is None:
            raise click.UsageError("--ray needs an --input and an --output.")
        self.refuse_contradictions(None)
        if self.form not in (None, "text") or any(map(self.is_document, map(Path, self.sources))):
            raise click.UsageError("--ray translates lines, not documents.")
        if self.samples:
            raise click.UsageError("--ray cannot sample: the tokens drawn depend on what else is translated.")
        if self.confidence and not (self.as_json or self.jsonl):
            raise click.UsageError("--confidence with --ray needs --json or --jsonl.")
        begin = worker_start(lambda cores: replace(self, workers=cores).work())
        answer_on_cluster(Bulk(self.sources, self.target, address, self.resume, self.workers, begin))

    def work(self) -> "Work":
        """The model, and what is asked of it."""
        from vidrio.commands._work import Work
        from vidrio.documents.terms import read_terms
        from vidrio.translate.translator import NoTranslator

        try:
            model: Translator | Answers = self.load()
        except NoTranslator:
            model = self.load_other()
        options = dict(self.search)
        if self.n_best > 1 and not self.samples:
            options["beam"] = max(self.n_best, options["beam"] or model.options.beam)
        return Work(
            model=model,
            options=replace(as_options(model.config, options), n_best=self.n_best),
            as_json=self.as_json,
            jsonl=self.jsonl,
            confidence=self.confidence,
            terms=read_terms(self.glossary) if self.glossary else (),
        )

    def load(self) -> "Translator":
        from vidrio.translate.translator import Translator

        return Translator.load(self.model_name, self.workers if self.text is None else 1)

    def load_other(self) -> "Answers":
        """A classifier, or a language model."""
        from vidrio.translate.answers import Answers

        model = Answers.load(self.model_name)
        asked = {"--confidence": self.confidence, "--start": self.start, "--glossary": self.glossary}
        if unfit := [option for option, is_asked in asked.items() if is_asked]:
            raise click.UsageError(f"{model.folder} does not translate: it takes no {', '.join(unfit)}.")
        return model

    def on_lines(self, work: "Work", source: Path | None) -> None:
        from vidrio.commands._lines import part_of, reading, writing

        if self.resume and self.output and self.output.is_file() and not part_of(self.output).exists():
            click.echo(f"vidrio: {self.output} is complete", err=True)
            return
        with writing(self.output, resume=self.resume) as output, reading(source) as groups:
            at, left = output.done + 1, output.done
            for group in groups:
                lines = iter(group)
                left -= sum(1 for _ in islice(lines, left))
                for line in work.on_lines(lines, at):
                    output.write(line)
                    at += 1
                output.flush()
            if left:
                raise DataError(
                    "there is more output than input",
                    found=f"{output.done} lines are translated already, the input has {output.done - left}",
                    do="give the same input as before, or leave out --resume to start afresh",
                )

    def is_document(self, source: Path | None) -> bool:
        """Whether marked-up text or a file is translated as a whole."""
        if self.form is not None:
            return self.form != "text"
        return source is not None and source.suffix.lower() in DOCUMENTS | OTHERS

    @property
    def output(self) -> Path | None:
        return None if self.target is None else Path(self.target)

    @property
    def samples(self) -> bool:
        """Whether tokens are drawn at random."""
        return any(self.search[name] is not None for name in SAMPLING)

    def refuse_contradictions(self, source: Path | None) -> None:
        of_lines, document = self.text is None, self.is_document(source)
        lines_only = self.as_json or self.jsonl or self.n_best > 1 or self.resume or self.start
        wrong = {
            "Give TEXT or --input, not both.": not of_lines and self.sources,
            "--output is for files and standard input; the translation of TEXT goes to standard output.": (
                self.target and (not of_lines or (document and source is None))
            ),
            "Documents take no --json, --jsonl, --n-best, --resume or --start.": document and lines_only,
            "--glossary cannot be combined with --json or --jsonl.": self.glossary and (self.as_json or self.jsonl),
            "--resume needs the --output that it continues.": self.resume and self.target is None,
            "--input and --output are the same file.": (
                source and self.output and self.output.exists() and source.samefile(self.output)
            ),
            "--n-best gives several translations per line; add --json.": (
                self.n_best > 1 and not self.as_json and (of_lines or self.jsonl)
            ),
            "--start is for TEXT, without --jsonl and sampling.": (
                self.start and (of_lines or self.jsonl or self.samples)
            ),
        }
        for message, is_wrong in wrong.items():
            if is_wrong:
                raise click.UsageError(message)
