"""Begin with a model instead of random numbers: its tokenizer and its sizes are taken as they are, and it learns on."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import RunError
from vidrio.model import find as models
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, read_config, read_parameters
from vidrio.text.tokens.tokenizer import Tokenizer

# Of the usual highest rate: what has been learned shall change, and not be lost.
SHARE_OF_RATE = 1 / 3


@dataclass(frozen=True)
class Start:
    """A model to learn on from."""

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

    def tokenizers(self) -> tuple[Tokenizer, Tokenizer]:
        return models.read_tokenizers(self.folder, self.config)

    def parameters(self) -> dict[str, np.ndarray[Any, Any]]:
        return read_parameters(self.folder)
