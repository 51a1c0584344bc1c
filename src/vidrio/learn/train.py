"""One training run from files to a model folder: choose, begin or go on, train, and hand over what was learned.

MODEL/run/plan.json    what was chosen, and from which data: what a resumed run is held to
"""

import json
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from vidrio.data.lock import leaving_nothing
from vidrio.data.progress import Progress, silent
from vidrio.errors import ModelError, RunError
from vidrio.learn.batches import Examples, no_resplit
from vidrio.learn.net import model
from vidrio.learn.net.decode import translate
from vidrio.learn.net.parameters import Weights
from vidrio.learn.processes.data_owner import at_work, in_turn, same_everywhere
from vidrio.learn.processes.processes import Together
from vidrio.learn.run.best import mean, rank
from vidrio.learn.run.loop import Watch, train
from vidrio.learn.run.machine import keep_memory
from vidrio.learn.run.plan import (
    Choices,
    Plan,
    check,
    compare,
    fit_memory,
    make_plan,
    read_plan,
    told_data,
    told_plan,
    too_long,
)
from vidrio.learn.run.prepare import TASKS, Begun, Material, Task
from vidrio.learn.run.ram import free_memory
from vidrio.learn.run.recipe import METRICS, minutes
from vidrio.learn.run.run_files import write_down
from vidrio.learn.run.start import Start
from vidrio.learn.run.state import State, hand_out, resume
from vidrio.learn.run.tensorboard import drawing
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, write_atomically, write_config, write_parameters
from vidrio.model.parameters import random_parameters
from vidrio.text.tokens.bpe_dropout import Dropout

Say = Callable[[str], None]


@dataclass(frozen=True, kw_only=True)
class Learned:
    """What a run has brought about: all that is needed to write, judge and describe the model."""

    task: Task
    plan: Plan
    weights: Weights  # the best
    score: float  # theirs, on the validation set
    state: State
    translations: list[str]  # of the test sources, by beam search
    judged: dict[str, float]  # of the test texts, where nothing is translated

    @property
    def config(self) -> ModelConfig:
        return self.plan.config

    def write(self, folder: Path, about: About, card: str) -> None:
        """The model folder, its config last."""
        write_parameters(folder, self.weights.to_arrays())
        tokenizers = (self.task.source, self.task.target)
        source = tokenizers[0] or tokenizers[1]
        if source is not None:
            source.save(folder / "tokenizer.json")
        separate = folder / "target-tokenizer.json"
        separate.unlink(missing_ok=True)
        if tokenizers[0] is not None and tokenizers[1] not in (None, tokenizers[0]):
            tokenizers[1].save(separate)
        write_atomically(folder / "README.md", card.encode())
        write_config(folder, self.config, about)


def run(
    folder: Path,
    material: Material,
    choices: Choices,
    *,
    say: Say = lambda text: None,
    watch: Watch = lambda record: None,
    progress: Progress = silent,
    together: Together | None = None,
    memory: int | None = None,
) -> Learned:
    """Train in `folder`/run from the beginning, or go on where an earlier run was stopped.

    `memory` is how many bytes training may take: what is free on the device, unless told otherwise.
    """
    together = together or Together()
    home, device = folder / "run", find_device(choices.device)
    memory = free_memory(device) if memory is None else memory
    refuse_other_folders(folder)
    with at_work(home, together) as writes:
        with leaving_nothing(home) if writes else nullcontext():
            before = read_plan(home) if together.leads else None
            begun = Begun(before.data, before.tokenizers) if before else None
            if together.leads:
                check(choices, before)
            task = in_turn(
                writes,
                together,
                lambda made: TASKS[choices.task](home, replace(material, made=made, begun=begun), progress),
            )
            same_everywhere(task.examples, repr(task.fingerprints), together)
            settled = ""
            if together.leads:
                for line in told_data(task):
                    say(line)
                plan, told = settle(task, choices, device, before, memory, together)
                for line in (*told_plan(plan, device, task), *told, *too_long(plan, task)):
                    say(line)
                settled = json.dumps(plan.to_json(), indent=2)
                write_atomically(home / "plan.json", f"{settled}\n".encode())
            plan = Plan.from_json(json.loads(together.tell(settled)))
            state, line = begin(home, plan, device, together, choices.start)
        say(line)
        examples = with_subword_dropout(task) if plan.recipe.subword_dropout else task.examples
        with drawing(home if together.leads else None, state, watch) as seen:
            state = train(examples, state, plan.recipe, task.validate, run=home, watch=seen, together=together)
        say(f"trained {state.step:,} steps, {state.epoch:.1f} passes over the data, in {minutes(state.seconds)}")
        say(f"kept the model of step {state.best_step:,}, the best by {plan.recipe.metric} on the validation set")
        best = Weights(plan.config, state.weights.whole(state.best).to(device))
        translations, judged, score = list[str](), dict[str, float](), state.best_score or 0.0
        if together.leads:
            if len(state.kept) > 1:
                try:
                    best, record = try_mean(best, state, plan, task, home)
                except ModelError as error:  # the best one alone is in the state
                    say(f"the mean of the best models could not be tried: {error.what}")
                else:
                    write_down(home, record)
                    say(told_mean(record, plan.recipe.metric))
                    score = record[plan.recipe.metric] if record["best"] else score
            translations = translate_test(best, plan, task, progress)
            if task.judge is not None:
                with torch.no_grad():
                    judged = task.judge(model.build(best))
    return Learned(
        task=task, plan=plan, weights=best, score=score, state=state, translations=translations, judged=judged
    )


def settle(
    task: Task, choices: Choices, device: torch.device, before: Plan | None, memory: int | None, together: Together
) -> tuple[Plan, list[str]]:
    """The plan, and what is to be told about how it came about."""
    plan, told = make_plan(task, choices, device, before), list[str]()
    if before is None and "batch_tokens" not in choices.recipe and memory is not None:
        own = memory // together.local_size if device.type == "cpu" else memory  # processes share a machine
        shares = together.size if together.sharded else 1
        parts = "accumulate" not in choices.recipe
        plan, told = fit_memory(plan, task, own, device.type, parts=parts, shares=shares)
    accumulate, processes = plan.recipe.accumulate, together.size
    if before is not None and accumulate == before.recipe.accumulate and accumulate % processes:
        raise RunError(
            f"{processes} processes cannot share out the steps of this run evenly",
            found=f"{accumulate} batches to a step",
            do=f"start a number of processes that {accumulate} can be divided by, or another run",
        )
    shared = -(-accumulate // processes) * processes
    plan = replace(plan, recipe=replace(plan.recipe, accumulate=shared))
    return plan, [*(compare(before, plan) if before is not None else []), *told]


def use_machine(threads: int | None) -> None:
    """Settle how many CPU threads compute (None: PyTorch's choice), and keep memory that was used once."""
    keep_memory()
    if threads:
        torch.set_num_threads(threads)


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


def begin(
    home: Path, plan: Plan, device: torch.device, together: Together, start: Start | None = None
) -> tuple[State, str]:
    """The run's state, saved or new: one process has it, and gives it to the others."""
    state, line = None, ""
    if together.leads:
        state, line = begin_alone(home, plan, torch.device("cpu") if together.size > 1 else device, start)
    return hand_out(state, plan.config, device, together), line


def begin_alone(home: Path, plan: Plan, device: torch.device, start: Start | None = None) -> tuple[State, str]:
    """The run's state, saved or new."""
    found = resume(home, plan.config, device)
    if found is not None:
        state, damaged = found
        return state, f"going on from step {state.step:,}, {minutes(state.seconds)} in" + (
            f" ({damaged})" if damaged else ""
        )
    random = np.random.default_rng([plan.recipe.seed, 0])
    parameters = start.parameters() if start else random_parameters(plan.config, random)
    weights = Weights.from_arrays(plan.config, parameters, device=str(device))
    what = f"the parameters of {start.folder.name}" if start else "random parameters"
    return State.start(weights), f"beginning with {what}, seed {plan.recipe.seed}"


def try_mean(best: Weights, state: State, plan: Plan, task: Task, home: Path) -> tuple[Weights, dict[str, Any]]:
    """The mean of the best models, or the best one alone if that is better; and a line of metrics that says which."""
    steps = sorted(step for step, _, _ in state.kept)
    mixed = Weights.from_arrays(plan.config, mean(home, steps), device=str(best.flat.device))
    with torch.no_grad():
        scores = task.validate(model.build(mixed, getattr(torch, plan.recipe.precision)))
    metric, alone = plan.recipe.metric, state.best_score or 0.0
    better = rank(scores[metric], scores["loss"], metric) < rank(alone, state.best_loss, metric)
    record = {"kind": "mean", "step": state.step, "steps": steps, "metric": metric, "alone": alone, "best": better}
    return mixed if better else best, record | {name: scores[name] for name in METRICS if name in scores}


def told_mean(record: dict[str, Any], metric: str) -> str:
    """Whether the mean of the best models has become the model."""
    of = f"the mean of the {len(record['steps'])} best models (steps {', '.join(f'{n:,}' for n in record['steps'])})"
    compared = f"{metric} {record[metric]:.4g}, the best one alone {record['alone']:.4g}"
    return f"tried {of}: {compared}: " + ("the mean is the model" if record["best"] else "not better")


def with_subword_dropout(task: Task) -> Examples:
    """The examples, with the means to split their words otherwise."""
    sides = [Dropout(tokenizer) if tokenizer else no_resplit for tokenizer in (task.source, task.target)]
    return replace(task.examples, resplit=(sides[0], sides[1]))


def translate_test(best: Weights, plan: Plan, task: Task, progress: Progress = silent) -> list[str]:
    """The test sentences as the finished model translates them: beam search, in float32."""
    if task.source is None or task.target is None or not task.test:
        return []
    sources = [np.array(ids, dtype=np.int64) for ids in task.source.encode_batch([source for source, _ in task.test])]
    decoding, net = plan.config.decoding, model.build(best)
    with progress("translating the test set", len(sources)) as advance:
        found = translate(net, sources, beam=decoding.beam, length_penalty=decoding.length_penalty, advance=advance)
    return [task.target.decode(ids) for ids in found]
