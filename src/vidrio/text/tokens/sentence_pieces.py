"""A SentencePiece model as the engine of a `Tokenizer`: what OPUS-MT and Marian split texts by.

The library itself splits, normalises and joins, so that it is as it was in training, byte for byte. Which id a piece
has, another list tells (`vocab.json`, `vocab.yml`): the model and the list were made apart. A piece is looked up by its
text, so one that this model does not know may be in the list all the same, from the other language's model.

In place of a `tokenizers` file there is an object of ours:

    {"sentencepiece": the model in base64, "vocabulary": [pieces in the order of their ids], "unknown": its id,
     "opening": a token put before every text, such as >>spa<<; "" for none}
"""

import base64
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from tokenizers import models

from vidrio.errors import TokenizerError
from vidrio.model.json_record import fitted
from vidrio.model.json_text import json_text

BEGINNING = '{"sentencepiece":'  # of such a file
SPACE = "▁"


class Encoding(NamedTuple):
    """A text's tokens, as `tokenizers` returns them."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]  # the characters that each stands for


class SentencePieces:
    """What a `Tokenizer` needs of its engine."""

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
        self.model = models.Unigram()  # only says of which kind it is
        self.normalizer = self  # `tokenizers` has one to ask, too

    @staticmethod
    def from_json(text: str) -> "SentencePieces":
        data = json.loads(text)
        proto = base64.b64decode(fitted(str, data["sentencepiece"]), validate=True)
        return SentencePieces(
            proto, fitted(list[str], data["vocabulary"]), fitted(int, data["unknown"]), fitted(str, data["opening"])
        )

    def to_json(self) -> str:
        model = json_text(base64.b64encode(self.proto).decode())
        rest = {"vocabulary": self._vocabulary, "unknown": self._unknown, "opening": "".join(self.openings)}
        return f"{BEGINNING} {model}, {json_text(rest)[1:]}"

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Encoding:
        """The ids, pieces and places of a text's tokens; that of its target language stands before them."""
        opening, rest = self._opened(text)
        encoded: dict[str, Any] = self._processor.Encode(rest, return_type="offset_mapping")
        begin = len(text) - len(rest)
        tokens = [*opening, *encoded["pieces"]]
        offsets = [*((0, begin) for _ in opening), *((begin + start, begin + end) for start, end in encoded["offsets"])]
        return Encoding(self._to_ids(tokens), tokens, offsets)

    def encode_batch_fast(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> list[Encoding]:
        """The same without places."""
        opened = [self._opened(text) for text in texts]
        pieces = self._processor.Encode([rest for _, rest in opened], return_type=str)
        tokens = [[*opening, *some] for (opening, _), some in zip(opened, pieces, strict=True)]
        return [Encoding(self._to_ids(some), some, []) for some in tokens]

    def decode(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> str:
        text: str = self._processor.DecodePieces([self._vocabulary[i] for i in ids])
        return text.replace(SPACE, " ").strip()  # pieces that only the other language's model knows keep theirs

    def decode_batch(self, many: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        return [self.decode(ids) for ids in many]

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

    def get_vocab_size(self) -> int:
        return len(self._vocabulary)

    def token_to_id(self, token: str) -> int | None:
        return self._ids.get(token)

    def id_to_token(self, i: int) -> str:
        return self._vocabulary[i]

    @cached_property
    def scores(self) -> dict[str, float]:
        """Log p of each piece, as the model splits by it."""
        processor = self._processor
        return {processor.IdToPiece(i): processor.GetScore(i) for i in range(processor.GetPieceSize())}

    def to_str(self, *, pretty: bool = False) -> str:
        """What a `tokenizers` file would say of it."""
        vocabulary = [(piece, self.scores.get(piece)) for piece in self._vocabulary]
        return json_text({"model": {"type": "Unigram", "vocab": vocabulary}, "pre_tokenizer": "SentencePiece"})

    def _opened(self, text: str) -> tuple[Sequence[str], str]:
        """The token of the target language, and the text without it. A text may begin with another one."""
        if text.startswith(">>") and (end := text.find("<<")) >= 0 and text[: end + 2] in self._ids:
            return [text[: end + 2]], text[end + 2 :]
        return self.openings, text

    def _to_ids(self, pieces: Iterable[str]) -> list[int]:
        return [self._ids.get(piece, self._unknown) for piece in pieces]
