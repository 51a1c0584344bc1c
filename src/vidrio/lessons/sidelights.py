"""What the walk shows beside the machine's own quantities: cosines, softmax on three numbers, growth, the words.

Each takes the lesson and the step's trace; SIDELIGHTS names those that data/steps.toml asks for, and has their words.
"""

import math
from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.glass.whatif.comparison import first
from vidrio.lessons import pages
from vidrio.lessons.as_data import Measured
from vidrio.lessons.runs import Lesson
from vidrio.lessons.sizes import PRESETS
from vidrio.look import writing
from vidrio.look.measures import cosines
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import count, source_table

MOST_WORDS = 40  # of a vocabulary, shown
LONGEST_ABOUT = 1000  # characters
LONGEST_WORD = 40  # columns
TOP = 5
CLOSE = 1e-3  # rows nearer than that cannot be told apart


def vocabulary(lesson: Lesson, trace: Trace) -> Measured:
    words, about = lesson.values.vocabulary, lesson.values.about[:LONGEST_ABOUT]
    shown = [f"{i}{writing.NO_BREAK}{writing.cut(word, LONGEST_WORD)}" for i, word in enumerate(words[:MOST_WORDS])]
    listed = {"listed": ", ".join(shown), "more": max(0, len(words) - MOST_WORDS)}
    page = {**listed, "about": about, "ids": ", ".join(_ids_of_the_words(lesson))}
    return Measured(page, vocabulary=list(words), sentence=lesson.values.sentence)


def _ids_of_the_words(lesson: Lesson) -> Iterator[str]:
    """Each word of the sentence, and its id."""
    tokenizer, unknown = lesson.values.tokenizer, lesson.values.config.special.unk
    texts = pages.pages("steps")["beside"]["words"]
    for piece in tokenizer.pieces(lesson.values.sentence):
        word = writing.cut(lesson.values.sentence[piece.start : piece.end].strip(), LONGEST_WORD)
        values = {"word": word, "token": writing.cut(piece.token, LONGEST_WORD), "id": piece.id, "precision": 0}
        values |= {"unknown": tokenizer.token(unknown), "unknown_id": unknown} if piece.unknown else {}
        yield pages.filled(texts["unknown" if piece.unknown else "known"], values)


def cosines_of_words(lesson: Lesson, trace: Trace) -> Measured:
    rows, words = trace.values["src.embedding"], trace.source_tokens
    return Measured({"words": words, **_two(rows)}, cosines=cosines(rows, rows))


def _two(rows: Array) -> dict[str, Any]:
    """The cosine of the first two rows, by hand."""
    if len(rows) < 2:
        return {"two": False}
    a, b = rows[:2]
    return {
        "two": True,
        "dot": a @ b,
        "a": math.sqrt(a @ a),
        "b": math.sqrt(b @ b),
        "cosine": cosines(rows, rows)[0, 1],
    }


def softmax_of_three(lesson: Lesson, trace: Trace) -> Measured:
    x = np.array([1.0, 2.0, 3.0])
    return Measured({"exps": np.exp(x)}, x=x, softmax=lesson.machine.softmax(x[None])[0])


def growth(lesson: Lesson, trace: Trace) -> Measured:
    """The largest number after each block, and where the first NaN is."""
    names = [f"enc.{n}" for n in range(lesson.values.config.n_encoder_layers)]
    blocks = {name: float(np.abs(trace.values[f"{name}.ffn.out"]).max()) for name in names}
    page = {"blocks": blocks, "corrected": lesson.mode == "corrected"}
    return Measured(page, largest=list(blocks.values()), first_nan=first(trace, np.isnan))


def deviation(lesson: Lesson, trace: Trace) -> Measured:
    """What the post prints on the way: the sum of squares, and the root of the variance."""
    var_S, d = trace.values["enc.0.self.norm.var"], lesson.values.config.d_model
    page = {"d": d, "words": trace.source_tokens}
    return Measured(page, sum_of_squares=var_S * d, standard_deviation=np.sqrt(var_S))


def rows_apart(lesson: Lesson, trace: Trace) -> Measured:
    rows, words = trace.values["memory"], trace.source_tokens
    pairs = [(a, b, float(np.abs(rows[a] - rows[b]).max())) for a, b in combinations(range(len(rows)), 2)]
    if not pairs:
        return Measured({"words": ()}, apart=[])
    a, b, apart = min(pairs, key=lambda pair: pair[2])
    return Measured({"words": (words[a], words[b]), "equal": apart < CLOSE}, apart=apart, rows=[a, b])


def likeliest(lesson: Lesson, trace: Trace) -> Measured:
    prob_V = trace.values["out.prob"][0]
    order = np.argsort(-prob_V, kind="stable")[:TOP]
    data = [{"token": trace.vocabulary[i], "probability": float(prob_V[i])} for i in order]
    return Measured({"others": len(prob_V) - 1}, likeliest=data)


def table_for_generation(lesson: Lesson, trace: Trace) -> Measured:
    words = lesson.values.vocabulary
    table_VD = trace.machine.parameters[source_table(trace.machine.config)]
    all_cosines = cosines(table_VD, table_VD)
    pairs = [
        [a, b, float(all_cosines[words.index(a), words.index(b)])]
        for a, b in (("hello", "world"), ("hello", "hola"), ("world", "mundo"))
        if {a, b} <= set(words)
    ]
    two = _two(table_VD[[words.index(word) for word in pairs[0][:2]]]) if pairs else {}
    return Measured({"words": words, **two}, embeddings=table_VD, cosines=pairs)


def generated(lesson: Lesson, trace: Trace) -> Measured:
    """Step by step: what was there, what came, how probable it was."""
    written = " ".join(map(writing.visible, [trace.target_tokens[0], *trace.chosen_tokens]))
    steps: list[dict[str, Any]] = [
        {
            "so_far": writing.cut(" ".join(trace.target_tokens[: t + 1]), 40),
            "token": writing.visible(word),
            "probability": float(trace.values["out.prob"][t].max()),
        }
        for t, word in enumerate(trace.chosen_tokens)
    ]
    factors = [step["probability"] for step in steps]
    named = {"numbered": list(enumerate(steps)), "factors": factors, "product": math.prod(factors)}
    return Measured(named, steps=steps, written=written)


def sizes(lesson: Lesson, trace: Trace) -> Measured:
    ours, paper = _sizes(lesson.values.config), _sizes(PRESETS["base"])
    return Measured(**{what: {"here": ours[what], "paper": paper[what]} for what in ours})


def _sizes(config: ModelConfig) -> dict[str, int]:
    return {
        "embedding dimension": config.d_model,
        "encoder layers": config.n_encoder_layers,
        "decoder layers": config.n_decoder_layers,
        "feed-forward dimension": config.d_ff,
        "attention heads": config.n_heads,
        "attention dimension": config.d_head,
        "words of the vocabulary": config.target_vocabulary,
        "parameters": count(config),
    }


SIDELIGHTS: dict[str, Callable[[Lesson, Trace], Measured]] = {
    "vocabulary": vocabulary,
    "cosines": cosines_of_words,
    "softmax_of_three": softmax_of_three,
    "growth": growth,
    "deviation": deviation,
    "rows_apart": rows_apart,
    "likeliest": likeliest,
    "table_for_generation": table_for_generation,
    "generated": generated,
    "sizes": sizes,
}
