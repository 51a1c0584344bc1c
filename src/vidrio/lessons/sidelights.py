"""What the walk shows beside the machine's own quantities: cosines, softmax on three numbers, growth, the words.

Each takes the lesson, the step's trace and a precision; SIDELIGHTS names those that data/steps.toml asks for.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from vidrio.draw import show
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.whatif.comparison import first
from vidrio.lessons.runs import Lesson
from vidrio.model.parameters import count, source_table

MOST_WORDS = 40  # of a vocabulary, shown
LONGEST_ABOUT = 1000  # characters
LONGEST_WORD = 40  # columns
TOP = 5

READING = (
    "src.ids above is an address: every number has one, and --why takes it. enc.0.self.K.h1 are the keys of the "
    "encoder's layer 0, self-attention, head 1; counting begins at 0. §3.4 and Eq. 1 are places in the paper Attention "
    "Is All You Need. Rows × columns are told in letters: S words of the source, T of the target, D width of a row, "
    "K of a head, E of all heads side by side, F of the feed-forward network, V words of the vocabulary."
)


@dataclass(frozen=True)
class Aside:
    """Something beside the machine: as text, and as data."""

    lines: Sequence[str]
    data: dict[str, Any]


Sidelight = Callable[[Lesson, Trace, int], Aside]


def cosine(a: Array, b: Array) -> float:
    """a · b / (|a| |b|): 1 for the same direction, 0 for a right angle; NaN for a row of zeros."""
    a, b = (row / (np.abs(row).max() or 1.0) for row in (a, b))  # the squares of large numbers overflow
    norms = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norms if norms else math.nan


def _cosines(rows: Array) -> Array:
    return np.array([[cosine(a, b) for b in rows] for a in rows])


def _cosine_by_hand(a: Array, b: Array, which: str, precision: int) -> Iterator[str]:
    dot, *norms = (show.number(float(x), precision) for x in (a @ b, math.sqrt(a @ a), math.sqrt(b @ b)))
    value = show.number(cosine(a, b), precision)
    yield f"By hand: a · b / (|a| |b|) for {which}"
    yield show.wrap(f"= {dot} / ({norms[0]} * {norms[1]}) = {value}", indent="  ", hang="    ")


def vocabulary(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    words = lesson.values.vocabulary
    shown = [f"{i}{show.NO_BREAK}{show.cut(word, LONGEST_WORD)}" for i, word in enumerate(words[:MOST_WORDS])]
    if len(words) > MOST_WORDS:
        shown.append(f"and {len(words) - MOST_WORDS} more")
    about = show.visible(lesson.values.about[:LONGEST_ABOUT])
    told = {"The vocabulary": ", ".join(shown), "The sentence": ", ".join(_picked(lesson)), "The numbers": about}
    lines = [show.wrap(f"{what}: {text}", hang="  ") for what, text in told.items()]
    lines += ["", "How to read the steps", "", show.wrap(READING)]
    return Aside(lines, {"vocabulary": list(words), "sentence": lesson.values.sentence})


def _picked(lesson: Lesson) -> Iterator[str]:
    """Each word of the sentence, and its id."""
    tokenizer, unknown = lesson.values.tokenizer, lesson.values.config.special.unk
    for piece in tokenizer.pieces(lesson.values.sentence):
        word = show.cut(lesson.values.sentence[piece.start : piece.end].strip(), LONGEST_WORD)
        if piece.unknown:
            yield f"{word} is not in the vocabulary and becomes {tokenizer.token(unknown)}, {unknown}"
        else:
            yield f"{show.cut(piece.token, LONGEST_WORD)} is {piece.id}"


def cosines(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    rows, words = trace.values["src.embedding"], trace.source_tokens
    table = _cosines(rows)
    lines = [show.matrix(table, words, words, precision)]
    if len(rows) > 1:
        lines += ["", *_cosine_by_hand(rows[0], rows[1], "the first two", precision)]
    return Aside(lines, {"cosines": table.tolist()})


def softmax_of_three(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    x = np.array([1.0, 2.0, 3.0])
    shares = lesson.machine.softmax(x[None])[0]
    exps = [show.number(math.exp(value), precision) for value in x]
    lines = [
        "softmax [1, 2, 3]",
        show.vector(shares, (), precision),
        "",
        "By hand: the first is e^1 / (e^1 + e^2 + e^3)",
        show.wrap(
            f"= {exps[0]} / ({' + '.join(exps)}) = {show.number(float(shares[0]), precision)}", indent="  ", hang="    "
        ),
    ]
    return Aside(lines, {"x": x.tolist(), "softmax": shares.tolist()})


def growth(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    """The largest number after each block, and where the first NaN is."""
    layers = range(lesson.values.config.n_encoder_layers)
    blocks = [np.abs(trace.values[f"enc.{n}.ffn.out"]).max() for n in layers]
    where = first(trace, np.isnan)
    rows = [[f"enc.{n}", show.number(float(largest), precision)] for n, largest in enumerate(blocks)]
    lines = [show.table(rows, ["block", "largest |number|"], "lr")]
    calm = (
        "No NaN: the softmax takes the largest score of a row off first." if lesson.mode == "corrected" else "No NaN."
    )
    lines.append(f"The first NaN: {where}" if where else calm)
    lines.append("Thousands of such stacks, switch by switch: vidrio lesson nan")
    return Aside(lines, {"largest": [float(value) for value in blocks], "first_nan": where})


def deviation(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    """What the post prints on the way: the sum of squares, and the root of the variance."""
    var_S, d = trace.values["enc.0.self.norm.var"], lesson.values.config.d_model
    squares, deviations = var_S * d, np.sqrt(var_S)
    lines = [
        f"Sum of squares, variance * {d}:",
        show.vector(squares, trace.source_tokens, precision),
        "",
        "Standard deviation, √variance:",
        show.vector(deviations, trace.source_tokens, precision),
    ]
    return Aside(lines, {"sum_of_squares": squares.tolist(), "standard_deviation": deviations.tolist()})


def rows_apart(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    rows, words = trace.values["memory"], trace.source_tokens
    pairs = [(a, b, float(np.abs(rows[a] - rows[b]).max())) for a, b in combinations(range(len(rows)), 2)]
    if not pairs:
        return Aside(["There is one row only."], {"apart": []})
    a, b, apart = min(pairs, key=lambda pair: pair[2])
    lines = [f"The closest two rows, {show.visible(words[a])} and {show.visible(words[b])}, differ by {apart:.2g}."]
    if apart < 1e-3:
        lines += ["They have become (nearly) equal: whoever reads them cannot tell the words apart."]
    return Aside(lines, {"apart": apart, "rows": [a, b]})


def likeliest(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    prob_V = trace.values["out.prob"][0]
    order = np.argsort(-prob_V, kind="stable")[:TOP]
    rows = [
        [show.cut(trace.vocabulary[i], 16), show.number(float(prob_V[i]), precision), show.bar(float(prob_V[i]))]
        for i in order
    ]
    best = trace.vocabulary[order[0]]
    data = [{"token": trace.vocabulary[i], "probability": float(prob_V[i])} for i in order]
    highest = show.number(float(prob_V[order[0]]), precision)
    lines = [show.table(rows, align="lr"), f"Taken: {show.visible(best)}", ""]
    lines.append(f"By hand: none of the other {len(prob_V) - 1} probabilities is above {highest}.")
    return Aside(lines, {"likeliest": data})


def table_for_generation(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    words = lesson.values.vocabulary
    table_VD = trace.machine.parameters[source_table(trace.machine.config)]
    pairs = [(a, b) for a, b in (("hello", "world"), ("hello", "hola"), ("world", "mundo")) if {a, b} <= set(words)]
    rows = {word: table_VD[words.index(word)] for pair in pairs for word in pair}
    told = [(a, b, cosine(rows[a], rows[b])) for a, b in pairs]
    lines = [show.matrix(table_VD, words, (), precision)]
    if told:
        lines += [
            "",
            "Cosines",
            show.table([[f"{a}, {b}", show.number(c, precision)] for a, b, c in told], align="l."),
            "",
        ]
        a, b = pairs[0]
        lines += _cosine_by_hand(rows[a], rows[b], f"{a}, {b}", precision)
    return Aside(lines, {"embeddings": table_VD.tolist(), "cosines": [[a, b, c] for a, b, c in told]})


def generated(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    """Step by step: what was there, what came, how probable it was."""
    rows = list(_iterations(trace))
    table = [[str(i), so_far, word, show.number(p, precision)] for i, (so_far, word, p) in enumerate(rows)]
    said = " ".join(map(show.visible, [trace.target_tokens[0], *trace.chosen_tokens]))
    lines = [show.table(table, ["step", "so far", "next", "probability"], "rllr"), "", f"Written: {said}", ""]
    factors, product = [p for *_, p in rows], math.prod(p for *_, p in rows)
    lines.append("By hand: the probability of all of it is the product of its words' probabilities")
    told = f"= {' * '.join(show.number(p, precision) for p in factors)} = {show.number(product, precision)}"
    lines.append(show.wrap(told, indent="  ", hang="    "))
    data = [{"so_far": so_far, "token": word, "probability": p} for so_far, word, p in rows]
    return Aside(lines, {"steps": data, "written": said})


def _iterations(trace: Trace) -> Iterator[tuple[str, str, float]]:
    for t, word in enumerate(trace.chosen_tokens):
        so_far = show.cut(" ".join(trace.target_tokens[: t + 1]), 40)
        yield so_far, show.visible(word), float(trace.values["out.prob"][t].max())


def sizes(lesson: Lesson, trace: Trace, precision: int) -> Aside:
    from vidrio.lessons.sizes import PRESETS

    ours, paper = lesson.values.config, PRESETS["base"]
    told = {
        "embedding dimension": (ours.d_model, paper.d_model),
        "encoder layers": (ours.n_encoder_layers, paper.n_encoder_layers),
        "decoder layers": (ours.n_decoder_layers, paper.n_decoder_layers),
        "feed-forward dimension": (ours.d_ff, paper.d_ff),
        "attention heads": (ours.n_heads, paper.n_heads),
        "attention dimension": (ours.d_head, paper.d_head),
        "words of the vocabulary": (ours.target_vocabulary, paper.target_vocabulary),
        "parameters": (count(ours), count(paper)),
    }
    rows = [[what, f"{a:,}", f"{b:,}"] for what, (a, b) in told.items()]
    lines = [show.table(rows, ["", "here", "the paper"], "lrr"), "What each of them costs: vidrio lesson sizes"]
    return Aside(lines, {what: {"here": a, "paper": b} for what, (a, b) in told.items()})


SIDELIGHTS: dict[str, Sidelight] = {
    show_beside.__name__: show_beside
    for show_beside in (
        vocabulary,
        cosines,
        softmax_of_three,
        growth,
        deviation,
        rows_apart,
        likeliest,
        table_for_generation,
        generated,
        sizes,
    )
}
