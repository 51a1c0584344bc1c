"""Convert text to token ids and back, with a Hugging Face `tokenizers` file or a SentencePiece model.

`decode(encode(text)) == normalise(text)` for every text and every tokenizer made by Vidrio, except word tokenizers
(normalise.py lists the changes). Tokens look like `▁Hello`. Characters outside the vocabulary are encoded as bytes:
`<0xF0>` and so on.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import final
from unicodedata import category, normalize

import tokenizers
from tokenizers import models

from vidrio.errors import ModelError, TokenizerError, nearest
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.files import read_text, write_atomically
from vidrio.model.folder import TOKENIZERS, check_files
from vidrio.model.json_text import json_data
from vidrio.text.tokens import learn_unigram, vocabulary
from vidrio.text.tokens.case import CAPITAL
from vidrio.text.tokens.closed import has_our_steps
from vidrio.text.tokens.normalise import MARKS, SPACE, valid, with_capitals
from vidrio.text.tokens.sentence_pieces import BEGINNING, Encoding, SentencePieces
from vidrio.text.tokens.vocabulary import BYTES, LARGEST_VOCABULARY, NONE, SpecialNames

LARGEST_FILE = 64 * 1024 * 1024  # bytes; larger files are rejected before parsing


@dataclass(frozen=True, slots=True)
class Piece:
    """A token and the span of its characters in the original text."""

    id: int
    token: str
    start: int
    end: int
    unknown: bool


@final
class Tokenizer:
    """Splits text into tokens of a fixed vocabulary. A tokenizer is immutable, and threads can share it."""

    def __init__(self, engine: tokenizers.Tokenizer | SentencePieces, special: SpecialIds) -> None:
        self._engine, self.special = engine, special
        self._ids: dict[str, int] = engine.get_vocab()
        self._tokens = sorted(self._ids, key=self._ids.__getitem__)
        self.size = len(self._tokens)
        self.sentence_pieces = engine if isinstance(engine, SentencePieces) else None
        # Tokens added before every text, such as >>spa<< for a model with several target languages.
        self.opening: tuple[str, ...] = self.sentence_pieces.openings if self.sentence_pieces else ()
        if isinstance(engine, SentencePieces):
            self.kind = "unigram"
        else:
            self.kind = "bpe" if isinstance(engine.model, models.BPE) else "word"
            engine.encode_special_tokens = True  # the text "</s>" is not the end token
            engine.no_padding()
            engine.no_truncation()
        specials = {i for i in (special.pad, special.unk, special.start, special.end) if i != NONE}
        self._hidden = specials - {special.unk}
        problems = [f"no token {i}, which should be special" for i in sorted(specials) if not 0 <= i < self.size]
        if not 0 < self.size <= LARGEST_VOCABULARY:
            problems.append(f"{self.size:,} tokens, not from 1 to {LARGEST_VOCABULARY:,}")
        if set(self._ids.values()) != set(range(self.size)):
            problems.append(f"the ids of its {self.size:,} tokens are not 0 to {self.size - 1:,}")
        if problems:
            raise TokenizerError("this tokenizer cannot be used", found="; ".join(problems), do="use an undamaged one")

    @staticmethod
    def learn(
        texts: Iterable[str], size: int = 8000, *, coverage: float = 0.9999, case_tokens: bool = False
    ) -> "Tokenizer":
        """Train a BPE tokenizer with at most `size` tokens.

        The rarest characters, which make up 1 - `coverage` of the texts, are encoded as bytes. With `case_tokens`, the
        vocabulary contains only lower-case words, and separate tokens that mark capitals (case.py).
        """
        engine = vocabulary.learn(texts, size, coverage=coverage, case_tokens=case_tokens)
        return Tokenizer(engine, SpecialNames().ids(engine))

    @staticmethod
    def learn_unigram(texts: Iterable[str], size: int) -> "Tokenizer":
        """Train a SentencePiece unigram model with at most `size` tokens."""
        engine = learn_unigram.learn(texts, size)
        return Tokenizer(engine, engine.special)

    @staticmethod
    def of_words(words: Iterable[str], *, names: SpecialNames | None = None, lowercase: bool = True) -> "Tokenizer":
        """Create a word tokenizer with exactly these words, in this order. Special tokens that are not among the words
        come first."""
        names = names or SpecialNames()
        engine = vocabulary.of_words(words, names, lowercase=lowercase)
        return Tokenizer(engine, names.ids(engine))

    @staticmethod
    def load(path: str | Path, special: SpecialIds | None = None) -> "Tokenizer":
        """Read a tokenizer.json file. Pass `special` unless the special tokens are the first four ids (BPE) or `</s>`
        and `<unk>` (SentencePiece)."""
        try:
            engine = _read(Path(path))
            if special is None:
                special = engine.special if isinstance(engine, SentencePieces) else SpecialIds()
        except FileNotFoundError:
            raise TokenizerError(f"there is no tokenizer {path}", do="give the path of a tokenizer.json") from None
        except (TokenizerError, ModuleNotFoundError):
            raise
        except Exception as error:  # the library raises no more specific exception
            what = f"{path} is damaged, or no tokenizer"
            raise TokenizerError(what, found=f"{error!s:.200}", do="copy it again") from None
        return Tokenizer(engine, special)

    def save(self, path: str | Path) -> None:
        """Write a tokenizer.json file atomically."""
        write_atomically(Path(path), f"{self.file_text(pretty=True)}\n".encode())

    def file_text(self, *, pretty: bool = False) -> str:
        """Return the content of the tokenizer's file."""
        return str(self._engine.to_str(pretty=pretty))

    def fingerprint(self) -> str:
        """Return a SHA-256 checksum of everything that determines how texts are split."""
        import hashlib

        return hashlib.sha256(self.file_text().encode()).hexdigest()

    @property
    def of_whole_words(self) -> bool:
        return self.kind == "word"

    @cached_property
    def has_case_tokens(self) -> bool:
        """Whether capitals are marked by separate tokens: ⇧ and ⇪ (case.py)."""
        return self.kind == "bpe" and self.prepared("A") == f"{CAPITAL}{SPACE}a"

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """The ids of the tokens for single bytes."""
        return frozenset(self._ids[token] for token in BYTES if token in self._ids)

    @cached_property
    def ranks(self) -> dict[tuple[str, str], int]:
        """The BPE merges, each with its index in the order of learning."""
        merges = json.loads(self.file_text())["model"]["merges"]
        return {(left, right): rank for rank, (left, right) in enumerate(merges)}

    def prepared(self, text: str) -> str:
        """Return the prepared text, before splitting: normalised and escaped, with `▁` for each space."""
        with _library():
            return str(self._engine.normalizer.normalize_str(valid(text)))

    def words(self, text: str) -> list[tuple[str, int]]:
        """Return the parts of the prepared text whose boundaries no token crosses, each with its number of tokens."""
        if isinstance(self._engine, SentencePieces):
            return self._engine.words(text)
        counts = Counter(self._engine.encode(text, add_special_tokens=False).word_ids)
        return [(part, counts[i]) for i, part in enumerate(self._parts(text))]

    def _parts(self, text: str) -> list[str]:
        assert not isinstance(self._engine, SentencePieces)
        return [part for part, _ in self._engine.pre_tokenizer.pre_tokenize_str(self.prepared(text))]

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's tokens, without special tokens."""
        return self._encode(text).ids

    def count(self, text: str) -> int:
        """Return the number of a text's tokens, excluding the tokens added before every text."""
        return len(self.encode(text)) - len(self.opening)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Encode many texts, using all cores."""
        try:
            with _library():
                return [e.ids for e in self._engine.encode_batch_fast(texts, add_special_tokens=False)]
        except Exception:
            return [self.encode(text) for text in texts]  # the error names the invalid text

    def tokens(self, text: str) -> list[str]:
        """Return the tokens of a text as strings: `["▁Hello", "▁world"]`."""
        return self._encode(text).tokens

    def pieces(self, text: str) -> list[Piece]:
        """Return the tokens with their spans in the original text. With BPE, each span extends to the start of the next
        one; with other tokenizers, white space after a word is in no span.

        A character encoded as bytes has several pieces at the same position. Case marks, and the space added before the
        text, have empty spans.
        """
        encoding = self._encode(text)
        marks = MARKS if self.has_case_tokens else ()
        pieces: list[Piece] = []
        following = end = len(text)
        for i, token, (start, _) in reversed(list(zip(encoding.ids, encoding.tokens, encoding.offsets, strict=True))):
            if token in marks:
                pieces.append(Piece(i, token, following, following, unknown=False))
                continue
            start = min(start, following)  # in a damaged file, offsets may be wrong
            if start < following:
                own = text[start:following]  # except with BPE, white space after a word is in no span
                end = following if self.kind == "bpe" else start + len(own.rstrip() or own)
            pieces.append(Piece(i, token, start, end, i == self.special.unk))
            following = start
        pieces.reverse()
        first = next((n for n, piece in enumerate(pieces) if piece.token not in marks), 0)
        if pieces and pieces[first].token == SPACE and not self.of_whole_words:
            pieces[first] = Piece(pieces[first].id, SPACE, 0, 0, unknown=False)
        return pieces

    def decode(self, ids: Iterable[int]) -> str:
        """Return the text of these ids, without padding, start and end tokens. Unknown tokens are shown by name."""
        return self.decode_batch([[int(i) for i in ids]])[0]

    def decode_batch(self, many: Iterable[Sequence[int]]) -> list[str]:
        """Decode many sequences of ids, using all cores."""
        shown = [[i for i in ids if i not in self._hidden] for ids in many]
        for i in set[int]().union(*shown):
            self.token(i)  # raises an error if there is no such token
        with _library():
            texts = list(self._engine.decode_batch(shown, skip_special_tokens=False))
        return [with_capitals(text) for text in texts] if self.has_case_tokens else texts

    def id(self, token: str) -> int | None:
        """Return the id of a token, or None if it is not in the vocabulary."""
        return self._ids.get(token)

    def token(self, id: int) -> str:  # noqa: A002
        """Return the token with this id."""
        if not 0 <= id < self.size:
            raise TokenizerError(f"there is no token {id}", found=f"a vocabulary of {self.size} tokens")
        return self._tokens[id]

    def vocabulary(self) -> list[str]:
        """Return all tokens, in the order of their ids."""
        return list(self._tokens)

    def spells(self, word: str) -> bool:
        """Return whether the vocabulary contains every letter, combining mark and non-ASCII number (such as ½ and ²) of
        a word. Always true for a word tokenizer."""
        letters = normalize("NFC", word.lower() if self.has_case_tokens else word)
        return self.of_whole_words or all(sign in self._ids for sign in letters if is_spelled(sign))

    def _encode(self, text: str) -> tokenizers.Encoding | Encoding:
        try:
            with _library():
                return self._engine.encode(text, add_special_tokens=False)
        except TokenizerError:
            raise
        except Exception as error:
            valid(text)
            missing = [] if self.sentence_pieces else [word for word in self._parts(text) if word not in self._ids]
            if not missing:
                raise TokenizerError("this text cannot be split into tokens", found=str(error)) from None
            raise TokenizerError(
                f"the vocabulary does not contain {missing[0]!r}",
                found=f"nearest: {nearest(missing[0], self._tokens)}",
                do="use words from the vocabulary, or a tokenizer with an unknown token",
            ) from None


def is_spelled(sign: str) -> bool:
    """Return whether a character is a letter, a combining mark, or a number outside ASCII: ½, ², ₂, ३."""
    return sign.isalpha() or (not sign.isascii() and (sign.isnumeric() or category(sign)[0] == "M"))


def _read(path: Path) -> tokenizers.Tokenizer | SentencePieces:
    """Parse a SentencePiece model, or a `tokenizers` file of one of the two kinds that Vidrio writes."""
    text = read_text(path, LARGEST_FILE)
    if text.startswith(BEGINNING):
        data = json_data(text)
        del text  # megabytes, which would add to the peak memory
        return SentencePieces.from_data(data)
    with _library():
        engine = tokenizers.Tokenizer.from_str(text)
    ours = isinstance(engine.model, models.BPE | models.WordLevel)
    if not ours or engine.normalizer is None or engine.pre_tokenizer is None:
        raise ValueError(f"a file of {type(engine.model).__name__}, not one that vidrio makes")
    if sys.platform != "emscripten" and not has_our_steps(engine):  # a browser cannot rebuild the steps
        raise ValueError("its steps are not those that vidrio writes")
    return engine


@contextmanager
def _library() -> Iterator[None]:
    """Convert a panic in the library, which is not an Exception, to a TokenizerError. Damaged files cause panics."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(
            "this tokenizer cannot be used", found=f"{error!s:.200}", do="use an undamaged model folder"
        ) from None


def read_tokenizers(folder: Path, config: ModelConfig) -> tuple[Tokenizer, Tokenizer]:
    """Return a model's source and target tokenizers: the same object unless the vocabularies are separate."""
    names = [name for name in TOKENIZERS if (folder / name).is_file()] or TOKENIZERS[:1]
    check_files(folder, names)
    found = [Tokenizer.load(folder / name, config.special) for name in names]
    source, target = found[0], found[-1]
    problems = [
        f"{side}: {tokenizer.size} tokens for {rows} rows of the embedding"
        for side, tokenizer, rows in (
            ("source", source, config.source_vocabulary),
            ("target", target, config.target_vocabulary),
        )
        if rows and tokenizer.size > rows
    ]
    if problems:
        raise ModelError(
            f"the tokenizer and the parameters of {folder} do not belong together",
            found="; ".join(problems),
            do="use an undamaged model folder",
        )
    return source, target
