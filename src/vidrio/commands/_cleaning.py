"""The options of reading and cleaning pairs, spelled once for `vidrio data inspect` and `vidrio data clean`."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vidrio.commands._values import two_names

if TYPE_CHECKING:
    from vidrio.data.clean import Limits
    from vidrio.data.pairs import Corpus
    from vidrio.data.select import Wishes

F = TypeVar("F", bound=Callable[..., Any])

LIMITS = (
    click.option("--longest", type=click.IntRange(0), default=1000, show_default=True, help="Characters; 0: any."),
    click.option("--ratio", type=click.FloatRange(0), default=3.0, show_default=True, help="Of the lengths; 0: any."),
    click.option("--keep-duplicates", is_flag=True, help="Leave repeated pairs in."),
    click.option("--keep-numbers", is_flag=True, help="Leave pairs in whose numbers differ."),
    click.option("--keep-identical", is_flag=True, help="Leave pairs in whose sides are the same."),
)
_OPTIONS = (
    click.option("--columns", callback=two_names, metavar="A,B", help="Which columns: names, or numbers from 1."),
    click.option("--languages", callback=two_names, metavar="en,es", help="The languages; their scripts are checked."),
    click.option("--apart", multiple=True, metavar="FILE", help="A test set: leave out what repeats its sentences."),
    *LIMITS,
)


def cleaning_options(command: F) -> F:
    """What to read and what to leave out."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def as_limits(given: Mapping[str, Any]) -> "Limits":
    """What the limits among the options say."""
    from vidrio.data.clean import Limits

    return Limits(
        longest=given["longest"],
        ratio=given["ratio"],
        numbers=not given["keep_numbers"],
        identical=0 if given["keep_identical"] else Limits.identical,
    )


def read_options(files: tuple[str, ...], given: dict[str, Any], *, least: int) -> "tuple[list[Corpus], Wishes]":
    """The corpora and the wishes that files and options stand for."""
    from vidrio.data.pairs import corpora
    from vidrio.data.select import Wishes

    languages = given["languages"] or ("", "")
    found = corpora(files, columns=given["columns"], languages=languages)
    apart = corpora(given["apart"], languages=languages) if given["apart"] else []
    return found, Wishes(
        limits=as_limits(given),
        languages=languages,
        duplicates=given["keep_duplicates"],
        apart=tuple(apart),
        least=least,
    )
