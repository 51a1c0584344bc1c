"""A training, phase after phase: prepare the data → plan → begin or go on → the loop → the best model, judged.

Every phase is a file of `run/`; this one says what follows what. `run/finish.py` then writes the model's folder.
"""

from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio.data.lock import leaving_nothing
from vidrio.errors import ModelError, RunError
from vidrio.learn.batches import Examples, no_resplit
from vidrio.learn.net import model
from vidrio.learn.net.parameters import Parameters
from vidrio.learn.processes.data_owner import at_work, owner_first, refuse_differences
from vidrio.learn.processes.processes import ALONE, Processes
from vidrio.learn.run import prepare_texts, run_files
from vidrio.learn.run.choose import Room, choose_plan, refuse_nonsense
from vidrio.learn.run.loop import Training, loop, rank
from vidrio.learn.run.machine import keep_memory
from vidrio.learn.run.plan import Plan, read_plan, write_plan
from vidrio.learn.run.prepare import DataFolder, Task, sentence_pairs
from vidrio.learn.run.ram import free_memory
from vidrio.learn.run.recipe import METRICS, duration
from vidrio.learn.run.request import Reporter, Request
from vidrio.learn.run.state import State, resume, share_state
from vidrio.learn.run.tensorboard import drawing
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters
from vidrio.text.tokens.bpe_dropout import Dropout


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a run has brought about: all that is needed to write, judge and describe the model."""

    request: Request
    task: Task
    plan: Plan
    state: State
    parameters: Parameters  # the best
    score: float  # theirs, on the validation set
    averaged: list[int]  # the steps whose models they are the mean of, if they are one
    judged: dict[str, float]  # on the test texts, where nothing is translated

    @property
    def config(self) -> ModelConfig:
        return self.plan.config


def train(request: Request, reporter: Reporter | None = None, processes: Processes = ALONE) -> Learned | None:
    """Train in the run's folder from the beginning, or go on where an earlier run was stopped. Of several processes the
    leading one has the result."""
    reporter = reporter or Reporter()
    run, room = request.run, _room(request, processes)
    refuse_other_folders(request.folder)
    with at_work(run, processes) as owner:
        with leaving_nothing(run) if owner else nullcontext():
            task, before = _prepare(request, owner, reporter, processes)
            plan = _plan(request, task, before, room, reporter)
            state = _begin(request, plan, room, reporter)
        examples = with_subword_dropout(task) if plan.recipe.subword_dropout else task.examples
        with drawing(run if processes.leads else None, state, reporter.watch) as watch:
            training = Training(examples, plan.recipe, task.validate, run, watch, processes)
            state = loop(training, state)
        return _judged(request, task, plan, state, reporter) if processes.leads else None


# --- before the loop --------------------------------------------------------------------------------------------------


def use_machine(threads: int | None) -> None:
    """Settle how many CPU threads compute (None: PyTorch's choice), and keep memory that was used once."""
    keep_memory()
    if threads:
        torch.set_num_threads(threads)


def _room(request: Request, processes: Processes) -> Room:
    device = find_device(request.choices.device)
    return Room(device, free_memory(device) if request.memory is None else request.memory, processes)


def find_device(name: str) -> torch.device:
    """The device of this name; without one, a GPU where there is one."""
    if not name:
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        torch.empty(1, device=device)
    except (RuntimeError, AssertionError) as error:
        found = str(error).splitlines()[0]
        raise RunError(f"there is no device {name!r} to train on", found=found, do="use --device cpu") from None
    return device


def refuse_other_folders(folder: Path) -> None:
    """Never write into what is not a run of ours."""
    if folder.exists() and not folder.is_dir():
        raise RunError(f"{folder} is a file", do="give a folder, new or of an earlier run")
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "run").is_dir():
        what = "a model without its training run" if (folder / "config.json").exists() else "other files"
        raise RunError(f"{folder} is not empty", found=what, do="give a new folder, or one of an earlier run")


def _prepare(request: Request, owner: bool, reporter: Reporter, processes: Processes) -> tuple[Task, Plan | None]:
    """The data, made or found made, the same for all processes; and the plan of the run that goes on."""
    before = read_plan(request.run) if processes.leads else None
    if processes.leads:
        refuse_nonsense(request, before)
    folder = DataFolder(request.run, owner, before)
    task = owner_first(owner, processes, lambda: prepare(request, folder, reporter))
    refuse_differences(task.examples, repr(task.fingerprints), processes)
    if processes.leads:
        for line in describe_data(task):
            reporter.say(line)
    return task, before


def prepare(request: Request, folder: DataFolder, reporter: Reporter) -> Task:
    """What the task learns from."""
    material = request.material
    if request.choices.task == "translate":
        return sentence_pairs(folder, material, request.start, reporter.progress)
    read = {"classify": prepare_texts.classes, "generate": prepare_texts.texts}[request.choices.task]
    return read(folder, material, reporter.progress)


def describe_data(task: Task) -> list[str]:
    """What was read, and what was left out and why."""
    tally = task.tally
    held = {"dev": "to validate", "test": "to judge the finished model"}
    parts = [f"{task.pairs[part]:,} {says}" for part, says in held.items() if task.pairs[part]]
    return [
        f"read {tally.read:,} {'lines' if task.kind == 'generate' else 'pairs'}, kept {tally.kept:,}",
        *(f"  left out {count:,}: {reason}" for reason, count in tally.reasons()),
        *tally.notes(),
        f"to learn from: {task.pairs['train']:,}; held out: {', '.join(parts) or 'given files'}",
    ]


def _plan(request: Request, task: Task, before: Plan | None, room: Room, reporter: Reporter) -> Plan:
    """The leading process's plan, for all."""
    if not room.processes.leads:
        return Plan.from_text(room.processes.broadcast_text(""))
    plan, lines = choose_plan(request, task, before, room)
    for line in lines:
        reporter.say(line)
    write_plan(request.run, plan)
    room.processes.broadcast_text(plan.to_text())
    return plan


def _begin(request: Request, plan: Plan, room: Room, reporter: Reporter) -> State:
    """The run's state, saved or new: one process has it, and gives it to the others."""
    if not room.processes.leads:
        return share_state(None, plan.config, room.device, room.processes)
    alone = room.processes.size == 1
    state, line = begin_or_resume(request, plan, room.device if alone else torch.device("cpu"))
    state = share_state(state, plan.config, room.device, room.processes)
    reporter.say(line)
    return state


def begin_or_resume(request: Request, plan: Plan, device: torch.device) -> tuple[State, str]:
    """The run's state, saved or new, and which of the two."""
    saved = resume(request.run, plan.config, device)
    if saved is not None:
        state, damaged = saved
        return state, f"going on from step {state.step:,}, {duration(state.seconds)} in" + (
            f" ({damaged})" if damaged else ""
        )
    start, random = request.start, np.random.default_rng([plan.recipe.seed, 0])
    arrays = start.parameters() if start else random_parameters(plan.config, random)
    parameters = Parameters.from_arrays(plan.config, arrays, device=str(device))
    what = f"the parameters of {start.folder.name}" if start else "random parameters"
    return State.start(parameters), f"beginning with {what}, seed {plan.recipe.seed}"


def with_subword_dropout(task: Task) -> Examples:
    """The examples, with the means to split their words otherwise."""
    sides = [Dropout(tokenizer) if tokenizer else no_resplit for tokenizer in (task.source, task.target)]
    return replace(task.examples, resplit=(sides[0], sides[1]))


# --- after the loop ---------------------------------------------------------------------------------------------------


@torch.no_grad()
def _judged(request: Request, task: Task, plan: Plan, state: State, reporter: Reporter) -> Learned:
    """The best model, or the mean of the best; classifiers and writers are judged, translators by `run/finish.py`."""
    reporter.say(f"trained {state.step:,} steps, {state.epoch:.1f} passes over the data, in {duration(state.seconds)}")
    reporter.say(f"kept the model of step {state.best_step:,}, the best by {plan.recipe.metric} on the validation set")
    best, score, averaged = Parameters(plan.config, state.best), state.best_score or 0.0, list[int]()
    if len(state.kept) > 1:
        try:
            mean, record = try_mean(request.run, task, plan, state)
        except ModelError as error:  # the best one alone is in the state
            reporter.say(f"the mean of the best models could not be tried: {error.what}")
        else:
            run_files.add_metrics(request.run, record)
            reporter.say(describe_mean(record))
            if record["best"]:
                best, score, averaged = mean, record[plan.recipe.metric], record["steps"]
    return Learned(
        request=request,
        task=task,
        plan=plan,
        state=state,
        parameters=best,
        score=score,
        averaged=averaged,
        judged={} if task.judge is None else task.judge(model.build(best)),
    )


def try_mean(run: Path, task: Task, plan: Plan, state: State) -> tuple[Parameters, dict[str, Any]]:
    """The mean of the best models; and a line of metrics that says whether it is better than the best one alone."""
    steps, metric = sorted(best.step for best in state.kept), plan.recipe.metric
    mean = Parameters.from_arrays(plan.config, run_files.mean(run, steps), device=str(state.best.device))
    scores = task.validate(model.build(mean, getattr(torch, plan.recipe.precision)))
    alone = state.best_score or 0.0
    better = rank(scores[metric], scores["loss"], metric) < rank(alone, state.best_loss, metric)
    record = {"kind": "mean", "step": state.step, "steps": steps, "metric": metric, "alone": alone, "best": better}
    return mean, record | {name: scores[name] for name in METRICS if name in scores}


def describe_mean(record: dict[str, Any]) -> str:
    """Whether the mean of the best models has become the model."""
    metric, steps = record["metric"], ", ".join(f"{step:,}" for step in record["steps"])
    compared = f"{metric} {record[metric]:.4g}, the best one alone {record['alone']:.4g}"
    outcome = "the mean is the model" if record["best"] else "not better"
    return f"tried the mean of the {len(record['steps'])} best models (steps {steps}): {compared}: {outcome}"
