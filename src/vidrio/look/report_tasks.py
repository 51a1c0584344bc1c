"""What the page of a run says where nothing is translated: which texts it takes for what, or how it goes on.

Everything is computed here by the glass engine, from the model folder and the held-out texts.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vidrio.glass.paper.transformer import classify
from vidrio.hypothesis import Options, Sampling, default_options
from vidrio.look.blocks import Block, Note, Rows, Table, Title, Words
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
SET_APART = "Neither training nor the choice of the best model among those of the run has seen them."


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
        texts = sum(n for (expected, _), n in counts.items() if expected == row)
        said = sum(n for (_, said), n in counts.items() if said == row)
        right = sum(answer.right for answer in told if place(answer.expected) == row)
        told_right = sum(answer.right for answer in told if place(answer.said) == row)
        shares = (
            f"{100 * part / whole:.1f} %" if whole else "–" for part, whole in ((right, texts), (told_right, said))
        )
        rows.append([Words(clip(row, 40)), *(f"{counts[row, column]:,}" for column in names), *shares])
    yield Note(
        "A row is a class, a column what the model took its texts for. “Found” is the share of the class's texts that "
        "were told rightly (recall), “right when said” the share of its answers that were right (precision)."
    )
    yield Table(rows, ("", *(clip(name, 24) for name in names), "found", "right when said"), name="classes")


def class_samples(told: Sequence[Answer]) -> Iterator[Block]:
    """Where it is surely wrong, where it wavers, where it is surely right."""
    read = [answer for answer in told if answer.said]
    right = sorted((answer for answer in read if answer.right), key=lambda answer: -answer.p)
    wrong = sorted((answer for answer in read if not answer.right), key=lambda answer: -answer.p)
    for title, some in (
        ("Wrong, and sure of it", wrong[:SAMPLES]),
        ("Right, but hardly", right[SAMPLES:][-SAMPLES:][::-1]),
        ("Right, and sure of it", right[:SAMPLES]),
    ):
        if some:
            yield Title(title)
            rows: Rows = [
                [
                    Words(clip(a.text, LONGEST), "said"),
                    Words(a.expected),
                    Words(a.said),
                    f"{a.p:.3f}",
                    f"{a.p_expected:.3f}",
                ]
                for a in some
            ]
            yield Table(rows, ("text", "class", "told", "p", "p of the class"), name=title, row_heads=False)


# --- writing on -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Continued:
    """A held-out text: how surprising it is, and what the model makes of its beginning."""

    text: str
    bits: float  # a token
    begins: str
    likeliest: str
    drawn: str


def text_scores(model: LoadedModel, held_out: int, scores: Sequence[Score]) -> Iterator[Block]:
    """The loss, in words that mean something."""
    for score in scores:
        if score.metric == "loss":
            bits, words = score.value / math.log(2), math.exp(min(score.value, 700.0))
            yield Note(f"On {held_out:,} held-out texts. {SET_APART}")
            known = f"{model.config.target_vocabulary:,}"
            rows = [
                ("loss", f"{score.value:.3f}", "the mean of −log p of a token"),
                ("bits", f"{bits:.3f}", "a token, the same to base 2: what it would take to store the texts"),
                (
                    *("perplexity", f"{words:,.2f}"),
                    f"among so many equally likely tokens the model seems to choose; it knows {known}",
                ),
            ]
            cells: Rows = [[Words(name), figure, Words(note, "note")] for name, figure, note in rows]
            yield Table(cells, ("", "score", "what it is"), name="scores")


def continued(model: LoadedModel, texts: Sequence[str]) -> list[Continued]:
    """Some of the texts, spread over all of them, the least surprising first."""
    found = []
    for raw in (texts[i] for i in spread(len(texts), CONTINUED)):
        ids = model.target_tokenizer.encode(raw)
        if not SHOWN_FIRST <= len(ids) < model.config.max_positions:
            continue
        scores = look(model, "", target=(*ids, model.config.special.end)).trace.array("out.score")
        found.append(Continued(raw, float(-scores.mean() / math.log(2)), "", "", ""))
    return sorted(found, key=lambda one: one.bits)


def go_on(model: LoadedModel, one: Continued) -> Continued:
    """The first part of the text, and two ways on: the likeliest tokens, and tokens drawn by their probabilities."""
    ids = model.target_tokenizer.encode(one.text)
    begins = model.target_tokenizer.decode(ids[: len(ids) // SHOWN_FIRST])
    most = min(model.config.max_positions, len(ids) + 20)
    likeliest = replace(default_options(model.config), beam=1, max_length=most)
    drawn = replace(likeliest, sampling=Sampling(seed=1))

    def on(options: Options) -> str:
        return look(model, begins, options=options).translation.removeprefix(begins)

    return replace(one, begins=begins, likeliest=on(likeliest), drawn=on(drawn))


def text_samples(model: LoadedModel, texts: Sequence[str]) -> Iterator[Block]:
    """Texts that the model expects, and such that it does not, each with what it would have written."""
    ranked = continued(model, texts)
    if not ranked:
        return
    yield Note(
        "The model is given the first third of a held-out text and goes on: with the likeliest token each time, and "
        "with tokens drawn by their probabilities. How the text really goes on is one way among many; the bits say how "
        "surprising it was."
    )
    middle = (len(ranked) - SAMPLES) // 2
    groups = [("The least surprising", ranked[:SAMPLES])]
    if len(ranked) > 3 * SAMPLES:
        groups.append(("In the middle", ranked[middle : middle + SAMPLES]))
    if len(ranked) > SAMPLES:
        groups.append(("The most surprising", ranked[SAMPLES:][-SAMPLES:]))
    heads = ("bits a token", "begins", "likeliest", "drawn", "the text")
    for title, some in groups:
        rows: Rows = [
            [
                f"{t.bits:.2f}",
                *(Words(clip(said, LONGEST), "said") for said in (t.begins, t.likeliest, t.drawn, t.text)),
            ]
            for t in (go_on(model, one) for one in some)
        ]
        yield Title(title)
        yield Table(rows, heads, name=title, row_heads=False)
