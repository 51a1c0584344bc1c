"""Exercises 1 to 4 of the first document: positions, two attentions, the width of a head, the feed-forward layer."""

from dataclasses import replace

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.attention import Attention, multi_head
from vidrio.glass.paper.maths import no_tap
from vidrio.glass.paper.transformer import decode, encode, feed_forward, predict, translate_forced
from vidrio.glass.whatif.changes import with_positions
from vidrio.lessons.as_data import Measured
from vidrio.lessons.machines import largest_difference, random_machine
from vidrio.lessons.runs import Lesson, greedy
from vidrio.lessons.values import trained
from vidrio.look.measures import entropy
from vidrio.look.writing import shape

# --- 1: what is the positional encoding for? --------------------------------------------------------------------------

DOG_BITES_MAN = ("dog", "bites", "man")
MAN_BITES_DOG = [2, 1, 0]  # the same words, in the other order


def measure_positions(kind: str, seed: int = 0) -> Measured:
    """Encode `dog bites man` and `man bites dog` with these positions, and put the rows of the same words together."""
    machine = random_machine(DOG_BITES_MAN, seed, d_model=4, d_head=2, d_ff=8, positions=kind)
    memory_SD, other_SD = encode(machine, (0, 1, 2)), encode(machine, MAN_BITES_DOG)
    first, other = (predict(machine, decode(machine, (0,), rows)) for rows in (memory_SD, other_SD))
    swapped_SD = other_SD[MAN_BITES_DOG]
    return Measured(
        {"difference": largest_difference(memory_SD, swapped_SD)},
        memory_SD=memory_SD,
        swapped_SD=swapped_SD,
        first_word_change=largest_difference(first, other),  # how far the next word's probabilities move
    )


TWO_ORDERS = ("hello world", "world hello")


def measure_translations(kind: str) -> Measured:
    """Translate both with these positions."""
    values = trained()
    texts = []
    for sentence in TWO_ORDERS:
        lesson = Lesson("trained", replace(values, sentence=sentence))
        ids = greedy(lesson, with_positions(lesson.machine, kind))
        texts.append(" ".join(values.vocabulary[i] for i in ids[1:]))
    return Measured(positions=kind, first=texts[0], second=texts[1])


def measure_word_order() -> Measured:
    """Without positions and with the paper's: an untrained encoder's rows, and the trained model's translations."""
    kinds = ("none", "sinusoidal")
    return Measured(
        {"words": DOG_BITES_MAN, "two_orders": TWO_ORDERS},
        rows={kind: measure_positions(kind) for kind in kinds},
        translated={kind: measure_translations(kind) for kind in kinds},
    )


# --- 2: self-attention and encoder–decoder attention ------------------------------------------------------------------

SOURCE = ("the", "cat", "sleeps")
TARGET = ("<s>", "el", "gato", "duerme", "bien")


KINDS = ("enc.0.self", "dec.0.self", "dec.0.cross")
CROSS = ("dec.0.cross.Q.h0", "dec.0.cross.K.h0", "dec.0.cross.V.h0", "dec.0.cross.weights.h0")


def measure_attentions(seed: int = 0) -> Measured:
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

    weights = {kind: before.array(f"{kind}.weights.h0") for kind in KINDS}
    page = {
        **{"source": SOURCE, "target": TARGET, "weights": weights, "sums": weights["dec.0.cross"].sum(axis=1)},
        # what Q, K and V are made from
        "inputs": {kind: [before.stage(f"{kind}.{letter}.h0").inputs[0] for letter in "QKV"] for kind in KINDS},
    }
    return Measured(
        page,
        trace=before,
        source_changed=changes(run((0, 1, dog), target)),
        target_changed=changes(run(source, (3, 4, 5, 6, dog))),
    )


# --- 3: attention dimension too small, too large ----------------------------------------------------------------------

N_TOKENS = 16
ORDERED_KEYS = 6  # 6! = 720 orders
QUERIES = 20_000
WIDTHS = (1, 2, 4, 16, 64, 256, 1024)
SETTINGS = {
    "queries": QUERIES,
    "n_tokens": N_TOKENS,
    "n_keys": ORDERED_KEYS,
    "most_entropy": np.log2(N_TOKENS),
    "narrow": range(5),  # the widths that 20,000 queries say something of
    "root": WIDTHS[3] ** 0.5,
}


def measure_width(d_head: int, seed: int = 0) -> Measured:
    """Run one head with and without √K, on rows and matrices such that every query and key entry has variance 1."""
    generator = np.random.default_rng(seed)
    d = 64
    x_LD = generator.standard_normal((N_TOKENS, d))
    machine = random_machine(["word"], d_model=d, n_heads=1, d_head=d_head, d_ff=1)
    drawn = {f"enc.0.self.W{letter}": generator.standard_normal((1, d, d_head)) / d**0.5 for letter in "QK"}
    machine = replace(machine, parameters={**machine.parameters, **drawn})
    plain, scaled = Trace(replace(machine, score_divisor=1.0)), Trace(machine)
    for trace in (plain, scaled):
        multi_head(trace.machine, Attention("enc.0.self"), x_LD, x_LD, trace.tap)
    scores_LL = plain.array("enc.0.self.scores.h0")
    weights_LL, calm_LL = plain.array("enc.0.self.weights.h0"), scaled.array("enc.0.self.weights.h0")
    queries, keys = generator.standard_normal((QUERIES, d_head)), generator.standard_normal((ORDERED_KEYS, d_head))
    return Measured(
        d_head=d_head,
        rank=int(np.linalg.matrix_rank(scores_LL)),
        orders=len(np.unique(np.argsort(queries @ keys.T, axis=1), axis=0)),  # of the keys, that a query puts them in
        spread=float(scores_LL.std()),
        entropy=float(entropy(weights_LL).mean()),  # in bits, mean of the rows, without √K
        largest=float(weights_LL.max(axis=1).mean()),
        entropy_scaled=float(entropy(calm_LL).mean()),  # with √K
        largest_scaled=float(calm_LL.max(axis=1).mean()),
    )


def measure_widths() -> list[Measured]:
    return [measure_width(d_head) for d_head in WIDTHS]


# --- 4: the feed-forward layer ----------------------------------------------------------------------------------------


def measure_feed_forward(seed: int = 0) -> Measured:
    """One feed-forward network on four rows, two of which are equal; change one row; leave ReLU out."""
    machine = random_machine(["word"], seed, d_model=4, d_ff=8)
    generator = np.random.default_rng(seed)
    parameters = dict(machine.parameters)
    parameters["enc.0.ffn.b1"], parameters["enc.0.ffn.b2"] = generator.standard_normal(8), generator.standard_normal(4)
    machine = replace(machine, parameters=parameters)
    x_LD = generator.standard_normal((4, 4))
    x_LD[2] = x_LD[0]
    trace = Trace(machine)
    out_LD = feed_forward(machine, x_LD, "enc.0.ffn", trace.tap)
    changed_LD = x_LD.copy()
    changed_LD[3] += 1.0
    moved_LD = feed_forward(machine, changed_LD, "enc.0.ffn", no_tap)

    def bend(activate: object) -> float:
        """|f(a) + f(b) − f(a + b) − f(0)|: 0 only for a linear map with its bias."""
        bent = replace(machine, activate=activate)  # type: ignore[arg-type]
        a, b = x_LD[:1], x_LD[1:2]
        f_a, f_b, f_ab, f_0 = (feed_forward(bent, x, "enc.0.ffn", no_tap) for x in (a, b, a + b, 0 * a))
        return largest_difference(f_a + f_b, f_ab + f_0)

    hidden_LF, active_LF = trace.array("enc.0.ffn.hidden"), trace.array("enc.0.ffn.active")
    names = ("W1", "b1", "hidden", "active", "W2", "b2", "out")
    return Measured(
        shapes={"x": shape(x_LD), **{name: shape(trace.array(f"enc.0.ffn.{name}")) for name in names}},
        x_LD=x_LD,
        hidden_LF=hidden_LF,
        active_LF=active_LF,
        out_LD=out_LD,
        same_rows=largest_difference(out_LD[0], out_LD[2]),  # outputs of the two equal rows
        changed_moved=largest_difference(moved_LD[3], out_LD[3]),  # the output of the row that was changed
        others_moved=largest_difference(moved_LD[:3], out_LD[:3]),
        silenced=float((active_LF == 0).mean()),  # share of the hidden numbers that ReLU turned into 0
        bend=bend(machine.activate),
        bend_without=bend(lambda x: x),  # ReLU left out
    )
