"""Options shared by several commands."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from vidrio.model.config import LARGEST_BEAM

if TYPE_CHECKING:
    from vidrio.hypothesis import Options
    from vidrio.model.config import ModelConfig

F = TypeVar("F")
Decorator = Callable[[Any], Any]


def together(*options: Decorator) -> Callable[[F], F]:
    """Combine options into one decorator. The help text lists the options in the given order."""

    def decorated(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


def names_of(*options: Decorator) -> list[str]:
    """Return the names of the parameters that these options add to a command."""
    command = together(*reversed(options))(click.Command("nothing"))
    return [parameter.name for parameter in command.params if parameter.name]


BEAM = click.IntRange(1, LARGEST_BEAM)
DTYPES = click.Choice(["int8", "float64", "float32"])  # NumPy's names
THERE = click.Path(exists=True, dir_okay=False, path_type=Path)  # an input file
FILE = click.Path(dir_okay=False, path_type=Path)  # an input or output file

model_option = click.option(
    "-m",
    "--model",
    "model_name",
    metavar="MODEL",
    help="Model folder, or name of a packaged or imported model. [default: en-es]",
)
precision_option = click.option(
    "--precision",
    metavar="N",
    type=click.IntRange(0, 17),
    default=4,
    show_default=True,
    help="Decimal places to print.",
)
dtype_option = click.option(
    "--dtype", type=DTYPES, help="Numeric type of the computation; the engine uses int8. [same as for translation]"
)
mirror_option = click.option(
    *("--mirror", "mirror"),
    envvar="VIDRIO_MIRROR",
    metavar="URL",
    help="URL of a mirror of Mozilla's registry. [VIDRIO_MIRROR, else Mozilla's own]",
)
SHORTLIST = "Consider only words on the model's shortlist, if it has one (as Firefox's models do). Faster for files."
shortlist_option = click.option("--shortlist", is_flag=True, help=SHORTLIST)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")


# Options for beam search, output length and sampling. `as_options` converts them to `Options`.
search_options = together(
    click.option("--beam", type=BEAM, help="Hypotheses to keep at each step; 1 is greedy search."),
    click.option(
        "--length-penalty", metavar="X", type=float, help="Exponent A in score = log p / length^A. [the model's]"
    ),
    click.option("--min-length", metavar="N", type=click.IntRange(0), help="Minimum number of tokens."),
    click.option("--max-length", metavar="N", type=click.IntRange(1), help="Maximum number of tokens. [the model's]"),
    click.option(
        "--no-repeat",
        "no_repeat_ngram",
        metavar="N",
        type=click.IntRange(0),
        help="Never repeat a sequence of N tokens.",
    ),
    click.option(
        "--temperature",
        metavar="X",
        type=click.FloatRange(0, min_open=True),
        help="Sample at this temperature; values below 1 favour likely tokens.",
    ),
    click.option("--top-k", metavar="N", type=click.IntRange(0), help="Sample from the k most likely tokens."),
    click.option(
        "--top-p",
        metavar="X",
        type=click.FloatRange(0, 1, min_open=True),
        help="Sample from the most likely tokens whose probabilities add up to p.",
    ),
    click.option("--seed", metavar="N", type=click.IntRange(0), help="Random seed for sampling."),
)
SAMPLING = ("temperature", "top_k", "top_p", "seed")
SEARCH = ("beam", "length_penalty", "min_length", "max_length", "no_repeat_ngram", *SAMPLING)


def as_options(config: "ModelConfig", given: Mapping[str, Any]) -> "Options":
    """Return the model's default options, overridden by the options on the command line."""
    from dataclasses import replace

    from vidrio.hypothesis import Sampling, default_options

    chosen = {name: value for name, value in given.items() if value is not None}
    draw = {name: chosen.pop(name) for name in SAMPLING if name in chosen}
    options = default_options(config)
    if draw:
        return replace(options, **{"beam": 1, **chosen}, sampling=Sampling(**draw))
    return replace(options, **chosen)


def print_json(data: Any) -> None:
    from vidrio.model.json_text import json_text

    click.echo(json_text(data, indent=1))


# --- option values with their own syntax -----------------------------------------------------------------------


def duration(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    """Convert `90s`, `30m` or `1h30m` to seconds."""
    if value is None:
        return None
    match = re.fullmatch(r"(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s?)?", value.strip().lower())
    seconds = (
        sum(float(part or 0) * size for part, size in zip(match.groups(), (3600, 60, 1), strict=True)) if match else 0
    )
    if not seconds:
        raise click.BadParameter(f"{value!r} is not a duration; write 30m, 90s or 1h30m")
    return seconds


def two_names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, str] | None:
    if value is None:
        return None
    parts = [part.strip() for part in value.split(",")]
    if len(parts) != 2 or not all(parts):
        raise click.BadParameter(f"{value!r}: write two names separated by a comma")
    return parts[0], parts[1]


# --- options that determine which pairs to leave out ------------------------------------------------------------------

LIMITS = (
    click.option(
        "--longest",
        metavar="N",
        type=click.IntRange(0),
        default=1000,
        show_default=True,
        help="Maximum characters in either sentence; 0: no limit.",
    ),
    click.option(
        "--ratio",
        metavar="X",
        type=click.FloatRange(0),
        default=3.0,
        show_default=True,
        help="Maximum ratio of the two lengths; 0: no limit.",
    ),
    click.option("--keep-duplicates", is_flag=True, help="Keep repeated pairs."),
    click.option(
        *("--keep-numbers", "numbers"),
        is_flag=True,
        flag_value=False,
        default=True,
        help="Keep pairs whose numbers differ.",
    ),
    click.option(
        *("--keep-identical", "identical"),
        is_flag=True,
        flag_value=0,
        default=3,
        help="Keep pairs whose source and target are identical.",
    ),
)
LIMITS_OF = ("longest", "ratio", "numbers", "identical")  # also the names of the fields of `Limits`
