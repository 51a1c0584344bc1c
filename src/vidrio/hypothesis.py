"""Search options and results. This module does not import NumPy, which is slow to import.

Hypotheses are ranked by

    score = log p / length ^ length_penalty

where log p is the sum of the log-probabilities of the chosen tokens, and length is the number of these tokens. Both
include the end token. CTranslate2 and Marian use the same definition; §6.1 divides by ((5 + length) / 6)^α instead
(docs/departures.md).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

from vidrio.errors import ConfigError
from vidrio.model.config import LARGEST_BEAM, LARGEST_LENGTH_PENALTY, LARGEST_SIZE, ModelConfig

Ids = tuple[int, ...]
Pair = tuple[Sequence[int], Sequence[int]]  # source ids, and target ids without start and end tokens
LARGEST_SEED = 2**32 - 1
SMALLEST, LARGEST = 1e-30, 1e30  # within these limits, float32 results are finite and above 0 for any logit
# The range of each option, used by the command line, the server and the Python API.
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
    """Options for sampling each token instead of searching for the best translation. Log-probabilities in the result
    are computed without the temperature."""

    temperature: float = 1.0  #: divisor of the logits; values below 1 favour likely tokens
    top_k: int = 0  #: sample only from the k most probable tokens; 0 means no limit
    top_p: float = 1.0  #: sample only from the most probable tokens whose total probability is p
    seed: int = 0  #: seed of the random numbers


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options for a search."""

    beam: int = 4  #: hypotheses kept at each step; 1 is greedy search
    length_penalty: float = 1.0  #: the exponent A in score = log p / length^A
    min_length: int = 1  #: minimum number of tokens before the end token; 0 allows an empty result
    max_length: int = 256  #: maximum number of steps; longer hypotheses are cut
    n_best: int = 1  #: number of hypotheses to return
    no_repeat_ngram: int = 0  #: never repeat a sequence of this many tokens; 0 disables it
    prefix: Ids = ()  #: forced first tokens, which count towards the length and have a log p of 0
    suppressed: Ids = ()  #: tokens that must never be chosen, such as padding
    sampling: Sampling | None = None  #: sample instead of searching

    def __post_init__(self) -> None:
        if problems := [*self._problems()]:
            raise ConfigError(
                "these search options cannot be used", found="; ".join(problems), do="change these options"
            )

    def _problems(self) -> Iterator[str]:
        if wrong := [*self._out_of_range()]:  # then the comparisons below may be impossible
            yield from wrong
            return
        if self.max_length < self.min_length:
            yield f"max_length {self.max_length} is below min_length {self.min_length}"
        if self.sampling and self.beam > 1:
            yield f"beam {self.beam} with sampling: it must be 1"
        if not self.sampling and self.n_best > self.beam >= 1:
            yield f"n_best {self.n_best} is above beam {self.beam}"
        if len(self.prefix) >= self.max_length:
            yield f"the forced prefix of {len(self.prefix)} tokens leaves no room within max_length"

    def _out_of_range(self) -> Iterator[str]:
        given = {**vars(self), **vars(self.sampling or Sampling())}
        for name, (least, most) in WHOLE.items():
            if not (hasattr(given[name], "__index__") and least <= given[name] <= most):
                yield f"{name} {given[name]!r} is not an integer from {least} to {most:,}"
        for name, (lowest, highest) in REAL.items():
            if not (isinstance(given[name], Real) and lowest <= given[name] <= highest):
                yield f"{name} {given[name]!r} is not between {lowest:g} and {highest:g}"


def default_options(config: ModelConfig) -> Options:
    """Return the default search options of a model."""
    own = config.decoding
    return Options(
        beam=own.beam,
        length_penalty=own.length_penalty,
        max_length=min(own.max_length, config.max_positions),
        suppressed=tuple(i for i in (config.special.pad, config.special.start) if i >= 0),
    )


# --- interventions ----------------------------------------------------------------------------------------------------


class Hidden(NamedTuple):
    """Mask a row of the source in every attention layer."""

    row: int


class HeadOff(NamedTuple):
    """Set the output of an attention head to zeros."""

    sub_layer: str  # enc.1.self
    head: int


class RowSet(NamedTuple):
    """Replace a row with these values, after a sub-layer (enc.1.ffn) or at the input of a stack (enc.in)."""

    place: str
    row: int
    values: Sequence[float]


Intervention = Hidden | HeadOff | RowSet
Interventions = Sequence[Intervention]


class Hypothesis(NamedTuple):
    """A result of a search."""

    ids: Ids  #: token ids, without start and end tokens
    log_prob: float  #: the sum of `token_log_probs`
    score: float  #: log_prob / length^length_penalty, used to rank hypotheses
    token_log_probs: tuple[float, ...]  #: one per id, and one for the end token if there is one
    ended: bool  #: False if the hypothesis was cut at max_length or because no token was allowed
    attention: Any = None  #: T × S: the last layer's cross-attention, averaged over its heads


def computes_nan(step: int) -> ConfigError:
    """Return the error for a search that cannot choose a token because the logits are NaN or infinite."""
    return ConfigError(
        "no token can be chosen",
        found=f"at step {step} the model computes NaN",
        do="find the first NaN: vidrio check, or vidrio look --json",
    )


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """Sort hypotheses by score. Ties keep their order."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)
