"""`vidrio data get`: pairs by name, with where they come from and under which licence."""

from dataclasses import asdict
from pathlib import Path

import click

from vidrio.commands._options import FILE, json_option, mirror_option, print_json
from vidrio.commands._progress import Console


@click.command(name="get")
@click.argument("name")
@click.option("--to", type=FILE, help="The file to write. [by the name, here]")
@mirror_option
@json_option
def command(name: str, to: Path | None, mirror: str, as_json: bool) -> None:
    """Fetch the pairs NAME: tatoeba:eng-spa, or opus:CORPUS:en-es.

    Beside FILE.tsv, FILE.tsv.origin.json has licence and attribution; both go into the card of a model that learns
    from it.
    """
    from vidrio.data.sources import get

    with Console() as console:
        path, origin = get(name, to, console.progress, mirror=mirror)
    if as_json:
        print_json({"file": str(path), **asdict(origin)})
        return
    click.echo(f"{origin.pairs:,} pairs in {path}")
    click.echo(f"sha256 {origin.checksum}")
    click.echo(f"licence: {origin.licence.splitlines()[0]}")
    click.echo(f"attribution: {origin.attribution}")
