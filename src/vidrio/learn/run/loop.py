"""The training loop: batch → loss → gradients → clip → step → running mean → tell → validate → keep.

Everything that a run is lies in `State`; the loop changes nothing else. So a run can be stopped at any moment and goes
on exactly: on a CPU the losses that follow are the same to the last bit.
"""

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from vidrio.errors import RunError
from vidrio.learn.batches import Batch, Examples, Position, collate, stream
from vidrio.learn.net import model
from vidrio.learn.net.dropout import dropout
from vidrio.learn.net.loss import smoothed_cross_entropy
from vidrio.learn.net.parameters import Weights
from vidrio.learn.optimiser import clip
from vidrio.learn.processes.processes import Together
from vidrio.learn.processes.sharded import Shards
from vidrio.learn.run.best import best_of, rank
from vidrio.learn.run.machine import Sweeper
from vidrio.learn.run.recipe import Recipe
from vidrio.learn.run.run_files import Keeper
from vidrio.learn.run.snapshots import is_due
from vidrio.learn.run.state import State
from vidrio.learn.schedule import Schedule
from vidrio.model.config import ModelConfig

TELL = 10  # steps between two lines of metrics
EPOCH = 2000  # steps after which a run without an end validates, if the epoch is longer
PROOF = 500  # steps after which the loss must have moved

Validate = Callable[[model.Network], dict[str, float]]
Watch = Callable[[dict[str, Any]], None]


def train(
    examples: Examples,
    state: State,
    recipe: Recipe,
    validate: Validate,
    *,
    run: Path | None = None,
    watch: Watch = lambda record: None,
    together: Together | None = None,
) -> State:
    """Go on from `state` until the recipe says stop. With `run`, what is needed to go on after a kill is kept there."""
    together = together or Together()
    clock = Clock(state.seconds)
    keeper = Keeper(run if together.leads else None, state)
    sweep = Sweeper()
    steps = gather(examples, recipe, state)
    if state.step == 0:
        keeper.snapshot()
    state.ended = is_over(state, recipe)  # an ended run may have been told to go further
    with Interruption() as interruption:
        while not state.ended:
            before = state.share, state.epoch
            take_step(next(steps), examples, state, recipe, clock, together)
            state.share = recipe.stop.share(state.step, state.epoch, state.seconds)
            state.ended = state.share >= 1
            due, stopped = together.any_of(keeper.is_due(), interruption.asked)
            if state.step % TELL == 0 or state.ended:
                watch(keeper.tell(told(state, recipe, clock)))
            if state.ended or validation_due(before, state, recipe):
                record = judge(state, recipe, validate, together)
                if together.leads:
                    watch(keeper.tell(record))
                keeper.keep_best()
                state.seconds = clock.now()
                keeper.save()
            elif due or stopped:
                keeper.save()
            if is_due(state.step):
                keeper.snapshot()
            if stopped:
                raise KeyboardInterrupt
            sweep()
    return state


# --- one step ---------------------------------------------------------------------------------------------------------

Step = tuple[Position, float, list[Any]]


def gather(examples: Examples, recipe: Recipe, state: State) -> Iterator[Step]:
    """The batches of each step, `accumulate` of them."""
    longest = state.weights.config.max_positions
    batches = stream(examples, recipe.batch_tokens, longest, recipe.seed, state.position)
    while True:
        some = [next(batches) for _ in range(recipe.accumulate)]
        yield some[-1][0], some[-1][1], [indices for _, _, indices in some]


def take_step(step: Step, examples: Examples, state: State, recipe: Recipe, clock: "Clock", together: Together) -> None:
    """Learn from some batches: one step of the optimiser."""
    weights = state.weights
    number = state.step + 1
    gradient = torch.zeros_like(weights.flat)
    sums = torch.zeros(4, dtype=torch.float64)  # loss, predictions, tokens, seconds
    for place, indices in enumerate(step[2]):
        if place % together.size == together.rank:
            key = (recipe.seed, number, place)  # every random number depends on it alone
            batch = collate(examples, indices, weights.config, recipe.subword_dropout, key).to(weights.flat.device)
            part, nll = gradient_of(weights, batch, recipe, key)
            gradient += part
            sums += torch.tensor([nll, batch.n_predictions, batch.n_tokens, 0], dtype=torch.float64)
    sums[3] = clock.now() if together.leads else 0
    if not together.sharded:  # where it is, each gradient comes as the sum of all
        together.add_up(gradient)
    loss, predictions, tokens, seconds = together.add_up(sums.to(gradient.device)).tolist()
    length = clip(gradient.div_(predictions), recipe.clip, together.add_up_parts)
    if not math.isfinite(length) or not math.isfinite(loss):
        raise RunError(
            "the training has come apart: the loss or its gradient is not a number any more",
            found=f"step {number}, loss {loss / predictions:.4g}, gradient {length:.4g}",
            do="start the same command with a lower --rate or a longer --warmup; it goes on from the last saved state",
        )
    rate = Schedule(recipe.schedule, recipe.rate, recipe.warmup).rate(number, state.share)
    decay = weights.decays * recipe.weight_decay if recipe.weight_decay else None
    state.adam.update(weights.flat, gradient, rate, decay)
    # In the first steps the mean is of those steps only, not of where they started.
    state.average.lerp_(weights.flat, 1 - min(recipe.average, (1 + number) / (10 + number)))
    state.step, state.seconds = number, seconds
    state.position, state.epoch = step[0], step[1]
    state.sums = [old + new for old, new in zip(state.sums, (loss, predictions, tokens), strict=True)]


def gradient_of(weights: Weights | Shards, batch: Batch, recipe: Recipe, key: tuple[int, ...]) -> tuple[Tensor, float]:
    """The gradient of the loss summed over a batch, and the loss without smoothing."""
    dropouts = model.Dropouts(
        dropout(recipe.dropout, (*key, 0)),
        dropout(recipe.attention_dropout, (*key, 1)),
        dropout(recipe.activation_dropout, (*key, 2)),
    )
    net = model.build(weights, getattr(torch, recipe.precision), dropouts)
    leaves = net.weights, net.tables
    with weights.let_go(leaves):
        if recipe.r_drop:
            loss, nll = objective_twice(net, batch, recipe.smoothing, recipe.r_drop)
        else:
            loss, nll = objective(net, batch, recipe.smoothing)
    loss.backward()
    return weights.gradient(leaves), nll.item()


def objective(net: model.Network, batch: Batch, smoothing: float) -> tuple[Tensor, Tensor]:
    """What is to become small: the loss of saying what is expected, summed; with smoothing and without."""
    rows = predict(net, batch)
    W_VD, b_V = model.output(net)
    return smoothed_cross_entropy(rows.flatten(0, -2), W_VD, b_V, batch.expected_BT.flatten(), smoothing)


def objective_twice(net: model.Network, batch: Batch, smoothing: float, r_drop: float) -> tuple[Tensor, Tensor]:
    """The same with R-Drop: each sentence goes through the model twice, with other values dropped. The loss is the mean
    of both, plus α (KL(p‖q) + KL(q‖p)) / 4: half of the paper's, so that a gradient is as long as without.
    """
    rows = predict(net, batch.twice())
    # Sentence by sentence → target by target, the two predictions of each side by side.
    rows_BT2D = rows.view(len(batch.expected_BT), 2, -1, rows.shape[-1]).transpose(1, 2)
    targets = batch.expected_BT.flatten().repeat_interleave(2)
    loss, nll = smoothed_cross_entropy(rows_BT2D.flatten(0, -2), *model.output(net), targets, smoothing, r_drop)
    return loss / 2, nll / 2


def predict(net: model.Network, batch: Batch) -> Tensor:
    """The rows from which the expected tokens (or class) are told. Teacher forcing: the decoder reads the truth."""
    if not net.config.has_encoder:
        return model.decode(net, batch.target_BT)
    memory = model.encode(net, batch.source_BS, batch.source_lengths_B)
    if not net.config.has_decoder:
        return model.pool(memory, batch.source_lengths_B)
    return model.decode(net, batch.target_BT, memory, model.padding(batch.source_BS, batch.source_lengths_B))


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


# --- telling, judging, keeping ----------------------------------------------------------------------------------------


class Clock:
    """Seconds of training, over all the times that a run was started."""

    def __init__(self, before: float) -> None:
        self.start = time.monotonic() - before
        self.told = before

    def now(self) -> float:
        return time.monotonic() - self.start


def told(state: State, recipe: Recipe, clock: Clock) -> dict[str, Any]:
    """What has happened since the last time, as one line of metrics; a loss that does not move ends the run."""
    loss, predictions, tokens = state.sums
    state.sums = [0.0, 0.0, 0.0]
    loss /= predictions
    seconds, clock.told = state.seconds - clock.told, state.seconds
    if state.first_loss is None:
        state.first_loss = loss
    proven = state.step >= max(PROOF, 2 * recipe.warmup) and (recipe.stop.converged or state.share > 0.1)
    # A model that is learned on from knows much at its start; it is held to what one that knows nothing would lose.
    ignorance = max(state.first_loss, math.log(predicted(state.weights.config)))
    if proven and loss > 0.98 * ignorance:
        raise RunError(
            "the loss does not move: nothing is being learned",
            found=f"{state.first_loss:.3f} at the start, {loss:.3f} after {state.step:,} steps",
            do="look at the data (vidrio data inspect), or try another --rate",
        )
    rate = Schedule(recipe.schedule, recipe.rate, recipe.warmup).rate(state.step, state.share)
    record = {"kind": "step", "step": state.step, "epoch": round(state.epoch, 4), "loss": loss, "rate": rate}
    return record | {"share": state.share, "seconds": state.seconds, "tokens_per_second": tokens / max(seconds, 1e-9)}


def predicted(config: ModelConfig) -> int:
    """Among how many words, or classes, the model chooses."""
    return config.target_vocabulary if config.has_decoder else config.n_classes


def is_over(state: State, recipe: Recipe) -> bool:
    """Whether the recipe's end is reached, or its patience."""
    share = recipe.stop.share(state.step, state.epoch, state.seconds)
    return share >= 1 or 0 < recipe.patience <= state.since_best


def validation_due(before: tuple[float, float], state: State, recipe: Recipe) -> bool:
    """So often in the whole run; where its end is not known, after each epoch."""
    share, epoch = before
    if recipe.stop.converged:
        return state.step % EPOCH == 0 or int(state.epoch) > int(epoch)
    return int(state.share * recipe.validations) > int(share * recipe.validations)


@torch.no_grad()
def judge(state: State, recipe: Recipe, validate: Validate, together: Together) -> dict[str, Any]:
    """Validate the mean of the parameters; the best so far is kept, and enough without a better one ends the run."""
    weights, scores = state.weights, dict[str, float]()
    mean = weights.whole(state.average)
    if together.leads:
        mean = mean.to(weights.flat.device)
        scores = validate(model.build(Weights(weights.config, mean), getattr(torch, recipe.precision)))
    told = [scores.get(name, math.inf) for name in (recipe.metric, "loss")]
    score, loss = together.spread(torch.tensor(told, dtype=torch.float64)).tolist()
    is_best = state.best_score is None or (
        rank(score, loss, recipe.metric) < rank(state.best_score, state.best_loss, recipe.metric)
    )
    if is_best:
        state.best.copy_(state.average)
        state.best_score, state.best_loss, state.best_step, state.since_best = score, loss, state.step, 0
    else:
        state.since_best += 1
    most = recipe.keep_best if recipe.keep_best > 1 else 0  # the best alone is in the state
    state.kept = best_of([*state.kept, (state.step, score, loss)], most, recipe.metric)
    state.ended = is_over(state, recipe)
    return {"kind": "validation", "step": state.step, "epoch": round(state.epoch, 4), "best": is_best} | scores
