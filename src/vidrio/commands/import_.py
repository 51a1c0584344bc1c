"""`vidrio import`: another program's model becomes a model folder."""

from pathlib import Path

import click

from vidrio.commands._options import json_option
from vidrio.commands._progress import Console


@click.command(name="import", short_help="Make a model folder of another program's model.")
@click.argument("source", metavar="PATH_OR_NAME")
@click.option("--to", required=True, type=click.Path(file_okay=False, path_type=Path), help="The model folder to make.")
@click.option("--target", default="", help="Into which language, for a model of several: spa for >>spa<<.")
@click.option("--mirror", default="", envvar="VIDRIO_MIRROR", help="Fetch https://HOST/PATH from MIRROR/HOST/PATH.")
@json_option
def import_(source: str, to: Path, target: str, mirror: str, as_json: bool) -> None:
    """Make a model folder of a MarianMT model (Hugging Face) or a Marian release (OPUS-MT).

    PATH_OR_NAME is a folder, a zip, or the name of a model on the Hugging Face hub such as Helsinki-NLP/opus-mt-en-es.
    What is supported, docs/interop.md tells. Everything works on the folder then: translate, look, train --from, …
    """
    from dataclasses import asdict

    from vidrio.interop.importing import import_model
    from vidrio.model.json_text import json_text

    with Console() as console:
        about = import_model(source, to, console.progress, target=target, mirror=mirror)
    if as_json:
        click.echo(json_text({"folder": str(to), "about": asdict(about)}, indent=1))
        return
    click.echo(f"{to}: {about.source_language or '?'} → {about.target_language or '?'}")
    click.echo(f"licence: {about.provenance['licence']}")
    click.echo(f'try it: vidrio translate -m {to} "…"; vidrio look -m {to} "…"')
