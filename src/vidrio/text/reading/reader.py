"""How a model reads: what its tokenizer tells of what it has learned, for text/reading/prepared.py."""

from functools import lru_cache

from vidrio.text.reading.capitals import SEVERAL
from vidrio.text.reading.prepared import UNSPELLABLE, Masked, hide
from vidrio.text.tokens.normalise import SPACE
from vidrio.text.tokens.tokenizer import Tokenizer

REMEMBERED = 10_000  # words whose number of tokens is kept
CAPITALS = 0.01  # of the tokens, if a model has learned from sentences with capital letters


class Reader:
    """Reads sentences as the model of a tokenizer does; names that it has learned to translate are no rare words."""

    def __init__(self, tokenizer: Tokenizer, translated: str = "") -> None:
        self._tokenizer = tokenizer
        self._translated = frozenset(translated.split())
        self.knows_forms = knows_capitals(tokenizer)
        self._tokens = lru_cache(REMEMBERED)(self._count_tokens)

    def read(
        self, sentence: str, symbols: str, *, forms: bool = True, hide_names: bool = True, several: int = SEVERAL
    ) -> Masked:
        """What the model is given for a sentence; `forms`: titles, and small letters from `several` words on, are read
        as sentences, too."""
        forms = forms and self.knows_forms
        return hide(sentence, symbols, self._tokens, forms=forms, hide_names=hide_names, several=several)

    def _count_tokens(self, word: str) -> int:
        known = self._tokenizer
        if word in self._translated:
            return 1
        if known.kind != "word" and any(known.id(letter) is None for letter in word if letter.isalpha()):
            return UNSPELLABLE
        return len(known.encode(word))


def knows_capitals(tokenizer: Tokenizer) -> bool:
    """Whether it was learned from text with capital letters: some tokens are words that begin with one."""
    beginnings = (token.removeprefix(SPACE)[:2] for token in tokenizer.vocabulary() if token.startswith(SPACE))
    return sum(two[:1].isupper() and two[1:].islower() for two in beginnings) >= CAPITALS * tokenizer.size
