"""What is asked of a training, and the plan that a run is begun with: rates, batches, dropout, when to stop.

The plan is written to MODEL/run/plan.json, and a run that goes on keeps to it: only its end may change. What nobody
asks for, `choose.py` decides.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.data.prepare import CleaningOptions
from vidrio.data.progress import Progress
from vidrio.errors import ConfigError, RunError
from vidrio.learn.optimiser import OPTIMISERS, SCHEDULES
from vidrio.model import find as models
from vidrio.model.config import ModelConfig
from vidrio.model.files import read_json, write_atomically
from vidrio.model.folder import About, read_config, read_parameters
from vidrio.model.json_text import json_text
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers

METRICS = {"loss": min, "bleu": max, "chrf": max, "accuracy": max}  # which way is better


@dataclass(frozen=True, kw_only=True)
class Stop:
    """When training ends; exactly one is set. `converged` alone means: when it gets no better."""

    steps: int = 0
    epochs: float = 0
    seconds: float = 0
    converged: bool = False

    def __str__(self) -> str:
        if self.converged:
            return "when it gets no better"
        if self.steps:
            return f"after {self.steps:,} steps"
        return f"after {self.epochs:g} passes over the data" if self.epochs else f"after {duration(self.seconds)}"


def duration(seconds: float) -> str:
    """A duration to read, as it would be typed: 150 s is not 2 min."""
    seconds = round(seconds)
    if seconds < 100:
        return f"{seconds} s"
    if seconds < 6000:
        return f"{seconds // 60} min" + (f" {seconds % 60} s" if seconds % 60 else "")
    return f"{seconds // 3600} h {seconds % 3600 // 60:02} min"


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """All that decides what a run learns, besides the data, the tokenizer and the model's config."""

    stop: Stop
    optimiser: str = "adam"
    schedule: str = "linear"
    rate: float = 1e-3
    warmup: int = 500
    batch_tokens: int = 8192  # source and target, padding included
    accumulate: int = 1  # batches to one step
    smoothing: float = 0.1  # §5.4
    dropout: float = 0.1
    subword_dropout: float = 0.0  # of BPE merges: the same word, split otherwise in another pass
    clip: float = 1.0
    average: float = 0.999  # of the parameters: how much of the mean stays at each step
    metric: str = "loss"
    validations: int = 20  # in the whole run; without an end, one each epoch
    patience: int = 0  # validations without a better one, after which the run ends; 0: never
    seed: int = 1
    precision: str = "float32"  # of the computation; the parameters themselves are float32

    def __post_init__(self) -> None:
        def wrong(valid: Callable[[Any], bool], *names: str) -> list[str]:
            return [f"{name} is {getattr(self, name)!r}" for name in names if not valid(getattr(self, name))]

        problems = [
            *wrong(lambda rate: 0 <= rate < 1, "dropout", "subword_dropout", "smoothing", "average"),
            *wrong(lambda count: count >= 1, "batch_tokens", "accumulate", "validations"),
            *wrong(lambda size: size >= 0, "clip", "patience", "warmup", "seed"),
            *wrong(lambda rate: rate > 0, "rate"),
            *wrong(OPTIMISERS.__contains__, "optimiser"),
            *wrong(SCHEDULES.__contains__, "schedule"),
            *wrong(METRICS.__contains__, "metric"),
            *wrong(("float32", "bfloat16").__contains__, "precision"),
        ]
        if [value > 0 for value in asdict(self.stop).values() if value] != [True]:
            problems.append("training must end in exactly one way: after steps, passes, a time, or when it converges")
        if self.stop.converged and self.schedule in ("linear", "cosine"):
            problems.append("a schedule that falls to 0 needs an end: steps, epochs or a time")
        if problems:
            raise ConfigError("this recipe cannot be used", found="; ".join(problems), do="change the values named")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run was begun with."""

    task: str
    preset: str  # whose sizes the model has; empty where some are the user's own
    config: ModelConfig
    recipe: Recipe

    @staticmethod
    def from_json(data: dict[str, Any]) -> "Plan":
        recipe = Recipe(**{**data["recipe"], "stop": Stop(**data["recipe"]["stop"])})
        return Plan(**{**data, "config": ModelConfig.from_json(data["config"]), "recipe": recipe})

    def to_text(self) -> str:
        return json_text({**vars(self), "config": self.config.to_json(), "recipe": asdict(self.recipe)}, indent=2)


def read_plan(run: Path) -> Plan | None:
    """The plan of the run in this folder, if there is one."""
    path = run / "plan.json"
    if not path.exists():
        return None
    try:
        return Plan.from_json(read_json(path, what=f"the plan of the run {run}"))
    except (KeyError, TypeError, AttributeError) as error:
        do = "start a new folder with --to, or go on with the version of vidrio that began it"
        raise RunError(f"{path} is not the plan of a run", found=str(error), do=do) from None


def write_plan(run: Path, plan: Plan) -> None:
    write_atomically(run / "plan.json", f"{plan.to_text()}\n".encode())


# --- what is asked for ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Start:
    """A model to learn on from, in place of random numbers: its tokenizer and its sizes are taken as they are."""

    folder: Path
    config: ModelConfig
    about: About

    @staticmethod
    def find(name: str) -> "Start":
        """A folder, or a packaged model by its name."""
        folder = models.find(name)
        config, about = read_config(folder)
        if config.shape != "encoder-decoder":
            raise RunError(f"{name} does not translate", found=f"its shape is {config.shape!r}", do="give a translator")
        return Start(folder, config, about)

    @property
    def name(self) -> str:
        return self.about.name or self.folder.name

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return read_tokenizers(self.folder, self.config)

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        return read_parameters(self.folder)


@dataclass(frozen=True, kw_only=True)
class Request:
    """A training, as it was asked for: where, from what to learn, and what to make of it."""

    folder: Path  # the model's
    names: tuple[str, ...]  # of the files with the pairs
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    columns: tuple[str, str] | None = None
    languages: tuple[str, str] = ("", "")
    clean: CleaningOptions = field(default_factory=CleaningOptions)
    vocabulary: int = 0  # 0: by the number of pairs
    separate: bool = False  # a vocabulary for each side
    start: Start | None = None  # a model to learn on from
    task: str = "translate"
    preset: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)  # of the model's config
    recipe: dict[str, Any] = field(default_factory=dict)
    stop: Stop | None = None
    device: str = ""
    command: tuple[str, ...] = ()  # as it was typed, for the model's card

    @property
    def run(self) -> Path:
        """Where the training keeps everything that it needs to go on."""
        return self.folder / "run"


@dataclass(frozen=True)
class Reporter:
    """Who hears of it meanwhile: lines of text, lines of metrics, and how far long work is."""

    say: Callable[[str], None] = lambda text: None
    watch: Callable[[dict[str, Any]], None] = lambda record: None
    progress: Progress = field(default_factory=Progress)


def cannot_change(what: Sequence[str]) -> RunError:
    """What is asked for now would make another run of it."""
    do = "give the same as before, or start a new folder with --to"
    return RunError("a run that has begun can change its end only", found="; ".join(what), do=do)
