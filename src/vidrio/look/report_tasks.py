"""What the page of a run says where nothing is translated: which texts it takes for what, or how it goes on.

Everything is computed here by the glass engine, from the model folder and the held-out texts.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vidrio.draw.document import column_heads, scrolling
from vidrio.draw.html import text
from vidrio.glass.paper.transformer import classify
from vidrio.look.curves import clip, spread
from vidrio.look.run import LoadedModel, look
from vidrio.score.metrics import Score
from vidrio.search import Options, Sampling, default_options

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


def class_scores(told: Sequence[Answer], scores: Sequence[Score]) -> Iterator[str]:
    """How many are right, beside what could be had without reading a word."""
    if not told:
        return
    commonest, times = Counter(answer.expected for answer in told).most_common(1)[0]
    right = sum(answer.right for answer in told)
    yield f"<p>On {len(told):,} held-out texts. {SET_APART}</p>"
    measured = [(s.metric, s.value, s.mean - s.half_width, s.mean + s.half_width) for s in scores]
    rows = "".join(
        f'<tr><th scope="row" class="word">{text(name)}</th><td>{value:.2f}</td>'
        f"<td>{f'{low:.2f} to {high:.2f}' if low < high else ''}</td></tr>"
        for name, value, low, high in measured
    )
    rows += (
        f'<tr><th scope="row" class="word">always “{text(clip(commonest, 40))}”</th>'
        f"<td>{100 * times / len(told):.2f}</td><td></td></tr>"
    )
    yield scrolling("scores", column_heads(("", "score", "95 % interval")), rows)
    long = sum(not answer.said for answer in told)
    yield (
        f"<p>The glass engine, which computes with more digits, tells {right:,} of {len(told):,} rightly"
        + (f"; {long:,} are longer than the model and count as wrong" if long else "")
        + ". Below are its answers.</p>"
    )


def confusion(told: Sequence[Answer]) -> Iterator[str]:
    """Which class is taken for which, and how far each can be relied on."""
    if not told:
        return
    common = Counter(answer.expected for answer in told) + Counter(answer.said for answer in told if answer.said)
    shown = sorted(name for name, _ in common.most_common(CLASSES))
    names = [*shown, OTHERS] if len(common) > len(shown) else shown

    def place(name: str) -> str:
        return name if name in shown or not name else OTHERS

    counts = Counter((place(answer.expected), place(answer.said)) for answer in told)
    rows = []
    for row in names:
        texts = sum(n for (expected, _), n in counts.items() if expected == row)
        said = sum(n for (_, said), n in counts.items() if said == row)
        right = sum(answer.right for answer in told if place(answer.expected) == row)
        told_right = sum(answer.right for answer in told if place(answer.said) == row)
        cells = "".join(
            f"<td>{f'<b>{counts[row, column]:,}</b>' if row == column else f'{counts[row, column]:,}'}</td>"
            for column in names
        )
        shares = (
            f"{100 * part / whole:.1f} %" if whole else "–" for part, whole in ((right, texts), (told_right, said))
        )
        rows.append(
            f'<tr><th scope="row" class="word">{text(clip(row, 40))}</th>{cells}'
            f"{''.join(f'<td>{share}</td>' for share in shares)}</tr>"
        )
    heads = ("", *(clip(name, 24) for name in names), "found", "right when said")
    yield (
        "<p>A row is a class, a column what the model took its texts for. “Found” is the share of the class's texts "
        "that were told rightly (recall), “right when said” the share of its answers that were right (precision).</p>"
    )
    yield scrolling("classes", column_heads(heads), "".join(rows))


def class_samples(told: Sequence[Answer]) -> Iterator[str]:
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
            rows = "".join(
                f'<tr><td class="said" data-label="text">{text(clip(a.text, LONGEST))}</td>'
                f'<td class="word" data-label="class">{text(a.expected)}</td>'
                f'<td class="word" data-label="told">{text(a.said)}</td>'
                f'<td data-label="p">{a.p:.3f}</td><td data-label="p of the class">{a.p_expected:.3f}</td></tr>'
                for a in some
            )
            table = scrolling(title, column_heads(("text", "class", "told", "p", "p of the class")), rows)
            yield f'<h3>{title}</h3><div class="samples">{table}</div>'


# --- writing on -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Continued:
    """A held-out text: how surprising it is, and what the model makes of its beginning."""

    text: str
    bits: float  # a token
    begins: str
    likeliest: str
    drawn: str


def text_scores(model: LoadedModel, held_out: int, scores: Sequence[Score]) -> Iterator[str]:
    """The loss, in words that mean something."""
    for score in scores:
        if score.metric == "loss":
            bits, words = score.value / math.log(2), math.exp(min(score.value, 700.0))
            yield f"<p>On {held_out:,} held-out texts. {SET_APART}</p>"
            rows = "".join(
                f'<tr><th scope="row" class="word">{name}</th><td>{value}</td><td class="note">{note}</td></tr>'
                for name, value, note in (
                    ("loss", f"{score.value:.3f}", "the mean of −log p of a token"),
                    ("bits", f"{bits:.3f}", "a token, the same to base 2: what it would take to store the texts"),
                    (
                        "perplexity",
                        f"{words:,.2f}",
                        f"among so many equally likely tokens the model seems to choose; it knows "
                        f"{model.config.target_vocabulary:,}",
                    ),
                )
            )
            yield scrolling("scores", column_heads(("", "score", "what it is")), rows)


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


def text_samples(model: LoadedModel, texts: Sequence[str]) -> Iterator[str]:
    """Texts that the model expects, and such that it does not, each with what it would have written."""
    ranked = continued(model, texts)
    if not ranked:
        return
    yield (
        "<p>The model is given the first third of a held-out text and goes on: with the likeliest token each time, and "
        "with tokens drawn by their probabilities. How the text really goes on is one way among many; the bits say how "
        "surprising it was.</p>"
    )
    middle = (len(ranked) - SAMPLES) // 2
    groups = [("The least surprising", ranked[:SAMPLES])]
    if len(ranked) > 3 * SAMPLES:
        groups.append(("In the middle", ranked[middle : middle + SAMPLES]))
    if len(ranked) > SAMPLES:
        groups.append(("The most surprising", ranked[SAMPLES:][-SAMPLES:]))
    heads = ("bits a token", "begins", "likeliest", "drawn", "the text")
    for title, some in groups:
        rows = "".join(
            f'<tr><td data-label="bits a token">{one.bits:.2f}</td>'
            + "".join(
                f'<td class="said" data-label="{head}">{text(clip(said, LONGEST))}</td>'
                for head, said in zip(heads[1:], (one.begins, one.likeliest, one.drawn, one.text), strict=True)
            )
            + "</tr>"
            for one in (go_on(model, one) for one in some)
        )
        yield f'<h3>{title}</h3><div class="samples">{scrolling(title, column_heads(heads), rows)}</div>'
