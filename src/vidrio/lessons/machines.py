"""Small machines for experiments: a few words, a few numbers, drawn at random from a stated seed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vidrio.glass.paper.maths import Array
from vidrio.glass.paper.transformer import Machine, build
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import random_parameters


def random_machine(words: Sequence[str], seed: int = 0, **sizes: Any) -> Machine:
    """An untrained translator with these words on both sides; `sizes` are fields of the config."""
    given = {"d_model": 8, "n_heads": 2, "d_head": 4, "d_ff": 16, "n_encoder_layers": 2, "n_decoder_layers": 2} | sizes
    config = ModelConfig(source_vocabulary=len(words), target_vocabulary=len(words), source_end=False, **given)
    return build(config, random_parameters(config, np.random.default_rng(seed)))


def largest_difference(a: Array, b: Array) -> float:
    """The largest |a − b|."""
    return float(np.abs(a - b).max())
