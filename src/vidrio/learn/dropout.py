"""Dropout, §5.4: while learning, some values are set to 0 at random and the others enlarged to make up for it.

Drawing one random number a value takes a fifth of a training step on a CPU, so here a value is kept or not by one
random *byte*: the rate is rounded to the nearest 1/256. The bytes come in large draws from a generator seeded with the
step's number: nothing has to be stored to draw the same ones again.
"""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

FIRST, LARGEST = 1 << 16, 1 << 20  # bytes drawn at once: more each time, as far as the cache holds them


class Dropout:
    """Drop with this rate, by a random stream of its own, named by `key`: (seed, step, …). Without a rate nothing is
    dropped, as in translating and validating."""

    def __init__(self, rate: float = 0.0, key: Sequence[int] = ()) -> None:
        self.threshold = round(rate * 256)
        if not 0 <= self.threshold < 256:
            raise ValueError(f"rate {rate} is not between 0 and 511/512")
        self.enlarge = 256 / (256 - self.threshold)
        self.generator = np.random.Generator(np.random.SFC64(np.random.SeedSequence(list(key))))
        self.pool = torch.empty(0)
        self.next = FIRST

    def drop(self, x: Tensor) -> Tensor:
        """x, thinned out."""
        mask = self.mask(x.shape, x.dtype, x.device)
        return x if mask is None else x * mask

    def add(self, x: Tensor, y: Tensor) -> Tensor:
        """x + y, with y thinned out: the residual sum."""
        mask = self.mask(y.shape, y.dtype, y.device)
        return x + y if mask is None else torch.addcmul(x, y, mask)

    def mask(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> Tensor | None:
        """What to multiply by: 0 or 1 / (1 − rate) for each value; None if nothing is dropped."""
        if not self.threshold:
            return None
        if device.type != "cpu":  # a GPU draws its own numbers faster than it could be sent them
            keep = 1 - self.threshold / 256
            generator = torch.Generator(device)
            generator.manual_seed(int(self.generator.integers(0, 2**63)))
            return torch.empty(shape, dtype=dtype, device=device).bernoulli_(keep, generator=generator).div_(keep)
        size = int(np.prod(shape))
        if len(self.pool) < size or self.pool.dtype != dtype:
            draw = self.generator.integers(0, 2**64, size=-(-max(size, self.next) // 8), dtype=np.uint64)
            self.next = min(LARGEST, 2 * self.next)
            # Bytes that NumPy has compared: for PyTorch to make bools, and numbers of them, takes eight times as long.
            kept = (draw.view(np.uint8) >= self.threshold).view(np.uint8)
            self.pool = torch.from_numpy(kept).to(dtype).mul_(self.enlarge)
        mask, self.pool = self.pool[:size], self.pool[size:]
        return mask.view(tuple(shape))
