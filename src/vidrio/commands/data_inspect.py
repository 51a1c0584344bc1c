"""`vidrio data inspect`: what is in files of pairs, and what cleaning would leave out."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import cleaning_options, json_option, print_json, read_options
from vidrio.commands._progress import Console

if TYPE_CHECKING:
    from vidrio.data.inspect import Survey


@click.command(name="inspect")
@click.argument("files", nargs=-1, required=True)
@cleaning_options
@click.option("--samples", type=click.IntRange(0, 5), default=2, show_default=True, help="Shown of everything.")
@json_option
def command(files: tuple[str, ...], samples: int, as_json: bool, **given: Any) -> None:
    """Counts, lengths, scripts, and what cleaning would leave out. Nothing is written."""
    from vidrio.data.inspect import survey

    corpora, wishes = read_options(files, given, least=0)
    with Console() as console:
        figures = survey(corpora, wishes, console.progress)
    if as_json:
        print_json(figures.to_json())
    else:
        click.echo("\n".join(as_text(figures, samples)))


def as_text(figures: "Survey", samples: int) -> Iterator[str]:
    """The survey in lines of at most 80 columns."""
    from vidrio.look.layout import wrap
    from vidrio.look.writing import cut

    tally = figures.tally
    for corpus, kept in zip(figures.corpora, figures.kept, strict=True):
        weight = "" if corpus.weight == 1 else f", weight {corpus.weight:g}"
        yield cut(corpus.name, 80)
        yield from wrap(f"recognised as: {corpus.layout.words}{weight}; {kept:,} pairs kept", indent="  ").splitlines()
    yield ""
    yield f"{tally.read:,} pairs read, {tally.kept:,} kept ({_share(tally.kept, tally.read)})"
    if tally.counts:
        yield ""
        yield from left_out(figures, samples)
    if tally.kept:
        yield ""
        yield from _lengths(figures)
        yield ""
        yield f"Letters of the source: {_scripts(figures.source.scripts)}"
        yield f"Letters of the target: {_scripts(figures.target.scripts)}"
        if samples:
            yield ""
            yield "Some of what is kept"
            for source, target in figures.samples[:samples]:
                yield from _pair(source, target)


def left_out(figures: "Survey", samples: int) -> Iterator[str]:
    """Every reason with its count, its meaning and samples."""
    from vidrio.data.clean import REASONS
    from vidrio.look.layout import wrap
    from vidrio.look.writing import cut

    yield "Left out"
    for reason, count in figures.tally.reasons():
        yield from wrap(f"{count:,} {reason}: {REASONS[reason]}", indent="  ", hang="    ").splitlines()
        for sample in figures.tally.samples[reason][:samples]:
            yield cut(f"    {sample.place}", 80)
            yield from _pair(sample.source, sample.target)


def _pair(source: str, target: str) -> Iterator[str]:
    from vidrio.look.writing import cut, visible

    yield cut(f"      {visible(source)}", 80)
    if target:
        yield cut(f"    → {visible(target)}", 80)


def _lengths(figures: "Survey") -> Iterator[str]:
    """The histogram of lengths, both sides."""
    from vidrio.data.inspect import BINS
    from vidrio.look.layout import bar, table

    kept = figures.tally.kept
    names = [f"{low + 1} to {high}" for low, high in zip((0, *BINS), BINS, strict=False)] + [f"over {BINS[-1]}"]
    rows = [("words", "source", "", "target", "")]
    for name, ours, theirs in zip(names, figures.source.lengths, figures.target.lengths, strict=True):
        rows.append((name, f"{ours:,}", bar(ours / kept, 16), f"{theirs:,}", bar(theirs / kept, 16)))
    rows.append(("mean", f"{figures.source.words / kept:.1f}", "", f"{figures.target.words / kept:.1f}", ""))
    yield from table(rows, align="rrlrl").splitlines()


def _scripts(scripts: dict[str, int]) -> str:
    """The scripts of a thousandth or more of the letters."""
    total = sum(scripts.values())
    common = sorted((item for item in scripts.items() if item[1] * 1000 >= total > 0), key=lambda item: -item[1])
    return ", ".join(f"{name.title()} {_share(count, total)}" for name, count in common[:3]) or "none"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.1%}" if whole else "none"
