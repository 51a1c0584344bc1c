"""Replace a model's tokenizer while keeping its parameters.

    python grow.py MODEL TOKENIZER TO

A new token gets the embedding of the old token with the same spelling, possibly in upper case. If there is none, it
gets the mean embedding of the old tokens that spell it. All other parameters are unchanged.
"""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidrio.model.find import find
from vidrio.model.folder import read_config, read_parameters, write_config, write_parameters
from vidrio.text.tokens.case import capital_of
from vidrio.text.tokens.normalise import SPACE
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers


def grow(model: Path, tokenizer: Path, to: Path) -> None:
    config, about = read_config(model)
    old, _ = read_tokenizers(model, config)
    new, parameters = Tokenizer.load(tokenizer), read_parameters(model)
    rows = [origin(old, token) for token in new.vocabulary()]
    for name, array in parameters.items():
        if array.shape[:1] == (config.target_vocabulary,):
            parameters[name] = np.stack([array[row].mean(axis=0) for row in rows]).astype(np.float32)
    config = replace(config, source_vocabulary=new.size, target_vocabulary=new.size, special=new.special)
    to.mkdir(parents=True, exist_ok=True)
    write_parameters(to, parameters)
    new.save(to / "tokenizer.json")
    write_config(to, config, replace(about, scores=[]))


def origin(old: Tokenizer, token: str) -> list[int]:
    """Return the old tokens whose mean embedding a new token gets: those that spell it or, if there are none, all."""
    word = token.removeprefix(SPACE)
    begins = token[: len(token) - len(word)]
    for form in (word, (capital_of(word[:1]) or word[:1]) + word[1:], word.upper()):
        if (found := old.id(begins + form)) is not None:
            return [found]
    pieces = old.encode(word)
    inner = pieces[1:] if pieces and old.token(pieces[0]) == SPACE else pieces
    return inner or list(range(old.size))


if __name__ == "__main__":
    grow(find(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]))
