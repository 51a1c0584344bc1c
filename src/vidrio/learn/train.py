"""A training, phase after phase: prepare the data → choose a plan → begin or go on → the loop → the best model, judged
and written. Every phase is a file; this one says what follows what.
"""

import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import numpy as np
import torch

from vidrio.data.lock import LOCK, only_one
from vidrio.errors import RunError, VidrioError
from vidrio.learn import choose
from vidrio.learn.finish import Judgement, Learned, best_model, judge, write_card, write_model
from vidrio.learn.loop import Training, loop
from vidrio.learn.machine import Sweeper, find_device
from vidrio.learn.plan import Plan, Reporter, Request, duration, read_plan, write_plan
from vidrio.learn.processes import ALONE, Processes, join, leave
from vidrio.learn.state import State, resume, share_state
from vidrio.learn.task import Task, describe, load_task, make_task
from vidrio.learn.validate import validation
from vidrio.model.parameters import random_parameters


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
    refuse_other_folders(request.folder)
    device = find_device(request.choices.device)
    with only_one(request.run) if processes.leads else nullcontext():
        if processes.leads:
            with leaving_nothing(request.run):
                task, plan = planned(request, device, processes, reporter)
                state = begin_or_go_on(request, plan, device if processes.size == 1 else torch.device("cpu"), reporter)
            processes.broadcast_text(plan.to_text())
        else:
            plan = Plan.from_json(json.loads(processes.broadcast_text("")))
            task, state = load_task(request.run, plan.task, plan.data, plan.tokens), None
        state = share_state(state, plan.config, device, processes)
        free_unused = Sweeper()
        validate = validation(task, task.held_out)
        for record in loop(Training(task.encodings, plan.recipe, validate, request.run, processes), state):
            reporter.watch(record)
            free_unused()
        if not processes.leads:
            return None
        passes = f"{state.epoch:.1f} passes over the data"
        reporter.say(f"trained {state.step:,} steps, {passes}, in {duration(state.seconds)}")
        learned, lines = best_model(request, task, plan, state)
        say(reporter, lines)
        return learned


def planned(request: Request, device: torch.device, processes: Processes, reporter: Reporter) -> tuple[Task, Plan]:
    """The data, prepared now or earlier, and the plan: the run's, or a new one."""
    before = read_plan(request.run)
    choose.refuse_nonsense(request, before)
    plan = None if before is None else choose.continued(before, request.choices, processes.size)
    task = make_task(request, before, reporter.progress)
    say(reporter, describe(task))
    plan = choose.for_processes(plan or choose.new_plan(request, task, device), processes.size, begun=plan is not None)
    say(reporter, [*choose.describe_plan(plan, device, task), *choose.too_long(plan, task)])
    write_plan(request.run, plan)
    return task, plan


def finish(learned: Learned, reporter: Reporter) -> Judgement:
    """Write the model's folder, all of it but the report, and judge the model as it will be used."""
    write_model(learned)
    judgement = judge(learned, reporter.progress)
    say(reporter, [f"{score.metric} {score.value:.2f}   {score.signature}" for score in judgement.scores])
    say(reporter, [f"warning: {warning}" for warning in judgement.warnings])
    write_card(learned, judgement)
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


def begin_or_go_on(request: Request, plan: Plan, device: torch.device, reporter: Reporter) -> State:
    """The run's state, saved or new."""
    saved, start = resume(request.run, plan.config, device), request.start
    if saved is not None:
        state, damaged = saved
        reporter.say(
            f"going on from step {state.step:,}, {duration(state.seconds)} in" + (f" ({damaged})" if damaged else "")
        )
        return state
    arrays = (
        start.parameters() if start else random_parameters(plan.config, np.random.default_rng([plan.recipe.seed, 0]))
    )
    what = f"the parameters of {start.folder.name}" if start else "random parameters"
    reporter.say(f"beginning with {what}, seed {plan.recipe.seed}")
    return State.of_arrays(plan.config, arrays, device)


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
