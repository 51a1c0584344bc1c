"""A sentence as a model is given it, without a tokenizer: `tokens` tells how many a word has."""

from vidrio.text.reading.capitals import Tokens, begins_large, read
from vidrio.text.reading.prepared import Prepared, Vocabulary, shouting
from vidrio.text.reading.prepared import hide as hidden
from vidrio.text.reading.protect import Protected
from vidrio.text.reading.signs import Each


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
    looks = (
        (*read(source, tokens, otherwise=otherwise), begins_large(source.text)) if forms else (*shouting(source), False)
    )
    vocabulary = Vocabulary(tokens, Each(lambda sign: sign), money)
    return hidden(source, looks, symbols, vocabulary, hide_names=hide_names)
