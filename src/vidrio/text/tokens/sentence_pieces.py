"""A SentencePiece model as the engine of a `Tokenizer`: what OPUS-MT and Marian split texts by.

The library itself splits, normalises and joins, so that it is as it was in training, byte for byte. Which id a piece
has, another list tells (`vocab.json`, `vocab.yml`): the model and the list were made apart. A piece is looked up by its
text, so one that this model does not know may be in the list all the same, from the other language's model.

In place of a `tokenizers` file there is an object of ours:

    {"sentencepiece": the model in base64, "vocabulary": [pieces in the order of their ids], "unknown": its id,
     "opening": a token put before every text, such as >>spa<<; "" for none}
"""

import base64
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from vidrio.errors import TokenizerError
from vidrio.model.json_record import fitted
from vidrio.model.json_text import json_data, json_text

BEGINNING = '{"sentencepiece":'  # of such a file
SPACE = "▁"


class Encoding(NamedTuple):
    """A text's tokens, as `tokenizers` returns them."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]  # the characters that each stands for


class SentencePieces:
    """What a `Tokenizer` needs of its engine, under the names that `tokenizers` has for it."""

    def __init__(self, proto: bytes, vocabulary: Sequence[str], unknown: int, opening: str = "") -> None:
        from sentencepiece import SentencePieceProcessor

        self._processor = SentencePieceProcessor()
        try:
            self._processor.LoadFromSerializedProto(proto)
        except (RuntimeError, ValueError, TypeError, OSError) as error:
            raise TokenizerError(
                "the SentencePiece model cannot be read", found=f"{error!s:.200}", do="use an undamaged one"
            ) from None
        self._ids = {piece: i for i, piece in enumerate(vocabulary)}
        if len(self._ids) != len(vocabulary) or (opening and opening not in self._ids) or unknown >= len(vocabulary):
            raise TokenizerError(
                "the list of pieces does not fit the SentencePiece model",
                found=f"{len(vocabulary):,} pieces, {len(self._ids):,} of them different; unknown is {unknown}",
                do="use an undamaged model folder",
            )
        self.proto, self._vocabulary, self._unknown = proto, list(vocabulary), unknown
        self.openings = (opening,) if opening else ()
        self.normalizer = self  # `tokenizers` has one to ask

    @staticmethod
    def from_json(text: str) -> "SentencePieces":
        data = json_data(text)
        proto = base64.b64decode(fitted(str, data["sentencepiece"]), validate=True)
        return SentencePieces(
            proto, fitted(list[str], data["vocabulary"]), fitted(int, data["unknown"]), fitted(str, data["opening"])
        )

    def to_str(self, *, pretty: bool = False) -> str:
        """The content of the file."""
        model = base64.b64encode(self.proto).decode()
        rest = {"vocabulary": self._vocabulary, "unknown": self._unknown, "opening": "".join(self.openings)}
        return json_text({"sentencepiece": model, **rest})

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Encoding:
        """The ids, pieces and places of a text's tokens; that of its target language stands before them."""
        opening, rest = self._opened(text)
        encoded: dict[str, Any] = self._processor.Encode(rest, return_type="offset_mapping")
        begin = len(text) - len(rest)
        tokens = [*opening, *encoded["pieces"]]
        offsets = [*((0, begin) for _ in opening), *((begin + start, begin + end) for start, end in encoded["offsets"])]
        return Encoding([self._ids.get(piece, self._unknown) for piece in tokens], tokens, offsets)

    def encode_batch_fast(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def decode_batch(self, many: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """The texts; pieces that only the other language's model knows keep their ▁."""
        joined = (self._processor.DecodePieces([self._vocabulary[i] for i in ids]) for ids in many)
        return [text.replace(SPACE, " ").strip() for text in joined]

    def normalize_str(self, text: str) -> str:
        """The text as it is split: normalised by the model's table, its spaces as ▁."""
        normalised: str = self._processor.Normalize(self._opened(text)[1])
        return normalised

    def words(self, text: str) -> list[tuple[str, int]]:
        """Each word with the number of its tokens; a word begins where a token begins with ▁."""
        words: list[list[str]] = []
        for token in self.encode(text).tokens:
            if token.startswith(SPACE) or not words:
                words.append([])
            words[-1].append(token)
        return [("".join(tokens), len(tokens)) for tokens in words]

    def get_vocab(self) -> dict[str, int]:
        return self._ids

    @cached_property
    def scores(self) -> dict[str, float]:
        """Log p of each piece that is not a byte, as the model splits by it."""
        model = self._processor
        return {model.IdToPiece(i): model.GetScore(i) for i in range(model.GetPieceSize()) if not model.IsByte(i)}

    def _opened(self, text: str) -> tuple[Sequence[str], str]:
        """The token of the target language, and the text without it. A text may begin with another one."""
        if text.startswith(">>") and (end := text.find("<<")) >= 0 and text[: end + 2] in self._ids:
            return [text[: end + 2]], text[end + 2 :]
        return self.openings, text
