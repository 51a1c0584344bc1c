"""`vidrio export`: convert a model folder to another program's format."""

from pathlib import Path

import click

from vidrio.commands._options import THERE

PROGRAMS = ("hf", "ctranslate2", "argos", "marian")


@click.command()
@click.argument("model_name", metavar="MODEL")
@click.option("--to", "program", required=True, type=click.Choice(PROGRAMS), help="Program to export for.")
@click.option("--text", type=THERE, help="For marian: file of source-language lines to calibrate on.")
@click.argument("place", metavar="PLACE", type=click.Path(path_type=Path))
def export(model_name: str, program: str, text: Path | None, place: Path) -> None:
    """Convert MODEL, a folder or a packaged model's name, to another program's format.

    hf: a folder for transformers; ctranslate2: a folder for ctranslate2.Translator; argos: a package for Argos
    Translate and LibreTranslate; marian: a folder for bergamot, translateLocally and Firefox's engine, which requires
    --text with a hundred or more representative lines. The model card and licence are included. docs/interop.md lists
    the models that can be exported.
    """
    from vidrio.commands._lines import read_lines
    from vidrio.interop.convert import export_model

    if (program == "marian") != (text is not None):
        raise click.UsageError("--to marian requires --text; the other formats do not use it.")
    export_model(model_name, program, place, read_lines(text) if text else ())
    click.echo(f"{place}: {model_name} for {program}")
