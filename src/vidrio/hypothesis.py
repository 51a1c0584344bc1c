"""What is asked of a search, and what it finds; without NumPy, which is slow to import.

Hypotheses are ranked by

    score = log p / length ^ length_penalty

where log p sums over the chosen tokens and length counts them, the end token included in both.
That is the form of CTranslate2 and Marian, not the ((5 + length) / 6)^α of §6.1 (docs/departures.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

from vidrio.errors import ConfigError
from vidrio.model.config import LARGEST_BEAM, LARGEST_LENGTH_PENALTY, LARGEST_SIZE, ModelConfig

Ids = tuple[int, ...]
Pair = tuple[Sequence[int], Sequence[int]]  # source ids, and target ids without start and end
LARGEST_SEED = 2**32 - 1
SMALLEST, LARGEST = 1e-30, 1e30  # far enough from 0 and infinity in float32, with room for logits
# The range of each option, for the command line, the server and Python.
WHOLE = {
    "beam": (1, LARGEST_BEAM),
    "n_best": (1, LARGEST_BEAM),
    "min_length": (0, LARGEST_SIZE),
    "max_length": (1, LARGEST_SIZE),
    "no_repeat_ngram": (0, LARGEST_SEED),
    "top_k": (0, LARGEST_SEED),
    "seed": (0, LARGEST_SEED),
}
REAL = {
    "length_penalty": (-LARGEST_LENGTH_PENALTY, LARGEST_LENGTH_PENALTY),
    "temperature": (SMALLEST, LARGEST),
    "top_p": (SMALLEST, 1),
}


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw each token at random instead of searching for the best. Reported log-probabilities are untempered."""

    temperature: float = 1.0  # below 1 bolder, above 1 more even
    top_k: int = 0  # only the k likeliest tokens; 0: all
    top_p: float = 1.0  # only the likeliest tokens that together have probability p
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to search."""

    beam: int = 4
    length_penalty: float = 1.0
    min_length: int = 1  # tokens before the end token is allowed; 0 allows an empty result
    max_length: int = 256  # steps; a hypothesis that has not ended by then is cut
    n_best: int = 1
    no_repeat_ngram: int = 0  # n: no n tokens in a row twice; 0: off
    prefix: Ids = ()  # forced first tokens; they count in the length and, being forced, have log p 0
    suppressed: Ids = ()  # never chosen: padding, start, perhaps unknown
    sampling: Sampling | None = None

    def __post_init__(self) -> None:
        if problems := [*self._problems()]:
            raise ConfigError(
                "these search options cannot be used", found="; ".join(problems), do="change the ones named"
            )

    def _problems(self) -> Iterator[str]:
        given = {**vars(self), **vars(self.sampling or Sampling())}
        for name, (least, most) in WHOLE.items():
            if not (hasattr(given[name], "__index__") and least <= given[name] <= most):
                yield f"{name} {given[name]!r} is not a whole number from {least} to {most:,}"
        for name, (lowest, highest) in REAL.items():
            if not (isinstance(given[name], Real) and lowest <= given[name] <= highest):
                yield f"{name} {given[name]!r} is not from {lowest:g} to {highest:g}"
        if self.max_length < self.min_length:
            yield f"max_length {self.max_length} is below min_length {self.min_length}"
        if self.sampling and self.beam > 1:
            yield f"beam {self.beam} with sampling: a draw has no beam, so it must be 1"
        if not self.sampling and self.n_best > self.beam >= 1:
            yield f"n_best {self.n_best} is above beam {self.beam}"
        if len(self.prefix) >= self.max_length:
            yield f"the forced prefix of {len(self.prefix)} tokens fills max_length"


def default_options(config: ModelConfig) -> Options:
    """How a model of this config searches unless told otherwise."""
    own = config.decoding
    return Options(
        beam=own.beam,
        length_penalty=own.length_penalty,
        max_length=min(own.max_length, config.max_positions),
        suppressed=tuple(i for i in (config.special.pad, config.special.start) if i >= 0),
    )


class Hypothesis(NamedTuple):
    """A translation found: ids without start and end."""

    ids: Ids
    log_prob: float
    score: float
    token_log_probs: tuple[float, ...]  # one for each id, and one for the end token if it ended
    ended: bool  # False: cut at max_length, or where no token was allowed
    attention: Any = None  # T × S: the last layer's cross-attention for each id, the mean over its heads


def computes_nan(step: int) -> ConfigError:
    """The error of both searches where no token can be chosen, because the logits are NaN or infinite."""
    return ConfigError(
        "no token can be chosen",
        found=f"at step {step} the model computes NaN",
        do="look where the first NaN comes from: vidrio check, or vidrio look --json",
    )


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """By score; equals stay in the order in which they were found."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
