"""Train a SentencePiece unigram model, the tokenizer that Marian's engines use.

The pieces come from byte-pair merges, and the score of a piece is the log of its relative frequency. Characters without
a piece are encoded as bytes. Texts are not normalised, so the file contains no rules.
"""

import math
import struct
from collections import Counter
from collections.abc import Iterable, Mapping

from vidrio.text.tokens import normalise, vocabulary
from vidrio.text.tokens.sentence_pieces import SentencePieces
from vidrio.text.tokens.unigram import CONTROL, NORMAL, UNKNOWN
from vidrio.text.tokens.vocabulary import BYTES, MAX_TEXTS, thin

SPECIAL = {"</s>": CONTROL, "<unk>": UNKNOWN}  # their ids are 0 and 1
BYTE = 6  # the type of pieces for bytes
MULTIPLE = 8  # the number of pieces is a multiple of this, because Marian multiplies this many columns at a time
AT_ONCE = 10_000  # the number of texts to tokenise at a time
# Fields of the file's protobuf messages.
PIECES, TRAINER, NORMALISER = 1, 2, 3
NAME, SCORE, TYPE = 1, 2, 3
MODEL_TYPE, SIZE, BYTE_FALLBACK, UNK_ID, BEGIN_ID, END_ID, PAD_ID = 3, 4, 35, 40, 41, 42, 43


def learn(texts: Iterable[str], size: int, *, coverage: float = 0.9999) -> SentencePieces:
    """Train a model with at most `size` pieces. The rarest characters, 1 - `coverage` of the texts, get no piece."""
    sample = thin(map(normalise.valid, texts), MAX_TEXTS)
    names = [*SPECIAL, *BYTES]
    engine = vocabulary.learn(sample, size, coverage=coverage, case_tokens=False)
    counts = Counter[str]()
    for first in range(0, len(sample), AT_ONCE):
        for encoding in engine.encode_batch_fast(sample[first : first + AT_ONCE], add_special_tokens=False):
            counts.update(encoding.tokens)
    hidden = {*names, *vocabulary.SpecialNames().given()}
    letters_first = sorted(engine.get_vocab().keys() - hidden, key=lambda name: (len(name) > 1, -counts[name], name))
    learned = letters_first[: len(letters_first) - (len(names) + len(letters_first)) % MULTIPLE]
    total = counts.total()
    pieces = [(name, 0.0, SPECIAL.get(name, BYTE)) for name in names]
    pieces += [(name, math.log(max(0.5, counts[name]) / total), NORMAL) for name in learned]
    return SentencePieces(file_of(pieces), [*names, *learned], unknown=1)


def file_of(pieces: list[tuple[str, float, int]]) -> bytes:
    """Return a `.spm` file that contains these pieces, with their scores and types."""
    trainer = {MODEL_TYPE: 1, SIZE: len(pieces), BYTE_FALLBACK: 1, UNK_ID: 1, BEGIN_ID: -1, END_ID: 0, PAD_ID: -1}
    parts = [(PIECES, message({NAME: name.encode(), SCORE: score, TYPE: kind})) for name, score, kind in pieces]
    parts += [(TRAINER, message(trainer)), (NORMALISER, message({NAME: b"identity"}))]
    return b"".join(message({number: content}) for number, content in parts)


def message(fields: Mapping[int, int | float | bytes]) -> bytes:
    """Return a protobuf message. `fields` maps field numbers to integers, floats (stored as float32) or bytes."""
    data = b""
    for number, value in fields.items():
        if isinstance(value, bytes):
            data += varint(number << 3 | 2) + varint(len(value)) + value
        elif isinstance(value, float):
            data += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            data += varint(number << 3) + varint(value % 2**64)
    return data


def varint(value: int) -> bytes:
    """Encode an integer with seven bits per byte, lowest bits first."""
    return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + varint(value >> 7)
