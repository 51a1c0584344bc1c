"""`vidrio look TEXT`: every step from text to text, with its numbers."""

from typing import TYPE_CHECKING, Any

import click

from vidrio.commands._options import (
    as_options,
    dtype_option,
    given_text,
    json_option,
    model_option,
    opened,
    precision_option,
    search_options,
    text_argument,
)
from vidrio.commands.reading import as_read, typed_option
from vidrio.commands.training_options import show_training, take_training, training_options
from vidrio.commands.whatif_options import Asked, as_typed, take_asked, whatif_options

if TYPE_CHECKING:
    from vidrio.look.again import Again
    from vidrio.look.changed import Tried


@click.command(short_help="Look inside: every step from text to text, with its numbers.")
@text_argument
@model_option
@click.option("--at", "addresses", metavar="ADDRESS", multiple=True, help="A layer, a matrix or a number. Repeatable.")
@click.option("--heads", "show_heads", is_flag=True, help="Every attention head: entropy and largest weight.")
@click.option("--embedding", "show_embedding", is_flag=True, help="How alike the tokens are, and their neighbours.")
@click.option("--step", "steps", metavar="N", type=click.IntRange(0), multiple=True, help="One decoding step.")
@click.option("--tree", "show_tree", is_flag=True, help="The search tree: every hypothesis, and why it died.")
@click.option("--target", metavar="TEXT", help="Force this translation instead of searching for one.")
@search_options
@typed_option
@whatif_options
@training_options
@precision_option
@dtype_option
@json_option
@click.option("--values", type=click.Choice(["none", "at", "all"]), help="Which values --json holds. [those of --at]")
@click.option("--html", metavar="FILE", type=click.Path(dir_okay=False, writable=True), help="Write a page.")
@click.option("--ipynb", metavar="FILE", type=click.Path(dir_okay=False, writable=True), help="Write a notebook.")
def look(text: str, model_name: str | None, precision: int, dtype: str, **asked: Any) -> None:
    """Look inside: how TEXT becomes its translation, every step with its numbers.

    Without further options: the whole machine, a line a step, and the translation token by token. TEXT may be -, for
    standard input.

    \b
    vidrio look "Hello world" --at enc.0
    vidrio look "Hello world" --at enc.0.self.weights.h0
    vidrio look "Hello world" --step 1
    vidrio look "Hello world" --beam 4 --tree
    vidrio look "Hello world" --html page.html
    vidrio look "Hello world" --target "hola mundo" --training
    """
    from vidrio.look import changed
    from vidrio.search import Tree

    search = {name: asked.pop(name) for name in SEARCH}
    whatif, target, typed = take_asked(asked), asked.pop("target"), asked.pop("typed")
    training = take_training(asked, changed=bool(whatif))
    refuse_what_cannot_be_combined(**asked)
    text = given_text(text)
    model = opened(model_name, dtype)
    options = as_options(model.config, search)
    lead_on = again(text, model_name, dtype, target, search, whatif, typed=typed)
    text = as_read(model, text, options, typed=typed or target is not None)
    if training is not None:
        show_training(training, model, text, target, options, lead_on, precision)
        return
    tree = Tree() if asked["show_tree"] and options.sampling is None else None
    forced = None if target is None else [*model.target_tokenizer.encode(target), model.config.special.end]
    tried = changed.look_changed(model, text, whatif, options=options, target=forced, tree=tree)
    show(tried, precision, lead_on, model_name=model_name, whatif=whatif, **asked)


SEARCH = (
    *("beam", "length_penalty", "min_length", "max_length", "no_repeat_ngram", "repetition_penalty"),
    *("temperature", "top_k", "top_p", "min_p", "seed"),
)


def refuse_what_cannot_be_combined(
    *,
    as_json: bool,
    values: str | None,
    show_heads: bool,
    show_embedding: bool,
    steps: tuple[int, ...],
    show_tree: bool,
    addresses: tuple[str, ...],
    html: str | None,
    ipynb: str | None,
) -> None:
    """Standard output holds one thing: text, JSON, a page or a notebook."""
    if values and not as_json:
        raise click.UsageError("--values says what --json holds: give --json too")
    views = {"--heads": show_heads, "--embedding": show_embedding, "--step": bool(steps)}
    text = [*(name for name, asked in views.items() if asked)]
    text += [name for name, asked in (("--at", addresses), ("--tree", show_tree)) if asked and not as_json]
    taken = [*text[:1], *["--json"] * as_json, *["--html -"] * (html == "-"), *["--ipynb -"] * (ipynb == "-")]
    if len(taken) > 1:
        raise click.UsageError(f"{' and '.join(taken)} would all go to standard output: ask for one at a time")


def again(
    text: str,
    model_name: str | None,
    dtype: str,
    target: str | None,
    search: dict[str, Any],
    whatif: Asked,
    *,
    typed: bool,
) -> "Again":
    """What must be told again to see the same run from another side."""
    from vidrio.look.again import Again

    told = {"model": model_name, "dtype": None if dtype == "float64" else dtype, "target": target, **search}
    options = ([f"--{name.replace('_', '-')}", str(value)] for name, value in told.items() if value is not None)
    return Again(text, (*(part for option in options for part in option), *["--as-typed"] * typed, *as_typed(whatif)))


def show(
    tried: "Tried",
    precision: int,
    lead_on: "Again",
    *,
    model_name: str | None,
    whatif: Asked,
    addresses: tuple[str, ...],
    show_heads: bool,
    show_embedding: bool,
    steps: tuple[int, ...],
    show_tree: bool,
    as_json: bool,
    values: str | None,
    html: str | None,
    ipynb: str | None,
) -> None:
    """Print the views that were asked for, and write the files."""
    from dataclasses import replace

    from vidrio.draw import heads, machine, notebook, quantity, searched
    from vidrio.draw import html as pages
    from vidrio.look import changed, manifest

    seen = replace(tried.after, changes=[f"{change.asked}: {change.says}" for change in tried.whatif.changes])
    if as_json:
        what_if = changed.as_data(tried) if tried.whatif else None
        click.echo(manifest.to_json(seen, values or ("at" if addresses else "none"), addresses, what_if), nl=False)
    views = [quantity.at(seen.trace, address, lead_on, precision) for address in addresses if not as_json]
    if show_heads:
        views.append(heads.overview(seen.trace, lead_on, precision))
    if show_embedding:
        views.append(heads.embeddings(seen.trace, precision))
    views += [searched.step(seen, step, lead_on, precision) for step in steps]
    if show_tree and not as_json:
        views.append(searched.tree(seen, precision))
    if html is not None:
        write(html, pages.page(seen, lead_on, precision))
    if ipynb is not None:
        write(ipynb, notebook.notebook(seen, model_name=model_name, asked=whatif, precision=precision))
    if not (views or as_json or html or ipynb):
        views = [changed.tell(tried, precision) if tried.whatif else machine.overview(seen, lead_on, precision)]
    if views:
        click.echo("\n\n".join(views))


def write(path: str, content: str) -> None:
    """A file, whole or not at all; `-` is standard output."""
    from pathlib import Path

    from vidrio.model.folder import write_atomically

    if path == "-":
        click.echo(content, nl=False)
        return
    write_atomically(Path(path), content.encode())
    click.echo(f"wrote {path} ({len(content.encode()):,} bytes)", err=True)
