"""A training run: prepare the data → choose a plan → start or resume → the loop → evaluate and write the best model."""

import os
import platform
import shlex
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio._version import __version__
from vidrio.data.lock import only_one
from vidrio.data.progress import Work
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
    write_plan,
)
from vidrio.learn.state import STATE, State, read_state, save_state
from vidrio.learn.task import Reporter, Request, Task, load_task, make_task
from vidrio.learn.validate import validation
from vidrio.model.files import remove_leftovers, write_atomically
from vidrio.model.folder import CONFIG, About, read_parameters, write_config, write_parameters
from vidrio.model.parameters import count, random_parameters
from vidrio.score.metrics import Score, corpus_scores, quick_scores, usual_metrics
from vidrio.translate.translator import Translator

SWEEP = 100  # steps between two returns of unused memory to the system, which take up to 0.2 s
# Of a training that another goes on from, or of an import.
IN_SHORT = ("command", "pairs", "steps", "passes", "seconds", "machine", "imported", "licence")
LIMITS = ("It makes mistakes, and more of them on texts unlike its training data.",)


@dataclass(frozen=True, kw_only=True)
class Learned:
    """The result of a run: what is needed to write, evaluate and describe the model."""

    request: Request
    task: Task
    plan: Plan
    state: State

    @property
    def parameters(self) -> Parameters:
        """The best ones."""
        return Parameters(self.plan.config, self.state.best)


@dataclass(frozen=True)
class Judgement:
    """Scores of the finished model on unseen texts, and warnings to print beside them."""

    scores: list[Score] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)  # of the test sources, as `vidrio translate` translates them


def train(request: Request, reporter: Reporter | None = None) -> tuple[Learned, Judgement] | None:
    """Train the requested model. Of several processes, the leading one writes it and returns the result."""
    refuse_other_folders(request.folder)
    processes = join(request.device)
    reporter = reporter if reporter and processes.leads else Reporter()
    try:
        with only_one(request.run) if processes.leads else nullcontext():
            learned = learn(request, reporter, processes)
            return (learned, finish(learned, reporter)) if processes.leads else None
    except KeyboardInterrupt:
        reporter.say("stopped; the same command continues")
        raise
    finally:
        leave()


def learn(request: Request, reporter: Reporter, processes: Processes = ALONE) -> Learned:
    """Train in the run's folder from the beginning, or go on where an earlier run was stopped."""
    device, run = find_device(request.device), request.run
    if processes.leads:
        prepare_run(request, device, reporter)
    processes.wait()
    plan = read_plan(run)
    if plan is None:
        raise DataError(
            "this process does not find the data that the leading process has prepared",
            found=f"no run in {run}",
            do="give all machines the same shared folder with --to",
        )
    task, state = load_task(run, plan.task, plan.config.special), read_state(run, plan.config, device)
    if state.step:
        reporter.say(f"continuing from step {state.step:,}, after {duration(state.seconds)}")
    else:
        first = f"the parameters of {request.start.name}" if request.start else "random parameters"
        reporter.say(f"starting with {first}, seed {plan.recipe.seed}")
    validate = validation(task, task.held_out)
    for record in loop(Training(task.examples, plan.recipe, validate, run, processes), state):
        reporter.watch(record)
        if state.step % SWEEP == 0:
            return_memory()
    passes = f"{state.epoch:.1f} passes over the data"
    reporter.say(f"trained {state.step:,} steps, {passes}, in {duration(state.seconds)}")
    reporter.say(f"best model: step {state.best_step:,}, by {plan.recipe.metric} on the validation set")
    return Learned(request=request, task=task, plan=plan, state=state)


def prepare_run(request: Request, device: torch.device, reporter: Reporter) -> None:
    """Prepare data, plan and state in the run's folder, unless an earlier command has."""
    remove_leftovers(request.folder)
    run, before = request.run, read_plan(request.run)
    refuse_nonsense(request, before)
    plan = None if before is None else continued(before, request)
    task = make_task(request, reporter, begun=before is not None)
    say(reporter, task.described())
    plan = plan or new_plan(request, task, device)
    say(reporter, describe_plan(plan, device, task))
    write_plan(run, plan)
    if not (run / STATE).exists():
        generator = np.random.default_rng([plan.recipe.seed, 0])
        start = request.start
        arrays = read_parameters(start.folder) if start else random_parameters(plan.config, generator)
        save_state(run, State.start(Parameters.from_arrays(plan.config, arrays)))


def say(reporter: Reporter, lines: Iterable[str]) -> None:
    for line in lines:
        reporter.say(line)


def refuse_other_folders(folder: Path) -> None:
    """Refuse a folder that is not empty and holds no training run."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file", do="give a folder, new or of an earlier run")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "run").is_dir():
        what = "a model without its training run" if (folder / "config.json").exists() else "other files"
        raise RunError(f"{folder} is not empty", found=what, do="give a new folder, or one of an earlier run")


# --- the model's folder -----------------------------------------------------------------------------------------------


def finish(learned: Learned, reporter: Reporter) -> Judgement:
    """Write the model, evaluate it as users will run it, and write its card and scores."""
    write_model(learned)
    judgement = judge(learned, reporter)
    say(reporter, [f"{score.metric} {score.value:.2f}   {score.signature}" for score in judgement.scores])
    say(reporter, [f"warning: {warning}" for warning in judgement.warnings])
    about, folder = describe(learned, judgement), learned.request.folder
    write_atomically(folder / "README.md", card(learned, about, judgement.warnings).encode())
    write_config(folder, learned.plan.config, about)  # again: now with the scores
    return judgement


def write_model(learned: Learned) -> None:
    """What makes a folder a model. Without its config it is none: that goes first and comes last."""
    folder, source, target = learned.request.folder, learned.task.source, learned.task.target
    (folder / CONFIG).unlink(missing_ok=True)
    write_parameters(folder, learned.parameters.to_arrays())
    source.save(folder / "tokenizer.json")
    separate = folder / "target-tokenizer.json"
    separate.unlink(missing_ok=True)
    if target is not source:
        target.save(separate)
    write_config(folder, learned.plan.config, describe(learned, Judgement()))


@torch.no_grad()
def judge(learned: Learned, reporter: Reporter) -> Judgement:
    """Scores of the written model on unseen sentences."""
    task, plan = learned.task, learned.plan
    if not task.test:
        return Judgement([plain_score(plan.recipe.metric, learned.state.best_score or 0.0, "on the validation set")])
    if task.kind != "translate":
        scores = validation(task, task.test)(model.build(learned.parameters))
        metric = "accuracy" if task.kind == "classify" else "loss"
        return Judgement([plain_score(metric, scores[metric], "on the test set")])
    sources, references = (list(side) for side in zip(*task.test, strict=True))
    work = reporter.progress.work = Work("translating the test set", len(sources))
    translations = []
    for translation in Translator.load(learned.request.folder).stream(sources):
        translations.append(translation.text)
        work.done += 1
    found, _ = corpus_scores(translations, [references], usual_metrics())
    chrf, copied = (quick_scores(texts, references)["chrf"] for texts in (translations, sources))
    warning = f"Its translations are no better than copying the source (chrF {chrf:.1f}, copied {copied:.1f}): "
    warnings = [] if chrf > copied else [warning + "do not use it; it needs more pairs or more time."]
    return Judgement(found, warnings, translations)


def plain_score(metric: str, value: float, signature: str) -> Score:
    """A score without a confidence interval."""
    return Score(metric, value, value, 0.0, signature)


def describe(learned: Learned, judgement: Judgement) -> About:
    """The description of the model for its config."""
    request, plan, state, task = learned.request, learned.plan, learned.state, learned.task
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
        scores=[asdict(score) for score in judgement.scores],
    )


def trainings(about: About) -> list[dict[str, Any]]:
    """Short records of all trainings of a model, the first one first."""
    last = {name: about.provenance[name] for name in IN_SHORT if name in about.provenance}
    return [*about.provenance.get("before", []), *([last] if last else [])]


def card(learned: Learned, about: About, warnings: Iterable[str]) -> str:
    """The model card, README.md."""
    p, c, task = about.provenance, learned.plan.config, learned.plan.task
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
        "- Licence and attribution of the data: write them here before you pass the model on",
        f"- {p['steps']:,} steps, {p['passes']:g} passes over the data, {p['seconds']:,} seconds, "
        f"in {learned.plan.recipe.precision}",
        *(f"- Before that: `{before['command']}`" for before in p.get("before", []) if "command" in before),
        *(
            f"- Before that: imported from {before['imported']}; licence: {before.get('licence')}"
            for before in p.get("before", [])
            if "imported" in before
        ),
        f"- Command: `{p['command']}`\n",
        f"## Scores\n\nOn {len(learned.task.test) or p['pairs']['dev']:,} held-out texts{searched}.\n",
        "| metric | score | counted as |\n|---|---|---|",
        *(f"| {score['metric']} | {score['value']:.2f} | `{score['signature']}` |" for score in about.scores),
        "\n## Limits\n",
        *(f"- {limit}" for limit in (*LIMITS, *warnings)),
    ]
    return "\n".join(lines) + "\n"
