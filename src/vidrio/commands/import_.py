"""`vidrio import`: another program's model becomes a model folder."""

from pathlib import Path

import click

from vidrio.commands._options import two_names


@click.command(name="import")
@click.argument("source", metavar="PATH_OR_NAME")
@click.option("--to", required=True, type=click.Path(file_okay=False, path_type=Path), help="Folder to create.")
@click.option("--target", default="", help="Target language, if the model has several: spa for >>spa<<.")
@click.option("--languages", callback=two_names, metavar="en,es", help="Names of its languages. [the model's own]")
def import_(source: str, to: Path, target: str, languages: tuple[str, str] | None) -> None:
    """Convert an OPUS-MT model, in the form that Hugging Face has (MarianMT), to a model folder.

    PATH_OR_NAME is a folder, or the name of a model on the Hugging Face hub such as Helsinki-NLP/opus-mt-en-es.
    docs/interop.md lists what is supported. All commands work on the result: translate, look, train --from, …
    """
    from vidrio.interop.convert import import_model

    about = import_model(source, to, target=target, languages=languages)
    click.echo(f"{to}: {about.source_language or '?'} → {about.target_language or '?'}")
    if not (about.source_language and about.target_language):
        click.echo("the model does not name its languages: add --languages en,es for the server and for cleaning")
    click.echo(f"licence: {about.provenance['licence']}")
    click.echo(f'try it: vidrio translate -m {to} "…"; vidrio look -m {to} "…"')
