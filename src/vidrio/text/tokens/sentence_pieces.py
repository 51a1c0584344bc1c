"""Provide SentencePiece models as engines of a `Tokenizer`, for models from OPUS-MT, Marian and Firefox.

Texts are normalised (charsmap.py) and split (unigram.py) exactly as in the SentencePiece library. The ids of pieces
come from a separate list (`vocab.json`), as in OPUS-MT. The list may also contain pieces of the other language's model.

The model is stored as a JSON object instead of a `tokenizers` file:

    {"sentencepiece": the model in base64, "vocabulary": [pieces in the order of their ids],
     "unknown": the id of the unknown token, "opening": a token to add before every text, such as >>spa<<, or ""}
"""

import base64
from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

from vidrio.errors import TokenizerError
from vidrio.model.config import SpecialIds
from vidrio.model.json_record import fitted
from vidrio.model.json_text import json_text
from vidrio.text.tokens.charsmap import SPACE
from vidrio.text.tokens.unigram import DAMAGED, Unigram
from vidrio.text.tokens.vocabulary import BYTES

BEGINNING = '{"sentencepiece":'  # how such a file begins
UNKNOWN_SURFACE = " ⁇ "
END = "</s>"
REMEMBERED = 512  # texts whose split is cached: a long sentence is split once to measure it and once to translate it


class Encoding(NamedTuple):
    """The tokens of a text, with the attribute names of `tokenizers`."""

    ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]  # the span of each token in the text


class SentencePieces:
    """A SentencePiece model with the methods that a `Tokenizer` needs from its engine, named as in `tokenizers`."""

    def __init__(self, proto: bytes, vocabulary: Sequence[str], unknown: int, opening: str = "") -> None:
        try:
            self._model = Unigram(proto)
        except DAMAGED as error:
            raise TokenizerError(
                "the SentencePiece model cannot be read", found=f"{error!s:.200}", do="use an undamaged one"
            ) from None
        same = {name: name for name in self._model.names}  # keep each piece in memory once
        vocabulary = [same.get(piece, piece) for piece in vocabulary]
        self._ids = {piece: i for i, piece in enumerate(vocabulary)}
        if len(self._ids) != len(vocabulary) or (opening and opening not in self._ids) or unknown >= len(vocabulary):
            raise TokenizerError(
                "the list of pieces does not fit the SentencePiece model",
                found=f"{len(vocabulary):,} pieces, {len(self._ids):,} of them different; unknown is {unknown}",
                do="use an undamaged model folder",
            )
        self.proto, self._vocabulary, self._unknown = proto, vocabulary, unknown
        self._split = lru_cache(REMEMBERED)(self._model.split)
        self.openings = (opening,) if opening else ()
        self.normalizer = self  # in `tokenizers`, this is a separate object

    @staticmethod
    def from_data(data: dict[str, Any]) -> "SentencePieces":
        """Create the engine from the object in a file. The large values are removed from the object, to free memory."""
        proto = base64.b64decode(fitted(str, data.pop("sentencepiece")), validate=True)
        vocabulary, unknown = fitted(list[str], data.pop("vocabulary")), fitted(int, data["unknown"])
        return SentencePieces(proto, vocabulary, unknown, fitted(str, data["opening"]))

    @property
    def special(self) -> SpecialIds:
        """The special tokens, as in Marian. There is no start token, and the unknown token, which is never chosen, also
        serves as padding."""
        return SpecialIds(pad=self._unknown, unk=self._unknown, start=-1, end=self._ids[END])

    def to_str(self, *, pretty: bool = False) -> str:
        """Return the content of the file."""
        model = base64.b64encode(self.proto).decode()
        rest = {"vocabulary": self._vocabulary, "unknown": self._unknown, "opening": "".join(self.openings)}
        return json_text({"sentencepiece": model, **rest})

    def encode(self, text: str, *, add_special_tokens: bool = False) -> Encoding:
        """Return the ids, pieces and spans of a text's tokens, beginning with the token for the target language, if
        any. Adjacent unknown characters become one token, or byte tokens if the model has them."""
        opening, rest = self._opened(text)
        begin = len(text) - len(rest)
        normalised, places = self._model.normalise(rest)
        tokens, offsets = [*opening], [(0, begin) for _ in opening]
        at, after_unknown = 0, False
        for piece in self._split(normalised):
            place = (begin + places[at], begin + places[at + len(piece)])
            at += len(piece)
            known = piece in self._model.scores
            names = [BYTES[byte] for byte in piece.encode()] if self._model.has_bytes and not known else [piece]
            if after_unknown and not known and not self._model.has_bytes:
                tokens[-1] += piece
                offsets[-1] = (offsets[-1][0], place[1])
            else:
                tokens += names
                offsets += [place] * len(names)
            after_unknown = not known
        hidden = self._model.hidden  # the text "</s>" is not the end token
        ids = [self._unknown if token in hidden else self._ids.get(token, self._unknown) for token in tokens]
        return Encoding(ids, tokens, offsets)

    def encode_batch_fast(self, texts: Sequence[str], *, add_special_tokens: bool = False) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def decode_batch(self, many: Iterable[Sequence[int]], *, skip_special_tokens: bool = False) -> list[str]:
        """Decode many sequences of ids."""
        return [b"".join(map(self._surface, ids)).decode(errors="replace").strip() for ids in many]

    def normalize_str(self, text: str) -> str:
        """Return the normalised text, with ▁ for each space."""
        return self._model.normalise(self._opened(text)[1])[0]

    def words(self, text: str) -> list[tuple[str, int]]:
        """Return the words of a text, each with its number of tokens. A token that begins with ▁ begins a word."""
        words: list[list[str]] = []
        for token in self.encode(text).tokens:
            if token.startswith(SPACE) or not words:
                words.append([])
            words[-1].append(token)
        return [("".join(tokens), len(tokens)) for tokens in words]

    def get_vocab(self) -> dict[str, int]:
        return self._ids

    @property
    def scores(self) -> dict[str, float]:
        """The log-probabilities of all pieces except bytes. They determine how texts are split."""
        return self._model.scores

    def _surface(self, token: int) -> bytes:
        """Return the text of a token, as bytes."""
        piece = self._vocabulary[token]
        if piece in self._bytes:
            return self._bytes[piece]
        if piece in self._model.hidden:
            return UNKNOWN_SURFACE.encode() if token == self._unknown else b""
        return piece.replace(SPACE, " ").encode()

    @cached_property
    def _bytes(self) -> dict[str, bytes]:
        return {name: bytes([byte]) for byte, name in enumerate(BYTES)} if self._model.has_bytes else {}

    def _opened(self, text: str) -> tuple[Sequence[str], str]:
        """Return the token for the target language, if any, and the rest of the text. A token in the text takes
        precedence."""
        if text.startswith(">>") and (end := text.find("<<")) >= 0 and text[: end + 2] in self._ids:
            return [text[: end + 2]], text[end + 2 :]
        return self.openings, text
