"""What the page of a run says where nothing is translated: which texts it takes for what, or how it goes on.

Everything is computed here by the glass engine, from the model folder and the held-out texts.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from vidrio.glass.paper.transformer import classify
from vidrio.hypothesis import Sampling, default_options
from vidrio.look.blocks import Block, Cell, Note, Rows, Table, Title, Words
from vidrio.look.curves import spread
from vidrio.look.run import LoadedModel, look
from vidrio.look.writing import clip
from vidrio.score.metrics import Score

CLASSES = 12  # that have a row of their own
OTHERS = "all others"
SAMPLES = 5  # texts of each sort
CONTINUED = 60  # texts, of which the samples are chosen
SHOWN_FIRST = 3  # of how many parts of a text the first is shown to the model
LONGEST = 160  # characters of a text
T = TypeVar("T")
SET_APART = "Neither training nor the choice of the best model among those of the run has seen them."


def grouped(
    groups: Iterable[tuple[str, Sequence[T]]], heads: Sequence[str], row: Callable[[T], list[Cell]]
) -> Iterator[Block]:
    """Texts of several sorts: a table of each sort that there is, a row a text."""
    for title, some in groups:
        if some:
            yield Title(title)
            yield Table([row(one) for one in some], heads, name=title, row_heads=False)


def said(text: str) -> Words:
    """A text, or as much of it as stands in a cell."""
    return Words(clip(text, LONGEST), "said")


# --- telling classes --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Answer:
    """What the model takes a text for."""

    text: str
    expected: str
    said: str  # empty: the text is longer than the model
    p: float  # of what is said
    p_expected: float

    @property
    def right(self) -> bool:
        return self.said == self.expected


def answers(model: LoadedModel, texts: Sequence[str], expected: Sequence[str]) -> list[Answer]:
    """Each text with the most probable class."""
    config, found = model.config, []
    for raw, label in zip(texts, expected, strict=True):
        ids = [*model.source_tokenizer.encode(raw), *config.source_close]
        if not ids or len(ids) > config.max_positions:
            found.append(Answer(raw, label, "", 0.0, 0.0))
            continue
        prob_C = classify(model.machine, ids)
        best = int(np.argmax(prob_C))
        p_expected = float(prob_C[model.about.labels.index(label)])
        found.append(Answer(raw, label, model.about.labels[best], float(prob_C[best]), p_expected))
    return found


def class_scores(told: Sequence[Answer], scores: Sequence[Score]) -> Iterator[Block]:
    """How many are right, beside what could be had without reading a word."""
    if not told:
        return
    commonest, times = Counter(answer.expected for answer in told).most_common(1)[0]
    right = sum(answer.right for answer in told)
    yield Note(f"On {len(told):,} held-out texts. {SET_APART}")
    rows: Rows = [[Words(s.metric), f"{s.value:.2f}", interval(s) if s.half_width > 0 else ""] for s in scores]
    rows.append([Words(f"always “{clip(commonest, 40)}”"), f"{100 * times / len(told):.2f}", ""])
    yield Table(rows, ("", "score", "95 % interval"), name="scores")
    long = sum(not answer.said for answer in told)
    yield Note(
        f"The glass engine, which computes with more digits, tells {right:,} of {len(told):,} rightly"
        + (f"; {long:,} are longer than the model and count as wrong" if long else "")
        + ". Below are its answers."
    )


def interval(score: Score) -> str:
    return f"{score.mean - score.half_width:.2f} to {score.mean + score.half_width:.2f}"


def confusion(told: Sequence[Answer]) -> Iterator[Block]:
    """Which class is taken for which, and how far each can be relied on."""
    if not told:
        return
    common = Counter(answer.expected for answer in told) + Counter(answer.said for answer in told if answer.said)
    shown = sorted(name for name, _ in common.most_common(CLASSES))
    names = [*shown, OTHERS] if len(common) > len(shown) else shown

    def place(name: str) -> str:
        return name if name in shown or not name else OTHERS

    counts = Counter((place(answer.expected), place(answer.said)) for answer in told)
    rows: Rows = []
    for row in names:
        texts = [answer.right for answer in told if place(answer.expected) == row]
        answers = [answer.right for answer in told if place(answer.said) == row]
        shares = (f"{100 * sum(some) / len(some):.1f} %" if some else "–" for some in (texts, answers))
        rows.append([Words(clip(row, 40)), *(f"{counts[row, column]:,}" for column in names), *shares])
    yield Note(
        "A row is a class, a column what the model took its texts for. “Found” is the share of the class's texts that "
        "were told rightly (recall), “right when said” the share of its answers that were right (precision)."
    )
    yield Table(rows, ("", *(clip(name, 24) for name in names), "found", "right when said"), name="classes")


def class_samples(told: Sequence[Answer]) -> Iterator[Block]:
    """Where it is surely wrong, where it wavers, where it is surely right."""
    surest = sorted((answer for answer in told if answer.said), key=lambda answer: -answer.p)
    right, wrong = ([answer for answer in surest if answer.right is wanted] for wanted in (True, False))
    groups = [
        ("Wrong, and sure of it", wrong[:SAMPLES]),
        ("Right, but hardly", right[SAMPLES:][-SAMPLES:][::-1]),
        ("Right, and sure of it", right[:SAMPLES]),
    ]
    yield from grouped(
        groups,
        ("text", "class", "told", "p", "p of the class"),
        lambda a: [said(a.text), Words(a.expected), Words(a.said), f"{a.p:.3f}", f"{a.p_expected:.3f}"],
    )


# --- writing on -------------------------------------------------------------------------------------------------------


def text_scores(model: LoadedModel, held_out: int, scores: Sequence[Score]) -> Iterator[Block]:
    """The loss, in words that mean something."""
    known = model.config.target_vocabulary
    for loss in (score.value for score in scores if score.metric == "loss"):
        yield Note(f"On {held_out:,} held-out texts. {SET_APART}")
        meaning = f"among so many equally likely tokens the model seems to choose; it knows {known:,}"
        rows = [
            ("loss", f"{loss:.3f}", "the mean of −log p of a token"),
            ("bits", f"{loss / math.log(2):.3f}", "a token, the same to base 2: what it would take to store the texts"),
            ("perplexity", f"{math.exp(min(loss, 700.0)):,.2f}", meaning),
        ]
        cells: Rows = [[Words(name), figure, Words(note, "note")] for name, figure, note in rows]
        yield Table(cells, ("", "score", "what it is"), name="scores")


def surprises(model: LoadedModel, texts: Sequence[str]) -> list[tuple[float, str]]:
    """Some of the texts, spread over all of them, with their bits a token, the least surprising first."""
    found = []
    for raw in (texts[i] for i in spread(len(texts), CONTINUED)):
        ids = model.target_tokenizer.encode(raw)
        if SHOWN_FIRST <= len(ids) < model.config.max_positions:
            scores = look(model, "", target=(*ids, model.config.special.end)).trace.array("out.score")
            found.append((float(-scores.mean() / math.log(2)), raw))
    return sorted(found, key=lambda one: one[0])


def go_on(model: LoadedModel, text: str) -> tuple[str, str, str]:
    """The first part of a text, and two ways on: the likeliest tokens, and tokens drawn by their probabilities."""
    ids = model.target_tokenizer.encode(text)
    begins = model.target_tokenizer.decode(ids[: len(ids) // SHOWN_FIRST])
    most = min(model.config.max_positions, len(ids) + 20)
    surest = replace(default_options(model.config), beam=1, max_length=most)
    ways = (surest, replace(surest, sampling=Sampling(seed=1)))
    likeliest, drawn = (look(model, begins, options=way).translation.removeprefix(begins) for way in ways)
    return begins, likeliest, drawn


def text_samples(model: LoadedModel, texts: Sequence[str]) -> Iterator[Block]:
    """Texts that the model expects, and such that it does not, each with what it would have written."""
    ranked = surprises(model, texts)
    if not ranked:
        return
    yield Note(
        "The model is given the first third of a held-out text and goes on: with the likeliest token each time, and "
        "with tokens drawn by their probabilities. How the text really goes on is one way among many; the bits say how "
        "surprising it was."
    )
    middle = (len(ranked) - SAMPLES) // 2
    groups = [
        ("The least surprising", ranked[:SAMPLES]),
        ("In the middle", ranked[middle : middle + SAMPLES] if len(ranked) > 3 * SAMPLES else []),
        ("The most surprising", ranked[SAMPLES:][-SAMPLES:]),
    ]
    yield from grouped(
        groups,
        ("bits a token", "begins", "likeliest", "drawn", "the text"),
        lambda one: [f"{one[0]:.2f}", *map(said, (*go_on(model, one[1]), one[1]))],
    )
