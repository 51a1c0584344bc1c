"""How large a step is: a warm-up, then less and less. §5.3, and two other usual shapes.

The rate depends on the step's number and on the share of the training that is over. The share may be counted in steps,
in passes over the data, or in minutes of a time budget: the schedule does not care.
"""

import math
from dataclasses import dataclass

LONGEST_WARMUP = 0.1  # of the training, however many steps that are
KINDS = ("inverse-sqrt", "linear", "cosine", "constant")


@dataclass(frozen=True)
class Schedule:
    """A shape, its highest rate and the number of steps up to it: fewer where they would be more than a tenth."""

    kind: str
    peak: float
    warmup: int

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


def paper_peak(d_model: int, warmup: int) -> float:
    """The highest rate of Eq. 3: D^−½ · warmup^−½, reached when the warm-up ends."""
    return (d_model * max(1, warmup)) ** -0.5
