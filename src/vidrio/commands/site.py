"""`vidrio site`: write the page as static files, with Python running in the browser."""

from pathlib import Path

import click


@click.command()
@click.option("--to", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="A new or empty folder.")
@click.option("-m", "--model", "models", metavar="MODEL", multiple=True, help="Model to include; repeatable. [all]")
def site(to: Path, models: tuple[str, ...]) -> None:
    """Write the page to FOLDER as static files, together with Python, the engine, the models and the lessons.

    Any web server can host the files, and the page works offline after the first visit. It opens with the first model
    listed. See docs/site.md for hosting and download sizes.

    \b
    vidrio site --to site
    python -m http.server --directory site
    """
    from vidrio.look.writing import quoted
    from vidrio.site.writing import write_site

    version, sizes = write_site(to, models, lambda what: click.echo(f"vidrio: {what} …", err=True))
    for name, size in sizes.items():
        click.echo(f"{size:12,} bytes  {name}")
    click.echo(f"{to}: version {version}; try it: python -m http.server --directory {quoted(to.as_posix())}")
