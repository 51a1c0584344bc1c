"""A model with another tokenizer and more encoder layers that begins with what a smaller one knows.

    python grow.py MODEL TOKENIZER LAYERS TO

A new layer stands after each of the old ones from the second on, as far as they are wanted: a copy whose output is
zero, so that it changes nothing until it has learned (Chen, Goodfellow and Shlens 2016, "Net2Net"). A new token begins
as the old one that is written the same, or with a capital letter, or as the mean of those that it was split into.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidrio.model.find import find
from vidrio.model.folder import read_config, read_parameters, write_config, write_parameters
from vidrio.text.tokens.case import capital_of
from vidrio.text.tokens.tokenizer import SPACE, Tokenizer, read_tokenizers

SILENT = (".self.WO", ".self.bO", ".ffn.W2", ".ffn.b2")


def grow(model: Path, tokenizer: Path, layers: int, to: Path) -> None:
    config, about = read_config(model)
    old, _ = read_tokenizers(model, config)
    new = Tokenizer.load(tokenizer)
    had = read_parameters(model)
    copies = plan(config.n_encoder_layers, layers)
    arrays = {name: array for name, array in had.items() if not name.startswith("enc.") or name.split(".")[1] == "norm"}
    for i, (layer, silent) in enumerate(copies):
        for name, array in had.items():
            if name.startswith(f"enc.{layer}."):
                fresh = silent and name.removeprefix(f"enc.{layer}").startswith(SILENT)
                arrays[f"enc.{i}.{name.removeprefix(f'enc.{layer}.')}"] = np.zeros_like(array) if fresh else array
    rows = mapping(old, new)
    for name, array in had.items():
        if array.shape[:1] == (config.target_vocabulary,):
            arrays[name] = np.stack([array[row].mean(axis=0) for row in rows]).astype(np.float32)
    config = replace(
        config,
        n_encoder_layers=layers,
        source_vocabulary=new.size,
        target_vocabulary=new.size,
        special=new.special,
    )
    to.mkdir(parents=True, exist_ok=True)
    write_parameters(to, arrays)
    new.save(to / "tokenizer.json")
    write_config(to, config, replace(about, scores=[], translated=""))


def plan(had: int, wanted: int) -> list[tuple[int, bool]]:
    """Which old layer each new one is made of, and whether it is to be silent."""
    more = wanted - had
    return [(layer, silent) for layer in range(had) for silent in (False, True) if not silent or had - layer <= more]


def mapping(old: Tokenizer, new: Tokenizer) -> list[list[int]]:
    """The old tokens that each new one is the mean of."""
    everything = list(range(old.size))
    return [origin(old, token) or everything for token in new.vocabulary()]


def origin(old: Tokenizer, token: str) -> list[int]:
    word = token.removeprefix(SPACE)
    begins = token[: len(token) - len(word)]
    for form in (word, (capital_of(word[:1]) or word[:1]) + word[1:], word.upper()):
        if (found := old.id(begins + form)) is not None:
            return [found]
    pieces = old.encode(word)
    return pieces[1:] if pieces and old.token(pieces[0]) == SPACE else pieces


if __name__ == "__main__":
    model, tokenizer, layers, to = sys.argv[1:]
    grow(find(model), Path(tokenizer), int(layers), Path(to))
