"""Exercises 5 and 6 of the first document: the decoder's speed, and residual connections with layer norm."""

import timeit
from collections.abc import Callable, Sequence

import numpy as np

from vidrio.glass.paper.attention import Kept
from vidrio.glass.paper.decoding import decode_step
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine, decode, encode, encoder_layer, logits
from vidrio.lessons import counting
from vidrio.lessons.as_data import Measured
from vidrio.lessons.machines import largest_difference, random_machine
from vidrio.lessons.nan_draws import Draws, Recipe, run

# --- 5: why is the decoder slower than the encoder? -------------------------------------------------------------------


def measure_speed(n_source: int = 24, n_target: int = 24, repeats: int = 3) -> Measured:
    """One translation by a small untrained model, the best time of some repeats.

    Encode; decode all at once; step by step with kept keys and values; step by step anew.
    """
    words = [f"word{i}" for i in range(50)]
    machine = random_machine(words, d_model=64, d_head=16, n_heads=4, d_ff=256)
    source, target = list(range(n_source)), list(range(n_target))
    memory_SD = encode(machine, source)

    def kept() -> Array:
        so_far = Kept()
        return np.stack([decode_step(machine, [token], memory_SD, so_far) for token in target])

    def anew() -> Array:
        steps = range(1, n_target + 1)
        return np.stack([logits(machine, decode(machine, target[:t], memory_SD)[-1:])[0] for t in steps])

    c = machine.config
    ways: dict[str, tuple[Callable[[], Array], int, dict[str, int]]] = {
        "encoder": (lambda: encode(machine, source), 1, counting.encoding(c, n_source)),
        "decoder, all at once": (
            lambda: logits(machine, decode(machine, target, memory_SD)),
            1,
            counting.forced(c, n_source, n_target),
        ),
        "decoder, kept": (kept, n_target, counting.decoding(c, n_source, n_target, cached=True)),
        "decoder, anew": (anew, n_target, counting.decoding(c, n_source, n_target, cached=False)),
    }
    multiplications = {name: sum(work.values()) for name, (_, _, work) in ways.items()}
    seconds = {name: min(timeit.repeat(way, number=1, repeat=repeats)) for name, (way, _, _) in ways.items()}
    page = {
        "milliseconds": {way: 1000 * taken for way, taken in seconds.items()},
        "slower": {way: taken / seconds["encoder"] for way, taken in seconds.items()},
        "saved": multiplications["decoder, anew"] / multiplications["decoder, kept"],  # how many times fewer
        "rows_anew": n_target * (n_target + 1) // 2,
    }
    return Measured(
        page,
        n_source=n_source,
        n_target=n_target,
        passes={name: passes for name, (_, passes, _) in ways.items()},
        multiplications=multiplications,
        seconds=seconds,
        disagreement=largest_difference(kept(), anew()),  # of logits
    )


# --- 6: what are residual connections and layer norm for? -------------------------------------------------------------

DEPTH = 12
MEASURED = (0, 3, 6, 9, 11)  # the layers at which it is measured
WAYS = {
    "residual and norm": (True, True),
    "norm only": (False, True),
    "residual only": (True, False),
    "neither": (False, False),
}


def measure_depth(recipe: Recipe, seeds: Sequence[int] = range(8)) -> Measured:
    """At the measured ones of twelve encoder layers of Glorot-drawn matrices, the size of what comes in and of the
    gradient of a loss at the top, by central differences in float64; geometric mean of some draws."""
    values, gradients = [], []
    for seed in seeds:
        machine = recipe.machine(random_machine(["word"], seed, n_encoder_layers=DEPTH))
        generator = np.random.default_rng(seed)
        inputs = [generator.standard_normal((2, machine.config.d_model))]
        for n in range(DEPTH):
            inputs.append(encoder_layer(machine, inputs[-1], f"enc.{n}"))
        direction_LD = generator.standard_normal(inputs[0].shape)  # loss = Σ direction · output
        values.append([_size(inputs[n]) for n in MEASURED])
        gradients.append([_size(gradient(machine, n, inputs[n], direction_LD)) for n in MEASURED])
    values_L, gradients_L = (np.exp(np.log(sizes).mean(axis=0)) for sizes in (values, gradients))
    # of the gradient at the highest layer the share that reaches the lowest
    return Measured({"reaches": gradients_L[0] / gradients_L[-1]}, values=values_L, gradients=gradients_L)


def _size(x: Array) -> float:
    """The root of the mean square."""
    return float(np.sqrt((x**2).mean()))


def gradient(machine: Machine, layer: int, x_LD: Array, direction_LD: Array, h: float = 1e-5) -> Array:
    """d loss / d x by (loss(x + h) − loss(x − h)) / 2h, entry by entry, for the x that comes into this layer."""
    step = h * max(1.0, float(np.abs(x_LD).max()))

    def loss(rows_LD: Array) -> float:
        for n in range(layer, machine.config.n_encoder_layers):
            rows_LD = encoder_layer(machine, rows_LD, f"enc.{n}")
        return float((rows_LD * direction_LD).sum())

    slopes = np.zeros_like(x_LD)
    for place in np.ndindex(x_LD.shape):
        nudge = np.zeros_like(x_LD)
        nudge[place] = step
        slopes[place] = (loss(x_LD + nudge) - loss(x_LD - nudge)) / (2 * step)
    return slopes


def measure_depths() -> Measured:
    """The four ways to build the layers: NaN, sizes and gradients, and how far two rows are apart."""

    def nan_shares(softmax: str) -> dict[str, float]:
        return {name: run(Recipe(softmax, *way), Draws(200)).nan_share for name, way in WAYS.items()}

    small = Draws(200, spread=0.25)
    depths = {name: measure_depth(Recipe("stable", *way)) for name, way in WAYS.items()}
    apart = {name: run(Recipe("stable", *way), small).medians("apart") for name, way in WAYS.items()}  # block by block
    page = {
        **{"n_layers": DEPTH, "top": MEASURED[-1]},
        "values": [(n, [depth.values[i] for depth in depths.values()]) for i, n in enumerate(MEASURED)],
        "gradients": [(n, [depth.gradients[i] for depth in depths.values()]) for i, n in enumerate(MEASURED)],
        "apart_by_block": list(enumerate(map(list, zip(*apart.values(), strict=True)), 1)),
    }
    nan = {softmax: nan_shares(softmax) for softmax in ("naive", "stable")}
    return Measured(page, nan=nan, depth=depths, apart=apart)
