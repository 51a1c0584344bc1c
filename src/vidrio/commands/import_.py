"""`vidrio import`: convert another program's model to a model folder."""

from pathlib import Path
from typing import Any

import click

from vidrio.commands._options import mirror_option, two_names


@click.command(name="import")
@click.argument("source", metavar="PAIR_PATH_OR_NAME")
@click.option("--to", type=click.Path(file_okay=False, path_type=Path), help="Folder to create. [in your model folder]")
@click.option("--target", default="", help="Target language, if the model has several: spa for >>spa<<.")
@click.option(
    "--languages", callback=two_names, metavar="en,es", help="Language codes of the model. [as given in its files]"
)
@click.option(
    "--float32", is_flag=True, help="Multiply in float32, as Marian can; this is slower. [int8 for large models]"
)
@mirror_option
def import_(source: str, to: Path | None, mirror: str | None, float32: bool, **given: Any) -> None:
    """Convert a model from Firefox, Marian or OPUS-MT to a model folder.

    A pair such as en-fr is downloaded from Mozilla's registry of Firefox models. A path is a folder with Marian's own
    files (.bin or .npz, and .spm) or a MarianMT folder from Hugging Face. A name such as Helsinki-NLP/opus-mt-en-es is
    a model on the Hugging Face Hub. docs/interop.md lists what is supported.

    Without --to, the model is added to your models and can be used by name: vidrio translate -m en-fr.
    """
    from vidrio.commands._progress import bar
    from vidrio.interop.convert import import_model
    from vidrio.interop.registry import MOZILLA, Mirror
    from vidrio.look.writing import quoted, visible
    from vidrio.model.find import own_folder

    place = to or own_folder() / Path(source).resolve().name
    about = import_model(source, place, mirror=Mirror(mirror or MOZILLA, bar), int8=not float32, **given)
    click.echo(visible(f"{place}: {about.source_language or '?'} → {about.target_language or '?'}"))
    if not (about.source_language and about.target_language):
        click.echo(
            "the model does not declare its languages, which the server and data cleaning need: add --languages en,es"
        )
    click.echo(visible(f"licence: {about.provenance['licence']}"))
    name = quoted((to or Path(place.name)).as_posix())
    click.echo(f'try it: vidrio translate -m {name} "…"; vidrio look -m {name} "…"')
