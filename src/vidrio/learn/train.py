"""A training, phase after phase: prepare the data → choose a plan → begin or go on → the loop → the best model, judged
and written.
"""

import json
import os
import platform
import shlex
import shutil
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio._version import __version__
from vidrio.data.lock import only_one
from vidrio.errors import RunError
from vidrio.learn import choose
from vidrio.learn.loop import Training, loop
from vidrio.learn.machine import find_device, give_back_memory
from vidrio.learn.parameters import Parameters
from vidrio.learn.plan import Plan, Reporter, Request, duration, read_plan, write_plan
from vidrio.learn.processes import ALONE, Processes, join, leave
from vidrio.learn.state import State, resume, share_state
from vidrio.learn.task import Task, load_task, make_task
from vidrio.learn.validate import Judgement, judge, validation
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.folder import About, write_config, write_parameters
from vidrio.model.parameters import count, random_parameters
from vidrio.translate.lexicon import NAME as LEXICON
from vidrio.translate.lexicon import WORDS

SWEEP = 100  # steps after which unused memory is given back to the system, which takes up to a fifth of a second
IN_SHORT = ("command", "pairs", "steps", "passes", "seconds", "machine")  # of a training that another goes on from
LIMITS = ("It has learned from its data only, and makes mistakes; on texts of another kind it makes more.",)


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a run has brought about: all that is needed to write, judge and describe the model."""

    request: Request
    task: Task
    plan: Plan
    state: State

    @property
    def config(self) -> ModelConfig:
        return self.plan.config

    @property
    def parameters(self) -> Parameters:
        """The best ones."""
        return Parameters(self.plan.config, self.state.best)


def train(request: Request, reporter: Reporter | None = None) -> tuple[Learned, Judgement] | None:
    """Make the model that is asked for. Of several processes the leading one writes it, and has the result."""
    processes = join(request.device)
    reporter = reporter if reporter and processes.leads else Reporter()
    try:
        learned = learn(request, reporter, processes)
        return None if learned is None else (learned, finish(learned, reporter))
    except KeyboardInterrupt:
        reporter.say("stopped; the same command goes on from here")
        raise
    finally:
        leave()


def learn(request: Request, reporter: Reporter, processes: Processes = ALONE) -> Learned | None:
    """Train in the run's folder from the beginning, or go on where an earlier run was stopped."""
    refuse_other_folders(request.folder)
    device = find_device(request.device)
    with only_one(request.run) if processes.leads else nullcontext():
        if processes.leads:
            task, plan = planned(request, device, processes, reporter)
            state = begin_or_go_on(request, plan, device if processes.size == 1 else torch.device("cpu"), reporter)
            processes.broadcast_text(plan.to_text())
        else:
            plan = Plan.from_json(json.loads(processes.broadcast_text("")))
            task, state = load_task(request.run, plan.task, plan.config.special), None
        state = share_state(state, plan.config, device, processes)
        validate = validation(task, task.held_out)
        for record in loop(Training(task.encodings, plan.recipe, validate, request.run, processes), state):
            reporter.watch(record)
            if state.step % SWEEP == 0:
                give_back_memory()
    if not processes.leads:
        return None
    passes = f"{state.epoch:.1f} passes over the data"
    reporter.say(f"trained {state.step:,} steps, {passes}, in {duration(state.seconds)}")
    reporter.say(f"kept the model of step {state.best_step:,}, the best by {plan.recipe.metric} on the validation set")
    return Learned(request=request, task=task, plan=plan, state=state)


def planned(request: Request, device: torch.device, processes: Processes, reporter: Reporter) -> tuple[Task, Plan]:
    """The data, prepared now or earlier, and the plan: the run's, or a new one."""
    before = read_plan(request.run)
    choose.refuse_nonsense(request, before)
    plan = None if before is None else choose.continued(before, request, processes.size)
    task = make_task(request, before, reporter.progress)
    say(reporter, task.described())
    plan = plan or choose.new_plan(request, task, device, processes.size)
    say(reporter, [*choose.describe_plan(plan, device, task), *choose.too_long(plan, task)])
    write_plan(request.run, plan)
    return task, plan


def say(reporter: Reporter, lines: Iterable[str]) -> None:
    for line in lines:
        reporter.say(line)


def refuse_other_folders(folder: Path) -> None:
    """Never write into what is not a run of ours."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file", do="give a folder, new or of an earlier run")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "run").is_dir():
        what = "a model without its training run" if (folder / "config.json").exists() else "other files"
        raise RunError(f"{folder} is not empty", found=what, do="give a new folder, or one of an earlier run")


def begin_or_go_on(request: Request, plan: Plan, device: torch.device, reporter: Reporter) -> State:
    """The run's state, saved or new."""
    if (saved := resume(request.run, plan.config, device)) is not None:
        reporter.say(f"going on from step {saved.step:,}, {duration(saved.seconds)} in")
        return saved
    start, seed = request.start, plan.recipe.seed
    arrays = start.parameters() if start else random_parameters(plan.config, np.random.default_rng([seed, 0]))
    reporter.say(f"beginning with {f'the parameters of {start.name}' if start else 'random parameters'}, seed {seed}")
    return State.of_arrays(plan.config, arrays, device)


# --- the model's folder -----------------------------------------------------------------------------------------------


def finish(learned: Learned, reporter: Reporter) -> Judgement:
    """Write the model's folder, all of it but the report, and judge the model as it will be used."""
    write_model(learned)
    folder, plan, state = learned.request.folder, learned.plan, learned.state
    judgement = judge(learned.task, folder, learned.parameters, (plan.recipe.metric, state.best_score), reporter)
    say(reporter, [f"{score.metric} {score.value:.2f}   {score.signature}" for score in judgement.scores])
    say(reporter, [f"warning: {warning}" for warning in judgement.warnings])
    about = describe(learned, judgement)
    write_atomically(folder / "README.md", card(learned, about, judgement.warnings).encode())
    write_config(folder, learned.config, about)  # again: now with the scores
    return judgement


def write_model(learned: Learned) -> None:
    """What makes a folder a model, the config last."""
    folder, source, target = learned.request.folder, learned.task.source, learned.task.target
    write_parameters(folder, learned.parameters.to_arrays())
    copy_words(learned.request)
    source.save(folder / "tokenizer.json")
    separate = folder / "target-tokenizer.json"
    separate.unlink(missing_ok=True)
    if target is not source:
        target.save(separate)
    write_config(folder, learned.config, describe(learned, Judgement([])))


def copy_words(request: Request) -> None:
    """The list of words and the lexicon of the model that it began from, if they are of the same languages."""
    start, (source, target) = request.start, request.languages
    if start is None or start.about.target_language != target:
        return
    for name in (WORDS, LEXICON) if start.about.source_language == source else (WORDS,):
        if (start.folder / name).is_file():
            shutil.copyfile(start.folder / name, request.folder / name)


def describe(learned: Learned, judgement: Judgement) -> About:
    """What the config says about the model."""
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
            "left out": dict(task.prepared.tally.reasons()),
            "command": shlex.join(["vidrio", *request.command]),
            **({"from": start.name, "before": trainings(start.about)} if start else {}),
            "preset": plan.preset or choose.OWN_SIZES,
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
    """The trainings that a model has behind it, the first one first: what each was, in short."""
    last = {name: about.provenance[name] for name in IN_SHORT if name in about.provenance}
    return [*about.provenance.get("before", []), *([last] if last else [])]


def card(learned: Learned, about: About, warnings: Iterable[str]) -> str:
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
        "- Licence and attribution of the data: write them here before you pass the model on",
        f"- {p['steps']:,} steps, {p['passes']:g} passes over the data, {p['seconds']:,} seconds, "
        f"in {learned.plan.recipe.precision}",
        *(f"- Before that: `{before['command']}`" for before in p.get("before", []) if "command" in before),
        f"- Command: `{p['command']}`\n",
        f"## Scores\n\nOn {len(learned.task.test) or p['pairs']['dev']:,} held-out texts{searched}.\n",
        "| metric | score | counted as |\n|---|---|---|",
        *(f"| {score['metric']} | {score['value']:.2f} | `{score['signature']}` |" for score in about.scores),
        "\n## Limits\n",
        *(f"- {limit}" for limit in (*LIMITS, *warnings)),
    ]
    return "\n".join(lines) + "\n"
