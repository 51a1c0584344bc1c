"""Write small random models with words as tokens, for tests of engines and commands."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from parity_models import make_parameters
from vidrio.model.config import DecodingDefaults, ModelConfig
from vidrio.model.folder import About, read_config, write_config, write_parameters
from vidrio.text.tokens.tokenizer import Tokenizer

WORDS = [first + second for first in ("ba", "co", "di", "fu", "ga", "ho", "mi", "nu") for second in ("la", "re", "so")]


def write_model(
    folder: Path, seed: int = 0, *, ends: bool = False, words: Sequence[str] = WORDS, **changes: object
) -> ModelConfig:
    """Write a model whose translations are reproducible nonsense. With `ends`, they have about five words."""
    tokenizer = Tokenizer.of_words([*words, ".", ",", "!"])
    values = {
        **{"source_vocabulary": tokenizer.size, "target_vocabulary": tokenizer.size, "special": tokenizer.special},
        **{"d_model": 16, "n_heads": 2, "d_head": 8, "d_ff": 24, "n_encoder_layers": 2, "n_decoder_layers": 2},
        **{"max_positions": 32, "decoding": DecodingDefaults(beam=2, max_length=24)},
        **({"positions": "learned", "tying": "none"} if ends else {}),
        **changes,
    }
    config = ModelConfig(**values)  # type: ignore[arg-type]
    parameters = make_parameters(config, seed)
    if ends:
        # From the fifth position on, the decoder's rows grow in the direction that raises the end token's logit.
        direction_D = np.random.default_rng(0).normal(size=config.d_model)
        parameters["tgt.pos"][4:] += np.outer(np.arange(1, config.max_positions - 3), direction_D)
        parameters["out.W"][:, config.special.end] = direction_D
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(folder / "tokenizer.json")
    write_parameters(folder, {name: value.astype(np.float32) for name, value in parameters.items()})
    write_config(folder, config, About(name="nonsense", source_language="xx", target_language="yy"))
    return config


def rewrite_config(folder: Path) -> None:
    """Write the config again, because it contains the checksums of files that have changed."""
    write_config(folder, *read_config(folder))


def random_sources(config: ModelConfig, count: int, *, longest: int = 20, seed: int = 1) -> list[list[int]]:
    """Return random source ids, followed by the end token if the model needs it."""
    generator = np.random.default_rng(seed)
    special = {config.special.pad, config.special.unk, config.special.start, config.special.end}
    usual = [i for i in range(config.source_vocabulary) if i not in special]
    close = [config.special.end] if config.source_end else []
    return [[*map(int, generator.choice(usual, generator.integers(1, longest + 1))), *close] for _ in range(count)]
