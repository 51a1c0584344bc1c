"""The NaN laboratory: six encoder blocks that explode, and what stops them. `vidrio lesson nan`.

The first document stacks six encoder blocks of random matrices, gets NaN, and adds residual connections and layer norm
together; then the NaN are gone. Which of the two did it, and what was wrong? Here each can be switched by itself, over
many draws, with the softmax as the document writes it or with the row's maximum taken off first.
"""

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import astuple, replace
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from vidrio.glass.paper.maths import softmax
from vidrio.lessons import pages
from vidrio.lessons.nan_draws import (
    BLOCKS,
    DTYPES,
    RECIPES,
    Draws,
    Learned,
    Outcome,
    Recipe,
    blocks,
    exp_limit,
    exp_vanishes,
    run,
)
from vidrio.look import writing

NAN = pages.pages("nan")


@click.command("nan")
@click.option("--as", "numbers", type=click.Choice(["drawn", "trained"]), default="drawn", show_default=True,
              help="Random matrices, or those of the lessons' trained model.")  # fmt: skip
@click.option("--softmax", type=click.Choice(["naive", "stable"]), help="Only blocks with this softmax.")
@click.option("--residual/--no-residual", default=None, help="Only blocks with, or without, residual connections.")
@click.option("--layer-norm/--no-layer-norm", default=None, help="Only blocks with, or without, layer norm.")
@click.option("--draws", "count", type=click.IntRange(1, 20_000), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random matrices.")
@click.option("--blocks", type=click.IntRange(1, 100), default=BLOCKS, show_default=True)
@click.option("--spread", type=click.FloatRange(0, 1e6, min_open=True), default=1.0, show_default=True,
              help="Standard deviation of the matrices' entries.")  # fmt: skip
@click.option("--dtype", type=click.Choice(list(DTYPES)), default="float64", show_default=True)
@click.option("--precision", type=click.IntRange(0, 17), default=writing.PRECISION, show_default=True)
def command(numbers: str, precision: int, **options: Any) -> None:
    """Six encoder blocks of random matrices: when do they become NaN, and why?

    \b
    vidrio lesson nan                          all eight ways to build them
    vidrio lesson nan --softmax stable         four of them
    vidrio lesson nan --softmax stable --residual --layer-norm    one, closely
    vidrio lesson nan --as trained             with numbers that were learned
    """
    learned = numbers == "trained"
    if math.isnan(options["spread"]):
        raise click.UsageError("--spread is a number above 0.")
    if learned:
        _refuse_what_draws()
    wanted = [options.pop(name) for name in ("softmax", "residual", "layer_norm")]  # None: both
    recipes = [
        recipe
        for recipe in RECIPES
        if all(want in (None, has) for want, has in zip(wanted, astuple(recipe), strict=True))
    ]
    draws = Learned(options["dtype"]) if learned else Draws(**options)
    outcomes = [run(recipe, draws) for recipe in _shown_on_a_terminal(recipes)]
    click.echo(told(outcomes, precision))


def _refuse_what_draws() -> None:
    """What is of no use with trained numbers must not seem to be."""
    source = click.get_current_context().get_parameter_source
    names = {"--draws": "count", "--seed": "seed", "--blocks": "blocks", "--spread": "spread"}
    given = [option for option, name in names.items() if source(name) is ParameterSource.COMMANDLINE]
    if given:
        raise click.UsageError(f"{', '.join(given)}: of use with drawn matrices only; those of --as trained are given.")


def _shown_on_a_terminal(recipes: Sequence[Recipe]) -> Iterator[Recipe]:
    """The recipes, with a bar on stderr while they are run, if somebody sees it."""
    if not sys.stderr.isatty():
        yield from recipes
        return
    with click.progressbar(recipes, label="drawing", file=sys.stderr) as bar:
        yield from bar


# --- what the pages name; the words are in data/nan.toml --------------------------------------------------------------

CALM, EXPLODING = Recipe("stable", residual=False, layer_norm=False), Recipe("naive", residual=False, layer_norm=False)
NORMED, CURED = Recipe("stable", residual=False, layer_norm=True), Recipe("stable", residual=True, layer_norm=True)


def told(outcomes: Sequence[Outcome], precision: int) -> str:
    """Several ways to build the blocks, side by side, and what they show; or one of them, closely."""
    draws = outcomes[0].draws
    values = {"draws": draws, "many_blocks": draws.blocks != 1, "limit": exp_limit(draws.dtype)}
    if isinstance(draws, Draws):
        values |= {"variance": draws.spread**2}
    setting = pages.blocks(NAN["trained" if isinstance(draws, Learned) else "drawn"], values)
    of = _one(outcomes[0], precision) if len(outcomes) == 1 else _several(outcomes, precision)
    page = NAN["one" if len(outcomes) == 1 else "several"]
    return pages.text(page, values | {"setting": list(setting)} | of, precision)


def _several(outcomes: Sequence[Outcome], precision: int) -> dict[str, Any]:
    draws = outcomes[0].draws
    by_recipe = {outcome.recipe: outcome for outcome in outcomes}
    learned = isinstance(draws, Learned)
    with np.errstate(over="ignore"):
        exps = np.exp([709.0, 710.0, -1.0, 0.0])
    return {
        "outcomes": outcomes,
        "many_draws": draws.count > 1,
        "learned": _learned(by_recipe) if learned else None,
        # of what is told at length: the parts of its page, if it was run
        **{
            name: None if learned or recipe not in by_recipe else _parts(by_recipe[recipe], precision)
            for name, recipe in (("calm", CALM), ("exploding", EXPLODING), ("cured", CURED))
        },
        "conclusion": None if learned or len(outcomes) < len(RECIPES) else _conclusion(by_recipe, draws),
        "limits": {name: exp_limit(name) for name in DTYPES},
        "vanishes": exp_vanishes(draws.dtype),
        "exps": exps,
        "right": softmax(np.array([709.0, 710.0])),
    }


def _one(outcome: Outcome, precision: int) -> dict[str, Any]:
    draws = outcome.draws
    interval = outcome.intervals["largest"]
    rows_differ = draws.count > 1 and outcome.nan_share < 1 and (outcome.apart[:, -1] > 0).any()
    parts = _parts(outcome, precision)
    return {
        **parts,
        "learned": isinstance(draws, Learned),
        "nan_share": outcome.nan_share,
        "any_nan": outcome.nan_share > 0,
        "interval": interval if draws.count > 1 and np.isfinite(interval[1]) else None,
        "histogram": parts["histogram"] if rows_differ else None,
        "first_draw": list(_first_draw(outcome)),
        "words": ("Hello", "World"),
    }


def _parts(outcome: Outcome, precision: int) -> dict[str, Any]:
    """What several pages show of an outcome."""
    naive, n_nan = outcome.recipe.softmax == "naive", round(outcome.nan_share * outcome.draws.count)
    values = {
        **pages.public(outcome),
        "limit": exp_limit(outcome.draws.dtype),
        "n_nan": n_nan,
        "overflow": naive,
        "infinite": n_nan > 0 and not naive,
    }
    parts = {name: list(pages.blocks(NAN[name], values, precision)) for name in ("table", "first", "histogram")}
    return {"outcome": outcome, "recipe": outcome.recipe, **parts}


def _first_draw(outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Block by block, up to the first NaN."""
    draws = outcome.draws
    machine, limit = outcome.recipe.machine(draws.plain), exp_limit(draws.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for b, block in blocks(machine, next(iter(draws)), draws.x_SD):
            above = block.highest > limit
            yield {"number": b + 1, "highest": block.highest, "above": above, "out_SD": block.out_SD}
            if np.isnan(block.out_SD).any():
                return


def _learned(by_recipe: dict[Recipe, Outcome]) -> dict[str, float] | None:
    full, cut = by_recipe.get(CURED), by_recipe.get(NORMED)
    if full is None or cut is None:
        return None
    score = max(score for outcome in by_recipe.values() for score in outcome.medians("score") if score is not None)
    return {"score": score, "apart": full.apart[0, -1], "without_residual": cut.apart[0, -1]}


def _conclusion(by_recipe: dict[Recipe, Outcome], draws: Draws | Learned) -> dict[str, Any]:
    assert isinstance(draws, Draws)
    largest = by_recipe[CALM].last["largest"]
    spreads = [draws.spread * factor for factor in (1, 0.5, 0.25, 0.1)]
    return {
        "calm": by_recipe[CALM].nan_share,
        "grown": "" if largest is None else f" to {pages.short(largest)}",
        "residual": by_recipe[Recipe("naive", residual=True, layer_norm=False)].nan_share,
        "norm": by_recipe[Recipe("naive", residual=False, layer_norm=True)].nan_share,
        "spreads": [(spread, [_apart_with(spread, on, draws) for on in (False, True)]) for spread in spreads],
    }


def _apart_with(spread: float, residual: bool, draws: Draws) -> float | None:
    """The difference between the rows after the last block, with smaller matrices."""
    smaller = replace(draws, spread=spread, count=min(draws.count, 300))
    return run(Recipe("stable", residual=residual, layer_norm=True), smaller).last["apart"]
