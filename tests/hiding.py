"""A sentence as a model is given it, without a tokenizer: `tokens` counts the tokens of a word."""

from types import SimpleNamespace
from typing import Any

from vidrio.text.casing import Tokens
from vidrio.text.mask import Masked, Masker
from vidrio.text.protect import Protected


def mask(
    source: Protected,
    symbols: str,
    tokens: Tokens = lambda word: 1,
    *,
    forms: bool = True,
    hide_names: bool = True,
    money: str = "",
) -> Masked:
    known: Any = SimpleNamespace(
        id=lambda sign: 0, spells=lambda word: True, count=tokens, size=1, of_whole_words=False
    )
    known.vocabulary = lambda: ["▁Of"]
    masker = Masker(known, symbols)
    masker._money = set(money)
    return masker.mask(source, forms=forms, hide_names=hide_names)
