"""One training step on one pair, taken apart: the loss token by token, every gradient, one parameter's next value.

No formula of training stands here. The loss is `net/loss.py`'s, of all tokens and of one at a time; the gradient is
PyTorch's; the step is `optimiser.py`'s, taken on a copy. It all happens in float64 and without dropout, so that the
numbers are the model's own and can be recomputed by hand; a real step sees many pairs, and drops some values at random.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor

from vidrio.data.store import in_memory
from vidrio.learn import model
from vidrio.learn.batches import Batch, collate
from vidrio.learn.loss import objective, predict, smoothed_cross_entropy
from vidrio.learn.next_step import Rules
from vidrio.learn.optimiser import Adam, clip, update_by_muon
from vidrio.learn.parameters import Parameters
from vidrio.model.config import ModelConfig

MOVES = tuple(10.0**-n for n in range(1, 10))  # how far a parameter is moved to check its gradient


@dataclass(frozen=True)
class Seen:
    """One pair, and the model that learns from it; `parameters` are in float64."""

    parameters: Parameters
    batch: Batch
    smoothing: float

    @staticmethod
    def of(
        config: ModelConfig,
        parameters: Mapping[str, np.ndarray],
        source: Sequence[int],
        target: Sequence[int],
        smoothing: float,
    ) -> "Seen":
        """From ids without special tokens; a classifier's `target` is the number of its class."""
        batch = collate(in_memory([(source, target)]), np.array([0]), config)
        return Seen(Parameters.from_arrays(config, parameters, torch.float64), batch, smoothing)

    @property
    def read(self) -> list[int]:
        """What the decoder reads: the right answer so far."""
        return [int(i) for i in self.batch.target_BT[0]]

    @property
    def expected(self) -> list[int]:
        """What should come out after each of them."""
        return [int(i) for i in self.batch.expected_BT[0]]

    # --- the loss -----------------------------------------------------------------------------------------------------

    @cached_property
    def logits_TV(self) -> np.ndarray:
        """One number for every word (or class) at every place."""
        with torch.no_grad():
            net = model.build(self.parameters)
            return model.logits(net, predict(net, self.batch).flatten(0, -2)).numpy()

    @cached_property
    def log_p_TV(self) -> np.ndarray:
        """The log-probability of every word at every place."""
        return torch.from_numpy(self.logits_TV).log_softmax(-1).numpy()

    @property
    def log_p_T(self) -> np.ndarray:
        """The log-probability of what should come out."""
        return self.log_p_TV[np.arange(len(self.expected)), self.expected]

    @property
    def ranks_T(self) -> np.ndarray:
        """The place of what should come out among all words; 1 is the likeliest."""
        return 1 + (self.log_p_TV > self.log_p_T[:, None]).sum(1)

    @cached_property
    def losses_T2(self) -> np.ndarray:
        """For each place the loss that is learned from, and the one without smoothing, −log p."""
        with torch.no_grad():
            net = model.build(self.parameters)
            rows_TD, expected_T = predict(net, self.batch).flatten(0, -2), self.batch.expected_BT[0]
            W_VD, b_V = model.output(net)
            pairs = [
                smoothed_cross_entropy(rows_TD[t : t + 1], W_VD, b_V, expected_T[t : t + 1], self.smoothing)
                for t in range(len(expected_T))
            ]
        return np.array([[float(loss), float(nll)] for loss, nll in pairs])

    @cached_property
    def loss(self) -> float:
        """What training makes smaller: the mean loss of a prediction."""
        return self.loss_with(self.parameters.flat)

    def loss_with(self, flat: Tensor) -> float:
        """The same with other parameters."""
        with torch.no_grad():
            return float(self._mean_loss(model.build(replace(self.parameters, flat=flat))))

    def _mean_loss(self, net: model.Network) -> Tensor:
        return objective(net, self.batch, self.smoothing)[0] / self.batch.n_predictions

    # --- its gradient -------------------------------------------------------------------------------------------------

    @cached_property
    def gradient(self) -> Tensor:
        """The derivative of the loss by every parameter, laid out as the parameters are."""
        net = model.build(self.parameters)
        self._mean_loss(net).backward()
        return model.gradient(net)

    @cached_property
    def gradients(self) -> dict[str, np.ndarray]:
        """The same as arrays, named and turned as `parameters.py` has them."""
        return replace(self.parameters, flat=self.gradient).to_arrays()

    def place(self, name: str, index: tuple[int, ...]) -> int:
        """Where in the flat vector a number of a parameter lies."""
        everywhere = torch.arange(len(self.parameters.flat))
        return int(replace(self.parameters, flat=everywhere).to_arrays()[name][index])

    def moved(self, place: int, by: float) -> tuple[float, float]:
        """The loss with one parameter made larger by so much, and smaller."""
        up, down = self.parameters.flat.clone(), self.parameters.flat.clone()
        up[place] += by
        down[place] -= by
        return self.loss_with(up), self.loss_with(down)

    def differences(self, place: int) -> list["Difference"]:
        """The gradient of one parameter again, from nothing but losses: for several distances, the best one among them.

        (L(w + h) − L(w − h)) / 2h misses the derivative by about h² (the curve is not straight) and by about ε / h
        (both losses are rounded, to ε of their size). The sum is smallest near h = ∛ε.
        """
        best = self.best_move(place)
        return [
            Difference(by, *self.moved(place, by), float(self.gradient[place]), by == best)
            for by in sorted({*MOVES, best}, reverse=True)
        ]

    def best_move(self, place: int) -> float:
        """About ∛ε, and in proportion for a parameter larger than 1; of two digits, as it is printed."""
        best = float(np.cbrt(np.finfo(np.float64).eps)) * max(1.0, abs(float(self.parameters.flat[place])))
        return float(f"{best:.1e}")

    # --- what becomes of one parameter --------------------------------------------------------------------------------

    def life(self, place: int, rules: Rules) -> "Life":
        """One parameter in the next step of the optimiser, which is taken on copies."""
        if rules.parameters is not None and self.parameters is not rules.parameters:
            # There the run goes on, with that gradient.
            return replace(self, parameters=rules.parameters).life(place, rules)
        parameters, gradient = self.parameters.flat.clone(), self.gradient.clone()
        adam = rules.adam or Adam.start(parameters)
        length = clip(gradient, rules.longest)
        after = replace(adam, mean=adam.mean.clone(), square=adam.square.clone())
        turned = None
        if rules.optimiser == "adam":
            after.update(parameters, gradient, rules.rate)
        else:
            update_by_muon(after, replace(self.parameters, flat=parameters), gradient, rules.rate)
            if self.is_in_a_matrix(place):
                turned = float((self.parameters.flat[place] - parameters[place]) / rules.rate)
        return Life(
            value=float(self.parameters.flat[place]),
            gradient=float(self.gradient[place]),
            length=length,
            longest=rules.longest,
            clipped=float(gradient[place]),
            mean_before=float(adam.mean[place]),
            mean=float(after.mean[place]),
            square_before=float(adam.square[place]),
            square=float(after.square[place]),
            step=after.step,
            beta1=adam.beta1,
            beta2=adam.beta2,
            epsilon=adam.epsilon,
            mean_grown=after.grown[0],
            square_grown=after.grown[1],
            rate=rules.rate,
            turned=turned,
            new=float(parameters[place]),
        )

    def is_in_a_matrix(self, place: int) -> bool:
        """Whether Muon moves this number, which stands in a layer's matrix."""
        marked = torch.zeros_like(self.parameters.flat)
        for matrix in self.parameters.matrices(marked):
            matrix.fill_(1)
        return bool(marked[place])


@dataclass(frozen=True)
class Difference:
    """A gradient from two losses, beside the one from PyTorch."""

    by: float  # h
    up: float  # L(w + h)
    down: float  # L(w − h)
    gradient: float
    best: bool

    @property
    def quotient(self) -> float:
        return (self.up - self.down) / (2 * self.by)

    @property
    def relative_error(self) -> float:
        """How far the two are apart, in proportion to the larger one; 0 where both are 0."""
        larger = max(abs(self.quotient), abs(self.gradient))
        return abs(self.quotient - self.gradient) / larger if larger else 0.0


@dataclass(frozen=True)
class Life:
    """One parameter in one step of the optimiser, in the order in which things happen."""

    value: float
    gradient: float
    length: float  # of the whole gradient, all parameters'
    longest: float  # that it may be; 0 for no bound
    clipped: float
    mean_before: float
    mean: float
    square_before: float
    square: float
    step: int
    beta1: float
    beta2: float
    epsilon: float
    mean_grown: float  # 1 − β₁ⁿ
    square_grown: float  # 1 − β₂ⁿ
    rate: float
    turned: float | None  # what Muon takes off at a rate of 1; None: it goes by Adam
    new: float

    @property
    def ahead(self) -> float:
        """Where the mean would be if the next gradient were like this one: Nesterov's, which Muon makes orthogonal."""
        return self.beta1 * self.mean + (1 - self.beta1) * self.clipped

    @property
    def factor(self) -> float:
        """What the gradient was multiplied by, to be no longer than allowed."""
        return self.longest / self.length if self.longest and self.length > self.longest else 1.0
