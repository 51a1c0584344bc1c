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


def translate_whole(
    translator: "Translator", name: str, source: Path | str | None, target: Path | None, glossary: Path | None
) -> None:
    """A file, a text, or standard input, into a file, which appears when all of it is there, or to standard output.
    The name says the format."""
    if target is None and suffix_of(name) in (".docx", ".odt", ".epub"):
        raise click.UsageError(f"A {suffix_of(name)} file needs an --output.")
    if isinstance(source, Path):
        data = source.read_bytes()
    else:
        data = sys.stdin.buffer.read() if source is None else f"{source}\n".encode()
    terms = () if glossary is None else read_terms(glossary)
    plan = with_terms(plan_file(name, data, translator.about.target_language), terms)
    found: list[Aligned] = []
    with bar("translating", sum(len(ask.text) for ask in plan.asks)) as show:
        done = 0
        for start in range(0, len(plan.asks), AT_ONCE):
            some = plan.asks[start : start + AT_ONCE]
            found += answers(translator, some)
            done += sum(len(ask.text) for ask in some)
            show(done)
    written = plan.render(found)
    if target is None:
        sys.stdout.buffer.write(written)
    else:
        write_output(target, written)
