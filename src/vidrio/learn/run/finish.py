"""The end of `vidrio train`: an honest judgement, a model card, the model folder and what is made from it."""

import json
import math
import os
import platform
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vidrio._version import __version__
from vidrio.model.folder import About, write_atomically
from vidrio.model.parameters import count

if TYPE_CHECKING:
    from vidrio.data.progress import Progress
    from vidrio.learn.run.prepare import Material
    from vidrio.learn.train import Learned
    from vidrio.score.evaluate import Score

NO_LICENCE = "- Licence and attribution of the data: not told; ask whoever made it before you pass the model on"
CALIBRATED = 2_000  # pairs at most, that confidence is measured on
METRIC_OF = {"classify": "accuracy", "generate": "loss"}  # that the finished model is judged by
CERTAIN = 1.96  # standard deviations to either side hold 95 %
LIMITS = ("It has learned from its data only, and makes mistakes; on texts of another kind it makes more.",)


def judge(learned: "Learned", progress: "Progress") -> tuple[list["Score"], list[str]]:
    """The scores on sentences that the model has never seen, and what must be said beside them."""
    from vidrio.score.evaluate import Score, corpus_scores, usual_metrics
    from vidrio.score.metrics import scores as quick_scores

    if learned.judged:
        metric = METRIC_OF[learned.plan.task]
        value = learned.judged[metric]
        mean, width = interval(value, len(learned.task.test)) if metric == "accuracy" else (value, 0.0)
        return [Score(metric, value, mean, width, "on the test set")], []
    if not learned.translations:
        metric, value = learned.plan.recipe.metric, learned.score
        return [Score(metric, value, value, 0.0, "on the validation set")], []
    sources, references = (list(side) for side in zip(*learned.task.test, strict=True))
    scores, _ = corpus_scores(learned.translations, [references], usual_metrics(), progress=progress)
    chrf, copied = (quick_scores(texts, references)["chrf"].value for texts in (learned.translations, sources))
    if chrf > copied:
        return scores, []
    return scores, [
        f"Its translations are no better than the source copied as it is (chrF {chrf:.1f}, copied {copied:.1f}): "
        "do not use it; it needs more pairs or more time."
    ]


def interval(percent: float, count: int) -> tuple[float, float]:
    """Middle and half width of where a share of so many texts lies with 95 % certainty (Wilson 1927)."""
    share, spread = percent / 100, CERTAIN**2 / count
    half = math.sqrt(spread * share * (1 - share) + spread**2 / 4)
    return 100 * (share + spread / 2) / (1 + spread), 100 * half / (1 + spread)


def write(
    learned: "Learned",
    folder: Path,
    material: "Material",
    scores: Sequence["Score"],
    warnings: Sequence[str],
    command: Sequence[str],
    say: Callable[[str], None],
    progress: "Progress",
) -> None:
    """The model folder; for a translator also the fast engine's files and the report."""
    from vidrio.look.curves import mean_of_best, metrics

    plan, state, task = learned.plan, learned.state, learned.task
    limits = (*LIMITS, *warnings)
    source, target = material.languages
    mean = mean_of_best(metrics(folder / "run"))
    about = About(
        name=folder.resolve().name,
        source_language=source,
        target_language=target,
        labels=list(task.labels),
        symbols=material.start.about.symbols if material.start else "",
        provenance={
            "data": [str(name) for name in material.names],
            "origins": origins(material),
            "pairs": task.pairs,
            "left out": dict(task.tally.reasons()),
            "command": shlex.join(["vidrio", *command]),
            **({"from": material.start.about.name or material.start.folder.name} if material.start else {}),
            "preset": plan.preset or "sizes of your own",
            "recipe": plan.recipe.to_json(),
            "steps": state.step,
            "passes": round(state.epoch, 2),
            "seconds": round(state.seconds),
            "best step": state.best_step,
            **({"mean of steps": mean["steps"]} if mean and mean["best"] else {}),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores",
            "device": learned.weights.flat.device.type,
            "versions": versions(),
        },
        scores=[asdict(score) for score in scores],
    )
    learned.write(folder, about, card(learned, about, scores, limits))
    from vidrio.draw.training import write_report
    from vidrio.look.report import Ending

    data = folder / "run" / "data" / "data.json"
    if plan.task == "translate":
        from vidrio.fast.export import export

        say("exporting for the fast engine …")
        export(folder)
        calibrate(folder, task.held_out, say, progress)
    else:
        what = {"unit": "texts", "pairs": task.pairs, "report": task.tally.to_json()}
        write_atomically(data, (json.dumps(what, indent=2, ensure_ascii=False) + "\n").encode())
    sources, references = zip(*task.test, strict=True) if task.test else ((), ())
    ending = Ending(
        sources=sources,
        references=references,
        translations=learned.translations,
        scores=scores,
        limits=LIMITS,
        warnings=warnings,
    )
    say(f"report: {write_report(folder, ending, data, progress)}")


def calibrate(folder: Path, pairs: Sequence[tuple[str, str]], say: Callable[[str], None], progress: "Progress") -> None:
    """How far the model's probabilities tell the quality of its translations, measured on what it validated with."""
    from vidrio.errors import DataError
    from vidrio.score import evaluate
    from vidrio.translate import confidence
    from vidrio.translate.translator import Translator

    sources, references = zip(*pairs[:CALIBRATED], strict=True) if pairs else ((), ())
    try:
        translator, told = Translator.load(folder), {"pairs": "of validation"}
        found = evaluate.calibrate(translator, sources, references, told=told, progress=progress)
    except DataError:  # too few of them to tell
        return
    confidence.write(folder, found)
    say(found.told())


def versions() -> dict[str, str]:
    """Of everything that has a say in what comes out."""
    libraries = ("numpy", "torch", "tokenizers", "sacrebleu", "ctranslate2")
    return {"vidrio": __version__, "python": platform.python_version()} | {name: version(name) for name in libraries}


def origins(material: "Material") -> list[dict[str, Any]]:
    """Where the files came from, if `vidrio data get` has fetched them: names, licences, attribution."""
    from vidrio.data.sources import origin_of

    found = [origin_of(Path(name.rpartition("@")[0] or name)) or origin_of(Path(name)) for name in material.names]
    return [asdict(origin) for origin in found if origin is not None]


def card(learned: "Learned", about: About, scores: Sequence["Score"], limits: Sequence[str]) -> str:
    """README.md: what this model is, in a minute's reading."""
    p, c, task = about.provenance, learned.config, learned.plan.task
    does = {"translate": "translates", "classify": "tells the classes of texts", "generate": "writes on"}[task]
    languages = " → ".join(filter(None, (about.source_language, about.target_language)))
    layers = " + ".join(
        str(n) for n, there in ((c.n_encoder_layers, c.has_encoder), (c.n_decoder_layers, c.has_decoder)) if there
    )
    vocabulary = max(c.source_vocabulary, c.target_vocabulary)
    lines = [
        f"# {about.name}\n",
        f"A Transformer that {does}{f' ({languages})' if languages else ''}, trained with vidrio.\n",
        f"- {count(c):,} parameters: {layers} layers, {c.d_model} wide, {c.n_heads} heads, {c.norm}-norm, "
        f"a vocabulary of {vocabulary:,} tokens",
        f"- Learned from {p['pairs']['train']:,} {'texts' if task == 'generate' else 'pairs'}: {', '.join(p['data'])}",
        *(f"  - {one['name']}: {one['attribution']}; licence: {one['licence']}" for one in p["origins"]),
        *([] if p["origins"] else [NO_LICENCE]),
        f"- {p['steps']:,} steps, {p['passes']:g} passes over the data, {p['seconds']:,} seconds, "
        f"in {learned.plan.recipe.precision}",
        *([f"- The mean of its {len(p['mean of steps'])} best models"] if "mean of steps" in p else []),
        f"- Command: `{p['command']}`\n",
        f"## Scores\n\nOn {len(learned.task.test) or p['pairs']['dev']:,} held-out texts"
        + (
            f", beam {c.decoding.beam}, length penalty {c.decoding.length_penalty:g}.\n"
            if learned.translations
            else ".\n"
        ),
        "| metric | score | counted as |\n|---|---|---|",
        *(f"| {s.metric} | {s.value:.2f} | `{s.signature}` |" for s in scores),
        "\n## Limits\n",
        *(f"- {limit}" for limit in limits),
    ]
    return "\n".join(lines) + "\n"
