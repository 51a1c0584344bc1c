"""Run training: prepare the data → choose a plan → start or resume → train → evaluate and write the best model."""

import os
import platform
import shlex
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio._version import __version__
from vidrio.data.lock import only_one
from vidrio.data.progress import Progress, Work
from vidrio.errors import DataError, RunError
from vidrio.learn import model
from vidrio.learn.loop import Training, loop
from vidrio.learn.machine import ALONE, Processes, find_device, join, leave, return_memory
from vidrio.learn.parameters import Parameters
from vidrio.learn.plan import (
    Plan,
    continued,
    describe_plan,
    duration,
    new_plan,
    preset_of,
    read_plan,
    refuse_nonsense,
    sizes_in_words,
    write_plan,
)
from vidrio.learn.state import STATE, State, read_state, save_state
from vidrio.learn.task import Request, Task, load_task, make_task
from vidrio.learn.validate import validation
from vidrio.model.files import remove_leftovers, write_atomically
from vidrio.model.folder import CONFIG, About, read_parameters, write_config, write_parameters
from vidrio.model.parameters import random_parameters
from vidrio.score.metrics import Score, corpus_scores, quick_scores, usual_metrics
from vidrio.translate.translator import Translator

SWEEP = 100  # steps between calls of `return_memory`, which take up to 0.2 s
# Provenance fields to keep for earlier training runs and imports.
IN_SHORT = ("command", "pairs", "steps", "passes", "seconds", "machine", "imported", "licence")
LIMIT = "It makes mistakes, and more of them on texts unlike its training data."


@dataclass(frozen=True, kw_only=True)
class Run:
    """A training run: the request, the task, the plan and the state."""

    request: Request
    task: Task
    plan: Plan
    state: State

    @property
    def parameters(self) -> Parameters:
        """The best parameters so far."""
        return Parameters(self.plan.config, self.state.best)


@dataclass(frozen=True)
class Judgement:
    """The finished model's scores on unseen texts, and a warning if it does no better than copying the source."""

    scores: list[Score] = field(default_factory=list)
    warning: str = ""
    translations: list[str] = field(default_factory=list)  # of the test set, as printed by `vidrio translate`


def train(request: Request, progress: Progress | None = None) -> tuple[Run, Judgement] | None:
    """Train the requested model. The leading process writes the model and returns a result; the others return None."""
    refuse_other_folders(request.folder)
    processes = join(request.device)
    progress = progress if progress and processes.leads else Progress()
    try:
        with only_one(request.run) if processes.leads else nullcontext():
            run = learn(request, progress, processes)
            return (run, finish(run, progress)) if processes.leads else None
    except KeyboardInterrupt:
        progress.say("stopped; run the same command to resume")
        raise
    finally:
        leave()


def learn(request: Request, progress: Progress, processes: Processes = ALONE) -> Run:
    """Start the run, or resume it from the last checkpoint, and train to the end."""
    device = find_device(request.device)
    run = prepare(request, device, progress) if processes.leads else None
    processes.of_leader([0.0])  # the other processes wait here
    task, plan, state = (run.task, run.plan, run.state) if run else read_run(request.run, device)
    if state.step:
        progress.say(f"resuming from step {state.step:,}, after {duration(state.seconds)}")
    else:
        first = f"the parameters of {request.start.name}" if request.start else "random parameters"
        progress.say(f"starting with {first}, seed {plan.recipe.seed}")
    validate = validation(task, task.held_out)
    for record in loop(Training(task.examples, plan.recipe, validate, request.run, processes), state):
        progress.watch(record)
        if state.step % SWEEP == 0:
            return_memory()
    progress.say(f"trained {state.step:,} steps, {state.epoch:.1f} epochs, in {duration(state.seconds)}")
    progress.say(f"best model: step {state.best_step:,}, by {plan.recipe.metric} on the validation set")
    return Run(request=request, task=task, plan=plan, state=state)


def prepare(request: Request, device: torch.device, progress: Progress) -> Run:
    """Write the data, the plan and the initial state to the run's folder, unless an earlier command has done so."""
    remove_leftovers(request.folder)
    start, before = request.start, read_plan(request.run)
    refuse_nonsense(request, before)
    plan = None if before is None else continued(before, request)
    task = make_task(request, progress, begun=before is not None)
    plan = plan or new_plan(request, task, device)
    for line in describe_plan(plan, device, task):
        progress.say(line)
    write_plan(request.run, plan)
    if (request.run / STATE).exists():
        state = read_state(request.run, plan.config, device)
    else:
        generator = np.random.default_rng([plan.recipe.seed, 0])
        arrays = read_parameters(start.folder) if start else random_parameters(plan.config, generator)
        flat = Parameters.from_arrays(plan.config, arrays).flat.to(device)
        state = State.start(Parameters(plan.config, flat))
        save_state(request.run, state)
    return Run(request=request, task=task, plan=plan, state=state)


def read_run(run: Path, device: torch.device) -> tuple[Task, Plan, State]:
    """Read the run that the leading process prepared."""
    plan = read_plan(run)
    if plan is None:
        raise DataError(
            "this process cannot find the data prepared by the leading process",
            found=f"no run in {run}",
            do="pass the same shared folder to all machines with --to",
        )
    return load_task(run, plan.task, plan.config.special), plan, read_state(run, plan.config, device)


def refuse_other_folders(folder: Path) -> None:
    """Reject a folder that is not empty and does not contain a training run."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file", do="use a new folder, or one of an earlier run")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "run").is_dir():
        what = "a model without its training run" if (folder / "config.json").exists() else "other files"
        raise RunError(f"{folder} is not empty", found=what, do="use a new folder, or one of an earlier run")


# --- the model's folder -----------------------------------------------------------------------------------------------


def finish(run: Run, progress: Progress) -> Judgement:
    """Write the model, evaluate it as users will run it, and write the model card and the scores."""
    write_model(run)
    judgement = judge(run, progress)
    for score in judgement.scores:
        progress.say(f"{score.metric} {score.value:.2f}   {score.signature}")
    if judgement.warning:
        progress.say(f"warning: {judgement.warning}")
    about, folder = describe(run, judgement.scores), run.request.folder
    write_atomically(folder / "README.md", card(run, about, judgement.warning).encode())
    write_config(folder, run.plan.config, about)  # write it again, with the scores
    return judgement


def write_model(run: Run) -> None:
    """Write the model's files. The config marks the folder as a model, so it is removed first and written last."""
    folder, source, target = run.request.folder, run.task.source, run.task.target
    (folder / CONFIG).unlink(missing_ok=True)
    write_parameters(folder, run.parameters.to_arrays())
    source.save(folder / "tokenizer.json")
    separate = folder / "target-tokenizer.json"
    separate.unlink(missing_ok=True)
    if target is not source:
        target.save(separate)
    write_config(folder, run.plan.config, describe(run, []))


@torch.no_grad()
def judge(run: Run, progress: Progress) -> Judgement:
    """Score the finished model on unseen sentences."""
    task, metric = run.task, run.plan.recipe.metric
    if not task.test:
        return Judgement([plain_score(metric, run.state.best_score or 0.0, "on the validation set")])
    if task.kind != "translate":
        scores = validation(task, task.test)(model.build(run.parameters))
        metric = "accuracy" if task.kind == "classify" else "loss"
        return Judgement([plain_score(metric, scores[metric], "on the test set")])
    sources, references = (list(side) for side in zip(*task.test, strict=True))
    work = progress.work = Work("translating the test set", len(sources))
    translations = []
    for translation in Translator.load(run.request.folder).stream(sources):
        translations.append(translation.text)
        work.done += 1
    found, _ = corpus_scores(translations, [references], usual_metrics())
    chrf, copied = (quick_scores(texts, references)["chrf"] for texts in (translations, sources))
    warning = f"Its translations are no better than copying the source (chrF {chrf:.1f}, copied {copied:.1f}): "
    warning += "do not use it; it needs more pairs or more time."
    return Judgement(found, "" if chrf > copied else warning, translations)


def plain_score(metric: str, value: float, signature: str) -> Score:
    """Return a score without a confidence interval."""
    return Score(metric, value, value, 0.0, signature)


def describe(run: Run, scores: list[Score]) -> About:
    """Return the metadata for the model's config."""
    request, plan, state, task = run.request, run.plan, run.state, run.task
    source, target = request.languages
    start = request.start
    libraries = {name: version(name) for name in ("numpy", "torch", "tokenizers", "sacrebleu")}
    return About(
        name=request.folder.resolve().name,
        source_language=source,
        target_language=target,
        labels=list(task.labels),
        symbols=start.about.symbols if start else "",
        provenance={
            "data": [str(name) for name in request.names],
            "pairs": task.pairs,
            "left out": task.prepared.tally.skipped,
            "command": shlex.join(["vidrio", *request.command]),
            **({"from": start.name, "before": trainings(start.about)} if start else {}),
            "preset": preset_of(plan.config),
            "recipe": asdict(plan.recipe),
            "steps": state.step,
            "passes": round(state.epoch, 2),
            "seconds": round(state.seconds),
            "best step": state.best_step,
            "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} CPU cores",
            "device": state.best.device.type,
            "versions": {"vidrio": __version__, "python": platform.python_version()} | libraries,
        },
        scores=[asdict(score) for score in scores],
    )


def trainings(about: About) -> list[dict[str, Any]]:
    """Return a short record of each training run of a model, oldest first."""
    last = {name: about.provenance[name] for name in IN_SHORT if name in about.provenance}
    return [*about.provenance.get("before", []), *([last] if last else [])]


def card(run: Run, about: About, warning: str) -> str:
    """Return the model card, README.md."""
    kind = run.task.kind
    does = {"translate": "translates", "classify": "classifies texts", "generate": "continues texts"}[kind]
    languages = " → ".join(filter(None, (about.source_language, about.target_language)))
    lines = [
        f"# {about.name}\n",
        f"A Transformer that {does}{f' ({languages})' if languages else ''}, trained with vidrio.\n",
        f"- {sizes_in_words(run.plan.config)}",
        "- Licence and attribution of the data: add them here before you share the model",
        *(f"- {name}: {in_words(value)}" for name, value in about.provenance.items() if value),
        "\n## Scores\n\n| metric | score | counted as |\n|---|---|---|",
        *(f"| {score['metric']} | {score['value']:.2f} | `{score['signature']}` |" for score in about.scores),
        "\n## Limits\n",
        *(f"- {limit}" for limit in (LIMIT, warning) if limit),
    ]
    return "\n".join(lines) + "\n"


def in_words(value: Any) -> str:
    """Format an entry of the provenance, e.g. `a 1, b 2; a 3` for a list of two objects."""
    if isinstance(value, list):
        return "; ".join(map(in_words, value))
    return (
        ", ".join(f"{name} {in_words(part)}" for name, part in value.items()) if isinstance(value, dict) else str(value)
    )
