"""A sentence translated while somebody watches: greedily, each token shown as it is chosen.

What is shown stands, but where the sentence has to be tried again (a name or a number was lost, it repeated itself):
then its translation, which comes at the end, is another.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from string import ascii_letters

from vidrio.engine.engine import Engine
from vidrio.hypothesis import Hypothesis, Options
from vidrio.text.mask import Masked
from vidrio.text.repetition import repeats
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.rounds import GARBLED, NO_REPEAT


@dataclass
class Live:
    """Searches for the translation of one sentence. `tell` hears its text in pieces, and says whether to stop."""

    engine: Engine
    target: Tokenizer
    masked: Masked
    tell: Callable[[str], bool]
    ids: list[int] = field(default_factory=list)
    shown: str = ""
    stopped: bool = False

    def search(self, sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
        """In the place of an engine's. The first one is watched; others are as usual."""
        if self.ids or len(sources) > 1:
            return self.engine.search(sources, options)
        [source] = sources
        hypothesis = self.engine.watch(tuple(source), options, self._hear)
        if self.stopped:
            raise CancelledError
        if hypothesis.ended and not repeats(source, hypothesis.ids):
            return [[hypothesis]]
        return self.engine.search(sources, replace(options, no_repeat_ngram=NO_REPEAT))

    def _hear(self, token: int) -> bool:
        self.ids.append(token)
        text = self.target.decode(self.ids)
        # Of money the last word may go on: dólar may become dólares.
        text = self.masked.unmasked(text.rstrip(ascii_letters + "ó") if self.masked.money else text)
        if GARBLED in text or not text.startswith(self.shown) or text == self.shown:
            return False
        piece, self.shown = text[len(self.shown) :], text
        self.stopped = self.tell(piece)
        return self.stopped
