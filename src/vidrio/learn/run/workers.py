"""Threads that learn from a batch side by side, each from a share of it.

Most operations of a step are too small to be shared out among threads, and after each of them all wait for the last.
Two threads that learn from half a batch each have to wait once in a step: `benchmarks/train_speed.py --shares 1` is
without. A GPU shares out by itself.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

import torch

from vidrio.data.store import Ids

SHARES = 2  # of a batch: each has gradients of its own

Result = TypeVar("Result")


def shares_for(device: torch.device) -> int:
    """How many shares a batch is learned from in; as many threads must come together for each."""
    return SHARES if device.type == "cpu" and torch.get_num_threads() % SHARES == 0 else 1


class Workers:
    """A thread for each share, with its part of the threads that compute; for one share, the thread that asks."""

    def __init__(self, shares: int) -> None:
        self.shares, self.threads = shares, torch.get_num_threads()
        settle = partial(torch.set_num_threads, self.threads // shares)
        self.pool = ThreadPoolExecutor(shares, initializer=settle) if shares > 1 else None

    def each(self, learn: Callable[[Ids, int], Result], pairs: Ids) -> list[Result]:
        """What comes of each share of these pairs, in order. Every share has long sentences and short ones."""
        if self.pool is None:
            return [learn(pairs, 0)]
        work = [self.pool.submit(learn, pairs[n :: self.shares], n) for n in range(min(self.shares, len(pairs)))]
        return [share.result() for share in work]

    def close(self) -> None:
        if self.pool is not None:
            self.pool.shutdown()
            torch.set_num_threads(self.threads)  # for threads to come; theirs was the last word on it
