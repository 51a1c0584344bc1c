"""The NaN laboratory: six encoder blocks that explode, and what stops them. `vidrio lesson nan`.

The first document stacks six encoder blocks of random matrices, gets NaN, and adds residual connections and layer norm
together; then the NaN are gone. Which of the two did it, and what was wrong? Here each can be switched by itself, over
many draws, with the softmax as the document writes it or with the row's maximum taken off first.
"""

import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

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
from vidrio.lessons.pages import counted
from vidrio.lessons.slips import flag


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
def command(
    numbers: str,
    softmax: str | None,
    residual: bool | None,
    layer_norm: bool | None,
    count: int,
    seed: int,
    n_blocks: int,
    spread: float,
    dtype: str,
    precision: int,
    as_json: bool,
) -> None:
    """Six encoder blocks of random matrices: when do they become NaN, and why?

    \b
    vidrio lesson nan                          all eight ways to build them
    vidrio lesson nan --softmax stable         four of them
    vidrio lesson nan --softmax stable --residual --layer-norm    one, closely
    vidrio lesson nan --as trained             with numbers that were learned
    """
    recipes = [
        recipe
        for recipe in RECIPES
        if softmax in (None, recipe.softmax)
        and residual in (None, recipe.residual)
        and layer_norm in (None, recipe.layer_norm)
    ]
    draws: Draws | Learned = Draws(count, seed, n_blocks, spread, dtype)
    settings = {"draws": count, "seed": seed, "blocks": n_blocks, "spread": spread, "dtype": dtype}
    if math.isnan(spread):
        raise click.UsageError("--spread is a number above 0.")
    if numbers == "trained":
        _refuse({"--draws": "count", "--seed": "seed", "--blocks": "n_blocks", "--spread": "spread"})
        draws, settings = Learned(dtype), {"as": "trained", "dtype": dtype}
    outcomes = [run(recipe, draws) for recipe in _shown_on_a_terminal(recipes)]
    if as_json:
        click.echo(json_text(settings | {"recipes": [outcome.to_json() for outcome in outcomes]}))
        return
    lines = tell_one(outcomes[0], precision) if len(outcomes) == 1 else tell(outcomes, precision)
    click.echo("\n".join(lines))


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


# --- telling ----------------------------------------------------------------------------------------------------------


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
    yield show.wrap(
        "largest: the largest |number| that leaves the last block; a block: by what factor it grows from one block to "
        "the next; rows differ by: the largest difference between the rows of Hello and World; under 0.001: the share "
        "of draws in which it is less."
    )
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
            yield from tell_part(by_recipe[recipe], precision)
    if len(outcomes) == len(RECIPES):
        yield "\nWhat the eight rows say\n"
        yield from _tell_conclusion(by_recipe, draws)


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
        yield from _tell_first(outcome, precision)
    if outcome.draws.count > 1 and outcome.nan_share < 1 and (outcome.apart[:, -1] > 0).any():
        yield "\nHow far the two rows are apart after the last block\n"
        yield from _difference_histogram(outcome)
    yield "\nBlock by block\n" if isinstance(outcome.draws, Learned) else "\nThe first draw, block by block\n"
    yield from _tell_draw(outcome, precision)


def _setting(draws: Draws | Learned) -> str:
    if isinstance(draws, Learned):
        return show.wrap(
            f"The encoder of the lessons' trained model: {counted(draws.blocks, 'block')} of the same sizes, its own "
            f"matrices, biases and gains, on its rows for hello world; {draws.dtype}."
        )
    return show.wrap(
        f"{draws.blocks} encoder blocks, D 4, 2 heads, K 3, F 8, on the document's E; every matrix and bias drawn from "
        f"N(0, {draws.spread**2:g}), anew in every block. {draws.count:,} draws, the same for each way to build the "
        f"blocks (NumPy's PCG64, seed {draws.seed}); {draws.dtype}."
    )


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


def _tell_cause(outcome: Outcome, precision: int) -> Iterator[str]:
    dtype = outcome.draws.dtype
    limit, vanishes = exp_limit(dtype), exp_vanishes(dtype)
    yield flag(5)
    yield "\nThe stable softmax lets us watch the same draws go on to the end:\n"
    yield _by_block(outcome, precision)
    limits = " and ".join(f"above {exp_limit(name):.6f} in {name}" for name in DTYPES)
    yield "\n" + show.wrap(
        f"> {limit:.2f}: the share of the draws in which a |score| is larger. exp(x) overflows {limits}. "
        "Scores are products of two rows, so they grow with the square of the numbers. "
        f"As soon as one is above {limit:.2f}, the softmax as written computes ∞ / ∞, which is NaN; where all scores "
        f"of a row are below {vanishes:.2f}, it computes 0 / 0, NaN too. One NaN makes the next block NaN everywhere."
    )
    low, high = 709.0, 710.0
    with np.errstate(over="ignore"):
        exps = [show.number(float(np.exp(x)), precision) for x in (low, high, low - high, 0.0)]
    right = softmax(np.array([low, high]))
    yield f"By hand: scores {low:g} and {high:g}"
    yield f"  as written:    exp({low:g}) = {exps[0]}, exp({high:g}) = {exps[1]}; ∞ / ∞ = NaN"
    yield f"  710 taken off: exp(-1) = {exps[2]}, exp(0) = {exps[3]}; weights {right[0]:.4f} and {right[1]:.4f}"


def _tell_first(outcome: Outcome, precision: int) -> Iterator[str]:
    yield f"({outcome.recipe})"
    for b, share in enumerate(outcome.first_nan):
        if share or b < BLOCKS:
            yield f"block {b + 1:2}  {share:6.1%}  {show.bar(share, 40)}".rstrip()
    n_nan = round(outcome.nan_share * outcome.draws.count)
    if outcome.recipe.softmax == "naive":
        yield f"In {outcome.overflowed:,} of the {n_nan:,} draws with NaN the first was ∞ / ∞; in the others 0 / 0:"
        yield "all scores of a row so far below 0 that every exp is 0."
    elif n_nan:
        yield "Here the scores themselves became ∞, and taking the maximum off gives ∞ − ∞."


def _tell_collapse(outcome: Outcome, precision: int) -> Iterator[str]:
    yield f"({outcome.recipe})\n"
    yield _by_block(outcome, precision)
    low, high = outcome.interval("apart")
    yield f"\n95 % interval of the last median of the difference: {_short(low, 2)} … {_short(high, 2)}\n"
    yield from _difference_histogram(outcome)
    apart = [median for median in outcome.medians("apart") if median]
    shrinking = (apart[0] / apart[-1]) ** (1 / (len(apart) - 1)) if len(apart) > 1 else 1.0
    yield "\n" + show.wrap(
        "same choice: the share of the heads in which both rows take most from the same row. The first scores are so "
        "large that each row takes from one row only, mostly from the same one: attention adds nearly the same to "
        "both, and much more than the rows themselves. Layer norm then divides the sum by its size, and what told the "
        f"words apart shrinks: by a factor of {shrinking:.2g} a block. The document finds that its result makes sense; "
        "its two rows, too, differ by 0.00001."
    )
    yield "\n" + flag(10)


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
    apart, gone = full.apart[0, -1], cut.apart[0, -1]
    yield ""
    yield show.wrap(
        f"These matrices are small: no score is above {_short(score)}, far from where exp overflows, so no way to "
        "build the blocks makes NaN. And the words stay: with residual connections and layer norm, as they were "
        f"trained, the two rows differ by {_short(apart)} after the last block; without residual connections by "
        f"{_short(gone)}."
    )


def _tell_conclusion(by_recipe: dict[Recipe, Outcome], draws: Draws) -> Iterator[str]:
    def nan(softmax: str, residual: bool, layer_norm: bool) -> str:
        return f"{100 * by_recipe[Recipe(softmax, residual, layer_norm)].nan_share:.4g} %"

    calm = by_recipe[Recipe("stable", residual=False, layer_norm=False)]
    largest = calm.medians("largest")[-1]
    yield show.wrap(
        f"1. The NaN come from exp, not from the growth. With the maximum taken off first there are none "
        f"({nan('stable', False, False)}), although the numbers still grow"
        + (f" to {_short(largest)}." if largest is not None else "."),
        hang="   ",
    )
    yield show.wrap(
        f"2. Residual connections do not help here: {nan('naive', True, False)} NaN with them alone. They add, so the "
        "numbers grow a little more. They are there for the gradient (vidrio lesson exercises 6).",
        hang="   ",
    )
    yield show.wrap(
        f"3. Layer norm alone does: {nan('naive', False, True)} NaN. It makes every row as small as the last one, so "
        "scores stay small enough for exp.",
        hang="   ",
    )
    spreads = [draws.spread * factor for factor in (1, 0.5, 0.25, 0.1)]
    yield show.wrap(
        "4. No NaN is not the same as sense: the rows become equal. Here residual connections do matter, if matrices "
        "are small enough not to drown the row that they are added to. Training keeps the words apart (--as trained). "
        "How far the rows differ after the last block, with layer norm:",
        hang="   ",
    )
    yield ""
    rows = [
        [f"{spread:g}", *(_apart_with(spread, residual, draws) for residual in (False, True))] for spread in spreads
    ]
    yield show.table(rows, ["   spread of the matrices", "norm only", "residual and norm"], "rrr")


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
