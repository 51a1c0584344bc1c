"""`vidrio translate` of marked-up text and of whole files."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vidrio.commands._progress import bar
from vidrio.documents.aligned import Aligned, Ask, answers
from vidrio.documents.formats import plan_file, suffix_of
from vidrio.documents.terms import Terms, with_terms
from vidrio.model.files import write_output

if TYPE_CHECKING:
    from vidrio.translate.translator import Translator

FORMATS = {"html": "a.html", "markdown": "a.md"}
AT_ONCE = 200  # texts, between two steps of the progress bar


def translated(translator: "Translator", name: str, data: bytes, terms: Terms) -> bytes:
    """A file's translation."""
    plan = with_terms(plan_file(name, data, translator.about.target_language), terms)
    found: list[Aligned] = []
    with bar("translating", sum(len(ask.text) for ask in plan.asks)) as show:
        done = 0
        for start in range(0, len(plan.asks), AT_ONCE):
            some: Sequence[Ask] = plan.asks[start : start + AT_ONCE]
            found += answers(translator, some)
            done += sum(len(ask.text) for ask in some)
            show(done)
    return plan.render(found)


def translate_document(translator: "Translator", source: Path, target: Path | None, terms: Terms, form: str) -> None:
    """A file into another, which appears when all of it is there; or to standard output, if it is text."""
    name = FORMATS.get(form, source.name)
    if target is None and suffix_of(name) in (".docx", ".odt", ".epub"):
        raise click.UsageError(f"A {suffix_of(name)} file needs an --output.")
    written = translated(translator, name, source.read_bytes(), terms)
    if target is None:
        sys.stdout.buffer.write(written)
    else:
        write_output(target, written)


def translate_marked(translator: "Translator", text: str | None, terms: Terms, form: str) -> None:
    """Marked-up text, given or from standard input."""
    data = sys.stdin.buffer.read() if text is None else f"{text}\n".encode()
    sys.stdout.buffer.write(translated(translator, FORMATS[form], data, terms))
