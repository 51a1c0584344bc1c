"""What to train and how: sizes, rates, when to stop. Every choice has a default that suits the data, machine and time.

The rules by which defaults are chosen are few, and stand here as tables; docs/training.md tells them in words.
"""

import math
import time
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch

from vidrio.errors import ConfigError
from vidrio.learn.net.dropout import drops
from vidrio.learn.schedule import KINDS
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.parameters import count

# The paper's sizes (Table 3) and two smaller ones, for data and machines that the paper did not have in mind.
PRESETS: dict[str, dict[str, int]] = {
    "tiny": {"d_model": 128, "n_heads": 4, "d_head": 32, "d_ff": 256, "n_encoder_layers": 4, "n_decoder_layers": 4},
    "small": {"d_model": 256, "n_heads": 8, "d_head": 32, "d_ff": 1024, "n_encoder_layers": 4, "n_decoder_layers": 2},
    "base": {"d_model": 512, "n_heads": 8, "d_head": 64, "d_ff": 2048, "n_encoder_layers": 6, "n_decoder_layers": 6},
    "big": {"d_model": 1024, "n_heads": 16, "d_head": 64, "d_ff": 4096, "n_encoder_layers": 6, "n_decoder_layers": 6},
}
# The largest size that so many pairs can fill; on few pairs larger models are worse, not only slower.
PAIRS_FOR = {"tiny": 0, "small": 100_000, "base": 1_000_000, "big": 5_000_000}
PASSES = 8  # over the data, that a time budget must allow, or a smaller size is taken
VOCABULARY_FOR = {2_000: 0, 4_000: 10_000, 8_000: 30_000, 16_000: 1_000_000, 32_000: 5_000_000}
DROPOUT_FOR = {0.3: 0, 0.2: 100_000, 0.1: 500_000}
RATE_FOR = {"tiny": 3e-3, "small": 1.5e-3, "base": 7e-4, "big": 5e-4}
BATCH_FOR = {"tiny": 4096, "small": 8192, "base": 16384, "big": 32768}
METRICS = {"loss": min, "bleu": max, "chrf": max, "accuracy": max}  # which way is better
TASKS = ("translate", "classify", "generate")


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
        return f"after {self.epochs:g} passes over the data" if self.epochs else f"after {minutes(self.seconds)}"

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
        rates = {
            name: getattr(self, name)
            for name in ("dropout", "attention_dropout", "activation_dropout", "subword_dropout", "smoothing")
        }
        return [
            *((f"{name} is {value}, not from 0 to below 1", not 0 <= value < 1) for name, value in rates.items()),
            (f"schedule is {self.schedule!r}, not one of {', '.join(KINDS)}", self.schedule not in KINDS),
            (f"rate is {self.rate}, not above 0", not self.rate > 0),
            (f"r_drop is {self.r_drop}, not 0 or above", not 0 <= self.r_drop < math.inf),
            (
                f"r_drop is {self.r_drop:g}, but with dropout {self.dropout:g} both predictions would be the same",
                self.r_drop > 0
                and not any(map(drops, (self.dropout, self.attention_dropout, self.activation_dropout))),
            ),
            (f"metric is {self.metric!r}, not one of {', '.join(METRICS)}", self.metric not in METRICS),
            (f"average is {self.average}, not from 0 to below 1", not 0 <= self.average < 1),
            (
                f"precision is {self.precision!r}, not float32 or bfloat16",
                self.precision not in ("float32", "bfloat16"),
            ),
            *(
                (f"{name} is {getattr(self, name)}, not above 0", getattr(self, name) < 1)
                for name in ("batch_tokens", "accumulate", "validations", "keep_best")
            ),
            *(
                (f"{name} is {getattr(self, name)}, below 0", getattr(self, name) < 0)
                for name in ("clip", "weight_decay", "patience", "warmup", "seed")
            ),
            (
                "a schedule that falls to 0 needs an end: steps, epochs or a time",
                self.stop.converged and self.schedule in ("linear", "cosine"),
            ),
        ]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Recipe":
        return Recipe(**{**data, "stop": Stop(**data["stop"])})


def minutes(seconds: float) -> str:
    """A duration to read."""
    seconds = round(seconds)
    if seconds < 100:
        return f"{seconds} s"
    return f"{seconds // 60} min" if seconds < 6000 else f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


def largest_for(table: dict[Any, int], amount: int) -> Any:
    """The last entry of a table whose threshold the amount reaches."""
    return [name for name, threshold in table.items() if amount >= threshold][-1]


def choose_preset(pairs: int, tokens: int, vocabulary: int, seconds: float, speed: float) -> str:
    """The largest size that the pairs can fill and the time can train. `speed`: multiplications a second."""
    fitting = [name for name, threshold in PAIRS_FOR.items() if pairs >= threshold]
    while len(fitting) > 1 and seconds and tokens_a_second(fitting[-1], vocabulary, speed) * seconds < PASSES * tokens:
        fitting.pop()
    return fitting[-1]


def tokens_a_second(preset: str, vocabulary: int, speed: float) -> float:
    """A rough guess: half of the parameters meet each token, three times (once forward, twice back), at half speed."""
    return speed / (3 * count(sized(preset, vocabulary, SpecialIds())))


def sized(preset: str, vocabulary: int, special: SpecialIds, **changes: Any) -> ModelConfig:
    """The config of a preset, for one vocabulary on both sides."""
    values = {"source_vocabulary": vocabulary, "target_vocabulary": vocabulary, "special": special, "norm": "pre"}
    return ModelConfig(**{**values, **PRESETS[preset], **changes})


def preset_of(config: ModelConfig) -> str:
    """The preset whose sizes these are; empty if none has them."""
    return next((name for name, sizes in PRESETS.items() if sizes.items() <= vars(config).items()), "")


def nearest_preset(config: ModelConfig) -> str:
    """The preset whose model would have the most similar number of parameters, all else being the same."""

    def times(name: str) -> float:
        sizes: dict[str, Any] = dict(PRESETS[name])
        return abs(math.log(count(replace(config, **sizes)) / count(config)))

    return min(PRESETS, key=times)


def measure_speed(device: torch.device, dtype: torch.dtype) -> float:
    """Multiplications (with their additions) a second, in matrix products of the sizes that matter."""
    a, b = torch.ones(2048, 512, dtype=dtype, device=device), torch.ones(512, 512, dtype=dtype, device=device)
    best = float("inf")
    for _ in range(6):
        start = time.perf_counter()
        product = a @ b
        product[0, 0].item()  # wait for a GPU
        best = min(best, time.perf_counter() - start)
    return a.shape[0] * a.shape[1] * b.shape[1] / best


def choose_precision(device: torch.device) -> str:
    """bfloat16 where the machine multiplies in it, else float32."""
    if device.type == "cuda":
        return "bfloat16" if torch.cuda.is_bf16_supported() else "float32"
    can = torch.cpu.get_capabilities()
    return "bfloat16" if can.get("avx512_bf16") or can.get("amx_bf16") else "float32"
