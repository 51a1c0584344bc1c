"""The training loop: batches → loss → gradient → clip → step → running mean → metrics → validate → keep the best.

`State` holds all of a run, and the loop changes nothing else. So a run can be stopped at any moment and goes on
exactly: on a CPU the losses that follow are the same to the last bit.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vidrio.errors import RunError
from vidrio.learn import model
from vidrio.learn.batches import Examples, Ids, Streamed, collate, stream
from vidrio.learn.loss import gradient_of
from vidrio.learn.machine import ALONE, Processes
from vidrio.learn.parameters import Parameters, Schedule, clip, update_by_muon
from vidrio.learn.plan import METRICS, Recipe
from vidrio.learn.state import RunFolder, State
from vidrio.learn.task import Stop

EVERY = 10  # steps between two lines of metrics
EPOCH = 2000  # steps after which a run without an end validates, if the epoch is longer

Validate = Callable[[model.Network], dict[str, Any]]
GradientAndSums = tuple[Tensor, Tensor]  # and the sums: loss, predictions, tokens, and a place for seconds


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
    clock, longest = Clock(state.seconds), state.parameters.config.max_positions
    batches = stream(training.encodings, recipe.batch_tokens, longest, recipe.seed, state.position)
    folder = RunFolder(training.run if processes.leads else None, state)
    with closing(Halves(state.parameters.flat.device)) as halves, Interruption() as interruption:
        while not is_over(state, recipe):
            before = share_over(recipe.stop, state), state.epoch
            take_step(training, list(islice(batches, recipe.accumulate * processes.size)), state, clock, halves)
            ends = is_over(state, recipe)
            # What holds for one process holds for all.
            wishes = torch.tensor([folder.is_due(), interruption.asked], dtype=torch.float32)
            due, stopped = (processes.sum(wishes) > 0).tolist()
            if state.step % EVERY == 0 or ends:
                yield folder.log(step_metrics(state, recipe, clock))
            if ends or validation_due(before, state, recipe):
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


class Interruption:
    """Ctrl-C and SIGTERM wait for the end of a step, so that the run can be saved; a second one does not wait."""

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


# --- one step ---------------------------------------------------------------------------------------------------------


def take_step(training: Training, batches: Sequence[Streamed], state: State, clock: Clock, halves: "Halves") -> None:
    """Learn from some batches: one step of the optimiser."""
    recipe, processes, parameters = training.recipe, training.processes, state.parameters
    number, rate = state.step + 1, rate_of(recipe, state.step + 1, state)
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
            "the training has diverged: the loss or its gradient is not a number any more",
            found=f"step {number}, loss {loss / predictions:.4g}, gradient {length:.4g}",
            do="start a new folder with a lower --rate or a longer --warmup",
        )
    if recipe.optimiser == "adam":
        state.adam.update(parameters.flat, gradient, rate)
    else:
        update_by_muon(state.adam, parameters, gradient, rate, getattr(torch, recipe.precision))
    # In the first steps the mean is of those steps only, not of where they started.
    state.average.lerp_(parameters.flat, 1 - min(recipe.average, (1 + number) / (10 + number)))
    state.step, state.seconds = number, seconds
    state.position, state.epoch = batches[-1].position, batches[-1].epoch
    state.sums = [old + new for old, new in zip(state.sums, (loss, predictions, tokens), strict=True)]


def learn_from(
    recipe: Recipe, parameters: Parameters, place: Sequence[int], examples: Examples, pairs: Ids, part: int
) -> GradientAndSums:
    """The gradient of these pairs' loss; and the loss, predictions and tokens."""
    batch = collate(examples, pairs, parameters.config)
    # Every random number depends on the step, the batch's place in it and the part of the batch alone.
    dropout = model.Dropout(recipe.dropout, (*place, part))
    net = model.build(parameters, getattr(torch, recipe.precision), dropout)
    gradient, nll = gradient_of(net, batch.to(parameters.flat.device), recipe.smoothing)
    return gradient, torch.tensor([nll, batch.n_predictions, batch.n_tokens, 0], dtype=torch.float64)


def rate_of(recipe: Recipe, step: int, state: State) -> float:
    return Schedule(recipe.schedule, recipe.rate, recipe.warmup).rate(step, share_over(recipe.stop, state))


class Halves:
    """A batch learned from in parts: in two halves side by side on a CPU, and in smaller parts where memory runs out.

    Most operations of a step are too small to be shared out among threads, and after each of them all wait for the
    last; threads that learn from half a batch each wait for one another once. An odd number of threads has no halves.
    """

    def __init__(self, device: torch.device) -> None:
        self.threads = torch.get_num_threads()
        self.parts = 2 if device.type == "cpu" and self.threads % 2 == 0 else 1
        settle = partial(torch.set_num_threads, self.threads // 2)
        self.pool = ThreadPoolExecutor(2, initializer=settle) if self.parts == 2 else None

    def learn(self, learn: Callable[[Ids, int], GradientAndSums], pairs: Ids) -> GradientAndSums:
        """What is learned from these pairs, summed over parts. Every part has long sentences and short ones."""
        parts = min(self.parts, len(pairs))
        run = self.pool.map if self.pool else map
        try:
            gradients, figures = zip(*run(learn, [pairs[n::parts] for n in range(parts)], range(parts)), strict=True)
        except RuntimeError as error:
            if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
                raise
            if parts == len(pairs):
                do = "choose a smaller --preset, or leave out long sentences (--longest)"
                raise RunError("a single sentence pair does not fit into memory", do=do) from None
        else:
            return sum(gradients[1:], gradients[0]), sum(figures[1:], figures[0])
        self.parts *= 2  # from now on
        torch.cuda.empty_cache()
        return self.learn(learn, pairs)

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()
            torch.set_num_threads(self.threads)  # for threads to come; theirs was the last word on it


# --- metrics and validation -------------------------------------------------------------------------------------------


def step_metrics(state: State, recipe: Recipe, clock: Clock) -> dict[str, Any]:
    """One line of metrics: the steps since the last one."""
    loss, predictions, tokens = state.sums
    state.sums = [0.0, 0.0, 0.0]
    seconds, clock.last_line = state.seconds - clock.last_line, state.seconds
    record = {"kind": "step", "step": state.step, "epoch": round(state.epoch, 4), "loss": loss / predictions}
    record |= {"rate": rate_of(recipe, state.step, state), "share": share_over(recipe.stop, state)}
    return record | {"seconds": state.seconds, "tokens_per_second": tokens / max(seconds, 1e-9)}


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
    return int(share_over(recipe.stop, state) * recipe.validations) > int(share * recipe.validations)


@torch.no_grad()
def validate(training: Training, state: State) -> dict[str, Any]:
    """Score the mean of the parameters and keep the best; enough validations without a better one end the run."""
    recipe, processes, scores = training.recipe, training.processes, dict[str, Any]()
    figures = torch.zeros(2, dtype=torch.float64)  # the other processes', which add nothing to the leading one's
    if processes.leads:
        average = Parameters(state.parameters.config, state.average)
        scores = training.validate(model.build(average, getattr(torch, recipe.precision)))
        figures = torch.tensor([scores.get(name, math.inf) for name in (recipe.metric, "loss")], dtype=torch.float64)
    score, loss = processes.sum(figures).tolist()
    is_best = state.best_score is None or (
        rank(score, loss, recipe.metric) < rank(state.best_score, state.best_loss, recipe.metric)
    )
    if is_best:
        state.best.copy_(state.average)
        state.best_score, state.best_loss, state.best_step, state.since_best = score, loss, state.step, 0
    else:
        state.since_best += 1
    return {"kind": "validation", "step": state.step, "epoch": round(state.epoch, 4), "best": is_best} | scores


def rank(score: float, loss: float | None, metric: str) -> tuple[float, float]:
    """What a better model has less of. Early on all BLEUs are 0: then the loss decides."""
    return score if METRICS[metric] is min else -score, math.inf if loss is None else loss
