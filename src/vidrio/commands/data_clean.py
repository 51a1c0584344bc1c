"""`vidrio data clean`: the pairs worth learning from, in one file."""

from pathlib import Path
from typing import Any

import click

from vidrio.commands._options import FILE, cleaning_options, json_option, print_json, read_options
from vidrio.commands._progress import Console


@click.command(name="clean")
@click.argument("files", nargs=-1, required=True)
@click.option("--to", required=True, type=FILE, help="A .tsv file to write.")
@click.option("--held-out", type=click.IntRange(0), default=0, help="Hold so many pairs out, a tenth at most.")
@click.option("--held-out-to", type=FILE, help="Where to write those.")
@cleaning_options
@json_option
def command(
    files: tuple[str, ...], to: Path, held_out: int, held_out_to: Path | None, as_json: bool, **given: Any
) -> None:
    """Write the pairs worth learning from, source and target, a tab between; tell what was left out and why.

    Held-out pairs share no source and no target with the others.
    """
    from contextlib import ExitStack
    from dataclasses import replace
    from tempfile import TemporaryDirectory

    from vidrio.data.clean import Tally
    from vidrio.data.lock import locked
    from vidrio.data.prepare import select, write_pairs
    from vidrio.model.files import is_plain_file, real_place

    if bool(held_out) != (held_out_to is not None):
        raise click.UsageError("--held-out and --held-out-to go together")
    corpora, wishes = read_options(files, given, least=1)
    paths = [to] + ([held_out_to] if held_out_to else [])
    inputs = {path.resolve() for corpus in (*corpora, *wishes.apart) for path in corpus.paths}
    if len({path.resolve() for path in paths} | inputs) < len(paths) + len(inputs):
        raise click.UsageError("what is written must not be what is read")
    tally = Tally()
    real = real_place(to)
    wishes = replace(wishes, held_out=(held_out,) if held_out else ())
    with ExitStack() as open_things:
        beside = real.parent if is_plain_file(real) else Path(open_things.enter_context(TemporaryDirectory()))
        open_things.enter_context(locked(beside / f"{real.name}.lock", f"on {to}"))
        console = open_things.enter_context(Console())
        work = beside / f"{real.name}.pairs.part"
        counts = write_pairs(paths, select(corpora, wishes, tally, work, console.progress))
    if as_json:
        written = dict(zip(map(str, paths), counts, strict=True))
        print_json({"written": written, **tally.to_json()})
        return
    for path, count in zip(paths, counts, strict=True):
        click.echo(f"{count:,} pairs in {path}")
    for reason, count in tally.reasons():
        click.echo(f"{count:,} left out: {reason}")
