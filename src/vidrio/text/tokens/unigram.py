"""Split a normalised text with a SentencePiece unigram model, into the pieces with the largest sum of scores (log p).

Like the library, this code adds scores in float32 from the start of the text. Rounding therefore decides between splits
with nearly the same score, such as the splits of a row of dots.
"""

import struct
from array import array
from collections.abc import Iterator
from typing import Any

from vidrio.text.tokens.charsmap import Normaliser

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = range(1, 5)  # the types of pieces
TYPES = {1: "unigram", 2: "BPE", 3: "word", 4: "char"}  # the types of models
UNKNOWN_PENALTY = 10.0  # an unknown character's score is this much below the lowest score
LONGEST_PIECE = 256  # characters
FIRST = 3  # the number of first characters that determine how long a piece can be
SCORE = struct.Struct("<f")
# Exceptions that can occur when a damaged model is read.
DAMAGED = (ValueError, LookupError, TypeError, ArithmeticError, AttributeError, struct.error)
SIZES = {1: 8, 5: 4}  # the sizes of protobuf fields with a fixed size, by wire type


class Unigram:
    """The model in a `.spm` file."""

    def __init__(self, proto: bytes) -> None:
        """Read the model. Raise one of the exceptions in DAMAGED if the file is damaged."""
        parts: dict[int, Any] = {2: b"", 3: b""}  # the settings of the trainer and of the normaliser
        self.names: list[str] = []
        self.scores: dict[str, float] = {}
        symbols, hidden = list[str](), set[str]()
        for number, value in each_field(proto):  # one at a time: a list of all pieces would take several megabytes
            if number != 1:
                parts[number] = value
                continue
            name, score, kind = read_piece(value)
            self.names.append(name)
            if kind == NORMAL:
                self.scores[name] = score
            elif kind == USER_DEFINED:
                symbols.append(name)
            elif kind in (UNKNOWN, CONTROL):
                hidden.add(name)
        trainer, rules = fields(parts[2]), fields(parts[3])
        if (kind := trainer.get(3, [1])[-1]) != 1:
            raise ValueError(f"SentencePiece by {TYPES.get(kind, kind)}, not unigram")
        if not self.scores or max(map(len, self.names)) > LONGEST_PIECE:
            raise ValueError(f"{len(self.scores):,} pieces, or one of more than {LONGEST_PIECE} characters")
        self.hidden = frozenset(hidden)
        self.has_bytes = bool(trainer.get(35, [0])[-1])
        smallest = min(self.scores.values())
        largest = max(0.0, *self.scores.values())  # the library's maximum starts at the smallest positive number
        self.scores |= {name: array("f", [len(name.encode()) * largest])[0] - 0.1 for name in symbols}
        self._unknown = array("f", [smallest - UNKNOWN_PENALTY])[0]
        # The length of the longest piece that begins with these characters, so that `split` looks up fewer substrings.
        self._longest = dict[str, int]()
        for name in self.scores:
            self._longest[name[:FIRST]] = max(len(name), self._longest.get(name[:FIRST], FIRST))
        prefix, squeeze = (bool(rules.get(number, [1])[-1]) for number in (3, 4))
        self.normalise = Normaliser(rules.get(2, [b""])[-1], frozenset(symbols), prefix=prefix, squeeze=squeeze)

    def split(self, text: str) -> tuple[str, ...]:
        """Split a normalised text into pieces by Viterbi's algorithm: the best split up to each position extends the
        best split up to an earlier position. An unknown character becomes a piece of its own."""
        size = len(text)
        best, rounded, begins = array("f", [0.0]) * (size + 1), array("f", [0.0]), [-1] * (size + 1)
        for begin in range(size):
            last = min(size, begin + self._longest.get(text[begin : begin + FIRST], FIRST))
            ends = ((end, self.scores.get(text[begin:end])) for end in range(begin + 1, last + 1))
            known = [(end, score) for end, score in ends if score is not None]
            if not known or known[0][0] > begin + 1:
                known.append((begin + 1, self._unknown))
            for end, score in known:
                rounded[0] = best[begin] + score
                if begins[end] < 0 or rounded[0] > best[end]:
                    begins[end], best[end] = begin, rounded[0]
        pieces, end = list[str](), size
        while end:
            pieces.append(text[begins[end] : end])
            end = begins[end]
        return tuple(reversed(pieces))


def read_piece(message: bytes) -> tuple[str, float, int]:
    """Return the name, score and type of a piece. A fast path handles almost all of the tens of thousands of pieces."""
    end = 2 + message[1]
    if len(message) == end + 5 and message[0] == 0x0A and message[1] < 128 and message[end] == 0x15:
        return message[2:end].decode(), SCORE.unpack_from(message, end + 1)[0], NORMAL
    part = fields(message)
    return part[1][-1].decode(), SCORE.unpack(part[2][-1])[0], part.get(3, [NORMAL])[-1]


def fields(message: bytes) -> dict[int, list[Any]]:
    """Return the values in a protobuf message by field number."""
    found: dict[int, list[Any]] = {}
    for number, value in each_field(message):
        found.setdefault(number, []).append(value)
    return found


def each_field(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yield the field number and value, an integer or bytes, of each field of a protobuf message."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        kind = key & 7
        value: Any
        value, at = _varint(message, at) if kind in (0, 2) else (0, at)
        if kind:
            at, begin = at + (value if kind == 2 else SIZES[kind]), at
            if at > len(message):
                raise ValueError(f"a field of {at - begin:,} bytes where {len(message) - begin:,} are left")
            value = message[begin:at]
        yield key >> 3, value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    """Return an integer stored with seven bits per byte, and the position after it."""
    byte = message[at]
    if byte < 128:
        return byte, at + 1
    value, shift = byte & 127, 7
    while byte >= 128 and shift < 64:
        at += 1
        byte = message[at]
        value |= (byte & 127) << shift
        shift += 7
    return value, at + 1
