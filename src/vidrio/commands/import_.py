"""`vidrio import`: another program's model becomes a model folder."""

from pathlib import Path

import click

from vidrio.commands._options import two_names


@click.command(name="import")
@click.argument("source", metavar="PATH_OR_NAME")
@click.option("--to", required=True, type=click.Path(file_okay=False, path_type=Path), help="The model folder to make.")
@click.option("--target", default="", help="Into which language, for a model of several: spa for >>spa<<.")
@click.option("--languages", callback=two_names, metavar="en,es", help="What to call them; else as the model says.")
def import_(source: str, to: Path, target: str, languages: tuple[str, str] | None) -> None:
    """Make a model folder of a MarianMT model (Hugging Face) or a Marian release (OPUS-MT).

    PATH_OR_NAME is a folder, or the name of a model on the Hugging Face hub such as Helsinki-NLP/opus-mt-en-es.
    docs/interop.md lists what is supported. Everything works on the folder then: translate, look, train --from, …
    """
    from vidrio.interop.convert import import_model

    about = import_model(source, to, target=target, languages=languages)
    click.echo(f"{to}: {about.source_language or '?'} → {about.target_language or '?'}")
    if not (about.source_language and about.target_language):
        click.echo("it does not name its languages; --languages en,es does, for the server and for cleaning")
    click.echo(f"licence: {about.provenance['licence']}")
    click.echo(f'try it: vidrio translate -m {to} "…"; vidrio look -m {to} "…"')
