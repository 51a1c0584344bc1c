"""A sentence as a model is given it, without a tokenizer: `tokens` tells how many a word has."""

from types import SimpleNamespace
from typing import Any

from vidrio.text.reading.capitals import Tokens
from vidrio.text.reading.prepared import Prepared, Reader, Way
from vidrio.text.reading.protect import Protected


def hide(
    source: Protected,
    symbols: str,
    tokens: Tokens = lambda word: 1,
    *,
    forms: bool = True,
    hide_names: bool = True,
    otherwise: bool = False,
    money: str = "",
) -> Prepared:
    known: Any = SimpleNamespace(id=lambda sign: 0, spells=lambda word: True, count=tokens, size=1)
    known.vocabulary = lambda: ["▁Of"]
    reader = Reader(known, symbols)
    reader._money = money
    return reader.prepare(source, Way(forms, hide_names, otherwise))
