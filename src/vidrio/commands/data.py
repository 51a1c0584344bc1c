"""`vidrio data clean`: sentence pairs, before a model learns from them."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import FILE, cleaning_options, json_option, print_json, read_options
from vidrio.commands._progress import Console

if TYPE_CHECKING:
    from vidrio.data.clean import Tally


@click.group()
def data() -> None:
    """Look at sentence pairs and clean them.

    Pairs are read from tables (.tsv .csv .jsonl, or a .txt with tabs), or from two files with aligned lines,
    all of them also as .gz and .xz.
    """


@data.command()
@click.argument("files", nargs=-1, required=True)
@click.option("--to", type=FILE, help="A .tsv file to write. [only look]")
@click.option("--held-out", type=click.IntRange(0), default=0, help="Hold out this many pairs, a tenth at most.")
@click.option("--held-out-to", type=FILE, help="Where to write the held-out pairs.")
@cleaning_options
@click.option("--samples", type=click.IntRange(0, 5), default=1, show_default=True, help="Of what is left out.")
@json_option
def clean(
    files: tuple[str, ...], to: Path | None, held_out_to: Path | None, samples: int, as_json: bool, **given: Any
) -> None:
    """Count the pairs worth learning from, show what is left out and why, and write the rest with --to.

    Each line written has a source, a tab and a target. Held-out pairs share no source and no target with the others.
    """
    from tempfile import TemporaryDirectory

    from vidrio.data.clean import Tally
    from vidrio.data.lock import locked
    from vidrio.data.prepare import select, write_pairs
    from vidrio.model.files import is_plain_file, real_place

    held_out = given.pop("held_out")
    if bool(held_out) != (held_out_to is not None) or (held_out_to and to is None):
        raise click.UsageError("--held-out and --held-out-to go together, and with --to.")
    corpora, wishes = read_options(files, given, least=1 if to else 0)
    paths = [path for path in (to, held_out_to) if path is not None]
    inputs = {path.resolve() for corpus in (*corpora, *wishes.apart) for path in corpus.paths}
    if len({path.resolve() for path in paths} | inputs) < len(paths) + len(inputs):
        raise click.UsageError("An input and an output are the same file.")
    tally, counts = Tally(), list[int]()
    wishes = replace(wishes, held_out=(held_out,) if held_out else ())
    with ExitStack() as stack:
        beside = None if to is None or not is_plain_file(real_place(to)) else real_place(to)
        work = beside or Path(stack.enter_context(TemporaryDirectory())) / "pairs"
        if beside:
            stack.enter_context(locked(Path(f"{beside}.lock"), f"on {to}"))
        progress = stack.enter_context(Console()).progress
        pairs = select(corpora, wishes, tally, Path(f"{work}.pairs.part"), progress)
        counts = write_pairs(paths, pairs) if paths else [sum(1 for _ in pairs)]
    written = dict(zip(map(str, paths), counts, strict=False))
    layouts = {corpus.name: corpus.layout.words for corpus in corpora}
    if as_json:
        print_json({"layouts": layouts, **({"written": written} if paths else {}), **tally.to_json()})
    else:
        click.echo("\n".join(_report(layouts, tally, samples, written)))


def _report(layouts: dict[str, str], tally: "Tally", samples: int, written: dict[str, int]) -> Iterator[str]:
    """What was read, left out and written, in lines of at most 80 columns."""
    from vidrio.data.clean import REASONS
    from vidrio.look.writing import cut, visible, wrap

    for name, words in layouts.items():
        yield from wrap(f"{visible(name)}: {words}", hang="  ").splitlines()
    yield f"{tally.read:,} pairs read, {tally.kept:,} kept"
    for reason, count in tally.reasons():
        yield from wrap(f"{count:,} left out: {reason} ({REASONS[reason]})", hang="  ").splitlines()
        for sample in tally.samples[reason][:samples]:
            yield cut(f"    {sample.place}", 80)
            yield cut(f"      {visible(sample.source)}", 80)
            if sample.target:
                yield cut(f"    → {visible(sample.target)}", 80)
    for path, count in written.items():
        yield f"{count:,} pairs in {path}"
