"""A training run as one page: how good the model became, what it says, how it learned, and what from.

`write_report` is called when a run has ended, with what only memory holds then: the held-out sentences and what the
model makes of them. All else is read from the model folder. The same run gives the same bytes.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidrio._version import __version__
from vidrio.data.progress import Progress, silent
from vidrio.data.skipped import REASONS, Tally
from vidrio.draw.document import Section, column_heads, document, scrolling
from vidrio.draw.html import text
from vidrio.draw.show import number
from vidrio.draw.svg import bar, clock, heat
from vidrio.learn.run.run_files import snapshots
from vidrio.look import report_tasks as tasks
from vidrio.look.curves import clip, metrics, panels
from vidrio.look.history import History, history
from vidrio.look.manifest import identity
from vidrio.look.run import LoadedModel, look, open_model
from vidrio.model.folder import write_atomically
from vidrio.model.parameters import count
from vidrio.score.breakdown import MOST_LINES, Group, Judged, by_length, by_rarity, count_words, judged, targets
from vidrio.score.metrics import Score
from vidrio.search import default_options

SAMPLES = 5  # of the best, the usual and the worst sentences
LONGEST_SAMPLE = 400  # characters of a translation
HELD_OUT = {"dev": "validation", "test": "the judgement at the end"}
TOLD_ELSEWHERE = ("command", "pairs", "left out")  # of what a run tells of itself
PICTURES = 3  # sentences whose attention is drawn
LONGEST_PICTURE = 14  # tokens of either side
DROPPED = 3  # samples of pairs left out, for each reason
LARGE = 50_000_000  # parameters; above it the pictures are computed in float32


@dataclass(frozen=True, kw_only=True)
class Ending:
    """What a run ends with: held-out sentences, what should come out, what did, and the scores."""

    name: str = "held-out sentences"
    sources: Sequence[str] = ()
    references: Sequence[str] = ()
    translations: Sequence[str] = ()
    scores: Sequence[Score] = ()
    limits: Sequence[str] = ()  # what the model cannot do, in sentences
    warnings: Sequence[str] = ()  # what must be read first


def write_report(folder: Path, ending: Ending, data: Path | None = None, progress: Progress = silent) -> Path:
    """Write `report.html` into a model folder; `data` is the data.json of its pairs, which lie beside it."""
    path = folder / "report.html"
    write_atomically(path, report(folder, ending, data, progress).encode())
    return path


def report(folder: Path, ending: Ending, data: Path | None = None, progress: Progress = silent) -> str:
    """The page."""
    model = open_model(folder)
    if count(model.config) > LARGE:
        model = open_model(folder, np.float32)
    with progress("writing the report", 0) as advance:

        def counted() -> Iterator[Section]:
            for section in _sections(model, ending, folder / "run", data):
                advance(1)
                yield section

        return document(
            f"{_title(model)}: a training run",
            _header(model, ending, folder / "run"),
            counted(),
            _footer(model),
            ("page.css", "training.css"),
        )


def _title(model: LoadedModel) -> str:
    languages = (model.about.source_language, model.about.target_language)
    return f"{model.name} ({' → '.join(languages)})" if all(languages) else model.name


def _header(model: LoadedModel, ending: Ending, run: Path) -> Iterator[str]:
    records = metrics(run)
    steps = max((r["step"] for r in records), default=0)
    minutes = max((r["seconds"] for r in records if "seconds" in r), default=0) / 60
    c = model.config
    layers = [n for n, there in ((c.n_encoder_layers, c.has_encoder), (c.n_decoder_layers, c.has_decoder)) if there]
    parts = [f"{count(c):,} parameters", f"{' + '.join(map(str, layers))} layers, {c.d_model} wide"]
    parts += [f"{steps:,} steps in {clock(minutes)} minutes"] if steps else []
    parts += [f"{s.metric} {s.value:.1f}" for s in ending.scores]
    yield f"<header>\n<h1>{text(_title(model))}</h1>"
    yield f'<p class="status">A training run: {text(", ".join(parts))}.</p>'
    yield from (f'<p class="warning">{text(warning)}</p>' for warning in ending.warnings)
    yield "</header>"


def _sections(model: LoadedModel, ending: Ending, run: Path, data: Path | None) -> Iterator[Section]:
    """What the page says, in order: how good it is, how it learned, and what from."""
    yield from {"encoder-decoder": _translator, "encoder": _classifier, "decoder": _writer}[model.config.shape](
        model, ending, run, data
    )
    if data is not None:
        yield "data", "What it learned from", "\n".join(_data(json.loads(data.read_text("utf-8"))))
    yield "run", "How to do it again", "\n".join(_told(model.about.provenance))
    yield "limits", "What it cannot do", "".join(f"<p>{text(limit)}</p>" for limit in ending.limits)


def _translator(model: LoadedModel, ending: Ending, run: Path, data: Path | None) -> Iterator[Section]:
    sentences = judged(ending.sources, ending.references, ending.translations)
    yield "scores", "How good it is", "\n".join(_scores(ending))
    yield "samples", "What it says", "\n".join(_samples(sentences, ending.name))
    yield "groups", "Where it is good and where not", "\n".join(_groups(sentences, data))
    yield "curves", "How it learned", "\n".join(panels(metrics(run)))
    shown = _to_draw(model, sentences)
    if shown and snapshots(run):
        yield "ages", "One sentence, from random to trained", "\n".join(_ages(history(model, shown[0])))
    yield "attention", "What each token read", "\n".join(_attention(model, shown))


def _classifier(model: LoadedModel, ending: Ending, run: Path, data: Path | None) -> Iterator[Section]:
    told = tasks.answers(model, ending.sources, ending.references)
    yield "scores", "How good it is", "\n".join(tasks.class_scores(told, ending.scores))
    yield "confusion", "What it takes for what", "\n".join(tasks.confusion(told))
    yield "samples", "What it says", "\n".join(tasks.class_samples(told))
    yield "curves", "How it learned", "\n".join(panels(metrics(run)))


def _writer(model: LoadedModel, ending: Ending, run: Path, data: Path | None) -> Iterator[Section]:
    yield "scores", "How good it is", "\n".join(tasks.text_scores(model, len(ending.sources), ending.scores))
    yield "samples", "How it goes on", "\n".join(tasks.text_samples(model, ending.sources))
    yield "curves", "How it learned", "\n".join(panels(metrics(run)))


# --- how good ---------------------------------------------------------------------------------------------------------


def _scores(ending: Ending) -> Iterator[str]:
    if not ending.scores:
        return
    rows = "".join(
        f'<tr><th scope="row" class="word">{text(s.metric)}</th><td>{s.value:.2f}</td>'
        f"<td>{s.mean - s.half_width:.2f} to {s.mean + s.half_width:.2f}</td>"
        f'<td class="signature"><code>{text(s.signature)}</code></td></tr>'
        for s in ending.scores
    )
    heads = ("", "score", "95 % interval", "signature")
    yield f"<p>On {len(ending.sources):,} {text(ending.name)}, which training has not seen.</p>"
    yield scrolling("scores", column_heads(heads), rows)
    yield (
        '<p class="left-out">The interval is found by scoring many sets drawn from these sentences (bootstrap). It '
        "says how much of the score is the choice of sentences, not how the model does on other texts. Scores "
        "with different signatures cannot be compared. Higher is better, but for TER.</p>"
    )


def _samples(sentences: Sequence[Judged], name: str) -> Iterator[str]:
    """The best, those in the middle, the worst: by their own chrF, in the order of the set where they are equal."""
    if not sentences:
        return
    ranked = sorted(sentences, key=lambda sentence: -sentence.chrf)
    yield f"<p>Of the {len(ranked):,} {text(name)}, ordered by their own chrF (100: letter for letter as expected).</p>"
    if len(ranked) <= 3 * SAMPLES:
        yield _sample_table("all of them", ranked)
        return
    middle = (len(ranked) - SAMPLES) // 2
    yield f"<h3>The worst {SAMPLES}</h3>{_sample_table('worst', ranked[-SAMPLES:])}"
    yield f"<h3>The {SAMPLES} in the middle</h3>{_sample_table('middle', ranked[middle : middle + SAMPLES])}"
    yield f"<h3>The best {SAMPLES}</h3>{_sample_table('best', ranked[:SAMPLES])}"


def _sample_table(name: str, sentences: Sequence[Judged]) -> str:
    rows = "".join(
        f'<tr><td data-label="chrF">{s.chrf:.0f}</td><td class="said" data-label="source">{text(s.source)}</td>'
        f'<td class="said" data-label="translation">{text(clip(s.translation, LONGEST_SAMPLE))}</td>'
        f'<td class="said" data-label="expected">{text(s.reference)}</td></tr>'
        for s in sentences
    )
    table = scrolling(name, column_heads(("chrF", "source", "translation", "expected")), rows)
    return f'<div class="samples">{table}</div>'


def _groups(sentences: Sequence[Judged], data: Path | None) -> Iterator[str]:
    if not sentences:
        return
    yield "<h3>By length</h3>"
    yield _group_table(("words of the source", "sentences", "chrF"), by_length(sentences), 100)
    pairs = None if data is None else data.with_name("train.tsv")
    if pairs is not None and pairs.exists():
        seen, lines = count_words(targets(pairs))
        yield "<h3>By how rare a word is</h3>"
        yield (
            f"<p>Of the words that should come out, the share that did come out (in the same sentence, anywhere), by "
            f"how often it stands in {'the first ' * (lines == MOST_LINES)}{lines:,} training pairs.</p>"
        )
        yield _group_table(("seen in training", "words", "came out"), by_rarity(sentences, seen), 1)


def _group_table(heads: Sequence[str], groups: Sequence[Group], most: float) -> str:
    rows = "".join(
        f'<tr><th scope="row" class="word">{group.name}</th><td>{group.count:,}</td>'
        f"<td>{f'{group.value:.1f}' if most == 100 else f'{100 * group.value:.1f} %'}</td>"
        f"<td>{bar(group.value / most)}</td></tr>"
        for group in groups
    )
    return scrolling(heads[0], column_heads((*heads, "")), rows)


# --- inside -----------------------------------------------------------------------------------------------------------


def _to_draw(model: LoadedModel, sentences: Sequence[Judged]) -> list[str]:
    """Some held-out sentences, evenly chosen among those that are short enough for a picture and not too short."""
    if not model.config.has_encoder or not model.config.has_decoder:
        return []
    fit = [
        s.source
        for s in sentences
        if 3 <= len(model.source_tokenizer.encode(s.source)) < LONGEST_PICTURE
        and len(model.target_tokenizer.encode(s.translation)) < LONGEST_PICTURE
    ]
    return fit[:: max(1, len(fit) // PICTURES)][:PICTURES]


def _attention(model: LoadedModel, texts: Sequence[str]) -> Iterator[str]:
    """The cross-attention of the last layer, the mean of its heads."""
    if not texts:
        return
    part = f"dec.{model.config.n_decoder_layers - 1}.cross"
    yield (
        f"<p>A row is a token of the translation, a column a token of the source; the darker, the more the row took "
        f"from the column. A row's shares sum to 1; hundredths are written where there are ten or more. This is "
        f"<code>{part}</code>, the mean of its {model.config.n_heads} heads: what a row takes most from is often, not "
        f"always, what it translates.</p>"
    )
    pictures = []
    for raw in texts:
        trace = look(model, raw, options=default_options(model.config)).trace
        weights_TS = np.mean([trace.array(f"{part}.weights.h{h}") for h in range(model.config.n_heads)], axis=0)
        pictures.append(heat(weights_TS, trace.chosen_tokens, trace.source_tokens, raw))
    yield f'<div class="maps">{"".join(pictures)}</div>'
    yield "<p>Every number on the way, of any sentence:</p>"
    yield f"<pre>vidrio look --model {text(model.path.name)} &quot;{text(texts[0])}&quot; --html page.html</pre>"


def _ages(told: History) -> Iterator[str]:
    """What the model said of one sentence at each age, and how sure it was of what it says now."""
    rows = []
    for age in told.ages:
        cells = "".join(f"<td>{number(p, 3)}</td>" for p in age.p)
        said = text(clip(age.says, 60)) + ("" if age.ended else " (cut)")
        rows.append(f'<tr><th scope="row">{age.name}</th><td class="said">{said}</td>{cells}</tr>')
    tokens = "".join(f'<th scope="col">{text(token)}</th>' for token in told.tokens)
    yield (
        f"<p>“{text(told.text)}”, at the steps of which there is a snapshot; “kept” is the model that the run has "
        f"chosen. On the right: how probable each token of its translation was, those before it given.</p>"
    )
    yield scrolling(
        "ages", f'<th scope="col">step</th><th scope="col" class="word">it said</th>{tokens}', "".join(rows)
    )


# --- what from, and how -----------------------------------------------------------------------------------------------


def _data(data: dict[str, Any]) -> Iterator[str]:
    """What was read, what was left out and why."""
    tally, unit = Tally.from_json(data["report"]), data.get("unit", "pairs")
    pairs = data["pairs"]
    others = " and ".join(f"{pairs[name]:,} to {what}" for name, what in HELD_OUT.items() if pairs.get(name))
    yield (
        f"<p>{tally.read:,} {unit} were read, {tally.kept:,} kept, {tally.skipped:,} left out. Of those kept, "
        f"{pairs['train']:,} went to training{f', {others}' if others else ''}.</p>"
    )
    corpora = "".join(
        f'<tr><th scope="row" class="word">{text(one["name"])}</th><td class="said">{text(one["layout"])}</td>'
        f"<td>{one['weight']:g}</td><td>{one['pairs']:,}</td></tr>"
        for one in data.get("corpora", ())
    )
    if corpora:
        yield scrolling("corpora", column_heads(("corpus", "layout", "weight", "pairs to learn from")), corpora)
    if not tally.skipped:
        return
    rows = "".join(
        f'<tr><th scope="row" class="word">{text(reason)}</th><td>{n:,}</td><td>{100 * n / tally.read:.2f} %</td>'
        f'<td class="note">{text(REASONS[reason])}</td></tr>'
        for reason, n in tally.reasons()
    )
    yield f"<h3>Left out</h3>{scrolling('left out', column_heads(('reason', unit, 'of all', 'what it means')), rows)}"
    samples = "".join(
        f'<tr><td class="word">{text(reason)}</td><td class="word">{text(s.place)}</td>'
        f'<td class="said">{text(s.source)}</td><td class="said">{text(s.target)}</td></tr>'
        for reason, _ in tally.reasons()
        for s in tally.samples.get(reason, [])[:DROPPED]
    )
    table = scrolling("samples left out", column_heads(("reason", "where", "source", "target")), samples)
    yield f"<details><summary>Some of the {unit} left out</summary>{table}</details>"


def _told(provenance: dict[str, Any]) -> Iterator[str]:
    """The command first, then everything that the run tells of itself."""
    if command := provenance.get("command"):
        yield f"<pre>{text(str(command))}</pre>"
    pairs = "".join(
        f"<dt>{text(name)}</dt><dd>{text(value)}</dd>"
        for name, value in flat({name: value for name, value in provenance.items() if name not in TOLD_ELSEWHERE})
    )
    if pairs:
        yield f"<dl>{pairs}</dl>"


def flat(values: dict[str, Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Nested values as names with dots, and text."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f"{before}{name}.")
        elif isinstance(value, list) and not any(isinstance(one, dict | list) for one in value):
            yield f"{before}{name}", ", ".join(map(str, value))
        else:
            yield f"{before}{name}", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _footer(model: LoadedModel) -> str:
    files = identity(model)["sha256"]
    rows = "".join(f"<br><code>{name} {checksum}</code>" for name, checksum in files.items())
    return (
        f'<footer class="status"><p>Made by vidrio {__version__}. The model\'s files have these sha256 checksums:{rows}'
        f"</p><p>This page needs no network and runs no script.</p></footer>"
    )
