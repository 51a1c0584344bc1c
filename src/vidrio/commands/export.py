"""`vidrio export`: a model folder becomes what another program loads."""

from pathlib import Path

import click

PROGRAMS = ("hf", "ctranslate2", "argos")


@click.command()
@click.argument("model_name", metavar="MODEL")
@click.option("--to", "program", required=True, type=click.Choice(PROGRAMS), help="The program to export for.")
@click.argument("place", metavar="PLACE", type=click.Path(path_type=Path))
def export(model_name: str, program: str, place: Path) -> None:
    """Convert MODEL, a folder or a packaged model's name, to another program's format.

    hf: a folder for transformers; ctranslate2: a folder for ctranslate2.Translator; argos: a package for Argos
    Translate and LibreTranslate. The model's card and licence are included. docs/interop.md says which models can be
    exported.
    """
    from vidrio.interop.convert import export_model

    export_model(model_name, program, place)
    click.echo(f"{place}: {model_name} for {program}")
