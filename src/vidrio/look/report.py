"""A training run as one page: how good the model became, what it says, how it learned, and what from.

It is made when a run has ended, with what only memory holds then: the held-out sentences and what the
model makes of them. All else is read from the model folder. The same run gives the same bytes.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.data.clean import REASONS
from vidrio.look import blocks as b
from vidrio.look.command_line import CommandLine
from vidrio.look.curves import metrics, panels
from vidrio.look.history import History, history
from vidrio.look.measures import mean_of_heads
from vidrio.look.run import LoadedModel, look, open_model
from vidrio.look.run_data import identity
from vidrio.look.writing import clip, clock, number
from vidrio.model.json_text import json_text
from vidrio.model.parameters import count
from vidrio.score.breakdown import Group, Judged, by_length, judged
from vidrio.score.metrics import Score

SAMPLES = 5  # of the best, the usual and the worst sentences
LONGEST_SAMPLE = 400  # characters of a translation
HELD_OUT = {"dev": "validation", "test": "the judgement at the end"}
TOLD_ELSEWHERE = ("command", "before", "pairs", "left out")  # of what a run tells of itself
PICTURES = 3  # sentences whose attention is drawn
LONGEST_PICTURE = 14  # tokens of either side
DROPPED = 3  # samples of pairs left out, for each reason
LARGE = 50_000_000  # parameters; above it the pictures are computed in float32


Part = tuple[str, str, Iterable[b.Block]]  # of the page: its anchor, its title, what stands in it


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a run ends with: held-out sentences, what should come out, what did, and the scores."""

    sources: Sequence[str] = ()
    references: Sequence[str] = ()
    translations: Sequence[str] = ()
    scores: Sequence[Score] = ()
    limits: Sequence[str] = ()  # what the model cannot do, in sentences
    warnings: Sequence[str] = ()  # what must be read first


def report(folder: Path, ending: Ending, data: Path | None = None) -> b.Page:
    """The page; `data` is the data.json of the run's pairs, which lie beside it."""
    model = open_model(folder)
    if count(model.config) > LARGE:
        model = open_model(folder, np.float32)
    parts = _sections(model, ending, folder / "run", data)
    sections = [b.Section(anchor, title, list(blocks)) for anchor, title, blocks in parts]
    checksums = list(identity(model)["sha256"].items())
    header = list(_header(model, ending, folder / "run"))
    return b.Page(f"{_title(model)}: a training run", header, sections, checksums)


def _title(model: LoadedModel) -> str:
    languages = (model.about.source_language, model.about.target_language)
    return f"{model.name} ({' → '.join(languages)})" if all(languages) else model.name


def _header(model: LoadedModel, ending: Ending, run: Path) -> Iterator[b.Block]:
    records = metrics(run)
    steps = max((r["step"] for r in records), default=0)
    minutes = max((r["seconds"] for r in records if "seconds" in r), default=0) / 60
    c = model.config
    parts = [f"{count(c):,} parameters", f"{c.layers_in_words} layers, {c.d_model} wide"]
    parts += [f"{steps:,} steps in {clock(minutes)} minutes"] if steps else []
    parts += [f"{s.metric} {s.value:.1f}" for s in ending.scores]
    yield b.Note(f"A training run: {', '.join(parts)}.", tone="quiet")
    yield from (b.Note(warning, tone="warning") for warning in ending.warnings)


def _sections(model: LoadedModel, ending: Ending, run: Path, data: Path | None) -> Iterator[Part]:
    """What the page says, in order: how good it is, how it learned, and what from."""
    sources = ending.sources
    curves = "curves", "How it learned", panels(metrics(run))
    match model.config.shape:
        case "encoder-decoder":
            sentences = judged(sources, ending.references, ending.translations)
            yield "scores", "How good it is", _scores(ending)
            yield "samples", "What it says", _samples(sentences)
            yield "groups", "Where it is good and where not", _groups(sentences)
            yield curves
            shown = _to_draw(model, sentences)
            if shown and (run / "snapshots").is_dir():
                yield "ages", "One sentence, from random to trained", _ages(history(model, shown[0]))
            yield "attention", "What each token read", _attention(model, shown)
        case _:
            yield "scores", "How good it is", _scores(ending)
            yield curves
    if data is not None:
        yield "data", "What it learned from", _data(json.loads(data.read_text("utf-8")))
    yield "run", "How to do it again", _told(model.about.provenance)
    yield "limits", "What it cannot do", map(b.Note, ending.limits)


# --- how good ---------------------------------------------------------------------------------------------------------


def _scores(ending: Ending) -> Iterator[b.Block]:
    if not ending.scores:
        return
    rows: b.Rows = [
        [b.Words(s.metric), f"{s.value:.2f}", _interval(s), b.Words(s.signature, "code")] for s in ending.scores
    ]
    yield b.Note(f"On {len(ending.sources):,} held-out sentences, which training has not seen.")
    yield b.Table(rows, ("", "score", "95 % interval", "signature"), name="scores")
    yield b.Note(
        "The interval is found by scoring many sets drawn from these sentences (bootstrap). It says how much of the "
        "score is the choice of sentences, not how the model does on other texts. Scores with different signatures "
        "cannot be compared. Higher is better, but for TER.",
        tone="quiet",
    )


def _interval(score: Score) -> str:
    return f"{score.mean - score.half_width:.2f} to {score.mean + score.half_width:.2f}"


def _samples(sentences: Sequence[Judged]) -> Iterator[b.Block]:
    """The best, those in the middle, the worst: by their own chrF, in the order of the set where they are equal."""
    if not sentences:
        return
    ranked = sorted(sentences, key=lambda sentence: -sentence.chrf)
    which = f"Of the {len(ranked):,} held-out sentences, ordered by their own chrF"
    yield b.Note(f"{which} (100: letter for letter as expected).")
    heads = ("chrF", "source", "translation", "expected")

    def row(s: Judged) -> list[b.Cell]:
        texts = (s.source, clip(s.translation, LONGEST_SAMPLE), s.reference)
        return [f"{s.chrf:.0f}", *(b.Words(text, "said") for text in texts)]

    if len(ranked) <= 3 * SAMPLES:
        yield b.Table(list(map(row, ranked)), heads, name="all of them", row_heads=False)
        return
    middle = (len(ranked) - SAMPLES) // 2
    groups = [
        (f"The worst {SAMPLES}", ranked[-SAMPLES:]),
        (f"The {SAMPLES} in the middle", ranked[middle : middle + SAMPLES]),
        (f"The best {SAMPLES}", ranked[:SAMPLES]),
    ]
    for title, some in groups:
        yield b.Title(title)
        yield b.Table(list(map(row, some)), heads, name=title, row_heads=False)


def _groups(sentences: Sequence[Judged]) -> Iterator[b.Block]:
    if sentences:
        yield _group_table(("words of the source", "sentences", "chrF"), by_length(sentences))


def _group_table(heads: Sequence[str], groups: Sequence[Group]) -> b.Table:
    rows: b.Rows = [[b.Words(g.name), f"{g.count:,}", f"{g.value:.1f}", b.Bar(g.value / 100)] for g in groups]
    return b.Table(rows, (*heads, ""), name=heads[0])


# --- inside -----------------------------------------------------------------------------------------------------------


def _to_draw(model: LoadedModel, sentences: Sequence[Judged]) -> list[str]:
    """Some held-out sentences, evenly chosen among those that are short enough for a picture and not too short."""
    fit = [
        s.source
        for s in sentences
        if 3 <= len(model.source_tokenizer.encode(s.source)) < LONGEST_PICTURE
        and len(model.target_tokenizer.encode(s.translation)) < LONGEST_PICTURE
    ]
    return fit[:: max(1, len(fit) // PICTURES)][:PICTURES]


def _attention(model: LoadedModel, texts: Sequence[str]) -> Iterator[b.Block]:
    """The cross-attention of the last layer, the mean of its heads."""
    if not texts:
        return
    part = f"dec.{model.config.n_decoder_layers - 1}.cross"
    yield b.Note(
        f"A row is a token of the translation, a column a token of the source; the darker, the more the row took from "
        f"the column. A row's shares sum to 1; hundredths are written where there are ten or more. This is `{part}`, "
        f"the mean of its {model.config.n_heads} heads: what a row takes most from is often, not always, what it "
        f"translates."
    )
    pictures = []
    for raw in texts:
        trace = look(model, raw).trace
        weights_TS = mean_of_heads(trace, f"{part}.weights")
        pictures.append(b.Heat(weights_TS, trace.chosen_tokens, trace.source_tokens, raw))
    yield b.Beside(pictures)
    yield b.Note("Every number on the way, of any sentence:")
    yield CommandLine(texts[0], ("--model", model.path.name)).look("--html", "page.html")


def _ages(past: History) -> Iterator[b.Block]:
    """What the model said of one sentence at each age, and how sure it was of what it says now."""
    rows: b.Rows = []
    for age in past.ages:
        says = clip(age.says, 60) + " (cut)" * (not age.ended)
        rows.append([age.name, b.Words(says, "said"), *(number(p, 3) for p in age.p)])
    yield b.Note(
        f"“{past.text}”, at the steps of which there is a snapshot; “kept” is the model that the run has chosen. On "
        f"the right: how probable each token of its translation was, those before it given."
    )
    yield b.Ages(past.to_json())
    yield b.Fold("All ages at once", [b.Table(rows, ("step", "it said", *past.tokens), name="ages")])


# --- what from, and how -----------------------------------------------------------------------------------------------


def _data(data: dict[str, Any]) -> Iterator[b.Block]:
    """What was read, what was left out and why."""
    tally, unit, pairs = data["report"], data.get("unit", "pairs"), data["pairs"]
    skipped = sum(tally["skipped"].values())
    others = " and ".join(f"{pairs[name]:,} to {what}" for name, what in HELD_OUT.items() if pairs.get(name))
    yield b.Note(
        f"{tally['read']:,} {unit} were read, {tally['kept']:,} kept, {skipped:,} left out. Of those kept, "
        f"{pairs['train']:,} went to training{f', {others}' if others else ''}."
    )
    corpora: b.Rows = [
        [b.Words(c["name"]), b.Words(c["layout"], "said"), f"{c['weight']:g}", f"{c['pairs']:,}"]
        for c in data.get("corpora", ())
    ]
    if corpora:
        yield b.Table(corpora, ("corpus", "layout", "weight", "pairs to learn from"), name="corpora")
    if not skipped:
        return
    yield b.Title("Left out")
    reasons: b.Rows = [
        [b.Words(reason), f"{n:,}", f"{100 * n / tally['read']:.2f} %", b.Words(REASONS[reason], "note")]
        for reason, n in tally["skipped"].items()
    ]
    yield b.Table(reasons, ("reason", unit, "of all", "what it means"), name="left out")
    samples: b.Rows = [
        [b.Words(reason), b.Words(s["place"]), b.Words(s["source"], "said"), b.Words(s["target"], "said")]
        for reason, some in tally["samples"].items()
        for s in some[:DROPPED]
    ]
    table = b.Table(samples, ("reason", "where", "source", "target"), name="samples left out")
    yield b.Fold(f"Some of the {unit} left out", [table])


def _told(provenance: dict[str, Any]) -> Iterator[b.Block]:
    """The command first, after those of the trainings that it goes on from; then all that the run tells of itself."""
    for training in (*provenance.get("before", []), provenance):
        if command := training.get("command"):
            yield str(command)
    pairs = list(flat({name: value for name, value in provenance.items() if name not in TOLD_ELSEWHERE}))
    if pairs:
        yield b.Pairs(pairs)


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as names with dots, and text."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        elif isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
            yield f"{before}{name}", ", ".join(map(str, value))
        else:
            yield f"{before}{name}", value if isinstance(value, str) else json_text(value)
