"""The training loop: batches → loss → gradient → clip → step → running mean → figures → validate → keep.

Everything that a run is lies in `State`; the loop changes nothing else. So a run can be stopped at any moment and goes
on exactly: on a CPU the losses that follow are the same to the last bit.
"""

import math
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from vidrio.data.store import Examples, Ids
from vidrio.errors import RunError
from vidrio.learn import model, run_files
from vidrio.learn.batches import Streamed, collate, stream
from vidrio.learn.dropout import Dropout
from vidrio.learn.halves import Halves, Learned
from vidrio.learn.loss import gradient_of
from vidrio.learn.optimiser import Schedule, clip, update_by_muon
from vidrio.learn.parameters import Parameters
from vidrio.learn.plan import METRICS, Recipe, Stop
from vidrio.learn.processes import ALONE, Processes
from vidrio.learn.state import State, save_state
from vidrio.learn.validate import Validate

EVERY = 10  # steps between two lines of metrics
SAVE = 300  # seconds between two saved states, besides those at validations
EPOCH = 2000  # steps after which a run without an end validates, if the epoch is longer
PROOF = 500  # steps after which the loss must have moved


@dataclass(frozen=True)
class Training:
    """What a run learns from, and by what."""

    encodings: Sequence[Examples]  # the same pairs in one encoding or several; each pass takes the next
    recipe: Recipe
    validate: Validate
    run: Path | None = None  # the folder with all that is needed to continue after a kill
    processes: Processes = ALONE


def loop(training: Training, state: State) -> Iterator[dict[str, Any]]:
    """Go on from `state` until the recipe says stop; gives each line of metrics, of steps and validations."""
    recipe, processes = training.recipe, training.processes
    state.ended = is_over(state, recipe)  # an ended run may have a later end now
    clock, longest = Clock(state.seconds), state.parameters.config.max_positions
    batches = stream(training.encodings, recipe.batch_tokens, longest, recipe.seed, state.position)
    folder = RunFolder(training.run if processes.leads else None, state)
    with closing(Halves(state.parameters.flat.device)) as halves, Interruption() as interruption:
        while not state.ended:
            before = state.share, state.epoch
            take_step(training, list(islice(batches, recipe.accumulate)), state, clock, halves)
            state.share = share_over(recipe.stop, state)
            state.ended = state.share >= 1
            due, stopped = processes.any_of(folder.is_due(), interruption.asked)
            if state.step % EVERY == 0 or state.ended:
                yield folder.log(step_metrics(state, recipe, clock))
            if state.ended or validation_due(before, state, recipe):
                record = validate(training, state)
                if processes.leads:
                    yield folder.log(record)
                state.seconds = clock.now()
                folder.save(state)
            elif due or stopped:
                folder.save(state)
            folder.snapshot(state)
            if stopped:
                raise KeyboardInterrupt


class RunFolder:
    """Where a run's state, metrics and snapshots are written; nothing is, if there is no folder."""

    def __init__(self, run: Path | None, state: State) -> None:
        self.run, self.saved = run, time.monotonic()
        if run is not None:
            run.mkdir(parents=True, exist_ok=True)
            run_files.forget_metrics_after(run, state.step)
        if state.step == 0:
            self.snapshot(state)

    def log(self, record: dict[str, Any]) -> dict[str, Any]:
        """One more line of metrics."""
        if self.run is not None:
            run_files.add_metrics(self.run, record)
        return record

    def is_due(self) -> bool:
        return time.monotonic() - self.saved > SAVE

    def save(self, state: State) -> None:
        if self.run is not None:
            save_state(self.run, state)
        self.saved = time.monotonic()

    def snapshot(self, state: State) -> None:
        if self.run is not None and run_files.is_due(state.step):
            run_files.keep_snapshot(self.run, state.step, state.parameters.to_arrays())


# --- one step ---------------------------------------------------------------------------------------------------------


def take_step(training: Training, batches: Sequence[Streamed], state: State, clock: "Clock", halves: Halves) -> None:
    """Learn from some batches: one step of the optimiser."""
    recipe, processes, parameters = training.recipe, training.processes, state.parameters
    number = state.step + 1
    gradient = torch.zeros_like(parameters.flat)
    sums = torch.zeros(4, dtype=torch.float64)  # loss, predictions, tokens, seconds
    for place, batch in enumerate(batches):
        if place % processes.size == processes.rank:
            learn = partial(learn_from, recipe, parameters, (recipe.seed, number, place), batch.examples)
            part, figures = halves.learn(learn, batch.pairs)
            gradient += part
            sums += figures
    sums[3] = clock.now() if processes.leads else 0
    processes.sum(gradient)
    loss, predictions, tokens, seconds = processes.sum(sums.to(gradient.device)).tolist()
    length = clip(gradient.div_(predictions), recipe.clip)
    if not math.isfinite(length) or not math.isfinite(loss):
        raise RunError(
            "the training has come apart: the loss or its gradient is not a number any more",
            found=f"step {number}, loss {loss / predictions:.4g}, gradient {length:.4g}",
            do="start a new folder with a lower --rate or a longer --warmup",
        )
    rate = Schedule(recipe.schedule, recipe.rate, recipe.warmup).rate(number, state.share)
    if recipe.optimiser == "adam":
        state.adam.update(parameters.flat, gradient, rate)
    else:
        update_by_muon(state.adam, parameters, gradient, rate)
    # In the first steps the mean is of those steps only, not of where they started.
    state.average.lerp_(parameters.flat, 1 - min(recipe.average, (1 + number) / (10 + number)))
    state.step, state.seconds = number, seconds
    state.position, state.epoch = batches[-1].position, batches[-1].epoch
    state.sums = [old + new for old, new in zip(state.sums, (loss, predictions, tokens), strict=True)]


def learn_from(
    recipe: Recipe, parameters: Parameters, place: Sequence[int], examples: Examples, pairs: Ids, part: int
) -> Learned:
    """The gradient of these pairs' loss; and the loss, predictions and tokens."""
    batch = collate(examples, pairs, parameters.config)
    # Every random number depends on the step, the batch's place in it and the part of the batch alone.
    dropout = Dropout(recipe.dropout, (*place, part))
    net = model.build(parameters, getattr(torch, recipe.precision), dropout)
    gradient, nll = gradient_of(net, batch.to(parameters.flat.device), recipe.smoothing)
    return gradient, torch.tensor([nll, batch.n_predictions, batch.n_tokens, 0], dtype=torch.float64)


class Interruption:
    """Ctrl-C and a polite kill wait for the end of a step, so that the run can be saved; a second one does not wait."""

    def __init__(self) -> None:
        self.asked = False
        self.before: dict[int, Any] = {}

    def __enter__(self) -> "Interruption":
        if threading.current_thread() is threading.main_thread():
            self.before = {number: signal.signal(number, self.ask) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *reason: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def ask(self, number: int, frame: object) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


class Clock:
    """Seconds of training, over all the times that a run was started."""

    def __init__(self, before: float) -> None:
        self.start = time.monotonic() - before
        self.last_line = before  # of metrics

    def now(self) -> float:
        return time.monotonic() - self.start


# --- metrics and validation -------------------------------------------------------------------------------------------


def step_metrics(state: State, recipe: Recipe, clock: Clock) -> dict[str, Any]:
    """What has happened since the last time, as one line of metrics; a loss that does not move ends the run."""
    loss, predictions, tokens = state.sums
    state.sums = [0.0, 0.0, 0.0]
    loss /= predictions
    seconds, clock.last_line = state.seconds - clock.last_line, state.seconds
    if state.first_loss is None:
        state.first_loss = loss
    proven = state.step >= max(PROOF, 2 * recipe.warmup) and (recipe.stop.converged or state.share > 0.1)
    # A model that is learned on from knows much at its start; it is held to what one that knows nothing would lose.
    config = state.parameters.config
    ignorance = max(state.first_loss, math.log(config.target_vocabulary if config.has_decoder else config.n_classes))
    if proven and loss > 0.98 * ignorance:
        raise RunError(
            "the loss does not move: nothing is being learned",
            found=f"{state.first_loss:.3f} at the start, {loss:.3f} after {state.step:,} steps",
            do="look at the data (vidrio data clean), or try another --rate",
        )
    rate = Schedule(recipe.schedule, recipe.rate, recipe.warmup).rate(state.step, state.share)
    record = {"kind": "step", "step": state.step, "epoch": round(state.epoch, 4), "loss": loss, "rate": rate}
    return record | {"share": state.share, "seconds": state.seconds, "tokens_per_second": tokens / max(seconds, 1e-9)}


def is_over(state: State, recipe: Recipe) -> bool:
    """Whether the recipe's end is reached, or its patience."""
    return share_over(recipe.stop, state) >= 1 or 0 < recipe.patience <= state.since_best


def share_over(stop: Stop, state: State) -> float:
    """How much of the training is over, 0 to 1."""
    ends = ((stop.steps, state.step), (stop.epochs, state.epoch), (stop.seconds, state.seconds))
    return min(1.0, max((done / end for end, done in ends if end), default=0.0))


def validation_due(before: tuple[float, float], state: State, recipe: Recipe) -> bool:
    """So often in the whole run; where its end is not known, after each epoch."""
    share, epoch = before
    if recipe.stop.converged:
        return state.step % EPOCH == 0 or int(state.epoch) > int(epoch)
    return int(state.share * recipe.validations) > int(share * recipe.validations)


@torch.no_grad()
def validate(training: Training, state: State) -> dict[str, Any]:
    """Score the mean of the parameters and keep the best; enough validations without a better one end the run."""
    recipe, processes, scores = training.recipe, training.processes, dict[str, float]()
    if processes.leads:
        average = Parameters(state.parameters.config, state.average)
        scores = training.validate(model.build(average, getattr(torch, recipe.precision)))
    figures = [scores.get(name, math.inf) for name in (recipe.metric, "loss")]
    score, loss = processes.broadcast(torch.tensor(figures, dtype=torch.float64)).tolist()
    is_best = state.best_score is None or (
        rank(score, loss, recipe.metric) < rank(state.best_score, state.best_loss, recipe.metric)
    )
    if is_best:
        state.best.copy_(state.average)
        state.best_score, state.best_loss, state.best_step, state.since_best = score, loss, state.step, 0
    else:
        state.since_best += 1
    state.ended = is_over(state, recipe)
    return {"kind": "validation", "step": state.step, "epoch": round(state.epoch, 4), "best": is_best} | scores


def rank(score: float, loss: float | None, metric: str) -> tuple[float, float]:
    """What a better model has less of. Early on all BLEUs are 0: then the loss decides."""
    return score if METRICS[metric] is min else -score, math.inf if loss is None else loss
