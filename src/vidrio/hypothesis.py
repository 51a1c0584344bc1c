"""Search options and results. This file does not import NumPy, which is slow to import.

Hypotheses are ranked by

    score = log p / length ^ length_penalty

where log p sums over the chosen tokens and length counts them, the end token included in both.
CTranslate2 and Marian define it so, too; §6.1 divides by ((5 + length) / 6)^α instead (docs/departures.md).
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
SMALLEST, LARGEST = 1e-30, 1e30  # in float32, far enough from 0 and infinity for any logit
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
    """Sample each token instead of searching for the best translation. The log-probabilities in the result are those
    before temperature."""

    temperature: float = 1.0  #: logits are divided by it; below 1 favours likely tokens
    top_k: int = 0  #: sample only from the k most probable tokens; 0: from all
    top_p: float = 1.0  #: sample only from the most probable tokens, whose probabilities sum to p
    seed: int = 0  #: of the random numbers


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a search."""

    beam: int = 4  #: hypotheses kept at each step; 1 is greedy search
    length_penalty: float = 1.0  #: exponent A in score = log p / length^A
    min_length: int = 1  #: tokens before the end token is allowed; 0 allows an empty result
    max_length: int = 256  #: steps; longer hypotheses are cut
    n_best: int = 1  #: hypotheses to return
    no_repeat_ngram: int = 0  #: n: never repeat a sequence of n tokens; 0: off
    prefix: Ids = ()  #: first tokens to force; they count towards the length and have log p 0
    suppressed: Ids = ()  #: tokens that are never chosen, such as padding
    sampling: Sampling | None = None  #: sample instead of searching

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
    """The search options that a model's config sets."""
    own = config.decoding
    return Options(
        beam=own.beam,
        length_penalty=own.length_penalty,
        max_length=min(own.max_length, config.max_positions),
        suppressed=tuple(i for i in (config.special.pad, config.special.start) if i >= 0),
    )


# --- what is changed in a pass ----------------------------------------------------------------------------------------


class Hidden(NamedTuple):
    """A source row that no attention reads."""

    row: int


class HeadOff(NamedTuple):
    """A head that outputs zeros."""

    sub_layer: str  # enc.1.self
    head: int


class RowSet(NamedTuple):
    """A row with these values after a sub-layer (enc.1.ffn), or at the input of a stack (enc.in)."""

    place: str
    row: int
    values: Sequence[float]


Intervention = Hidden | HeadOff | RowSet
Interventions = Sequence[Intervention]


class Hypothesis(NamedTuple):
    """One result of a search."""

    ids: Ids  #: token ids, without start and end token
    log_prob: float  #: the sum of `token_log_probs`
    score: float  #: log_prob / length^length_penalty, by which hypotheses are ranked
    token_log_probs: tuple[float, ...]  #: one per id, and one for the end token if it ended
    ended: bool  #: False if it was cut at max_length, or because no token was allowed
    attention: Any = None  #: T × S: cross-attention of the last layer, averaged over its heads


def computes_nan(step: int) -> ConfigError:
    """The error of both searches when no token can be chosen because the logits are NaN or infinite."""
    return ConfigError(
        "no token can be chosen",
        found=f"at step {step} the model computes NaN",
        do="find the first NaN: vidrio check, or vidrio look --json",
    )


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Sort by score; ties keep the order in which they were found."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
