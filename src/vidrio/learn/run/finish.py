"""The end of a training: an honest judgement, the model's card and folder, the fast engine's files, its confidence."""

import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

from vidrio._version import __version__
from vidrio.data.sources import origin_of
from vidrio.errors import DataError
from vidrio.learn.run.choose import OWN_SIZES
from vidrio.learn.run.request import Material, Reporter
from vidrio.learn.train import Learned
from vidrio.model.files import write_atomically
from vidrio.model.folder import About, write_config, write_parameters
from vidrio.model.parameters import count
from vidrio.score.evaluate import calibrate
from vidrio.score.metrics import Score, corpus_scores, quick_scores, usual_metrics
from vidrio.translate import confidence
from vidrio.translate.translator import Translator

NO_LICENCE = "- Licence and attribution of the data: not told; ask whoever made it before you pass the model on"
CALIBRATED = 2_000  # pairs at most, that confidence is measured on
METRIC_OF = {"classify": "accuracy", "generate": "loss"}  # that the finished model is judged by
CERTAIN = 1.96  # standard deviations to either side hold 95 %
LIMITS = ("It has learned from its data only, and makes mistakes; on texts of another kind it makes more.",)


@dataclass(frozen=True)
class Judgement:
    """How good the finished model is on texts that it has never seen, and what must be said beside the scores."""

    scores: list[Score]
    warnings: list[str] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)  # of the test sources, as `vidrio translate` translates them


def finish(learned: Learned, reporter: Reporter) -> Judgement:
    """Write the model's folder, all of it but the report, and judge the model as it will be used."""
    folder, held_out, translator = learned.request.folder, learned.task.held_out, None
    write_model(learned, describe(learned, Judgement([])))
    if learned.plan.task == "translate":
        reporter.say("exporting for the fast engine …")
        translator = Translator.load(folder, engine="fast")
    judgement = judge(learned, translator, reporter)
    for score in judgement.scores:
        reporter.say(f"{score.metric} {score.value:.2f}   {score.signature}")
    for warning in judgement.warnings:
        reporter.say(f"warning: {warning}")
    about = describe(learned, judgement)
    write_atomically(folder / "README.md", card(learned, about, (*LIMITS, *judgement.warnings)).encode())
    write_config(folder, learned.config, about)
    if translator is not None:
        measure_confidence(translator, held_out, reporter)
        Translator.load(folder, engine="fast")  # its files are held to the config, which tells the scores now
    return judgement


# --- the judgement ----------------------------------------------------------------------------------------------------


def judge(learned: Learned, translator: Translator | None, reporter: Reporter) -> Judgement:
    """The scores on sentences that the model has never seen."""
    if learned.judged:
        metric = METRIC_OF[learned.plan.task]
        value = learned.judged[metric]
        mean, width = interval(value, len(learned.task.test)) if metric == "accuracy" else (value, 0.0)
        return Judgement([Score(metric, value, mean, width, "on the test set")])
    if translator is None or not learned.task.test:
        metric, value = learned.plan.recipe.metric, learned.score
        return Judgement([Score(metric, value, value, 0.0, "on the validation set")])
    sources, references = (list(side) for side in zip(*learned.task.test, strict=True))
    translations = []
    with reporter.progress("translating the test set", len(sources)) as advance:
        for translation in translator.stream(sources):
            translations.append(translation.text)
            advance(1)
    scores, _ = corpus_scores(translations, [references], usual_metrics(), progress=reporter.progress)
    chrf, copied = (quick_scores(texts, references)["chrf"] for texts in (translations, sources))
    warning = f"Its translations are no better than the source copied as it is (chrF {chrf:.1f}, copied {copied:.1f}): "
    warnings = [] if chrf > copied else [warning + "do not use it; it needs more pairs or more time."]
    return Judgement(scores, warnings, translations)


def interval(percent: float, count: int) -> tuple[float, float]:
    """Middle and half width of where a share of so many texts lies with 95 % certainty (Wilson 1927)."""
    share, spread = percent / 100, CERTAIN**2 / count
    half = (spread * share * (1 - share) + spread**2 / 4) ** 0.5
    return 100 * (share + spread / 2) / (1 + spread), 100 * half / (1 + spread)


def measure_confidence(translator: Translator, pairs: Sequence[tuple[str, str]], reporter: Reporter) -> None:
    """How far the model's probabilities tell the quality of its translations, measured on what it validated with."""
    sources, references = zip(*pairs[:CALIBRATED], strict=True) if pairs else ((), ())
    try:
        measured = calibrate(
            translator, sources, references, told={"pairs": "of validation"}, progress=reporter.progress
        )
    except DataError:  # too few of them to tell
        return
    confidence.write(translator.folder, measured)
    reporter.say(measured.told())


# --- the folder -------------------------------------------------------------------------------------------------------


def write_model(learned: Learned, about: About) -> None:
    """What makes a folder a model, the config last."""
    folder, (source, target) = learned.request.folder, (learned.task.source, learned.task.target)
    write_parameters(folder, learned.parameters.to_arrays())
    shared = source or target
    if shared is not None:
        shared.save(folder / "tokenizer.json")
    separate = folder / "target-tokenizer.json"
    separate.unlink(missing_ok=True)
    if source is not None and target not in (None, source):
        target.save(separate)
    write_config(folder, learned.config, about)


def describe(learned: Learned, judgement: Judgement) -> About:
    """What the model's config tells of it."""
    request, plan, state, task = learned.request, learned.plan, learned.state, learned.task
    source, target = request.material.languages
    start = request.start
    return About(
        name=request.folder.resolve().name,
        source_language=source,
        target_language=target,
        labels=list(task.labels),
        symbols=start.about.symbols if start else "",
        provenance={
            "data": [str(name) for name in request.material.names],
            "origins": origins(request.material),
            "pairs": task.pairs,
            "left out": dict(task.tally.reasons()),
            "command": shlex.join(["vidrio", *request.command]),
            **({"from": start.about.name or start.folder.name} if start else {}),
            "preset": plan.preset or OWN_SIZES,
            "recipe": plan.recipe.to_json(),
            "steps": state.step,
            "passes": round(state.epoch, 2),
            "seconds": round(state.seconds),
            "best step": state.best_step,
            **({"mean of steps": learned.averaged} if learned.averaged else {}),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores",
            "device": learned.parameters.flat.device.type,
            "versions": versions(),
        },
        scores=[asdict(score) for score in judgement.scores],
    )


def versions() -> dict[str, str]:
    """Of everything that has a say in what comes out."""
    libraries = ("numpy", "torch", "tokenizers", "sacrebleu", "ctranslate2")
    return {"vidrio": __version__, "python": platform.python_version()} | {name: version(name) for name in libraries}


def origins(material: Material) -> list[dict[str, Any]]:
    """Where the files came from, if `vidrio data get` has fetched them: names, licences, attribution."""
    found = [origin_of(Path(name.rpartition("@")[0] or name)) or origin_of(Path(name)) for name in material.names]
    return [asdict(origin) for origin in found if origin is not None]


def card(learned: Learned, about: About, limits: Sequence[str]) -> str:
    """README.md: what this model is, in a minute's reading."""
    p, c, task = about.provenance, learned.config, learned.plan.task
    does = {"translate": "translates", "classify": "tells the classes of texts", "generate": "writes on"}[task]
    languages = " → ".join(filter(None, (about.source_language, about.target_language)))
    translates = task == "translate" and learned.task.test
    searched = f", beam {c.decoding.beam}, length penalty {c.decoding.length_penalty:g}" if translates else ""
    lines = [
        f"# {about.name}\n",
        f"A Transformer that {does}{f' ({languages})' if languages else ''}, trained with vidrio.\n",
        f"- {count(c):,} parameters: {c.layers_in_words} layers, {c.d_model} wide, {c.n_heads} heads, {c.norm}-norm, "
        f"a vocabulary of {max(c.source_vocabulary, c.target_vocabulary):,} tokens",
        f"- Learned from {p['pairs']['train']:,} {'texts' if task == 'generate' else 'pairs'}: {', '.join(p['data'])}",
        *(f"  - {origin['name']}: {origin['attribution']}; licence: {origin['licence']}" for origin in p["origins"]),
        *([] if p["origins"] else [NO_LICENCE]),
        f"- {p['steps']:,} steps, {p['passes']:g} passes over the data, {p['seconds']:,} seconds, "
        f"in {learned.plan.recipe.precision}",
        *([f"- The mean of its {len(p['mean of steps'])} best models"] if "mean of steps" in p else []),
        f"- Command: `{p['command']}`\n",
        f"## Scores\n\nOn {len(learned.task.test) or p['pairs']['dev']:,} held-out texts{searched}.\n",
        "| metric | score | counted as |\n|---|---|---|",
        *(f"| {score['metric']} | {score['value']:.2f} | `{score['signature']}` |" for score in about.scores),
        "\n## Limits\n",
        *(f"- {limit}" for limit in limits),
    ]
    return "\n".join(lines) + "\n"
