"""`vidrio data clean`: clean sentence pairs before training."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import FILE, LIMITS, LIMITS_OF, json_option, print_json, together, two_names
from vidrio.commands._progress import Console

if TYPE_CHECKING:
    from tempfile import TemporaryDirectory

    from vidrio.data.clean import Tally


@click.group()
def data() -> None:
    """Inspect and clean sentence pairs.

    Pairs are read from tables (.tsv, .csv and other tab-separated files) or from two line-aligned files. Any file may
    be compressed (.gz, .xz).
    """


@data.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--to", type=FILE, help="Output file (.tsv). [report only]")
@click.option(
    "--held-out", metavar="N", type=click.IntRange(0), default=0, help="Hold out this many pairs, up to a tenth of all."
)
@click.option("--held-out-to", type=FILE, help="Output file for the held-out pairs.")
@click.option(
    "--columns", callback=two_names, metavar="A,B", help="Source and target columns, by name or 1-based number."
)
@click.option("--languages", callback=two_names, metavar="en,es", help="Language codes to look for in the header.")
@click.option("--apart", multiple=True, metavar="FILE", help="Test set whose sentences are excluded; repeatable.")
@together(*LIMITS)
@json_option
def clean(files: tuple[str, ...], to: Path | None, held_out_to: Path | None, as_json: bool, **given: Any) -> None:
    """Count the usable pairs, report which pairs are left out and why, and write the usable ones with --to.

    Each output line is source<TAB>target. Held-out pairs share no source or target sentence with the remaining pairs.
    The report shows one pair left out by each rule, or five with --json.
    """
    from dataclasses import asdict

    from vidrio.data.clean import Limits
    from vidrio.data.prepare import CleaningOptions
    from vidrio.data.prepare import clean as clean_into
    from vidrio.data.read import corpora

    held_out = given.pop("held_out")
    if bool(held_out) != (held_out_to is not None) or (held_out_to and to is None):
        raise click.UsageError("--held-out and --held-out-to must be used together, and with --to.")
    languages = given["languages"] or ("", "")
    sources = corpora(files, columns=given["columns"], languages=languages)
    apart = corpora(given["apart"], languages=languages) if given["apart"] else []
    options = CleaningOptions(
        limits=Limits(**{name: given[name] for name in LIMITS_OF}),
        duplicates=given["keep_duplicates"],
        apart=tuple(apart),
        least=1 if to else 0,
        held_out=(held_out, 0),
    )
    paths = {part: path for part, path in (("train", to), ("dev", held_out_to)) if path is not None}
    inputs = {path.resolve() for corpus in (*sources, *apart) for path in corpus.paths}
    if len({path.resolve() for path in paths.values()} | inputs) < len(paths) + len(inputs):
        raise click.UsageError("The inputs and outputs must be different files.")
    with Console() as console, _folder_beside(to) as work:
        prepared = clean_into(Path(work), sources, options, console.progress)
        for part, path in reversed(paths.items()):  # the output beside the temporary folder last: that cannot fail
            _move(prepared.path(part), path)
    tally, written = prepared.tally, {str(path): prepared.pairs[part] for part, path in paths.items()}
    layouts = {corpus.name: corpus.layout.words for corpus in sources}
    if as_json:
        print_json({"layouts": layouts, **({"written": written} if paths else {}), **asdict(tally)})
    else:
        click.echo("\n".join(_report(layouts, tally, written)))


def _folder_beside(to: Path | None) -> "TemporaryDirectory[str]":
    """Create a temporary folder next to the output, so that the result can be renamed into place."""
    from tempfile import TemporaryDirectory

    from vidrio.errors import DataError
    from vidrio.model.files import is_plain_file, real_place

    place = real_place(to).parent if to is not None and is_plain_file(to) else None
    try:
        return TemporaryDirectory(dir=place, prefix=".vidrio-")
    except OSError as error:
        raise DataError(
            f"{to or 'a temporary file'} cannot be written", found=str(error.strerror), do="choose another location"
        ) from None


def _move(source: Path, to: Path) -> None:
    """Move a finished file into place, or copy it to a device or a pipe."""
    import shutil

    from vidrio.model.files import is_plain_file, keep_access, real_place

    if is_plain_file(to):
        keep_access(to, source)
        shutil.move(source, real_place(to))
    else:
        with source.open("rb") as lines, to.open("wb") as device:
            shutil.copyfileobj(lines, device)


def _report(layouts: dict[str, str], tally: "Tally", written: dict[str, int]) -> Iterator[str]:
    """Yield the lines of the report, at most 80 columns wide."""
    from vidrio.data.clean import REASONS
    from vidrio.look.writing import cut, visible, wrap

    for name, words in layouts.items():
        yield from wrap(f"{visible(name)}: {words}", hang="  ").splitlines()
    yield f"{tally.read:,} pairs read, {tally.kept:,} kept"
    for reason, count in tally.reasons():
        yield from wrap(f"{count:,} left out: {reason} ({REASONS[reason]})", hang="  ").splitlines()
        place, source, target = tally.samples[reason][0]
        yield cut(f"    {place}", 80)
        yield cut(f"      {visible(source)}", 80)
        if target:
            yield cut(f"    → {visible(target)}", 80)
    for path, count in written.items():
        yield f"{count:,} pairs in {path}"
