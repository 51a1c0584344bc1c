"""Exercises 1 to 4 of the first document: positions, two attentions, the width of a head, the feed-forward layer.

`measure_…` runs an experiment and returns its numbers; `tell_…` prints them. Nothing is written down beforehand.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vidrio.draw import show
from vidrio.glass.numbers.stages import stages
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.attention import Attention, multi_head
from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import decode, encode, feed_forward, predict, translate_forced
from vidrio.glass.whatif.changes import with_positions
from vidrio.lessons.machines import Recorder, largest_difference, random_machine, told_difference
from vidrio.lessons.runs import Lesson, greedy
from vidrio.lessons.values import trained

# --- 1: what is the positional encoding for? --------------------------------------------------------------------------

DOG_BITES_MAN = ("dog", "bites", "man")
MAN_BITES_DOG = (2, 1, 0)  # the same words, in the other order


@dataclass(frozen=True)
class Swapped:
    """The encoder's rows for a sentence and for the same words in another order, in the order of the words' ids."""

    memory_SD: Array
    swapped_SD: Array
    first_word_change: float  # how far the next word's probabilities move

    @property
    def difference(self) -> float:
        return largest_difference(self.memory_SD, self.swapped_SD)


def measure_positions(kind: str, seed: int = 0) -> Swapped:
    """Encode `dog bites man` and `man bites dog` with these positions, and put the rows of the same words together."""
    machine = random_machine(DOG_BITES_MAN, seed, d_model=4, d_head=2, d_ff=8, positions=kind)
    memory_SD, other_SD = encode(machine, (0, 1, 2)), encode(machine, MAN_BITES_DOG)
    first, other = (predict(machine, decode(machine, (0,), rows)) for rows in (memory_SD, other_SD))
    return Swapped(memory_SD, other_SD[list(MAN_BITES_DOG)], largest_difference(first, other))


@dataclass(frozen=True)
class Translated:
    """What the lessons' trained model makes of two words in both orders."""

    positions: str
    first: str
    second: str


TWO_ORDERS = ("hello world", "world hello")


def measure_translations(kind: str) -> Translated:
    """Translate both with these positions."""
    values = trained()
    texts = []
    for sentence in TWO_ORDERS:
        lesson = Lesson("trained", replace(values, sentence=sentence))
        ids = greedy(lesson, with_positions(lesson.machine, kind))
        texts.append(" ".join(values.vocabulary[i] for i in ids[1:]))
    return Translated(kind, *texts)


@dataclass(frozen=True)
class WordOrder:
    """Without positions and with the paper's: an untrained encoder's rows, and the trained model's translations."""

    rows: dict[str, Swapped]
    translated: dict[str, Translated]


def measure_word_order() -> WordOrder:
    kinds = ("none", "sinusoidal")
    return WordOrder(
        {kind: measure_positions(kind) for kind in kinds}, {kind: measure_translations(kind) for kind in kinds}
    )


def tell_positions(seen: WordOrder, precision: int) -> Iterator[str]:
    yield show.wrap(
        "It tells attention the order of the words. Attention by itself does not see it: every row asks every other, "
        "and a sum does not depend on the order of its terms. Here are an untrained encoder's rows (2 layers, D 4) for "
        "two sentences with the same words."
    )
    for kind, title in (("none", "Without positions"), ("sinusoidal", "With the paper's positions (§3.5)")):
        swapped = seen.rows[kind]
        yield f"\n{title}\n\ndog bites man"
        yield show.matrix(swapped.memory_SD, DOG_BITES_MAN, (), precision)
        yield "\nman bites dog, the rows put back into the order dog, bites, man"
        yield show.matrix(swapped.swapped_SD, DOG_BITES_MAN, (), precision)
        yield f"\nlargest difference of a row: {told_difference(swapped.difference)}"
        yield f"largest difference of the first word's probability: {told_difference(swapped.first_word_change)}"
    yield "\n" + show.wrap(
        "Without positions the rows move with their words and change by nothing but rounding (sums were added up in "
        "another order), so the decoder reads the same from both sentences. With positions every row knows where it "
        "stands, and the sentences differ."
    )
    yield "\nWhat the lessons' trained model says, with its positions and without\n"
    rows = [
        [text, *(getattr(seen.translated[kind], which) for kind in ("sinusoidal", "none"))]
        for text, which in zip(TWO_ORDERS, ("first", "second"), strict=True)
    ]
    yield show.table(rows, ["", "with positions", "without"])


# --- 2: self-attention and encoder–decoder attention ------------------------------------------------------------------

SOURCE = ("the", "cat", "sleeps")
TARGET = ("<s>", "el", "gato", "duerme", "bien")


@dataclass(frozen=True)
class Attentions:
    """One pass over three source and five target tokens, and what moved when a word on either side was changed."""

    trace: Trace
    source_changed: dict[str, float]
    target_changed: dict[str, float]


KINDS = {
    "enc.0.self": "encoder self-attention",
    "dec.0.self": "masked self-attention",
    "dec.0.cross": "cross-attention",
}
CROSS = ("dec.0.cross.Q.h0", "dec.0.cross.K.h0", "dec.0.cross.V.h0", "dec.0.cross.weights.h0")


def measure_attentions(seed: int = 0) -> Attentions:
    """Trace one pass; then change the last source word, then the last target word, and compare."""
    words = [*SOURCE, *TARGET, "dog"]
    machine = random_machine(words, seed)
    source, target, dog = (0, 1, 2), (3, 4, 5, 6, 7), 8

    def run(source_ids: tuple[int, ...], target_ids: tuple[int, ...]) -> Trace:
        trace = Trace(machine, SOURCE, TARGET, vocabulary=words)
        translate_forced(machine, source_ids, target_ids, trace.tap)
        return trace

    before = run(source, target)

    def changes(after: Trace) -> dict[str, float]:
        return {name: largest_difference(before.values[name], after.values[name]) for name in CROSS}

    return Attentions(before, changes(run((0, 1, dog), target)), changes(run(source, (3, 4, 5, 6, dog))))


def tell_attentions(seen: Attentions, precision: int) -> Iterator[str]:
    yield show.wrap(
        "By where queries, keys and values come from; the arithmetic is the same function. In self-attention all three "
        "are made from one sequence. In encoder–decoder attention (cross-attention) the decoder's rows ask, and the "
        "encoder's output, the memory, is asked."
    )
    table = stages(seen.trace.machine.config)
    rows = []
    for name, says in KINDS.items():
        made_of = [table[f"{name}.{letter}.h0"].inputs[0] for letter in "QKV"]
        weights = seen.trace.array(f"{name}.weights.h0")
        rows.append([says, *made_of, show.shape(weights)])
    yield f"\nOne run: {len(SOURCE)} source tokens, {len(TARGET)} target tokens (layer 0)\n"
    yield show.table(rows, ["", "Q from", "K from", "V from", "weights"])
    yield "\ndec.0.cross.weights.h0: rows are target tokens, columns source tokens"
    weights = seen.trace.array("dec.0.cross.weights.h0")
    yield show.matrix(weights, TARGET, SOURCE, precision)
    sums = ", ".join(show.number(float(total), precision) for total in weights.sum(axis=1))
    yield f"sums of the rows: {sums}"
    yield "\nChange one word and see what moves (largest difference):\n"
    rows = [
        [name, told_difference(seen.source_changed[name]), told_difference(seen.target_changed[name])] for name in CROSS
    ]
    yield show.table(rows, ["", "last source word", "last target word"])
    yield "\n" + show.wrap(
        "The source reaches cross-attention through K and V only, the target through Q only; the weights depend on "
        "both. And self-attention in the decoder is masked (its weights are 0 above the diagonal), while "
        "cross-attention sees the whole source."
    )


# --- 3: attention dimension too small, too large ----------------------------------------------------------------------

N_TOKENS = 16
ORDERED_KEYS = 6  # 6! = 720 orders
QUERIES = 20_000
WIDTHS = (1, 2, 4, 16, 64, 256, 1024)


@dataclass(frozen=True)
class Width:
    """One head of width K that looks at N_TOKENS random rows."""

    d_head: int
    rank: int  # of the matrix of scores
    orders: int  # in how many orders QUERIES random queries put six random keys
    spread: float  # standard deviation of the scores
    entropy: float  # of the weights without √K, in bits, mean of the rows
    largest: float  # weight of a row, mean, without √K
    entropy_scaled: float  # with √K
    largest_scaled: float


def measure_width(d_head: int, seed: int = 0) -> Width:
    """Run one head with and without √K, on rows and matrices such that every query and key entry has variance 1."""
    generator = np.random.default_rng(seed)
    d = 64
    x_LD = generator.standard_normal((N_TOKENS, d))
    machine = random_machine(["word"], d_model=d, n_heads=1, d_head=d_head, d_ff=1)
    drawn = {f"enc.0.self.W{letter}": generator.standard_normal((1, d, d_head)) / d**0.5 for letter in "QK"}
    machine = replace(machine, parameters={**machine.parameters, **drawn})
    plain, scaled = Recorder(), Recorder()
    multi_head(replace(machine, score_divisor=1.0), Attention("enc.0.self"), x_LD, x_LD, plain)
    multi_head(machine, Attention("enc.0.self"), x_LD, x_LD, scaled)
    scores_LL = plain["enc.0.self.scores.h0"]
    weights_LL, calm_LL = plain["enc.0.self.weights.h0"], scaled["enc.0.self.weights.h0"]
    queries, keys = generator.standard_normal((QUERIES, d_head)), generator.standard_normal((ORDERED_KEYS, d_head))
    return Width(
        d_head,
        int(np.linalg.matrix_rank(scores_LL)),
        len(np.unique(np.argsort(queries @ keys.T, axis=1), axis=0)),
        float(scores_LL.std()),
        entropy(weights_LL),
        float(weights_LL.max(axis=1).mean()),
        entropy(calm_LL),
        float(calm_LL.max(axis=1).mean()),
    )


def entropy(weights_LM: Array) -> float:
    """How evenly the rows are spread, in bits, on average: log₂ M for even rows, 0 for rows with a single 1."""
    logs = np.log2(weights_LM, out=np.zeros_like(weights_LM), where=weights_LM > 0)
    return float(-(weights_LM * logs).sum(axis=1).mean())


def measure_widths() -> list[Width]:
    return [measure_width(d_head) for d_head in WIDTHS]


def tell_width(widths: Sequence[Width], precision: int) -> Iterator[str]:
    yield show.wrap(
        "Too small: a head cannot tell much apart. The scores Q Kᵀ are products of L × K and K × L matrices, so their "
        "rank is at most K. With K = 1 a query is one number: it puts the keys into one order or into the reverse of "
        f"it, and no third. Counted with {QUERIES:,} random queries, which may miss rare orders:"
    )
    rows = [[str(w.d_head), str(w.rank), f"{w.orders}"] for w in widths[:-2]]
    yield ""
    yield show.table(
        rows, ["K", f"rank of {N_TOKENS} × {N_TOKENS} scores", f"orders of {ORDERED_KEYS} keys met, of 720"], "rrr"
    )
    yield "\n" + show.wrap(
        "Too large: each score is a sum of K products, so scores spread like √K, and the softmax of widely spread "
        "scores is nearly 0 or 1. Then a row takes from one other row only, and the softmax's slope, p (1 − p), is "
        "nearly 0: nothing to learn from. The division by √K (Eq. 1) prevents that. Cost grows with K too: four D × K "
        f"matrices a head. {N_TOKENS} rows, each entry of Q and K with variance 1; entropy in bits, "
        f"{np.log2(N_TOKENS):g} at most:"
    )
    rows = [
        [str(w.d_head), *(show.number(n, precision) for n in (w.spread, w.entropy, w.largest)), "",
         *(show.number(n, precision) for n in (w.entropy_scaled, w.largest_scaled))]
        for w in widths
    ]  # fmt: skip
    yield ""
    heads = ["K", "spread", "entropy", "largest weight", "", "entropy / √K", "largest / √K"]
    yield show.table(rows, heads, "r...r..")
    yield "\n" + show.wrap(
        "By hand: with K entries of variance 1, Var(q·k) = K · 1 · 1, so the spread is near √K; for K "
        f"{widths[3].d_head} it was {show.number(widths[3].spread, precision)}, and √{widths[3].d_head} = "
        f"{show.number(widths[3].d_head ** 0.5, precision)}."
    )


# --- 4: the feed-forward layer ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FeedForward:
    """One feed-forward network on four rows, two of which are equal."""

    shapes: dict[str, str]
    x_LD: Array
    hidden_LF: Array
    active_LF: Array
    out_LD: Array
    same_rows: float  # difference between the outputs of the two equal rows
    changed_moved: float  # how far a row's output moved when the row was changed
    others_moved: float  # and the other rows'
    silenced: float  # share of the hidden numbers that ReLU turned into 0
    bend: float  # |f(a) + f(b) − f(a + b) − f(0)| with ReLU: 0 only for a linear map with its bias
    bend_without: float  # the same with ReLU left out


def measure_feed_forward(seed: int = 0) -> FeedForward:
    """Run it; change one row; leave ReLU out."""
    machine = random_machine(["word"], seed, d_model=4, d_ff=8)
    generator = np.random.default_rng(seed)
    parameters = dict(machine.parameters)
    parameters["enc.0.ffn.b1"], parameters["enc.0.ffn.b2"] = generator.standard_normal(8), generator.standard_normal(4)
    machine = replace(machine, parameters=parameters)
    x_LD = generator.standard_normal((4, 4))
    x_LD[2] = x_LD[0]
    recorder = Recorder()
    out_LD = feed_forward(machine, x_LD, "enc.0.ffn", recorder)
    changed_LD = x_LD.copy()
    changed_LD[3] += 1.0
    moved_LD = feed_forward(machine, changed_LD, "enc.0.ffn", Recorder())

    def bend(activate: object) -> float:
        bent = replace(machine, activate=activate)  # type: ignore[arg-type]
        a, b = x_LD[:1], x_LD[1:2]
        f_a, f_b, f_ab, f_0 = (feed_forward(bent, x, "enc.0.ffn", Recorder()) for x in (a, b, a + b, 0 * a))
        return largest_difference(f_a + f_b, f_ab + f_0)

    hidden_LF, active_LF = recorder["enc.0.ffn.hidden"], recorder["enc.0.ffn.active"]
    names = ("x", "W1", "b1", "hidden", "active", "W2", "b2", "out")
    arrays = {"x": x_LD, "hidden": hidden_LF, "active": active_LF, "out": out_LD}
    shapes = {name: show.shape(arrays.get(name, parameters.get(f"enc.0.ffn.{name}"))) for name in names}
    return FeedForward(
        shapes,
        x_LD,
        hidden_LF,
        active_LF,
        out_LD,
        largest_difference(out_LD[0], out_LD[2]),
        largest_difference(moved_LD[3], out_LD[3]),
        largest_difference(moved_LD[:3], out_LD[:3]),
        float((active_LF == 0).mean()),
        bend(machine.activate),
        bend(lambda x: x),
    )


def tell_feed_forward(seen: FeedForward, precision: int) -> Iterator[str]:
    yield show.wrap(
        "Two linear maps with an activation between them: FFN(x) = max(0, x W1 + b1) W2 + b2 (Eq. 2). The first widens "
        "each row (512 → 2048 in the paper, 4 → 8 here), ReLU sets what is negative to 0, the second narrows it again. "
        "It works on every row by itself: rows meet in attention only."
    )
    yield "\n" + show.wrap("shapes: " + ", ".join(f"{name} {shape}" for name, shape in seen.shapes.items()))
    for name, array in (("x", seen.x_LD), ("hidden", seen.hidden_LF), ("active", seen.active_LF), ("out", seen.out_LD)):
        yield f"\n{name}"
        yield show.matrix(array, None, None, precision)
    h, a = seen.hidden_LF[0, 0], seen.active_LF[0, 0]
    yield f"\nBy hand: active[0,0] = max(0, {show.number(h, precision)}) = {show.number(a, precision)}"
    yield f"ReLU set {seen.silenced:.0%} of the hidden numbers to 0."
    yield f"Rows 0 and 2 of x are equal; their outputs differ by {told_difference(seen.same_rows)}."
    own, others = told_difference(seen.changed_moved), told_difference(seen.others_moved)
    yield f"Row 3 changed by 1 in every place: its output moved by {own}, the others by {others}."
    yield "\n" + show.wrap(
        "Why the activation? Without it the two maps would be one: a sum of inputs gives the sum of outputs. "
        f"|f(a) + f(b) − f(a + b) − f(0)| is {told_difference(seen.bend)} with ReLU and "
        f"{told_difference(seen.bend_without)} without it."
    )
