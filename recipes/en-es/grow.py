"""A model with twice as many layers in its encoder, which says what the old one says, to learn on from.

    python grow.py MODEL TO

After each layer stands a new one that adds nothing yet: its sub-layers read as those before them do, and what would
lead their results back into the stream (W_O; W_2 and its bias) is zero. Only a pre-norm model can have such layers: its
sub-layers are x + f(norm(x)). After Chen, Goodfellow and Shlens 2016, "Net2Net: accelerating learning via knowledge
transfer", and Gong et al. 2019, "Efficient training of BERT by progressively stacking".
"""

import re
import shutil
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidrio.model.config import ModelConfig
from vidrio.model.folder import read_config, read_parameters, write_config, write_parameters

BACK = ("self.WO", "self.bO", "ffn.W2", "ffn.b2")  # into the residual stream


def grown(parameters: Mapping[str, np.ndarray], config: ModelConfig) -> tuple[dict[str, np.ndarray], ModelConfig]:
    if config.norm != "pre":
        raise ValueError("a layer of a post-norm model cannot add nothing")
    found: dict[str, np.ndarray] = {}
    for name, value in parameters.items():
        layer = re.fullmatch(r"enc\.(\d+)\.(.+)", name)
        if layer:
            number, part = 2 * int(layer[1]), layer[2]
            found[f"enc.{number}.{part}"] = value
            found[f"enc.{number + 1}.{part}"] = np.zeros_like(value) if part in BACK else value
        else:
            found[name] = value
    return found, replace(config, n_encoder_layers=2 * config.n_encoder_layers)


def main(model: Path, to: Path) -> None:
    config, about = read_config(model)
    parameters, larger = grown(read_parameters(model), config)
    to.mkdir(parents=True, exist_ok=True)
    write_parameters(to, parameters)
    shutil.copy(model / "tokenizer.json", to / "tokenizer.json")
    write_config(to, larger, about)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
