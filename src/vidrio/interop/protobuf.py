"""The little of protocol buffers that a SentencePiece model needs: fields by number, nested in one another."""

import struct
from collections.abc import Iterator
from pathlib import Path

from vidrio.errors import ModelError

PIECES, TRAINER = 1, 2  # ModelProto.pieces, .trainer_spec
PIECE, MODEL_TYPE = 1, 3  # their .piece, .model_type
UNIGRAM = 1  # where it is not told
VARINT, EIGHT_BYTES, BYTES, FOUR_BYTES = 0, 1, 2, 5  # how a value stands


def fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, each with its number."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        kind = key & 7
        if kind == VARINT:
            value, at = varint(data, at)
            yield key >> 3, value
            continue
        length = {EIGHT_BYTES: 8, FOUR_BYTES: 4}.get(kind)
        if kind == BYTES:
            length, at = varint(data, at)
        if length is None or at + length > len(data):
            raise ValueError(f"a field of the kind {kind} at byte {at} of {len(data)}")
        yield key >> 3, data[at : at + length]
        at += length


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A whole number, seven bits a byte, and where it ends."""
    value = 0
    for place in range(10):
        byte = data[at + place]
        value |= (byte & 127) << 7 * place
        if byte < 128:
            return value, at + place + 1
    raise ValueError(f"a number without an end at byte {at}")


def field(number: int, value: int | bytes) -> bytes:
    """A field, to write."""
    if isinstance(value, bytes):
        return written(number << 3 | BYTES) + written(len(value)) + value
    return written(number << 3 | VARINT) + written(value)


def float_field(number: int, value: float) -> bytes:
    return written(number << 3 | FOUR_BYTES) + struct.pack("<f", value)


def written(value: int) -> bytes:
    """A whole number as bytes."""
    some = bytearray()
    while value > 127:
        some.append(value & 127 | 128)
        value >>= 7
    return bytes([*some, value])


def model_type(proto: bytes, path: Path) -> int:
    """Of which kind a SentencePiece model is."""
    try:
        trainers = [value for number, value in fields(proto) if number == TRAINER]
        if not trainers or not isinstance(trainers[-1], bytes):
            raise ValueError("it does not tell how it was trained")
        kinds = [value for number, value in fields(trainers[-1]) if number == MODEL_TYPE]
        return int(kinds[-1]) if kinds else UNIGRAM
    except (ValueError, IndexError) as error:
        raise ModelError(f"{path} is no SentencePiece model", found=str(error), do="copy it again") from None


def piece_names(proto: bytes, path: Path) -> list[str]:
    """The pieces of a SentencePiece model, in their order."""
    try:
        pieces = [dict(fields(value)) for number, value in fields(proto) if number == PIECES and type(value) is bytes]
        return [piece[PIECE].decode() for piece in pieces]  # type: ignore[union-attr]
    except (ValueError, IndexError, KeyError, AttributeError) as error:
        raise ModelError(f"{path} is no SentencePiece model", found=f"{error!s:.200}", do="copy it again") from None
