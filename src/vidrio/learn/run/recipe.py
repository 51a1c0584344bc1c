"""What a run learns by: rates, batches, dropout, when to stop. What nobody chooses, `choose.py` does."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from vidrio.errors import ConfigError
from vidrio.learn.net.dropout import drops
from vidrio.learn.optimiser import SCHEDULES

METRICS = {"loss": min, "bleu": max, "chrf": max, "accuracy": max}  # which way is better


@dataclass(frozen=True, kw_only=True)
class Stop:
    """When training ends; exactly one is set. `converged` alone means: when it gets no better."""

    steps: int = 0
    epochs: float = 0
    seconds: float = 0
    converged: bool = False

    def __post_init__(self) -> None:
        given = [name for name, value in asdict(self).items() if value]
        if len(given) != 1:
            raise ConfigError(
                "training must end in exactly one way", found=", ".join(given) or "none", do="give one of them"
            )
        if min(self.steps, self.epochs, self.seconds) < 0:
            raise ConfigError("training cannot end before it begins", found=str(self), do="give a number above 0")

    def __str__(self) -> str:
        if self.converged:
            return "when it gets no better"
        if self.steps:
            return f"after {self.steps:,} steps"
        return f"after {self.epochs:g} passes over the data" if self.epochs else f"after {duration(self.seconds)}"

    def share(self, step: int, epoch: float, seconds: float) -> float:
        """How much of the training is over, 0 to 1."""
        if self.converged:
            return 0.0
        return min(
            1.0, step / self.steps if self.steps else epoch / self.epochs if self.epochs else seconds / self.seconds
        )


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that decides what a run learns, besides the data, the tokenizer and the model's config."""

    stop: Stop
    schedule: str = "linear"
    rate: float = 1e-3
    warmup: int = 500
    batch_tokens: int = 8192  # source and target, padding included
    accumulate: int = 1  # batches to one step
    smoothing: float = 0.1  # §5.4
    dropout: float = 0.1
    attention_dropout: float = 0.0
    activation_dropout: float = 0.0
    subword_dropout: float = 0.0  # of BPE merges: the same word, split otherwise now and then
    r_drop: float = 0.0  # how much two predictions of the same, with other dropout, must agree
    clip: float = 1.0
    weight_decay: float = 0.0
    average: float = 0.999  # of the parameters: how much of the mean stays at each step
    metric: str = "loss"
    validations: int = 20  # in the whole run; without an end, one each epoch
    keep_best: int = 1  # models, whose mean is tried at the end
    patience: int = 0  # validations without a better one, after which the run ends; 0: never
    seed: int = 1
    precision: str = "float32"  # of the computation; the parameters themselves are float32

    def __post_init__(self) -> None:
        problems = [text for text, wrong in self._problems() if wrong]
        if problems:
            raise ConfigError("this recipe cannot be used", found="; ".join(problems), do="change the values named")

    def _problems(self) -> list[tuple[str, bool]]:
        def values(*names: str) -> list[tuple[str, Any]]:
            return [(name, getattr(self, name)) for name in names]

        rates = values("dropout", "attention_dropout", "activation_dropout", "subword_dropout", "smoothing")
        counts = values("batch_tokens", "accumulate", "validations", "keep_best")
        sizes = values("clip", "weight_decay", "patience", "warmup", "seed")
        drops_some = any(map(drops, (self.dropout, self.attention_dropout, self.activation_dropout)))
        same = f"r_drop is {self.r_drop:g}, but with dropout {self.dropout:g} both predictions would be the same"
        precise = self.precision in ("float32", "bfloat16")
        falls = self.schedule in ("linear", "cosine")
        return [
            *((f"{name} is {value}, not from 0 to below 1", not 0 <= value < 1) for name, value in rates),
            (f"schedule is {self.schedule!r}, not one of {', '.join(SCHEDULES)}", self.schedule not in SCHEDULES),
            (f"rate is {self.rate}, not above 0", not self.rate > 0),
            (f"r_drop is {self.r_drop}, not 0 or above", not 0 <= self.r_drop < math.inf),
            (same, self.r_drop > 0 and not drops_some),
            (f"metric is {self.metric!r}, not one of {', '.join(METRICS)}", self.metric not in METRICS),
            (f"average is {self.average}, not from 0 to below 1", not 0 <= self.average < 1),
            (f"precision is {self.precision!r}, not float32 or bfloat16", not precise),
            *((f"{name} is {value}, not above 0", value < 1) for name, value in counts),
            *((f"{name} is {value}, below 0", value < 0) for name, value in sizes),
            ("a schedule that falls to 0 needs an end: steps, epochs or a time", self.stop.converged and falls),
        ]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Recipe":
        return Recipe(**{**data, "stop": Stop(**data["stop"])})


def duration(seconds: float) -> str:
    """A duration to read, as it would be typed: 150 s is no 2 min."""
    seconds = round(seconds)
    if seconds < 100:
        return f"{seconds} s"
    if seconds < 6000:
        return f"{seconds // 60} min" + (f" {seconds % 60} s" if seconds % 60 else "")
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"
