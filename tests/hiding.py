"""Mask a sentence for a model, without a tokenizer. `tokens` returns the number of tokens in a word."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from vidrio.text.mask import Masked, Masker

COMMON = "".join(map(chr, range(0x21, 0x250)))  # characters that occur in tokens


def mask(
    source: str, symbols: str, tokens: Callable[[str], int] = lambda word: 1, *, hide_names: bool = True
) -> Masked:
    known: Any = SimpleNamespace(
        id=lambda sign: 0,
        spells=lambda word: True,
        count=tokens,
        has_case_tokens=False,
        of_whole_words=False,
        vocabulary=lambda: [COMMON],
    )
    return Masker(known, symbols).mask(source, hide_names=hide_names)
