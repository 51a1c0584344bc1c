"""A step of learning: how large it is, clipping, Adam (AdamW) and Muon; all on flat vectors."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from vidrio.learn.net.parameters import Parameters

PIECE = 1 << 16  # parameters
LONGEST_WARMUP = 0.1  # of the training, however many steps that are
OPTIMISERS = ("adam", "muon")
SCHEDULES = ("inverse-sqrt", "linear", "cosine", "constant")


@dataclass(frozen=True)
class Schedule:
    """A warm-up, then less and less (§5.3, and other usual shapes): the shape, the highest rate and the steps up to it.

    The rate depends on the step's number and on the share of the training that is over. The share may be counted in
    steps, in passes over the data, or in minutes of a time budget: the schedule does not care.
    """

    kind: str
    peak: float
    warmup: int  # steps; fewer where they would be more than a tenth of the training

    def rate(self, step: int, share: float) -> float:
        """The learning rate of a step (the first is 1) when `share` of the training, 0 to 1, is over."""
        share = min(1.0, max(0.0, share))
        warmth = min(1.0, max(step / max(1, self.warmup), share / LONGEST_WARMUP))
        after = {
            "inverse-sqrt": math.sqrt(max(1, self.warmup) / max(step, self.warmup, 1)),  # Eq. 3
            "linear": 1 - share,
            "cosine": (1 + math.cos(math.pi * share)) / 2,
            "constant": 1.0,
        }[self.kind]
        return self.peak * warmth * after


@dataclass
class Adam:
    """Adam's memory: for each parameter the running mean of its gradient, and of its gradient's square. §5.3."""

    mean: Tensor
    square: Tensor
    step: int = 0
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9

    @staticmethod
    def start(flat: Tensor) -> "Adam":
        return Adam(torch.zeros_like(flat), torch.zeros_like(flat))

    def update(self, flat: Tensor, gradient: Tensor, rate: float, decay: Tensor | None = None) -> None:
        """One step, in place: against the gradient's mean, as far as `rate` where the gradient is steady."""
        self.step += 1
        mean_grown, square_grown = self.grown
        # A piece at a time, which stays in a CPU's cache from the first line to the last.
        size = PIECE if flat.device.type == "cpu" else len(flat)
        pieces = zip(*(whole.split(size) for whole in (flat, gradient, self.mean, self.square)), strict=True)
        for n, (w, g, mean, square) in enumerate(pieces):
            mean.lerp_(g, 1 - self.beta1)
            square.mul_(self.beta2).addcmul_(g, g, value=1 - self.beta2)
            if decay is not None:  # not through the gradient: that is the W in AdamW
                w.addcmul_(w, decay[n * size : (n + 1) * size], value=-rate)
            root = (square / square_grown).sqrt_().add_(self.epsilon)
            w.addcdiv_(mean, root, value=-rate / mean_grown)

    @property
    def grown(self) -> tuple[float, float]:
        """How far both means have grown to full size: they start at 0, and dividing by 1 − βⁿ puts that right."""
        return 1 - self.beta1**self.step, 1 - self.beta2**self.step


# --- Muon -------------------------------------------------------------------------------------------------------------
#
# A matrix's gradient is mostly a few directions over and over; Adam, which knows single numbers only, follows them.
# Muon makes all directions of the mean gradient equally long, so that the rare ones are learned from too (Jordan et
# al. 2024, "Muon: an optimizer for hidden layers in neural networks"). Tables, gains and biases go by Adam as before.

ROUNDS, A, B, C = 5, 3.4445, -4.7750, 2.0315  # of Newton and Schulz: σ → Aσ + Bσ³ + Cσ⁵ brings 0.01 … 1 near 1
LENGTH = 0.2  # a number's usual step in rates, as Adam's, so that both learn at one rate (Liu et al. 2025, §2.2)


def update_by_muon(
    adam: Adam, parameters: Parameters, gradient: Tensor, rate: float, dtype: torch.dtype
) -> list[Tensor]:
    """One step, in place: Adam's, but each matrix of a layer goes along the mean of its gradient made orthogonal. Gives
    what was taken off each matrix at a rate of 1.
    """
    matrices = parameters.matrices(parameters.flat)
    before = [matrix.clone() for matrix in matrices]
    adam.update(parameters.flat, gradient, rate)
    steps = muon_steps(adam, parameters, gradient, dtype)
    for matrix, old, step in zip(matrices, before, steps, strict=True):
        matrix.copy_(old.sub_(step, alpha=rate))
    return steps


def muon_steps(adam: Adam, parameters: Parameters, gradient: Tensor, dtype: torch.dtype) -> list[Tensor]:
    """What is taken off each matrix at a rate of 1, after Adam's means have seen this gradient."""
    means, gradients = parameters.matrices(adam.mean), parameters.matrices(gradient)
    steps: list[Tensor] = [gradient] * len(means)
    for shape in dict.fromkeys(mean.shape for mean in means):
        same = [place for place, mean in enumerate(means) if mean.shape == shape]
        # Nesterov's: where the mean will be if the next gradient is like this one.
        ahead = torch.stack([torch.lerp(means[place], gradients[place], 1 - adam.beta1) for place in same])
        lengths = LENGTH * math.sqrt(max(shape)) * orthogonal(ahead, dtype)
        for place, step in zip(same, lengths, strict=True):
            steps[place] = step
    return steps


def orthogonal(matrices_NRC: Tensor, dtype: torch.dtype) -> Tensor:
    """Each with its directions kept and all their lengths (singular values) made about 1, computed in `dtype`."""
    lengths_N11 = torch.linalg.matrix_norm(matrices_NRC, keepdim=True).clamp_min_(torch.finfo(dtype).tiny)
    x = (matrices_NRC / lengths_N11).to(dtype)
    for _ in range(ROUNDS):
        square = torch.bmm(x, x.mT)
        x = torch.baddbmm(x, torch.baddbmm(square, square, square, beta=B, alpha=C), x, beta=A)
    return x.to(matrices_NRC.dtype)


def clip(gradient: Tensor, most: float) -> float:
    """Shorten the gradient, in place, to the length `most` (0: leave it); returns the length it had.

    Summed in float64 the length comes out the same, in whatever pieces it is added up.
    """
    if gradient.device.type == "cpu":
        squares = torch.stack([piece.dot(piece) for piece in map(Tensor.double, gradient.split(PIECE))]).sum()
    else:
        squares = torch.linalg.vector_norm(gradient, dtype=torch.float64).square()
    length = math.sqrt(float(squares))
    if most and length > most:
        gradient.mul_(most / length)
    return length
