"""A training, phase after phase: prepare the data → choose a plan → begin or go on → the loop → the best model, judged
and written.

Every phase is a file of `run/`; this one says what follows what.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from vidrio.data.lock import LOCK
from vidrio.data.store import Examples
from vidrio.errors import RunError, VidrioError
from vidrio.learn.processes import ALONE, Processes, at_work, join, leave, owner_first, refuse_differences
from vidrio.learn.run.choose import Room, choose_plan, refuse_nonsense
from vidrio.learn.run.finish import (
    Judgement,
    Learned,
    best_model,
    judge,
    write_card,
    write_model,
)
from vidrio.learn.run.loop import Training, loop
from vidrio.learn.run.machine import Sweeper, find_device, free_memory, shares_for
from vidrio.learn.run.plan import Plan, duration, read_plan, write_plan
from vidrio.learn.run.prepare import DataFolder, Task, describe, sentence_pairs
from vidrio.learn.run.request import Reporter, Request
from vidrio.learn.run.state import State, resume, share_state
from vidrio.model.parameters import random_parameters
from vidrio.text.tokens.bpe_dropout import Dropout
from vidrio.translate.translator import Translator


def train(request: Request, reporter: Reporter | None = None) -> tuple[Learned, Judgement] | None:
    """Make the model that is asked for. Of several processes the leading one writes it, and has the result."""
    processes = join(request.choices.device)
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
    run, free_unused = request.folder / "run", Sweeper()
    refuse_other_folders(request.folder)
    device = find_device(request.choices.device)
    memory = free_memory(device) if request.memory is None else request.memory
    room = Room(device, memory, processes, shares_for(device))
    with at_work(run, processes) as owner:
        with leaving_nothing(run) if owner else nullcontext():
            before = read_plan(run) if processes.leads else None
            if processes.leads:
                refuse_nonsense(request, before)
            task = owner_first(owner, processes, lambda: prepare(request, DataFolder(run, owner, before), reporter))
            refuse_differences(task.examples, repr(task.fingerprints), processes)
            plan = choose(request, task, before, room, reporter)
            state = begin_or_go_on(request, plan, room, reporter)
        examples = with_subword_dropout(task) if plan.recipe.subword_dropout else task.examples
        for record in loop(Training(examples, plan.recipe, task.validate, run, processes, room.shares), state):
            reporter.watch(record)
            free_unused()
        if not processes.leads:
            return None
        passes = f"{state.epoch:.1f} passes over the data"
        reporter.say(f"trained {state.step:,} steps, {passes}, in {duration(state.seconds)}")
        learned, lines = best_model(request, task, plan, state)
        say(reporter, lines)
        return learned


def finish(learned: Learned, reporter: Reporter) -> Judgement:
    """Write the model's folder, all of it but the report, and judge the model as it will be used."""
    folder, translates = learned.request.folder, learned.task.kind == "translate"
    write_model(learned)
    if translates:
        say(reporter, ["exporting for the fast engine …"])
    judgement = judge(learned, reporter.progress)
    say(reporter, [f"{score.metric} {score.value:.2f}   {score.signature}" for score in judgement.scores])
    say(reporter, [f"warning: {warning}" for warning in judgement.warnings])
    write_card(learned, judgement)
    if translates:
        # Its files are held to the config, which tells the scores now.
        Translator.load(folder)
    return judgement


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


def prepare(request: Request, folder: DataFolder, reporter: Reporter) -> Task:
    """What the task learns from, made or found made."""
    if request.choices.task == "translate":
        task = sentence_pairs(folder, request.material, request.start, reporter.progress)
    else:
        from vidrio.learn.run.prepare_texts import texts

        task = texts(folder, request.material, request.choices.task, reporter.progress)
    say(reporter, describe(task))
    return task


def choose(request: Request, task: Task, before: Plan | None, room: Room, reporter: Reporter) -> Plan:
    """The leading process's plan, for all."""
    if not room.processes.leads:
        return Plan.from_json(json.loads(room.processes.broadcast_text("")))
    plan, lines = choose_plan(request, task, before, room)
    say(reporter, lines)
    write_plan(request.folder / "run", plan)
    room.processes.broadcast_text(plan.to_text())
    return plan


def begin_or_go_on(request: Request, plan: Plan, room: Room, reporter: Reporter) -> State:
    """The run's state, saved or new: one process has it, and gives it to the others."""
    if not room.processes.leads:
        return share_state(None, plan.config, room.device, room.processes)
    device = room.device if room.processes.size == 1 else torch.device("cpu")
    saved, start = resume(request.folder / "run", plan.config, device), request.start
    if saved is not None:
        state, damaged = saved
        line = f"going on from step {state.step:,}, {duration(state.seconds)} in" + (f" ({damaged})" if damaged else "")
    else:
        random = np.random.default_rng([plan.recipe.seed, 0])
        arrays = start.parameters() if start else random_parameters(plan.config, random)
        state = State.of_arrays(plan.config, arrays, device)
        what = f"the parameters of {start.folder.name}" if start else "random parameters"
        line = f"beginning with {what}, seed {plan.recipe.seed}"
    state = share_state(state, plan.config, room.device, room.processes)
    reporter.say(line)
    return state


def with_subword_dropout(task: Task) -> Examples:
    """The examples, with the means to split their words otherwise."""
    source, target = (Dropout(tokenizer) if tokenizer else None for tokenizer in (task.source, task.target))
    return replace(task.examples, resplit=(source, target))


@contextmanager
def leaving_nothing(home: Path) -> Iterator[None]:
    """If what follows is refused, a run that had not begun leaves nothing in its folder."""
    fresh = all(path.name == LOCK for path in home.iterdir())
    try:
        yield
    except (VidrioError, OSError):
        for path in home.iterdir() if fresh else ():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink()
        raise
