"""The NaN laboratory: six encoder blocks that explode, and what stops them. `vidrio lesson nan`.

The first document stacks six encoder blocks of random matrices, gets NaN, and adds residual connections and layer norm
together; then the NaN are gone. Which of the two did it, and what was wrong? Here each can be switched by itself, over
many draws, with the softmax as the document writes it or with the row's maximum taken off first.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, replace
from typing import Any

import click
import numpy as np
from click.core import ParameterSource

from vidrio.draw import show
from vidrio.glass.paper.maths import softmax
from vidrio.lessons.as_data import json_text
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
from vidrio.lessons.pages import counted, laid_out, pages


@click.command("nan")
@click.option("--as", "numbers", type=click.Choice(["drawn", "trained"]), default="drawn", show_default=True,
              help="Random matrices, or those of the lessons' trained model.")  # fmt: skip
@click.option("--softmax", type=click.Choice(["naive", "stable"]), help="Only blocks with this softmax.")
@click.option("--residual/--no-residual", default=None, help="Only blocks with, or without, residual connections.")
@click.option("--layer-norm/--no-layer-norm", default=None, help="Only blocks with, or without, layer norm.")
@click.option("--draws", "count", type=click.IntRange(1, 20_000), default=2000, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the random matrices.")
@click.option("--blocks", "n_blocks", type=click.IntRange(1, 100), default=BLOCKS, show_default=True)
@click.option("--spread", type=click.FloatRange(0, 1e6, min_open=True), default=1.0, show_default=True,
              help="Standard deviation of the matrices' entries.")  # fmt: skip
@click.option("--dtype", type=click.Choice(list(DTYPES)), default="float64", show_default=True)
@click.option("--precision", type=click.IntRange(0, 17), default=show.PRECISION, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The measured numbers as JSON.")
def command(**options: Any) -> None:
    """Six encoder blocks of random matrices: when do they become NaN, and why?

    \b
    vidrio lesson nan                          all eight ways to build them
    vidrio lesson nan --softmax stable         four of them
    vidrio lesson nan --softmax stable --residual --layer-norm    one, closely
    vidrio lesson nan --as trained             with numbers that were learned
    """
    asked = Request(**options)
    if math.isnan(asked.spread):
        raise click.UsageError("--spread is a number above 0.")
    if asked.numbers == "trained":
        _refuse({"--draws": "count", "--seed": "seed", "--blocks": "n_blocks", "--spread": "spread"})
    draws = asked.draws()
    outcomes = [run(recipe, draws) for recipe in _shown_on_a_terminal(asked.recipes())]
    if asked.as_json:
        click.echo(json_text(asked.settings() | {"recipes": [outcome.to_json() for outcome in outcomes]}))
    else:
        tell_all = tell_one(outcomes[0], asked.precision) if len(outcomes) == 1 else tell(outcomes, asked.precision)
        click.echo("\n".join(tell_all))


@dataclass(frozen=True, kw_only=True)
class Request:
    """What was asked for, as the options have it; None: both."""

    numbers: str  # drawn or trained
    softmax: str | None
    residual: bool | None
    layer_norm: bool | None
    count: int
    seed: int
    n_blocks: int
    spread: float
    dtype: str
    precision: int
    as_json: bool

    def recipes(self) -> list[Recipe]:
        wanted = (self.softmax, self.residual, self.layer_norm)
        return [
            recipe
            for recipe in RECIPES
            if all(want in (None, has) for want, has in zip(wanted, astuple(recipe), strict=True))
        ]

    def draws(self) -> Draws | Learned:
        if self.numbers == "trained":
            return Learned(self.dtype)
        return Draws(self.count, self.seed, self.n_blocks, self.spread, self.dtype)

    def settings(self) -> dict[str, Any]:
        if self.numbers == "trained":
            return {"as": "trained", "dtype": self.dtype}
        how = {"draws": self.count, "seed": self.seed, "blocks": self.n_blocks}
        return how | {"spread": self.spread, "dtype": self.dtype}


def _refuse(options: Mapping[str, str]) -> None:
    """What is of no use with trained numbers must not seem to be."""
    source = click.get_current_context().get_parameter_source
    given = [option for option, name in options.items() if source(name) is ParameterSource.COMMANDLINE]
    if given:
        raise click.UsageError(f"{', '.join(given)}: of use with drawn matrices only; those of --as trained are given.")


def _shown_on_a_terminal(recipes: Sequence[Recipe]) -> Iterator[Recipe]:
    """The recipes, with a bar on stderr while they are run, if somebody sees it."""
    if not sys.stderr.isatty():
        yield from recipes
        return
    with click.progressbar(recipes, label="drawing", file=sys.stderr) as bar:
        yield from bar


# --- telling; the words are in data/nan.toml --------------------------------------------------------------------------


def _page(name: str, **values: Any) -> str:
    return laid_out(pages("nan")[name], values)


def tell(outcomes: Sequence[Outcome], precision: int) -> Iterator[str]:
    """Several ways to build the blocks, side by side, and what they show."""
    draws = outcomes[0].draws
    yield _setting(draws)
    yield f"\nAfter {counted(draws.blocks, 'block')}" + ("; medians over the draws\n" if draws.count > 1 else "\n")
    yield show.table(
        [_row(outcome, precision) for outcome in outcomes],
        ["softmax", "residual", "norm", "NaN", "largest", "a block", "rows differ by", "under 0.001"],
        "lllrrrrr",
    )
    yield _page("columns")
    by_recipe = {outcome.recipe: outcome for outcome in outcomes}
    if isinstance(draws, Learned):
        yield from _tell_learned(by_recipe)
        return
    for title, tell_part, recipe in (
        ("Why NaN? Scores too large for exp", _tell_cause, Recipe("stable", residual=False, layer_norm=False)),
        ("Where the first NaN appears", _tell_first, Recipe("naive", residual=False, layer_norm=False)),
        ("What the cure costs: the words are gone", _tell_collapse, Recipe("stable", residual=True, layer_norm=True)),
    ):
        if recipe in by_recipe:
            yield f"\n{title}\n"
            yield tell_part(by_recipe[recipe], precision)
    if len(outcomes) == len(RECIPES):
        yield "\nWhat the eight rows say\n"
        yield _conclusion(by_recipe, draws)


def tell_one(outcome: Outcome, precision: int) -> Iterator[str]:
    """One way to build the blocks, block by block, and its first draw."""
    yield _setting(outcome.draws)
    if isinstance(outcome.draws, Learned):
        yield f"\n{outcome.recipe}: {'NaN' if outcome.nan_share else 'no NaN'}\n"
    else:
        yield f"\n{outcome.recipe}: NaN in {outcome.nan_share:.1%} of the draws; medians by block\n"
    yield _by_block(outcome, precision)
    low, high = outcome.interval("largest")
    if outcome.draws.count > 1 and np.isfinite(high):
        yield f"95 % interval of the last median of the largest number: {_short(low)} … {_short(high)}"
    if outcome.nan_share:
        yield "\nWhere the first NaN appears\n"
        yield _tell_first(outcome, precision)
    if outcome.draws.count > 1 and outcome.nan_share < 1 and (outcome.apart[:, -1] > 0).any():
        yield "\nHow far the two rows are apart after the last block\n"
        yield from _difference_histogram(outcome)
    yield "\nBlock by block\n" if isinstance(outcome.draws, Learned) else "\nThe first draw, block by block\n"
    yield from _tell_draw(outcome, precision)


def _setting(draws: Draws | Learned) -> str:
    if isinstance(draws, Learned):
        return _page("trained", counted_blocks=counted(draws.blocks, "block"), dtype=draws.dtype)
    return _page("drawn", draws=draws, variance=draws.spread**2)


def _row(outcome: Outcome, precision: int) -> list[str]:
    recipe = outcome.recipe
    largest, apart, growth = outcome.medians("largest")[-1], outcome.medians("apart")[-1], outcome.growth
    return [
        recipe.softmax,
        "yes" if recipe.residual else "-",
        "yes" if recipe.layer_norm else "-",
        f"{100 * outcome.nan_share:.4g} %",
        "-" if largest is None else _short(largest, precision),
        "-" if growth is None else f"× {growth:.3g}",
        "-" if apart is None else _short(apart, precision),
        "-" if apart is None else f"{100 * outcome.close():.4g} %",
    ]


def _by_block(outcome: Outcome, precision: int) -> str:
    limit = exp_limit(outcome.draws.dtype)
    medians = [outcome.medians(name) for name in ("largest", "score", "apart")]
    over, agree = outcome.over(limit), outcome.medians("agree")
    rows = [
        [
            str(b + 1),
            *("-" if (median := by_block[b]) is None else _short(median, precision) for by_block in medians),
            f"{over[b]:.1%}",
            "-" if agree[b] is None else f"{np.nanmean(outcome.agree[:, b]):.1%}",
        ]
        for b in range(outcome.draws.blocks)
    ]
    heads = ["block", "largest |x|", "largest |score|", "rows differ by", f"> {limit:.2f}", "same choice"]
    return show.table(rows, heads, "rrrrrr")


def _tell_cause(outcome: Outcome, precision: int) -> str:
    dtype = outcome.draws.dtype
    with np.errstate(over="ignore"):
        exps = [show.number(float(np.exp(x)), precision) for x in (709.0, 710.0, -1.0, 0.0)]
    return _page(
        "cause",
        by_block=_by_block(outcome, precision),
        limit=exp_limit(dtype),
        limits=" and ".join(f"above {exp_limit(name):.6f} in {name}" for name in DTYPES),
        vanishes=exp_vanishes(dtype),
        exps=exps,
        right=softmax(np.array([709.0, 710.0])),
    )


def _tell_first(outcome: Outcome, precision: int) -> str:
    shares = [(b, share) for b, share in enumerate(outcome.first_nan) if share or b < BLOCKS]
    n_nan = round(outcome.nan_share * outcome.draws.count)
    why = "overflow" if outcome.recipe.softmax == "naive" else "infinite" if n_nan else ""
    bars = [f"block {b + 1:2}  {share:6.1%}  {show.bar(share, 40)}".rstrip() for b, share in shares]
    told = [_page(why, overflowed=outcome.overflowed, n_nan=n_nan)] if why else []
    return "\n".join([f"({outcome.recipe})", *bars, *told])


def _tell_collapse(outcome: Outcome, precision: int) -> str:
    low, high = (_short(end, 2) for end in outcome.interval("apart"))
    apart = [median for median in outcome.medians("apart") if median]
    return _page(
        "collapse",
        recipe=outcome.recipe,
        by_block=_by_block(outcome, precision),
        low=low,
        high=high,
        histogram="\n".join(_difference_histogram(outcome)),
        shrinking=(apart[0] / apart[-1]) ** (1 / (len(apart) - 1)) if len(apart) > 1 else 1.0,
    )


def _difference_histogram(outcome: Outcome) -> Iterator[str]:
    """The draws by the power of ten of the difference between the rows."""
    apart = outcome.apart[:, -1]
    apart = apart[np.isfinite(apart)]
    yield f"{'difference':>22}  draws"
    exact = int((apart == 0).sum())
    powers = np.floor(np.log10(apart[apart > 0])).astype(int)
    counts = (
        {power: int((powers == power).sum()) for power in range(powers.min(), powers.max() + 1)} if powers.size else {}
    )
    most = max([exact, *counts.values()])
    rows = ([("exactly 0", exact)] if exact else []) + [(f"1e{p:+03d} to 1e{p + 1:+03d}", n) for p, n in counts.items()]
    for label, n in rows:
        yield f"{label:>22}  {n:5,}  {show.bar(n / most, 40)}".rstrip()


def _tell_draw(outcome: Outcome, precision: int) -> Iterator[str]:
    draws = outcome.draws
    limit = exp_limit(draws.dtype)
    machine = outcome.recipe.machine(draws.plain)
    with np.errstate(over="ignore", invalid="ignore"):
        for b, seen in blocks(machine, next(iter(draws)), draws.x_SD):
            mark = f", above {limit:.2f}" if seen.highest > limit else ""
            yield f"block {b + 1}: highest score {_short(seen.highest, precision)}{mark}"
            yield show.matrix(seen.out_SD, ("Hello", "World"), (), precision)
            if np.isnan(seen.out_SD).any():
                return


def _tell_learned(by_recipe: dict[Recipe, Outcome]) -> Iterator[str]:
    full, cut = (by_recipe.get(Recipe("stable", residual=on, layer_norm=True)) for on in (True, False))
    if full is None or cut is None:
        return
    score = max(score for outcome in by_recipe.values() for score in outcome.medians("score") if score is not None)
    apart, gone = _short(full.apart[0, -1]), _short(cut.apart[0, -1])
    yield "\n" + _page("learned", score=_short(score), apart=apart, without_residual=gone)


def _conclusion(by_recipe: dict[Recipe, Outcome], draws: Draws) -> str:
    def nan(softmax: str, residual: bool, layer_norm: bool) -> str:
        return f"{100 * by_recipe[Recipe(softmax, residual, layer_norm)].nan_share:.4g} %"

    largest = by_recipe[Recipe("stable", residual=False, layer_norm=False)].medians("largest")[-1]
    rows = [
        [f"{spread:g}", *(_apart_with(spread, residual, draws) for residual in (False, True))]
        for spread in (draws.spread * factor for factor in (1, 0.5, 0.25, 0.1))
    ]
    return _page(
        "conclusion",
        nan_calm=nan("stable", False, False),
        grown="" if largest is None else f" to {_short(largest)}",
        nan_residual=nan("naive", True, False),
        nan_norm=nan("naive", False, True),
        spreads=show.table(rows, ["   spread of the matrices", "norm only", "residual and norm"], "rrr"),
    )


def _apart_with(spread: float, residual: bool, draws: Draws) -> str:
    """The difference between the rows after the last block, with smaller matrices."""
    smaller = replace(draws, spread=spread, count=min(draws.count, 300))
    apart = run(Recipe("stable", residual=residual, layer_norm=True), smaller).medians("apart")[-1]
    return "-" if apart is None else _short(apart)


def _short(value: float, precision: int = 3) -> str:
    """A number of any size in few characters."""
    precision = max(1, precision)
    if value != 0 and not 1e-3 <= abs(value) < 1e5:
        return f"{value:.{max(1, precision - 1)}e}"
    return f"{value:.{precision}g}" if abs(value) < 10 else f"{value:.{precision + 1}g}"
