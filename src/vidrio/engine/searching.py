"""One sentence's way into a search of the engine, and its hypotheses' way out."""

import struct
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from vidrio.engine.library import Library
from vidrio.engine.native import float_rows, numbers
from vidrio.errors import ConfigError
from vidrio.hypothesis import Hypothesis, Options, Sampling

LARGEST = 2**31 - 1


@dataclass(frozen=True)
class Model:
    """A model in a library's memory."""

    library: Library
    address: int

    def __del__(self) -> None:
        self.library.let_go("model_free", self.address)


@dataclass
class Sentence:
    """What is searched for. Of one that is watched, `written` grows while the search goes on."""

    source: Sequence[int]
    options: Options
    watched: bool = False
    written: list[int] = field(default_factory=list)


class Search:
    """A search of a model in its library's memory."""

    def __init__(self, model: Model, rows: int) -> None:
        self._model, self._call = model, model.library.call
        self._address = self._call("search_new", model.address, rows)

    def __del__(self) -> None:
        self._model.library.let_go("search_free", self._address)

    def add(self, sentence: Sentence) -> int:
        """Begin with a sentence → its ticket."""
        o, source = sentence.options, array("i", sentence.source)
        prefix, suppressed = array("i", o.prefix), array("i", o.suppressed)
        given = (source, len(source), prefix, len(prefix), suppressed, len(suppressed))
        ticket = self._call("search_add", self._address, as_struct(o), *given)
        if ticket < 0:
            raise ConfigError(
                "this search cannot be done",
                found=f"{len(source)} tokens to read, at most {o.max_length} to write, a prefix of {len(prefix)}",
                do="change the options, or shorten the text",
            )
        return ticket

    def run(self, steps: int) -> int:
        """Do some steps → how many sentences are not done."""
        return self._call("search_run", self._address, steps)

    def written(self, ticket: int, room: int) -> list[int]:
        """The tokens of the leading hypothesis so far."""
        ids = array("i", bytes(4 * room))
        return list(ids[: max(0, self._call("search_written", self._address, ticket, ids, room))])

    def found(self, ticket: int, sentence: Sentence) -> list[Hypothesis] | None:
        """The hypotheses, best first, if the sentence is done."""
        count = self._call("search_count", self._address, ticket)
        if count < 0:
            return None
        hypotheses = [self._hypothesis(ticket, nth, len(sentence.source)) for nth in range(count)]
        if any(not h.ended and len(h.ids) < sentence.options.max_length for h in hypotheses):
            raise ConfigError(
                "no token is left to choose from",
                found="all tokens are forbidden at some step, or the model computes NaN",
                do="allow more: fewer suppressed tokens, a larger or no no_repeat_ngram",
            )
        return hypotheses

    def _hypothesis(self, ticket: int, nth: int, read: int) -> Hypothesis:
        length = self._call("search_length", self._address, ticket, nth)
        ids, log_probs = array("i", bytes(4 * length)), numbers(length)
        looked, total = numbers(length * read), array("d", bytes(16))
        ended = bool(self._call("search_read", self._address, ticket, nth, ids, log_probs, looked or None, total))
        if ended:
            ids.pop()
        attention = float_rows(looked[: len(ids) * read], (len(ids), read)) if ids and read else None
        return Hypothesis(tuple(ids), total[0], total[1], tuple(log_probs), ended, attention)

    def drop(self, ticket: int) -> None:
        """Forget a sentence, done or not."""
        self._call("search_cancel", self._address, ticket)
        self._call("search_drop", self._address, ticket)


def as_struct(o: Options) -> bytes:
    """`Options` of engine.h."""
    s = o.sampling or Sampling()
    whole = (o.beam, o.n_best, o.min_length, o.max_length, min(o.no_repeat_ngram, LARGEST), min(s.top_k, LARGEST))
    return struct.pack("<7iI3f", *whole, o.sampling is not None, s.seed, o.length_penalty, s.temperature, s.top_p)
