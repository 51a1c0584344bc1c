"""Make models for comparing engines, with small unusual sizes and random parameters."""

import numpy as np

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters

SOURCE = [3, 7, 1, 28, 7]  # S = 5
TARGET = [2, 4, 11, 4, 0, 28, 9]  # T = 7; here 0, the padding id, is an ordinary token


def make_config(**changes: object) -> ModelConfig:
    """Return a config with unusual, pairwise different sizes, so that axes cannot be confused."""
    values = {
        "source_vocabulary": 29,
        "target_vocabulary": 31,
        "d_model": 12,
        "n_heads": 3,
        "d_head": 5,
        "d_ff": 20,
        "n_encoder_layers": 2,
        "n_decoder_layers": 2,
        "n_classes": 4,
        "max_positions": 16,
        "tying": "none",
        "norm_epsilon": 1e-3,  # large enough to notice if it is not used
    }
    values.update(changes)
    if values["tying"] == "all" and values.get("shape", "encoder-decoder") == "encoder-decoder":
        values["target_vocabulary"] = values["source_vocabulary"]
    return ModelConfig(**values)  # type: ignore[arg-type]


def make_parameters(config: ModelConfig, seed: int = 0) -> dict[str, np.ndarray]:
    """Return random parameters. No gain is 1 and no bias is 0, so that tests notice if one is omitted."""
    generator = np.random.default_rng(seed)
    parameters = random_parameters(config, generator)
    return {name: value + 0.3 * generator.normal(size=value.shape) for name, value in parameters.items()}
