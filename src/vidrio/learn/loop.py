"""The training loop: batches → loss → gradient → clip → step → running mean → metrics → validate → keep the best.

The loop modifies only `State`, so a run can be stopped at any time and resumed exactly where it stopped. On a CPU, the
losses after resuming are bit-for-bit identical to those of an uninterrupted run.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
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
from vidrio.learn.parameters import Parameters, clip, learning_rate, update_by_muon
from vidrio.learn.plan import Recipe
from vidrio.learn.state import RunFolder, State
from vidrio.learn.task import Stop

EVERY = 10  # number of steps per line of metrics

Validate = Callable[[model.Network], dict[str, Any]]
Clock = Callable[[], float]  # seconds of training, including earlier sessions of the run
GradientAndSums = tuple[Tensor, Tensor]  # the gradient, and the sums of loss, predictions, tokens and seconds
Split = Callable[[Callable[[Ids, int], GradientAndSums], Ids], GradientAndSums]  # applies a function to a batch


@dataclass(frozen=True)
class Training:
    """The inputs of the training loop, apart from the state."""

    examples: Examples
    recipe: Recipe
    validate: Validate
    run: Path | None = None  # the folder for checkpoints
    processes: Processes = ALONE


def loop(training: Training, state: State) -> Iterator[dict[str, Any]]:
    """Train from `state` until the recipe's stopping condition is met. Yields the training and validation metrics."""
    recipe, processes = training.recipe, training.processes
    start, longest = time.monotonic() - state.seconds, state.parameters.config.max_positions
    # All processes use the leading process's clock, so that they agree on the learning rate and on when to stop.
    batches = stream(training.examples, recipe.batch_tokens, longest, recipe.seed, state.position)

    def clock() -> float:
        return time.monotonic() - start

    folder = RunFolder(training.run if processes.leads else None, state)
    with split_batches(state.parameters.flat.device) as split, interruptions() as signals:
        if state.step and state.best_score is None and share_over(recipe.stop, state) == 1:
            record = validate(training, state)  # the end was moved to before the first validation
            if processes.leads:
                yield folder.log(record)
            folder.save(state)
        while share_over(recipe.stop, state) < 1:
            before = share_over(recipe.stop, state)
            take_step(training, list(islice(batches, recipe.accumulate * processes.size)), state, clock, split)
            share = share_over(recipe.stop, state)
            ends = share == 1
            # If any process needs to save or stop, all processes do.
            wishes = torch.tensor([folder.is_due(), bool(signals)], dtype=torch.float32)
            due, stopped = (processes.sum(wishes) > 0).tolist()
            if state.step % EVERY == 0 or ends:
                yield folder.log(step_metrics(state, recipe))
            if ends or int(share * recipe.validations) > int(before * recipe.validations):
                record = validate(training, state)
                if processes.leads:
                    yield folder.log(record)
                [state.seconds] = processes.of_leader([clock()])
                folder.save(state)
            elif due or stopped:
                folder.save(state)
            folder.snapshot(state)
            if stopped:
                raise KeyboardInterrupt


@contextmanager
def interruptions() -> Iterator[list[int]]:
    """Yield a list to which SIGINT (Ctrl-C) and SIGTERM are added as they arrive.

    The loop checks the list after each step, so that it can save a checkpoint before it stops. A second signal stops
    training immediately.
    """
    signals: list[int] = []

    def ask(number: int, frame: object) -> None:
        if signals:
            raise KeyboardInterrupt
        signals.append(number)

    numbers = (signal.SIGINT, signal.SIGTERM) if threading.current_thread() is threading.main_thread() else ()
    before = {number: signal.signal(number, ask) for number in numbers}
    try:
        yield signals
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


# --- one step ---------------------------------------------------------------------------------------------------------


def take_step(training: Training, batches: Sequence[Streamed], state: State, clock: Clock, split: Split) -> None:
    """Compute the gradient over these batches, and take one optimiser step."""
    recipe, processes, parameters = training.recipe, training.processes, state.parameters
    number, rate = state.step + 1, rate_of(recipe, state.step + 1, state)
    gradient = torch.zeros_like(parameters.flat)
    sums = torch.zeros(4, dtype=torch.float64)  # loss, predictions, tokens, seconds
    try:
        for place, batch in enumerate(batches):
            if place % processes.size == processes.rank:
                learn = partial(learn_from, recipe, parameters, (recipe.seed, number, place), training.examples)
                part, figures = split(learn, batch.pairs)
                gradient += part
                sums += figures
    except RuntimeError as error:
        if not isinstance(error, torch.OutOfMemoryError) and "can't allocate memory" not in str(error):
            raise
        do = "start again in a new folder with half the --batch-tokens and twice the --accumulate, or a smaller model"
        raise RunError("a batch does not fit in memory", found=f"step {number}", do=do) from None
    sums[3] = clock() if processes.leads else 0
    processes.sum(gradient)
    loss, predictions, tokens, seconds = processes.sum(sums.to(gradient.device)).tolist()
    length = clip(gradient.div_(predictions), recipe.clip)
    if not math.isfinite(length) or not math.isfinite(loss):
        raise RunError(
            "training has diverged: the loss or its gradient is no longer a number",
            found=f"step {number}, loss {loss / predictions:.4g}, gradient {length:.4g}",
            do="start again in a new folder with a lower --rate or a longer --warmup",
        )
    if recipe.optimiser == "adam":
        state.adam.update(parameters.flat, gradient, rate)
    else:
        update_by_muon(state.adam, parameters, gradient, rate, getattr(torch, recipe.precision))
    # Early steps use a smaller decay, so that the running mean soon forgets the initial parameters.
    state.average.lerp_(parameters.flat, 1 - min(recipe.average, (1 + number) / (10 + number)))
    state.position, state.epoch = batches[-1].position, batches[-1].epoch
    since = (loss, predictions, tokens, seconds - state.seconds)
    state.sums = [old + new for old, new in zip(state.sums, since, strict=True)]
    state.step, state.seconds = number, seconds


def learn_from(
    recipe: Recipe, parameters: Parameters, place: Sequence[int], examples: Examples, pairs: Ids, part: int
) -> GradientAndSums:
    """Return the gradient of the loss on these pairs, and the sums of loss, predictions and tokens."""
    batch = collate(examples, pairs, parameters.config)
    # Dropout depends only on the seed, the step, the batch's index within the step, and the part of the batch.
    dropout = model.Dropout(recipe.dropout, (*place, part))
    net = model.build(parameters, getattr(torch, recipe.precision), dropout)
    gradient, nll = gradient_of(net, batch.to(parameters.flat.device), recipe.smoothing)
    return gradient, torch.tensor([nll, batch.n_predictions, batch.n_tokens, 0], dtype=torch.float64)


def rate_of(recipe: Recipe, step: int, state: State) -> float:
    return learning_rate(recipe.schedule, recipe.rate, recipe.warmup, step, share_over(recipe.stop, state))


@contextmanager
def split_batches(device: torch.device) -> Iterator[Split]:
    """Yield a function that computes the two halves of a batch in parallel, on a CPU with an even number of threads.

    Most operations of a step are too small to parallelise efficiently, because the threads synchronise after every
    operation. Two workers that each process half of the batch synchronise only once.
    """
    threads = torch.get_num_threads()
    if device.type != "cpu" or threads % 2:
        yield lambda learn, pairs: learn(pairs, 0)
        return
    with ThreadPoolExecutor(2, initializer=torch.set_num_threads, initargs=(threads // 2,)) as pool:

        def split(learn: Callable[[Ids, int], GradientAndSums], pairs: Ids) -> GradientAndSums:
            if len(pairs) == 1:
                return learn(pairs, 0)
            (gradient, figures), (other, more) = pool.map(learn, [pairs[::2], pairs[1::2]], (0, 1))
            return gradient + other, figures + more

        try:
            yield split
        finally:
            torch.set_num_threads(threads)  # the pool changed PyTorch's default for new threads


# --- metrics and validation -------------------------------------------------------------------------------------------


def step_metrics(state: State, recipe: Recipe) -> dict[str, Any]:
    """Return the metrics of the steps since the previous call."""
    loss, predictions, tokens, seconds = state.sums
    state.sums = [0.0] * 4
    record = {"kind": "step", "step": state.step, "epoch": round(state.epoch, 4), "loss": loss / predictions}
    record |= {"rate": rate_of(recipe, state.step, state), "share": share_over(recipe.stop, state)}
    return record | {"seconds": state.seconds, "tokens_per_second": tokens / max(seconds, 1e-9)}


def share_over(stop: Stop, state: State) -> float:
    """Return the fraction of the training that is complete."""
    ends = ((stop.steps, state.step), (stop.epochs, state.epoch), (stop.seconds, state.seconds))
    return min(1.0, max((done / end for end, done in ends if end), default=0.0))


@torch.no_grad()
def validate(training: Training, state: State) -> dict[str, Any]:
    """Validate the running mean of the parameters, and keep a copy if its score is the best so far."""
    recipe, processes, scores = training.recipe, training.processes, dict[str, Any]()
    if processes.leads:
        average = Parameters(state.parameters.config, state.average)
        scores = training.validate(model.build(average, getattr(torch, recipe.precision)))
    score, loss = processes.of_leader([scores.get(name, math.inf) for name in (recipe.metric, "loss")])
    is_best = state.best_score is None or (
        rank(score, loss, recipe.metric) < rank(state.best_score, state.best_loss, recipe.metric)
    )
    if is_best:
        state.best.copy_(state.average)
        state.best_score, state.best_loss, state.best_step = score, loss, state.step
    return {"kind": "validation", "step": state.step, "epoch": round(state.epoch, 4), "best": is_best} | scores


def rank(score: float, loss: float | None, metric: str) -> tuple[float, float]:
    """Return a sort key that is lower for better models. Ties, e.g. early BLEU scores of 0, are broken by the loss."""
    return score if metric == "loss" else -score, math.inf if loss is None else loss
