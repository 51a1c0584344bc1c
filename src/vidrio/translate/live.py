"""A sentence translated while somebody watches: greedily, each token told as it is chosen.

What is told stands, but where the sentence has to be tried again (a name or a number was lost, it repeated itself):
then its translation, which comes at the end, is another.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field, replace
from string import ascii_letters

from vidrio.hypothesis import Hypothesis, Options
from vidrio.text.reading.prepared import Prepared, as_written
from vidrio.text.reading.repetition import repeats
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.attempts import GARBLED, NO_REPEAT
from vidrio.translate.engines import Engine


@dataclass
class Live:
    """Searches for the translation of one sentence. `tell` hears its text in pieces, and says whether to stop."""

    engine: Engine
    target: Tokenizer
    prepared: Prepared
    tell: Callable[[str], bool]
    ids: list[int] = field(default_factory=list)
    told: str = ""
    stopped: bool = False

    def search(self, sources: Sequence[Sequence[int]], options: Options) -> list[list[Hypothesis]]:
        """In the place of an engine's. The first attempt is watched; others are searched as usual."""
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
        text = self._shown(self.target.decode(self.ids))
        if GARBLED in text or not text.startswith(self.told) or text == self.told:
            return False
        piece, self.told = text[len(self.told) :], text
        self.stopped = self.tell(piece)
        return self.stopped

    def _shown(self, text: str) -> str:
        """What is there of a translation as it is written; of money without its last word: dólar may become dólares."""
        return as_written(text.rstrip(ascii_letters + "ó") if self.prepared.money else text, self.prepared)
