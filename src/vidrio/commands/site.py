"""`vidrio site`: the page as static files, which need no Python but the browser's own."""

from pathlib import Path

import click

from vidrio.commands._options import json_option


@click.command()
@click.option(
    "--to", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="An empty folder, or a new one."
)
@click.option(
    "-m",
    "--model",
    "models",
    metavar="MODEL",
    multiple=True,
    help="A model to show; several if given again. [packaged]",
)
@json_option
def site(to: Path, models: tuple[str, ...], as_json: bool) -> None:
    """Write the page into FOLDER as static files: with Python, the engine, the models and the lessons.

    Any web server can serve them, and after the first visit the page needs none. The first model named is the one that
    the page opens with. docs/site.md tells how to host it, and what it weighs.

    \b
    vidrio site --to site
    python -m http.server --directory site
    """
    from vidrio.model.json_text import json_text
    from vidrio.site.writing import write_site

    written = write_site(to, models, lambda what: click.echo(f"vidrio: {what} …", err=True))
    if as_json:
        click.echo(json_text({"folder": str(to), **written._asdict()}))
        return
    rows = {"page": written.page, "Python and the engine": written.python, **written.models}
    for name, size in rows.items():
        click.echo(f"{size:12,} bytes  {name}")
    click.echo(f"{to}: version {written.version}; try it: python -m http.server --directory {to}")
