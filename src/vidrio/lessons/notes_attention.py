"""The second document on attention: how to hide the future, and what heads do with 512 numbers."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from vidrio.draw import show
from vidrio.glass.paper.attention import Attention, causal, multi_head
from vidrio.glass.paper.maths import Array, no_tap, softmax
from vidrio.glass.paper.transformer import decode, predict
from vidrio.glass.paper.variants import zero_after, zero_after_renormalised, zero_scores
from vidrio.glass.whatif.changes import with_mask
from vidrio.lessons.errata import flag
from vidrio.lessons.machines import Recorder, largest_difference, random_machine, told_difference
from vidrio.lessons.notes_positions import CAT_SENTENCE

# --- the mask ---------------------------------------------------------------------------------------------------------

PRINTED_WEIGHTS = np.array(
    [
        [0.268, 0.119, 0.134, 0.148, 0.179, 0.152],
        [0.124, 0.278, 0.201, 0.128, 0.154, 0.115],
        [0.147, 0.132, 0.262, 0.097, 0.218, 0.145],
        [0.210, 0.128, 0.206, 0.212, 0.119, 0.125],
        [0.146, 0.158, 0.152, 0.143, 0.227, 0.174],
        [0.195, 0.114, 0.203, 0.103, 0.157, 0.229],
    ]
)


@dataclass(frozen=True)
class Masked:
    """The CAT table with the future hidden in four ways; rows are words, columns what they see."""

    hidden: Array  # −∞ on the scores, before the softmax: right
    zero_scores: Array  # zeros on the scores, before the softmax: as the document says
    zero_weights: Array  # zeros on the weights, after the softmax
    renormalised: Array  # the same, each row divided by its sum


def masked(scores_LL: Array) -> Masked:
    """Hide the future of these scores in four ways."""
    weights_LL = softmax(scores_LL)
    with np.errstate(invalid="ignore"):  # 0 / 0 where nothing is left
        renormalised = zero_after_renormalised(weights_LL)
    return Masked(
        softmax(causal(scores_LL, "masked", no_tap)),
        softmax(zero_scores(scores_LL, "masked", no_tap)),
        zero_after(weights_LL),
        renormalised,
    )


def future_share(weights_LL: Array) -> Array:
    """How much of each row's weight lies on later words."""
    return np.triu(weights_LL, 1).sum(axis=1) / weights_LL.sum(axis=1)


def leak(kind: str, seed: int = 0) -> float:
    """How far the first row's prediction moves when the last target word is changed, in an untrained decoder."""
    machine = with_mask(random_machine(CAT_SENTENCE, seed, shape="decoder"), kind)
    one, other = (predict(machine, decode(machine, ids, None))[0] for ids in ((0, 1, 2, 3), (0, 1, 2, 4)))
    return largest_difference(one, other)


@dataclass(frozen=True)
class Mask:
    """The document's table, a row of scores, and scores that differ much, masked; and what leaks in a decoder."""

    table: Masked
    row: Masked  # of scores 2, 1, 0.5
    far: Masked  # of scores 0, 2000
    leak: float  # how far the first row's prediction moves with the last word: −∞ on the scores
    leak_of_zeros: float  # the same with 0 on the scores


def measure_mask() -> Mask:
    small, far = np.array([[2.0, 1.0, 0.5]] * 3), np.array([[0.0, 2000.0], [0.0, 0.0]])
    return Mask(masked(np.log(PRINTED_WEIGHTS)), masked(small), masked(far), leak("causal"), leak("zeros"))


def tell_mask(measured: Mask, precision: int) -> Iterator[str]:
    yield "weights = softmax(mask(Q Kᵀ / √K))"
    yield "mask: −∞ where the column is later than the row     §3.2.3"
    yield "\nThe document's table\n"
    yield show.matrix(PRINTED_WEIGHTS, CAT_SENTENCE, CAT_SENTENCE, 3)
    sums = " ".join(f"{total:.3f}" for total in PRINTED_WEIGHTS.sum(axis=1))
    yield f"sums of the rows: {sums}"
    yield show.wrap(
        "They are 1 to the last printed digit: these are weights, the softmax is already in them. Scores that lead to "
        "them are log p, since softmax(log p) = p."
    )
    yield "\n" + flag(29)
    seen = measured.table
    yield "\nRight: −∞ on the scores, then softmax; row t is shared out among words 0 … t\n"
    yield show.matrix(seen.hidden, CAT_SENTENCE, CAT_SENTENCE, max(precision, 6))
    a, b = PRINTED_WEIGHTS[1, :2]
    yield f"By hand: [1,0] = {a} / ({a} + {b}) = {show.number(a / (a + b), max(precision, 6))}"
    yield "\n" + flag(25)
    yield "\nAs written: zeros on the scores, then softmax. exp(0) = 1 is no small number\n"
    yield show.matrix(seen.zero_scores, CAT_SENTENCE, CAT_SENTENCE, precision)
    yield "By hand: [0,0] = 0.268 / (0.268 + 5 · exp(0)) = " + show.number(0.268 / 5.268, precision)
    yield "the future keeps of each row: " + " ".join(f"{share:.3f}" for share in future_share(seen.zero_scores))
    yield "a row of scores 2, 1, 0.5, the last two to be hidden:"
    yield "  zeros  " + " ".join(f"{w:.9f}" for w in measured.row.zero_scores[0])
    yield "  −∞     " + " ".join(f"{w:.9f}" for w in measured.row.hidden[0])
    yield "\nZeros after the softmax: the future is hidden, but the rows no longer sum to 1\n"
    zeroed = zero_after(PRINTED_WEIGHTS)
    yield show.matrix(zeroed, CAT_SENTENCE, CAT_SENTENCE, 3)
    yield "sums of the rows: " + " ".join(f"{total:.3f}" for total in zeroed.sum(axis=1))
    difference = largest_difference(seen.renormalised, seen.hidden)
    yield f"\nEach row divided by its sum: the right weights again (difference {difference:.1g})."
    ruined = measured.far
    yield show.wrap(
        "It breaks where the hidden scores are much larger: for scores 0 and 2000 the first row is "
        f"{' '.join(show.number(w, 1) for w in ruined.renormalised[0])} (0 / 0), with −∞ it is "
        f"{' '.join(show.number(w, 1) for w in ruined.hidden[0])}."
    )
    yield "\nIn a decoder the last word is changed. The first row's probabilities move by"
    yield f"  −∞ on the scores   {told_difference(measured.leak)}"
    yield f"  0 on the scores    {told_difference(measured.leak_of_zeros)}"
    yield show.wrap(
        "Trained like that it learns to read the answer from the next row, and has no next row when it translates."
    )


# --- heads ------------------------------------------------------------------------------------------------------------

HEADS, WIDTH = 4, 512  # the document's example: 6 words, 512 numbers, 4 heads
D_HEAD = WIDTH // HEADS


@dataclass(frozen=True)
class Heads:
    """The document's example, once with full projections and once with the row sliced into four."""

    values: dict[str, Array]
    moved: list[float]  # how far each head's queries move when one number of x, in the last quarter, is changed
    moved_sliced: list[float]  # the same for slices
    slices_as_heads: float  # difference between slicing and projections that are 0 outside their quarter
    mixed: float  # share of the output's columns that head 0 reaches, with W^O
    mixed_without: float  # without W^O


def measure_heads(seed: int = 0) -> Heads:
    """Run multi-head attention on 6 random rows of 512; change x[2, 500]; compare with slicing."""
    generator = np.random.default_rng(seed)
    machine = random_machine(
        ["word"], seed, d_model=WIDTH, n_heads=HEADS, d_head=D_HEAD, d_ff=1, n_encoder_layers=1, n_decoder_layers=1
    )
    x_LD = generator.standard_normal((len(CAT_SENTENCE), WIDTH))
    changed_LD = x_LD.copy()
    changed_LD[2, 500] += 1.0

    def run(parameters: dict[str, Array], rows: Array, change: str = "") -> Recorder:
        recorder = Recorder()

        def tap(name: str, value: Array) -> Array:
            return recorder(name, value + 1.0 if name == change else value)

        ready = replace(machine, parameters={**machine.parameters, **parameters})
        multi_head(ready, Attention("self"), rows, rows, tap)
        return recorder

    full = {f"self.{name}": machine.parameters[f"enc.0.self.{name}"] for name in ("WQ", "WK", "WV", "WO")}
    # Slicing is the special case in which head h reads its own quarter only, each number by itself.
    quarters = np.zeros((HEADS, WIDTH, D_HEAD))
    for h in range(HEADS):
        quarters[h, h * D_HEAD : (h + 1) * D_HEAD] = np.eye(D_HEAD)
    sliced = {**full, **{f"self.W{letter}": quarters for letter in "QKV"}}
    unmixed = {**full, "self.WO": np.eye(WIDTH)}
    seen, moved = run(full, x_LD), run(full, changed_LD)
    cut, cut_moved = run(sliced, x_LD), run(sliced, changed_LD)
    queries = [f"self.Q.h{h}" for h in range(HEADS)]
    slices = [x_LD[:, h * D_HEAD : (h + 1) * D_HEAD] for h in range(HEADS)]

    def reached(parameters: dict[str, Array]) -> float:
        before, after = run(parameters, x_LD), run(parameters, x_LD, "self.head.h0")
        return float((before["self.out"] != after["self.out"]).any(axis=0).mean())

    return Heads(
        seen.values,
        [largest_difference(seen[name], moved[name]) for name in queries],
        [largest_difference(cut[name], cut_moved[name]) for name in queries],
        max(largest_difference(cut[name], part) for name, part in zip(queries, slices, strict=True)),
        reached(full),
        reached(unmixed),
    )


def tell_heads(seen: Heads, precision: int) -> Iterator[str]:
    yield "head_h = Attention(x W_h^Q, x W_h^K, x W_h^V)"
    yield "out = Concat(head_1, …, head_H) W^O     §3.2.2"
    yield "\n" + flag(30)
    yield f"\nIts example: 6 words of {WIDTH} numbers, {HEADS} heads; x and all matrices random\n"
    shapes = [
        ("x", f"{len(CAT_SENTENCE)} × {WIDTH}", "what comes in"),
        ("W_h^Q, W_h^K, W_h^V", f"{WIDTH} × {D_HEAD}", f"each head's own: all {WIDTH} numbers in, {D_HEAD} out"),
        ("Q_h, K_h, V_h", show.shape(seen.values["self.Q.h0"]), "of every head"),
        ("weights_h", show.shape(seen.values["self.weights.h0"]), "every word to every word"),
        ("head_h", show.shape(seen.values["self.head.h0"]), "weights_h V_h"),
        ("Concat", show.shape(seen.values["self.concat"]), "the heads side by side"),
        ("W^O", f"{WIDTH} × {WIDTH}", "mixes them; missing in the document"),
        ("out", show.shape(seen.values["self.out"]), "what goes out"),
    ]
    yield show.table(shapes)
    weights = seen.values["self.weights.h0"]
    yield "\nHead 0's weights\n"
    yield show.matrix(weights, CAT_SENTENCE, CAT_SENTENCE, precision)
    q, k, score = seen.values["self.Q.h0"][0], seen.values["self.K.h0"][0], seen.values["self.scores.h0"][0, 0]
    terms = " + ".join(f"({show.number(q[i], precision)})({show.number(k[i], precision)})" for i in range(2))
    yield f"\nBy hand: scores_0[0,0] = Σ_{D_HEAD} Q_0[0,i] K_0[0,i]"
    yield show.wrap(f"= {terms} + … = {show.number(score, precision)}", indent="  ", hang="    ")
    yield f"  divided by √{D_HEAD} = {show.number(score / D_HEAD**0.5, precision)}"
    yield "\nDoes a head see part of the row? x[2,500], in the last quarter, is changed by 1\n"
    rows = [
        [f"head {h}", _moved(full, precision), _moved(cut, precision)]
        for h, (full, cut) in enumerate(zip(seen.moved, seen.moved_sliced, strict=True))
    ]
    yield show.table(rows, ["", "its queries move by", "if rows were sliced"])
    yield "\n" + show.wrap(
        "Every head's projection reads all 512 numbers and makes 128 new ones of them. Slicing is the special case in "
        "which each projection copies its own quarter and has 0 everywhere else (difference "
        f"{seen.slices_as_heads:g}): heads could not choose what they look at."
    )
    yield "\nWhat W^O is for: head 0's output is changed; the columns of the result that move\n"
    yield f"  with W^O     {seen.mixed:.0%}"
    yield f"  without      {seen.mixed_without:.0%}   (its own quarter: heads would never meet here)"


def _moved(value: float, precision: int) -> str:
    return show.number(value, precision) if value else "0"
