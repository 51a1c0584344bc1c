"""Adam, with decay of its own (AdamW), clipping and a running mean of the parameters: all on flat vectors."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

PIECE = 1 << 16  # parameters


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


def squares(gradient: Tensor) -> Tensor:
    """The sum of all squares. In float64 it comes out the same, in whatever parts a gradient is added up."""
    if gradient.device.type != "cpu":
        return torch.linalg.vector_norm(gradient, dtype=torch.float64).square()
    return torch.stack([piece.dot(piece) for piece in map(Tensor.double, gradient.split(PIECE))]).sum()


def clip(gradient: Tensor, most: float, sum_of: Callable[[Tensor], Tensor] = lambda own: own) -> float:
    """Shorten the gradient, in place, to the length `most` (0: leave it); returns the length it had.

    `sum_of` adds up what several processes have, where each has only its part of the gradient.
    """
    length = math.sqrt(float(sum_of(squares(gradient))))
    if most and length > most:
        gradient.mul_(most / length)
    return length
