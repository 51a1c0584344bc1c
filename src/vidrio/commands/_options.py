"""Options that several verbs share, spelled and explained once."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from vidrio.hypothesis import Options
    from vidrio.look.run import LoadedModel, Look
    from vidrio.model.config import ModelConfig

F = TypeVar("F", bound=Callable[..., Any])

DTYPES = ("int8", "float64", "float32")

model_option = click.option(
    "-m", "--model", "model_name", metavar="MODEL", help="A model folder, or the name of a packaged one. [the default]"
)
precision_option = click.option(
    "--precision", type=click.IntRange(0, 17), default=4, show_default=True, help="Decimals of every number printed."
)
dtype_option = click.option(
    "--dtype", type=click.Choice(DTYPES), help="What to compute in; int8 as the fast engine. [as translating does]"
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
text_argument = click.argument("text")

_SEARCH = (
    click.option("--beam", type=click.IntRange(1, 64), help="Hypotheses to keep at each step; 1 is greedy."),
    click.option("--length-penalty", type=float, help="Score = log p / length^this. [the model's]"),
    click.option("--min-length", type=click.IntRange(0), help="Tokens at least."),
    click.option("--max-length", type=click.IntRange(1), help="Tokens at most. [the model's]"),
    click.option("--no-repeat", "no_repeat_ngram", type=click.IntRange(0), help="So many tokens in a row never twice."),
    click.option(
        "--repetition-penalty",
        type=click.FloatRange(0, min_open=True),
        help="Above 1: what stands there already is less likely.",
    ),
)
_SAMPLING = (
    click.option("--temperature", type=click.FloatRange(0, min_open=True), help="Draw tokens: below 1 bolder."),
    click.option("--top-k", type=click.IntRange(0), help="Draw from the k likeliest tokens."),
    click.option("--top-p", type=click.FloatRange(0, 1, min_open=True), help="Draw from the likeliest with sum p."),
    click.option("--min-p", type=click.FloatRange(0, 1), help="Draw from those with this share of the best one's p."),
    click.option("--seed", type=click.IntRange(0), help="Which draw. Any of these five turns drawing on."),
)


def search_options(command: F) -> F:
    """Beam, length penalty and sampling; `as_options` makes them the search's."""
    for option in reversed((*_SEARCH, *_SAMPLING)):
        command = option(command)
    return command


def as_options(config: "ModelConfig", given: Mapping[str, Any]) -> "Options":
    """The model's own way to search, with what was given on the command line."""
    from dataclasses import replace

    from vidrio.hypothesis import Sampling, default_options

    told = {name: value for name, value in given.items() if value is not None}
    draw = {name: told.pop(name) for name in ("temperature", "top_k", "top_p", "min_p", "seed") if name in told}
    options = default_options(config)
    if draw:
        return replace(options, **{"beam": 1, **told}, sampling=Sampling(**draw))
    return replace(options, **told)


def opened(model_name: str | None, dtype: str | None = None) -> "LoadedModel":
    """The model that an option names, ready to be looked into; stderr says which it is."""
    import numpy as np

    from vidrio.look.run import open_model

    dtypes = {"int8": np.int8, "float64": np.float64, "float32": np.float32}
    model = open_model(model_name, None if dtype is None else dtypes[dtype])
    which = "the default model" if model_name is None else "model"
    click.echo(f"{which}: {model.name} ({model.path})", err=True)
    return model


def given_text(text: str) -> str:
    """The TEXT argument; `-` is standard input, without its last line end."""
    import sys

    from vidrio.errors import InputError

    if text != "-":
        return text
    try:
        return sys.stdin.buffer.read().decode("utf-8-sig").removesuffix("\n")
    except UnicodeDecodeError as error:
        raise InputError("standard input is not UTF-8", found=str(error), do="convert it to UTF-8") from None


def tell_unknown(seen: "Look") -> None:
    """A note for each word that the vocabulary does not hold."""
    from vidrio.look.writing import visible

    for word in seen.unknown:
        click.echo(f"note: {visible(word)!r} is not in the vocabulary: it became the token for unknown words", err=True)
