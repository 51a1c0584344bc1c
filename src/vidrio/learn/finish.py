"""The end of a training: the best model, an honest judgement, the model's card and folder."""

import os
import platform
import shlex
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from vidrio._version import __version__
from vidrio.data.progress import Progress, Work
from vidrio.data.sources import origin_of
from vidrio.learn import model, run_files
from vidrio.learn.choose import METRICS_OF, OWN_SIZES
from vidrio.learn.loop import rank
from vidrio.learn.parameters import Parameters
from vidrio.learn.plan import METRICS, Material, Plan, Request
from vidrio.learn.state import State
from vidrio.learn.task import Task
from vidrio.learn.validate import validation
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.folder import About, write_config, write_parameters
from vidrio.model.parameters import count
from vidrio.score.metrics import Score, corpus_scores, quick_scores, usual_metrics
from vidrio.translate.translator import Translator

NO_LICENCE = "- Licence and attribution of the data: unknown; ask whoever made it before you pass the model on"
CERTAIN = 1.96  # standard deviations to either side hold 95 %
IN_SHORT = ("command", "pairs", "steps", "passes", "seconds", "machine")  # of a training that another goes on from
LIMITS = ("It has learned from its data only, and makes mistakes; on texts of another kind it makes more.",)


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a run has brought about: all that is needed to write, judge and describe the model."""

    request: Request
    task: Task
    plan: Plan
    state: State
    parameters: Parameters  # the best
    score: float  # theirs, on the validation set
    halfway: bool = False  # whether they are the mean of the best and of the model that the run began from

    @property
    def config(self) -> ModelConfig:
        return self.plan.config


@dataclass(frozen=True)
class Judgement:
    """How good the finished model is on texts that it has never seen, and warnings to print beside the scores."""

    scores: list[Score]
    warnings: list[str] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)  # of the test sources, as `vidrio translate` translates them


# --- the best model ---------------------------------------------------------------------------------------------------


def best_model(request: Request, task: Task, plan: Plan, state: State) -> tuple[Learned, list[str]]:
    """The best model; where a model was learned on from, its mean with that one if it is better. And what to say."""
    best = Parameters(plan.config, state.best)
    learned = Learned(
        request=request, task=task, plan=plan, state=state, parameters=best, score=state.best_score or 0.0
    )
    line = f"kept the model of step {state.best_step:,}, the best by {plan.recipe.metric} on the validation set"
    if request.start is None:
        return learned, [line]
    learned, tried = _try_halfway(learned, request.start.name)
    return learned, [line, tried]


@torch.no_grad()
def _try_halfway(learned: Learned, name: str) -> tuple[Learned, str]:
    """Halfway between a model and the one that it began from lies what knows both what was learned last and what was
    known before (Wortsman et al. 2022, "Robust fine-tuning of zero-shot models", arXiv 2109.01903).
    """
    request, plan, state, metric = learned.request, learned.plan, learned.state, learned.plan.recipe.metric
    assert request.start is not None
    old, new = request.start.parameters(), learned.parameters.to_arrays()
    mean = {part: (old[part] + new[part]) / 2 for part in new}
    parameters = Parameters.from_arrays(plan.config, mean, device=str(state.best.device))
    validate = validation(learned.task, learned.task.held_out)
    scores = validate(model.build(parameters, getattr(torch, plan.recipe.precision)))
    better = rank(scores[metric], scores["loss"], metric) < rank(learned.score, state.best_loss, metric)
    record = {"kind": "mean", "step": state.step, "metric": metric, "alone": learned.score, "best": better}
    record |= {"from": name} | {m: scores[m] for m in METRICS if m in scores}
    run_files.add_metrics(request.run, record)
    line = f"tried the mean with {name}, which it began from: {metric} {scores[metric]:.4g}, without it "
    line += f"{learned.score:.4g}: {'the mean is the model' if better else 'not better'}"
    if not better:
        return learned, line
    return replace(learned, parameters=parameters, score=scores[metric], halfway=True), line


# --- the judgement ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def judge(learned: Learned, progress: Progress) -> Judgement:
    """The scores on sentences that the model has never seen; it lies in its folder already."""
    task, metric = learned.task, learned.plan.recipe.metric
    if not task.test:
        return Judgement([Score(metric, learned.score, learned.score, 0.0, "on the validation set")])
    if task.kind != "translate":
        metric = METRICS_OF[task.kind][0]
        value = validation(task, task.test)(model.build(learned.parameters))[metric]
        mean, width = interval(value, len(task.test)) if metric == "accuracy" else (value, 0.0)
        return Judgement([Score(metric, value, mean, width, "on the test set")])
    sources, references = (list(side) for side in zip(*task.test, strict=True))
    work = progress.work = Work("translating the test set", len(sources))
    translations = []
    for translation in Translator.load(learned.request.folder).stream(sources):  # as `vidrio translate` does
        translations.append(translation.text)
        work.done += 1
    scores, _ = corpus_scores(translations, [references], usual_metrics())
    chrf, copied = (quick_scores(texts, references)["chrf"] for texts in (translations, sources))
    warning = f"Its translations are no better than the source copied as it is (chrF {chrf:.1f}, copied {copied:.1f}): "
    warnings = [] if chrf > copied else [warning + "do not use it; it needs more pairs or more time."]
    return Judgement(scores, warnings, translations)


def interval(percent: float, count: int) -> tuple[float, float]:
    """Middle and half width of where a share of so many texts lies with 95 % certainty (Wilson 1927)."""
    share, spread = percent / 100, CERTAIN**2 / count
    half = (spread * share * (1 - share) + spread**2 / 4) ** 0.5
    return 100 * (share + spread / 2) / (1 + spread), 100 * half / (1 + spread)


# --- the folder -------------------------------------------------------------------------------------------------------


def write_model(learned: Learned) -> None:
    """What makes a folder a model, the config last."""
    folder, source, target = learned.request.folder, learned.task.source, learned.task.target
    write_parameters(folder, learned.parameters.to_arrays())
    source.save(folder / "tokenizer.json")
    separate = folder / "target-tokenizer.json"
    separate.unlink(missing_ok=True)
    if target is not source:
        target.save(separate)
    write_config(folder, learned.config, describe(learned, Judgement([])))


def write_card(learned: Learned, judgement: Judgement) -> None:
    """The model's card; the scores go into the config, too."""
    folder, about = learned.request.folder, describe(learned, judgement)
    write_atomically(folder / "README.md", card(learned, about, (*LIMITS, *judgement.warnings)).encode())
    write_config(folder, learned.config, about)


def describe(learned: Learned, judgement: Judgement) -> About:
    """What the config says about the model."""
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
            "left out": dict(task.prepared.tally.reasons()),
            "command": shlex.join(["vidrio", *request.command]),
            **({"from": start.name, "before": trainings(start.about)} if start else {}),
            "preset": plan.preset or OWN_SIZES,
            "recipe": asdict(plan.recipe),
            "steps": state.step,
            "passes": round(state.epoch, 2),
            "seconds": round(state.seconds),
            "best step": state.best_step,
            **({"mean with": start.name} if start and learned.halfway else {}),
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores",
            "device": learned.parameters.flat.device.type,
            "versions": versions(),
        },
        scores=[asdict(score) for score in judgement.scores],
    )


def trainings(about: About) -> list[dict[str, Any]]:
    """The trainings that a model has behind it, the first one first: what each was, in short."""
    last = {name: about.provenance[name] for name in IN_SHORT if name in about.provenance}
    return [*about.provenance.get("before", []), *([last] if last else [])]


def versions() -> dict[str, str]:
    """Of everything that has a say in what comes out."""
    libraries = ("numpy", "torch", "tokenizers", "sacrebleu")
    return {"vidrio": __version__, "python": platform.python_version()} | {name: version(name) for name in libraries}


def origins(material: Material) -> list[dict[str, Any]]:
    """Where the files came from, if `vidrio data get` has fetched them: names, licences, attribution."""
    known = [origin_of(Path(name.rpartition("@")[0] or name)) or origin_of(Path(name)) for name in material.names]
    return [asdict(origin) for origin in known if origin is not None]


def card(learned: Learned, about: About, limits: Sequence[str]) -> str:
    """README.md: what this model is, in a minute's reading."""
    p, c, task = about.provenance, learned.config, learned.plan.task
    does = {"translate": "translates", "classify": "classifies texts", "generate": "continues texts"}[task]
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
        *(f"- Before that: `{before['command']}`" for before in p.get("before", []) if "command" in before),
        *([f"- The mean of that and of {p['mean with']}, which it began from"] if "mean with" in p else []),
        f"- Command: `{p['command']}`\n",
        f"## Scores\n\nOn {len(learned.task.test) or p['pairs']['dev']:,} held-out texts{searched}.\n",
        "| metric | score | counted as |\n|---|---|---|",
        *(f"| {score['metric']} | {score['value']:.2f} | `{score['signature']}` |" for score in about.scores),
        "\n## Limits\n",
        *(f"- {limit}" for limit in limits),
    ]
    return "\n".join(lines) + "\n"
