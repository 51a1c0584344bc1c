"""The NaN laboratory's experiment: many draws of a stack of encoder blocks, built in eight ways.

Read next: nan_laboratory.py, which tells what came out.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np

from vidrio.glass.paper.maths import Array, no_tap
from vidrio.glass.paper.transformer import Machine, embed, encoder_layer
from vidrio.glass.whatif.changes import with_dtype, with_softmax, without_layer_norm, without_residual
from vidrio.lessons.machines import random_machine
from vidrio.lessons.values import draw, trained
from vidrio.model.parameters import parameter_specs

# The encoder's input as the document prints it, embeddings and positions added up (with its slips: `lesson errata 1`).
E_SD = np.array([[1, 3, 3, 5], [2.84, 3.99, 4, 6]])
BLOCKS = 6
DTYPES: dict[str, type[np.floating[Any]]] = {"float64": np.float64, "float32": np.float32}


@dataclass(frozen=True)
class Recipe:
    """One of the eight ways to build the blocks."""

    softmax: str  # naive: exp(x) / Σ exp(x); stable: with the row's maximum taken off first
    residual: bool
    layer_norm: bool

    def machine(self, plain: Machine) -> Machine:
        machine = with_softmax(plain, self.softmax)
        machine = machine if self.residual else without_residual(machine)
        return machine if self.layer_norm else without_layer_norm(machine)


RECIPES = tuple(Recipe(*choice) for choice in product(("naive", "stable"), (False, True), (False, True)))


@dataclass(frozen=True)
class Draws:
    """The blocks' matrices, drawn N(0, spread²): the same for every recipe, so that recipes can be compared."""

    count: int
    seed: int = 0
    blocks: int = BLOCKS
    spread: float = 1.0
    dtype: str = "float64"

    @property
    def settings(self) -> dict[str, Any]:
        how = {"draws": self.count, "seed": self.seed, "blocks": self.blocks}
        return how | {"spread": self.spread, "dtype": self.dtype}

    @cached_property
    def plain(self) -> Machine:
        """The machine whose blocks get each draw's parameters."""
        sizes = {"n_classes": 2, "d_model": 4, "d_head": 3, "d_ff": 8, "n_encoder_layers": self.blocks}
        machine = random_machine(("Hello", "World"), shape="encoder", **sizes)
        return with_dtype(machine, DTYPES[self.dtype])

    @property
    def x_SD(self) -> Array:
        """What comes into the first block."""
        return E_SD.astype(DTYPES[self.dtype])

    def __iter__(self) -> Iterator[dict[str, Array]]:
        """Draw after draw, each the parameters of all blocks. More draws begin with the same ones."""
        specs = {n: spec for n, spec in parameter_specs(self.plain.config).items() if n.startswith("enc.")}
        generator = np.random.default_rng(self.seed)
        for _ in range(self.count):
            drawn = draw(specs, generator, self.spread)
            yield {**self.plain.parameters, **{n: a.astype(DTYPES[self.dtype], copy=False) for n, a in drawn.items()}}


@dataclass(frozen=True)
class Learned:
    """The trained lesson's encoder in the place of drawn ones: one stack, and what it makes of `hello world`."""

    dtype: str = "float64"
    count: int = 1

    @property
    def settings(self) -> dict[str, Any]:
        return {"as": "trained", "dtype": self.dtype}

    @cached_property
    def plain(self) -> Machine:
        return with_dtype(trained().machine(), DTYPES[self.dtype])

    @property
    def blocks(self) -> int:
        return self.plain.config.n_encoder_layers

    @cached_property
    def x_SD(self) -> Array:
        return embed(self.plain, "src", trained().source_ids, 0, no_tap)

    def __iter__(self) -> Iterator[dict[str, Array]]:
        yield dict(self.plain.parameters)


@dataclass(frozen=True)
class Outcome:
    """What became of every draw, block by block: arrays of draws × blocks, NaN from a draw's first NaN on."""

    recipe: Recipe
    draws: Draws | Learned
    largest: Array  # the largest |x| that left the block
    score: Array  # the largest |score| that entered a softmax in the block
    apart: Array  # the largest difference between the two rows
    agree: Array  # share of the heads in which both rows take most from the same row
    overflowed: int  # of the draws with NaN: those whose first NaN was ∞ / ∞; the others' was 0 / 0 or ∞ − ∞

    @property
    def nan_share(self) -> float:
        return float(np.isnan(self.largest[:, -1]).mean())

    @property
    def first_nan(self) -> list[float]:
        """For each block the share of the draws whose first NaN is in it."""
        at_block = np.isnan(self.largest).mean(axis=0)
        return np.diff(at_block, prepend=0.0).tolist()

    @property
    def growth(self) -> float | None:
        """By how much the median of the largest number grows from a block to the next, as a geometric mean."""
        medians = self.medians("largest")
        first, last = medians[0], medians[-1]
        if first is None or last is None or len(medians) < 2:
            return None
        return float((last / first) ** (1 / (len(medians) - 1)))

    def medians(self, name: str) -> list[float | None]:
        """By block, the median over all draws; None where half of them or more are NaN or infinite."""
        values = getattr(self, name)
        medians = np.median(np.where(np.isnan(values), np.inf, values), axis=0).tolist()
        return [median if np.isfinite(median) else None for median in medians]

    @property
    def last(self) -> dict[str, float | None]:
        """The medians after the last block."""
        return {name: self.medians(name)[-1] for name in ("largest", "apart")}

    @property
    def under(self) -> float | None:
        """`close`, where the two rows can be compared."""
        return None if self.last["apart"] is None else self.close()

    @property
    def by_block(self) -> list[dict[str, float | None]]:
        """Over all draws: medians, the share of large scores, the mean share of heads that agree."""
        medians = {name: self.medians(name) for name in ("largest", "score", "apart", "agree")}
        over = self.over(exp_limit(self.draws.dtype))
        rows: list[dict[str, float | None]] = []
        for b in range(self.draws.blocks):
            row = {name: values[b] for name, values in medians.items()}
            agree = None if row["agree"] is None else np.nanmean(self.agree[:, b])
            rows.append({"block": b + 1, **row, "over": over[b], "agree": agree})
        return rows

    @property
    def first_blocks(self) -> list[tuple[int, float]]:
        """Blocks with the share of the draws whose first NaN is in them; beyond the usual ones, if there are any."""
        return [(b, share) for b, share in enumerate(self.first_nan, 1) if share or b <= BLOCKS]

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        return {name: self.interval(name) for name in ("largest", "apart")}

    @property
    def shrinking(self) -> float:
        """By what factor the difference of the rows shrinks from block to block."""
        apart = [median for median in self.medians("apart") if median]
        return (apart[0] / apart[-1]) ** (1 / (len(apart) - 1)) if len(apart) > 1 else 1.0

    @property
    def distances(self) -> list[tuple[str, int, float]]:
        """How many draws have rows so far apart, by powers of ten, and as a share of the most."""
        apart = self.apart[:, -1]
        exact = int((apart == 0).sum())
        exponents = np.floor(np.log10(apart[np.isfinite(apart) & (apart > 0)])).astype(int).tolist()
        counts = {"exactly 0": exact} if exact else {}
        for p in range(min(exponents, default=0), max(exponents, default=-1) + 1):
            counts[f"1e{p:+03d} to 1e{p + 1:+03d}"] = exponents.count(p)
        return [(power, count, count / max(counts.values())) for power, count in counts.items()]

    def interval(self, name: str) -> tuple[float, float]:
        """Where the true median after the last block lies, with 95 % confidence, by order statistics."""
        values = getattr(self, name)[:, -1]
        values = np.sort(np.where(np.isnan(values), np.inf, values))
        middle, half = len(values) / 2, 0.98 * len(values) ** 0.5
        low, high = max(0, round(middle - half)), min(len(values) - 1, round(middle + half))
        return float(values[low]), float(values[high])

    def close(self) -> float:
        """Share of the draws whose two rows end up nearer than 0.001."""
        return float((self.apart[:, -1] < 1e-3).mean())

    def over(self, limit: float) -> list[float]:
        """For each block the share of the draws in which a |score| is above `limit`, or already NaN."""
        return (~(self.score <= limit)).mean(axis=0).tolist()


def run(recipe: Recipe, draws: Draws | Learned) -> Outcome:
    """Send the rows through the blocks of every draw."""
    machine = recipe.machine(draws.plain)
    kept = {name: np.full((draws.count, draws.blocks), np.nan) for name in ("largest", "score", "apart", "agree")}
    overflowed = 0
    limit = exp_limit(draws.dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        for d, parameters in enumerate(draws):
            for b, block in blocks(machine, parameters, draws.x_SD):
                kept["score"][d, b] = block.score
                if np.isnan(block.out_SD).any():
                    overflowed += recipe.softmax == "naive" and block.highest > limit
                    break
                kept["largest"][d, b] = np.abs(block.out_SD).max()
                kept["apart"][d, b] = np.abs(block.out_SD[0] - block.out_SD[1]).max()
                kept["agree"][d, b] = block.agree
    return Outcome(recipe, draws, **kept, overflowed=overflowed)


@dataclass
class Block:
    """What one block did; as a tap it watches the scores and the weights."""

    out_SD: Array
    score: float = 0.0
    highest: float = -np.inf
    agree: float = 0.0

    def tap(self, name: str, value: Array) -> Array:
        if ".scaled." in name:
            self.score = max(self.score, float(np.abs(value).max()))
            self.highest = max(self.highest, float(value.max()))
        elif ".weights." in name:
            self.agree += float(value[0].argmax() == value[1].argmax()) / 2  # of two heads
        return value


def blocks(machine: Machine, parameters: dict[str, Array], x_SD: Array) -> Iterator[tuple[int, Block]]:
    """Each block's number, and what it did."""
    machine = replace(machine, parameters=parameters)
    for b in range(machine.config.n_encoder_layers):
        block = Block(x_SD)
        block.out_SD = x_SD = encoder_layer(machine, x_SD, f"enc.{b}", block.tap)
        yield b, block


def exp_limit(dtype: str) -> float:
    """The largest number whose exponential is still finite."""
    return float(np.log(np.finfo(DTYPES[dtype]).max))


def exp_vanishes(dtype: str) -> float:
    """Below this the exponential rounds to 0: it is nearer to 0 than to the smallest number above it."""
    return float(np.log(float(np.finfo(DTYPES[dtype]).smallest_subnormal)) - np.log(2))
