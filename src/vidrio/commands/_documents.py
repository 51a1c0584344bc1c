"""`vidrio translate` of marked-up text and of whole files."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from vidrio.commands._progress import bar
from vidrio.documents.aligned import Aligned, answers
from vidrio.documents.formats import plan_file, suffix_of
from vidrio.documents.terms import read_terms, with_terms
from vidrio.model.files import write_output

if TYPE_CHECKING:
    from vidrio.translate.translator import Translator

AT_ONCE = 200  # texts, between two steps of the progress bar


def translate_document(
    translator: "Translator", name: str, source: Path | str | None, target: Path | None, glossary: Path | None
) -> None:
    """A file, a text or standard input → a file or standard output. The name's suffix says which format it is."""
    if target is None and suffix_of(name) in (".docx", ".odt", ".epub"):
        raise click.UsageError(f"A {suffix_of(name)} file needs an --output.")
    if isinstance(source, Path):
        data = source.read_bytes()
    else:
        data = sys.stdin.buffer.read() if source is None else f"{source}\n".encode()
    terms = () if glossary is None else read_terms(glossary)
    plan = with_terms(plan_file(name, data, translator.about.target_language), terms)
    found: list[Aligned] = []
    with bar("translating", len(plan.asks)) as show:
        for start in range(0, len(plan.asks), AT_ONCE):
            found += answers(translator, plan.asks[start : start + AT_ONCE])
            show(len(found))
    written = plan.render(found)
    if target is None:
        sys.stdout.buffer.write(written)
    else:
        write_output(target, written)
