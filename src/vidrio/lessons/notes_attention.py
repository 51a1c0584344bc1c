"""The second document on attention: how to hide the future, and what heads do with 512 numbers."""

from dataclasses import replace

import numpy as np

from vidrio.glass.paper.attention import Attention, causal, multi_head
from vidrio.glass.paper.maths import Array, no_tap, softmax
from vidrio.glass.paper.transformer import decode, predict
from vidrio.glass.paper.variants import zero_after, zero_after_renormalised, zero_scores
from vidrio.glass.whatif.changes import with_mask
from vidrio.lessons.as_data import Measured
from vidrio.lessons.machines import largest_difference, random_machine
from vidrio.lessons.notes_positions import CAT_SENTENCE
from vidrio.lessons.printed import NUMBERS

# --- the mask ---------------------------------------------------------------------------------------------------------

PRINTED_WEIGHTS = NUMBERS["weights"]


def masked(scores_LL: Array) -> Measured:
    """Hide the future of these scores in four ways; rows are words, columns what they see."""
    weights_LL = softmax(scores_LL)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is left
        renormalised_LL = zero_after_renormalised(weights_LL)
    return Measured(
        hidden=softmax(causal(scores_LL, "masked", no_tap)),  # −∞ before the softmax: right
        zero_scores=softmax(zero_scores(scores_LL, "masked", no_tap)),  # zeros before it: as the document says
        zero_weights=zero_after(weights_LL),  # zeros after it
        renormalised=renormalised_LL,  # the same, each row divided by its sum
    )


def future_share(weights_LL: Array) -> Array:
    """How much of each row's weight lies on later words."""
    return np.triu(weights_LL, 1).sum(axis=1) / weights_LL.sum(axis=1)


def leak(kind: str, seed: int = 0) -> float:
    """How far the first row's prediction moves when the last target word is changed, in an untrained decoder."""
    machine = with_mask(random_machine(CAT_SENTENCE, seed, shape="decoder"), kind)
    first, other = (predict(machine, decode(machine, ids, None))[0] for ids in ((0, 1, 2, 3), (0, 1, 2, 4)))
    return largest_difference(first, other)


def measure_mask() -> Measured:
    """The document's table, a row of scores, and scores that differ much, masked; and what leaks in a decoder."""
    table, zeroed = masked(np.log(PRINTED_WEIGHTS)), zero_after(PRINTED_WEIGHTS)
    page = {
        "printed": PRINTED_WEIGHTS,
        "printed_sums": PRINTED_WEIGHTS.sum(axis=1),
        "share": PRINTED_WEIGHTS[1, 0] / PRINTED_WEIGHTS[1, :2].sum(),  # by hand, the other words hidden
        "zero_share": 0.268 / 5.268,
        "future": future_share(table.zero_scores),
        "zeroed": zeroed,
        "zeroed_sums": zeroed.sum(axis=1),
        "difference": largest_difference(table.renormalised, table.hidden),
    }
    return Measured(
        page,
        table=table,
        row=masked(np.array([[2.0, 1.0, 0.5]] * 3)),
        far=masked(np.array([[0.0, 2000.0], [0.0, 0.0]])),
        # how far the first row's prediction moves with the last word: −∞ on the scores, and 0
        leak=leak("causal"),
        leak_of_zeros=leak("zeros"),
    )


# --- heads ------------------------------------------------------------------------------------------------------------

HEADS, WIDTH = 4, 512  # the document's example: 6 words, 512 numbers, 4 heads
D_HEAD = WIDTH // HEADS


def measure_heads(seed: int = 0) -> Measured:
    """Run multi-head attention on 6 random rows of 512; change x[2, 500]; compare with slicing."""
    generator = np.random.default_rng(seed)
    machine = random_machine(
        ["word"], seed, d_model=WIDTH, n_heads=HEADS, d_head=D_HEAD, d_ff=1, n_encoder_layers=1, n_decoder_layers=1
    )
    x_LD = generator.standard_normal((len(CAT_SENTENCE), WIDTH))
    changed_LD = x_LD.copy()
    changed_LD[2, 500] += 1.0

    def run(parameters: dict[str, Array], rows: Array, change: str = "") -> dict[str, Array]:
        values: dict[str, Array] = {}

        def tap(name: str, value: Array) -> Array:
            values[name] = value + 1.0 if name == change else value
            return values[name]

        multi_head(replace(machine, parameters=parameters), Attention("self"), rows, rows, tap)
        return values

    full = {f"self.{name}": machine.parameters[f"enc.0.self.{name}"] for name in ("WQ", "WK", "WV", "WO")}
    # Slicing is the special case in which head h reads its own quarter only, each number by itself.
    quarters = np.zeros((HEADS, WIDTH, D_HEAD))
    for h in range(HEADS):
        quarters[h, h * D_HEAD : (h + 1) * D_HEAD] = np.eye(D_HEAD)
    sliced = {**full, **{f"self.W{letter}": quarters for letter in "QKV"}}
    unmixed = {**full, "self.WO": np.eye(WIDTH)}
    before, moved = run(full, x_LD), run(full, changed_LD)
    cut, cut_moved = run(sliced, x_LD), run(sliced, changed_LD)
    queries = [f"self.Q.h{h}" for h in range(HEADS)]
    slices = [x_LD[:, h * D_HEAD : (h + 1) * D_HEAD] for h in range(HEADS)]

    def reached(parameters: dict[str, Array]) -> float:
        before, after = run(parameters, x_LD), run(parameters, x_LD, "self.head.h0")
        return float((before["self.out"] != after["self.out"]).any(axis=0).mean())

    page = {
        **{"n_words": len(CAT_SENTENCE), "width": WIDTH, "n_heads": HEADS, "d_head": D_HEAD, "heads": range(HEADS)},
        "divided": before["self.scores.h0"][0, 0] / D_HEAD**0.5,
    }
    return Measured(
        page,
        values=before,
        # how far each head's queries move when one number of x, in the last quarter, is changed
        moved=[largest_difference(before[name], moved[name]) for name in queries],
        moved_sliced=[largest_difference(cut[name], cut_moved[name]) for name in queries],
        # between slicing and projections that are 0 outside their quarter
        slices_as_heads=max(largest_difference(cut[name], part) for name, part in zip(queries, slices, strict=True)),
        mixed=reached(full),  # share of the output's columns that head 0 reaches, with W^O
        mixed_without=reached(unmixed),
    )
