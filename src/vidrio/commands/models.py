"""`vidrio models`: list the packaged and imported models, and those available from Mozilla's registry."""

from pathlib import Path
from typing import Any

import click

from vidrio.commands._options import json_option, mirror_option, print_json


@click.command()
@click.option("--available", is_flag=True, help="Also list Firefox's models, which `vidrio import` can download.")
@mirror_option
@json_option
def models(available: bool, mirror: str | None, as_json: bool) -> None:
    """List models with their languages, size, scores and licence.

    Every name can be passed to --model. An imported model takes precedence over a packaged one with the same name.
    """
    from vidrio.model import find

    imported = find.imported()
    named = {name: folder for name, folder in find.available().items() if name not in find.LESSONS}
    rows = [row_of(name, folder, "imported" if name in imported else "packaged") for name, folder in named.items()]
    if available:
        from vidrio.interop.registry import LICENCE, MOZILLA, offers

        rows += [
            {
                "name": offer.name,
                "from": offer.languages[0],
                "to": offer.languages[1],
                "megabytes": round((offer.files["model"].get("uncompressedSize") or 0) / 1e6, 1),
                "scores": {f"{metric} FLORES-200+": value for metric, value in offer.scores.items()},
                "licence": LICENCE,
                "place": f"offered, {offer.architecture}",
            }
            for offer in offers(mirror or MOZILLA)
            if offer.released
        ]
    if as_json:
        print_json(rows)
        return
    from vidrio.look.writing import visible

    for row in rows:
        scores = ", ".join(f"{name} {value:.4g}" for name, value in row["scores"].items() if name[:2].upper() in "BLCO")
        parts = (f"{row['name']:<10}", f"{row['from'] or '?'} → {row['to'] or '?'}", f"{row['megabytes']} MB", scores)
        click.echo(visible("  ".join(part for part in (*parts, row["licence"], row["place"]) if part)))


def row_of(name: str, folder: Path, place: str) -> dict[str, Any]:
    """Return the metadata of a model folder, or an error message if the folder is damaged."""
    from vidrio.errors import VidrioError
    from vidrio.model.folder import About, read_config

    try:
        about = read_config(folder)[1]
    except VidrioError as error:
        about, place = About(), f"{place}, damaged: {error.what}"
    return {
        "name": name,
        "from": about.source_language,
        "to": about.target_language,
        "megabytes": round(sum(file.stat().st_size for file in folder.iterdir() if file.is_file()) / 1e6, 1),
        "scores": {
            f"{score['metric']} {score.get('test', '')}".rstrip(): score["value"]  # training scores have no test's name
            for score in about.scores
            if "metric" in score and isinstance(score.get("value"), int | float)
        },
        "licence": str(about.provenance.get("licence", "see its README.md")),
        "place": place,
    }
