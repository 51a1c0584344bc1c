"""BPE dropout (Provilkov et al., 2020, Algorithm 1): now and then a merge is left out, and words are split otherwise.

It works on ids, without the text: every token is taken apart into the symbols that it was merged from, then merged
again, each possible merge left out with a probability of `rate` at every step. The random numbers come from the
generator that the caller gives, so a run that is resumed draws the same splits (the library's dropout has no seed).

That ids suffice follows from normalise.py: whether two neighbours may join depends on two characters alone, so where no
learned merge joins these two characters, none reaches across. What lies between two such places is called a word here.
"""

import numpy as np
from numpy.typing import NDArray

from vidrio.errors import TokenizerError
from vidrio.text.tokens.tokenizer import Tokenizer

Ids = NDArray[np.int64]
_NEVER = np.int64(1 << 31)  # the rank of a merge that does not exist


class Dropout:
    """The merges of one BPE tokenizer, as arrays."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        if tokenizer.kind != "bpe":
            raise TokenizerError(
                f"BPE dropout is for BPE tokenizers, this one is of the kind {tokenizer.kind}",
                do="learn a BPE tokenizer, or train without BPE dropout",
            )
        ids = {token: i for i, token in enumerate(tokenizer.vocabulary())}
        parts = [(ids[left], ids[right], ids[left + right]) for left, right in tokenizer.ranks]
        symbols = [[i] for i in range(tokenizer.size)]
        for left, right, merged in parts:  # in the order of learning, so parts come before the whole
            symbols[merged] = symbols[left] + symbols[right]
        self._size = tokenizer.size
        # The symbols of all tokens, one after the other: token i has those from start[i] to start[i + 1].
        self._start = np.cumsum([0, *map(len, symbols)])
        self._symbols = np.array([symbol for token in symbols for symbol in token], dtype=np.int64)
        lefts, rights, self._merged = np.array(parts, dtype=np.int64).T
        self._keys = lefts * self._size + rights
        self._ranks = np.argsort(self._keys)  # a merge's rank is its place in `parts`
        self._keys, self._merged = self._keys[self._ranks], self._merged[self._ranks]
        ends, begins = self._symbols[self._start[1:] - 1], self._symbols[self._start[:-1]]
        self._joints = np.unique(ends[lefts] * self._size + begins[rights])

    def __call__(self, ids: Ids, lengths: Ids, rate: float, generator: np.random.Generator) -> tuple[Ids, Ids]:
        """Split texts anew. They lie one after the other in `ids`; their ids and lengths come back in the same form."""
        symbols, text = self._take_apart(np.asarray(ids, dtype=np.int64), np.asarray(lengths, dtype=np.int64))
        first = self._merge(symbols, self._words(symbols, text), rate, generator)
        return symbols[first], np.bincount(text[first], minlength=len(lengths))

    def _take_apart(self, ids: Ids, lengths: Ids) -> tuple[Ids, Ids]:
        """The symbols of all tokens, and the text that each belongs to."""
        counts = self._start[ids + 1] - self._start[ids]
        begins = np.cumsum(counts) - counts
        places = np.arange(counts.sum()) + np.repeat(self._start[ids] - begins, counts)
        text = np.repeat(np.arange(len(lengths)), lengths)
        return self._symbols[places], np.repeat(text, counts)

    def _words(self, symbols: Ids, text: Ids) -> Ids:
        """The word that each symbol belongs to: a new one begins where no merge can reach across."""
        joined = text[:-1] == text[1:]
        joined &= _find(self._joints, symbols[:-1] * self._size + symbols[1:])[1]
        return np.concatenate([[0], np.cumsum(~joined)])[: len(symbols)]

    def _merge(self, tokens: Ids, word: Ids, rate: float, generator: np.random.Generator) -> Ids:
        """Merge, in place, until nothing is left to merge in any word; where the tokens that remain are."""
        alive = np.ones(len(tokens), dtype=bool)
        at = np.arange(len(tokens))  # where the tokens of unfinished words are
        while len(at) > 1:
            place, known = _find(self._keys, tokens[at[:-1]] * self._size + tokens[at[1:]])
            same = word[at[:-1]] == word[at[1:]]
            merges = np.flatnonzero(known & same)
            if rate > 0:  # "remove each merge with probability p"
                merges = merges[generator.random(len(merges)) >= rate]
            # Of what is left, each word takes the merge of the lowest rank, of equals the leftmost.
            order = np.full(len(at), _NEVER * len(at))
            order[merges] = self._ranks[place[merges]] * len(at) + merges
            begins = np.flatnonzero(np.concatenate([[True], ~same]))
            lowest = np.minimum.reduceat(order, begins)
            goes_on = lowest < _NEVER * len(at)
            chosen = lowest[goes_on] % len(at)
            tokens[at[chosen]] = self._merged[place[chosen]]
            alive[at[chosen + 1]] = False
            at = at[np.repeat(goes_on, np.diff(begins, append=len(at)))]
            at = at[alive[at]]
        return np.flatnonzero(alive)


def _find(ordered: Ids, keys: Ids) -> tuple[Ids, NDArray[np.bool_]]:
    """Where each key is in an ordered array, and whether it is there at all."""
    place = np.minimum(np.searchsorted(ordered, keys), len(ordered) - 1)
    return place, ordered[place] == keys
