"""A batch learned from in parts: in two halves side by side on a CPU, and in smaller parts where memory runs out.

Most operations of a step are too small to be shared out among threads, and after each of them all wait for the last;
threads that learn from half a batch each wait for one another once. An odd number of threads has no halves.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import torch
from torch import Tensor

from vidrio.data.store import Ids
from vidrio.errors import RunError

GradientAndSums = tuple[Tensor, Tensor]  # and the sums: loss, predictions, tokens, and a place for seconds


class Halves:
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
