"""`vidrio translate`: translate text, files or standard input. Each line of input becomes one line of output."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._lines import Decoder, translate_lines
from vidrio.commands._options import BEAM, SEARCH, THERE, as_options, json_option, search_options, shortlist_option
from vidrio.commands._output import refuse_same_file
from vidrio.commands._work import Request, Work
from vidrio.documents import DOCUMENTS, OTHERS
from vidrio.errors import ModelError, about_file

if TYPE_CHECKING:
    from vidrio.documents.aligned import Aligned
    from vidrio.wide.bulk import Answer

AT_ONCE = 200  # number of texts to translate between progress updates
NAMES = {"html": "a.html", "markdown": "a.md"}
EPILOG = """\b
Examples:
  vidrio translate "Hello world"
  vidrio translate < english.txt > spanish.txt
  vidrio translate -i big.txt -o big.es.txt   (if interrupted, add --resume)
  vidrio translate -i page.html -o page.es.html
  vidrio translate --json --n-best 3 "Good morning"
  vidrio translate --confidence < english.txt > spanish.txt   (what to check)
"""


@click.command(epilog=EPILOG)
@click.argument("words", metavar="[TEXT]", nargs=-1)
@click.option(
    *("-m", "--model", "models"),
    multiple=True,
    metavar="MODEL",
    help="A model folder or name. Repeatable: -m es-en -m en-fr translates via English. [default: en-es]",
)
@click.option(
    *("-i", "--input", "sources"),
    multiple=True,
    metavar="FILE",
    help="Translate this file. With --ray: files, folders or patterns; repeatable.",
)
@click.option(
    *("-o", "--output", "target"),
    metavar="FILE",
    help="Write to this file, which is created only when complete. With --ray: a folder.",
)
@click.option(
    "--ray",
    metavar="[ADDRESS]",
    is_flag=False,
    flag_value="",
    help="Use a Ray cluster. Without ADDRESS: this machine's cluster, or its own cores.",
)
@click.option("--resume", is_flag=True, help="Continue an interrupted command with the same --output.")
@search_options
@click.option("--n-best", type=BEAM, default=1, help="Number of translations, best first; lines require --json.")
@click.option("--confidence", is_flag=True, help="Print each line's confidence, unlikely words and warnings to stderr.")
@json_option
@click.option("--jsonl", is_flag=True, help='Read one JSON object per line with a "text" field; keep its other fields.')
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", *NAMES]),
    help="Format of TEXT or the input. [from the file extension]",
)
@click.option(
    "--glossary", type=THERE, help="File of term<TAB>translation lines; a term without a translation is left unchanged."
)
@shortlist_option
@click.option("--workers", type=click.IntRange(1), help="CPU cores to use; with --ray, per worker. [all]")
def translate(words: tuple[str, ...], **given: Any) -> None:
    """Translate TEXT, a file, or standard input. If the model is a classifier, print the class of each text; if it is
    a language model, continue each text.

    Each line of input becomes exactly one line of output, in order. A line may be a word or a whole paragraph: it is
    split into sentences, and the spaces between them are preserved. HTML, Markdown, subtitle (SRT, VTT), DOCX, ODT,
    EPUB and PO files are translated as a whole and keep their formatting.
    """
    text, search = None if words in ((), ("-",)) else " ".join(words), {name: given.pop(name) for name in SEARCH}
    request = Request(text=text, search=search, **given)
    refuse_contradictions(request)
    if request.ray is not None:
        translate_on_cluster(request)
    elif is_document(request):
        translate_document(request)
    else:
        work = Work.begin(request, request.workers if text is None else 1)
        if text is not None:
            click.echo("\n".join(work.on_text(text)))
        else:
            translate_lines(work)


def is_document(request: Request) -> bool:
    """Return whether the input is translated as a whole, because it is a file or marked-up text."""
    if request.form is not None:
        return request.form != "text"
    whole = DOCUMENTS | OTHERS - ({".jsonl"} if request.jsonl else set())
    return any(Path(source).suffix.lower() in whole for source in request.sources)


def refuse_contradictions(request: Request) -> None:
    """Raise UsageError if the request combines mutually exclusive options."""
    of_lines, ray, several = request.text is None, request.ray is not None, request.n_best > 1
    json, sources, target = request.as_json or request.jsonl, request.sources, request.target
    wrong = {
        "Several inputs need --ray.": len(sources) > 1 and not ray,
        "Give TEXT or --input, not both.": not of_lines and sources,
        "--output is for files and standard input; the translation of TEXT goes to standard output.": (
            target and not of_lines
        ),
        "Documents cannot be combined with --json, --jsonl, --n-best, --resume or --ray.": (
            is_document(request) and (json or several or request.resume or ray)
        ),
        "A PO file is translated by one model.": (
            len(request.models) > 1 and any(Path(source).suffix.lower() in (".po", ".pot") for source in sources)
        ),
        "--glossary cannot be combined with --json or --jsonl.": request.glossary and json,
        "--confidence is for lines of text without --ray; --json and --jsonl include it.": (
            request.confidence and (json or is_document(request) or ray)
        ),
        "--resume requires the --output to continue.": request.resume and target is None,
        "--n-best gives several translations per line; add --json.": (
            several and not request.as_json and (of_lines or request.jsonl)
        ),
        "--ray needs an --input and an --output.": ray and not (sources and target),
        "--ray cannot sample: the tokens drawn depend on what else is translated.": ray and request.samples,
    }
    for message, is_wrong in wrong.items():
        if is_wrong:
            raise click.UsageError(message)


def translate_document(request: Request) -> None:
    """Translate a document to a file or standard output. The file extension determines the format."""
    from vidrio.commands._progress import bar
    from vidrio.documents.aligned import aligned_by
    from vidrio.documents.formats import plan_file, suffix_of
    from vidrio.documents.terms import read_terms, translations_only, with_terms
    from vidrio.model.files import write_output
    from vidrio.text.tokens.normalise import valid
    from vidrio.translate.chain import load_chain

    source = next(iter(request.sources), None)
    name = NAMES.get(request.form or "", str(source))
    if request.target is None and suffix_of(name) in (".docx", ".odt", ".epub"):
        raise click.UsageError(f"A {suffix_of(name)} file needs an --output.")
    if request.target is not None:
        inputs = [path for path in (source, request.glossary) if path is not None]
        refuse_same_file(Path(request.target), map(Path, inputs))
    if source is not None:
        data = Path(source).read_bytes()
    else:
        with about_file("standard input"):
            data = sys.stdin.buffer.read() if request.text is None else f"{valid(request.text)}\n".encode()
    translators = load_chain(request.models, request.workers, shortlist=request.shortlist)
    options = as_options(translators[-1].config, request.search)
    terms = read_terms(request.glossary)
    for translator in translators:
        own = options if translator is translators[-1] else None
        plan = with_terms(plan_file(name, data, translator.about.target_language), terms)
        if not plan.texts:
            click.echo(f"vidrio: {source or 'the input'} has no text to translate; the output is a copy", err=True)
        found: list[Aligned] = []
        with bar("translating", len(plan.texts)) as show:
            for start in range(0, len(plan.texts), AT_ONCE):
                found += aligned_by(translator, plan.texts[start : start + AT_ONCE], own)
                show(len(found))
        data = plan.render(found)
        terms = translations_only(terms)
    if request.target is None:
        sys.stdout.buffer.write(data)
    else:
        write_output(Path(request.target), data)


def translate_on_cluster(request: Request) -> None:
    """Translate the lines of many files on a Ray cluster."""
    from vidrio.commands._progress import bar
    from vidrio.wide.bulk import Bulk, answer_files

    model = Work.begin(request, None).checksum()

    def begin(cores: int) -> "Answer":
        """Open the model on a worker, and check that it is the model of this machine."""
        work = Work.begin(request, cores)
        if work.checksum() != model:
            do = "install the same model and version of Vidrio on all machines"
            what = f"{work.model.folder} on a worker differs from the model on the machine that started the command"
            raise ModelError(what, do=do)
        return lambda name, lines: work.on_lines(map(Decoder(name), lines))

    target = str(request.target)
    bulk = Bulk(request.sources, target, request.ray or None, request.resume, request.workers, begin, request.jsonl)
    try:
        files, before, lines = answer_files(bulk, bar)
    except KeyboardInterrupt:
        click.echo("vidrio: finished files are kept; run the same command with --resume to continue", err=True)
        raise
    there = f" ({before:,} complete before)" if before else ""
    click.echo(f"vidrio: files: {files:,}{there}; lines: {lines:,}", err=True)
