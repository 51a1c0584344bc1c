"""What a user asks of a training: from what to learn, and what to make of it. What is not asked is chosen by rules."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.data.prepare import Wishes
from vidrio.data.progress import Progress
from vidrio.errors import RunError
from vidrio.learn.plan import Stop
from vidrio.model import find as models
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, read_config, read_parameters
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers


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
class Material:
    """From what to learn."""

    names: tuple[str, ...]
    dev: tuple[str, ...] = ()
    test: tuple[str, ...] = ()
    columns: tuple[str, str] | None = None
    languages: tuple[str, str] = ("", "")
    vocabulary: int = 0  # 0: by the number of pairs
    separate: bool = False  # a vocabulary for each side
    clean: Wishes = field(default_factory=Wishes)


@dataclass(frozen=True, kw_only=True)
class Choices:
    """What to make of it."""

    task: str = "translate"
    preset: str = ""
    device: str = ""
    sizes: dict[str, Any] = field(default_factory=dict)  # of the model's config
    recipe: dict[str, Any] = field(default_factory=dict)
    stop: Stop | None = None


@dataclass(frozen=True)
class Request:
    """A training, as it was asked for."""

    folder: Path  # the model's
    material: Material
    choices: Choices
    start: Start | None = None  # a model to learn on from
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
