"""Text to tokens and ids, and back: one class around a Hugging Face `tokenizers` file, or a SentencePiece model.

`decode(encode(text)) == normalise(text)` for every text and every kind but `word` (normalise.py says what is altered).
Pieces read like `▁Hello`; a character that the vocabulary does not hold becomes its bytes, `<0xF0>` and so on.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, final
from unicodedata import category, normalize

import tokenizers
from tokenizers import models, normalizers, pre_tokenizers

from vidrio.errors import ModelError, TokenizerError, nearest
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.files import LARGEST_JSON, sha256, write_atomically
from vidrio.model.folder import TOKENIZERS, check_files
from vidrio.text.tokens import vocabulary
from vidrio.text.tokens.case import CAPITAL
from vidrio.text.tokens.normalise import MARKS, SPACE, pre_tokenizer, valid, with_capitals
from vidrio.text.tokens.sentence_pieces import BEGINNING, Encoding, SentencePieces
from vidrio.text.tokens.spans import exact_spans
from vidrio.text.tokens.vocabulary import BYTES, LARGEST_VOCABULARY, NONE, SpecialNames

REMEMBERED = 20_000  # words whose number of tokens is cached


@dataclass(frozen=True, slots=True)
class Piece:
    """One token and the characters of the original text that it stands for."""

    id: int
    token: str
    start: int
    end: int
    unknown: bool


def is_spelled(sign: str) -> bool:
    """Whether it is a letter, a combining mark, or a number beyond ASCII: ½, ², ₂, ३."""
    return sign.isalpha() or (not sign.isascii() and (sign.isnumeric() or category(sign)[0] == "M"))


@final
class Tokenizer:
    """Splits text into tokens of a fixed vocabulary. Immutable; safe to use from several threads."""

    def __init__(self, engine: tokenizers.Tokenizer | SentencePieces, special: SpecialIds) -> None:
        if isinstance(engine, tokenizers.Tokenizer):
            engine.encode_special_tokens = True  # a text that says "</s>" is text
            engine.no_padding()
            engine.no_truncation()
        self._engine = engine
        self.sentence_pieces = engine if isinstance(engine, SentencePieces) else None  # what splits, if it is that
        # What comes before every text: >>spa<<, where a model translates into several languages.
        self.opening: tuple[str, ...] = self.sentence_pieces.openings if self.sentence_pieces else ()
        self._specials = {i for i in (special.pad, special.unk, special.start, special.end) if i != NONE}
        self._hidden = self._specials - {special.unk}
        self.special = special
        self.size: int = engine.get_vocab_size()
        self._check()

    @staticmethod
    def learn(
        texts: Iterable[str], size: int = 8000, *, coverage: float = 0.9999, case_tokens: bool = False
    ) -> "Tokenizer":
        """Learn a BPE tokenizer with at most `size` tokens.

        Characters that make up the rarest 1 - `coverage` of the texts get no token of their own: bytes stand for them.
        With `case_tokens` the vocabulary holds words in small letters only, and marks for capitals (case.py).
        """
        engine = vocabulary.learn(texts, size, coverage=coverage, case_tokens=case_tokens)
        return Tokenizer(engine, SpecialNames().ids(engine))

    @staticmethod
    def of_words(words: Iterable[str], *, names: SpecialNames | None = None, lowercase: bool = True) -> "Tokenizer":
        """A word tokenizer with just these words, in this order; special tokens that are not among them come first."""
        names = names or SpecialNames()
        engine = vocabulary.of_words(words, names, lowercase=lowercase)
        return Tokenizer(engine, names.ids(engine))

    @staticmethod
    def load(path: str | Path, special: SpecialIds | None = None) -> "Tokenizer":
        """Read a tokenizer.json; `special` says which of its tokens are special, if not the first four as usual."""
        path, special = Path(path), special or SpecialIds()
        try:
            size = path.stat().st_size
            if size > LARGEST_JSON:
                do = f"at most {LARGEST_JSON:,} are read"
                raise TokenizerError(f"{path} is too large", found=f"{size:,} bytes", do=do)
            text = path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise TokenizerError(f"there is no tokenizer {path}", do="give the path of a tokenizer.json") from None
        except (OSError, UnicodeDecodeError) as error:
            raise TokenizerError(f"{path} cannot be read", found=str(error), do="use an undamaged file") from None
        try:
            if text.startswith(BEGINNING):
                return Tokenizer(SentencePieces.from_json(text), special)
            with _library():
                engine = tokenizers.Tokenizer.from_str(text)
        except (TokenizerError, ModuleNotFoundError):
            raise
        except Exception as error:  # the library raises nothing more precise
            found = f"{str(error)[:200]}; sha256 {sha256(path)}"
            raise TokenizerError(f"{path} is damaged, or no tokenizer", found=found, do="copy it again") from None
        if engine.normalizer is None:  # one that does nothing can be asked
            engine.normalizer = normalizers.Sequence([])
        if engine.pre_tokenizer is None:
            engine.pre_tokenizer = pre_tokenizers.Sequence([])
        return Tokenizer(engine, special)

    def with_dropout(self, rate: float) -> "Tokenizer":
        """The same, but each merge of BPE is left out with this probability: it splits a text otherwise every time."""
        if self.kind != "bpe":
            what = "words are split otherwise by a BPE tokenizer only"
            raise TokenizerError(what, found=f"one of the kind {self.kind}", do="train without --subword-dropout")
        engine = tokenizers.Tokenizer.from_str(self.file_text())
        engine.model.dropout = rate
        return Tokenizer(engine, self.special)

    def save(self, path: str | Path) -> None:
        """Write a tokenizer.json, whole or not at all."""
        write_atomically(Path(path), f"{self.file_text(pretty=True)}\n".encode())

    def file_text(self, *, pretty: bool = False) -> str:
        """The content of its file."""
        engine = self._engine
        return engine.to_json() if isinstance(engine, SentencePieces) else str(engine.to_str(pretty=pretty))

    @cached_property
    def model(self) -> dict[str, Any]:
        """The model's part of the file: its type, vocabulary, and merges or scores."""
        return json.loads(self._engine.to_str())["model"]

    @cached_property
    def kind(self) -> str:
        """word, bpe or unigram."""
        if isinstance(self._engine.model, models.Unigram):
            return "unigram"
        return "bpe" if isinstance(self._engine.model, models.BPE) else "word"

    @property
    def of_whole_words(self) -> bool:
        return self.kind == "word"

    @cached_property
    def has_case_tokens(self) -> bool:
        """Whether capitals have tokens of their own: ⇧ and ⇪ (case.py)."""
        return not self.sentence_pieces and self.id(CAPITAL) is not None and self.prepared("A") == f"{CAPITAL}{SPACE}a"

    @cached_property
    def byte_ids(self) -> frozenset[int]:
        """The tokens that stand for one byte each."""
        return frozenset(i for token in BYTES if (i := self.id(token)) is not None)

    @cached_property
    def ranks(self) -> dict[tuple[str, str], int]:
        """For BPE: the place of each merge in the order in which they were learned."""
        return {(left, right): rank for rank, (left, right) in enumerate(self.model.get("merges", []))}

    def prepared(self, text: str) -> str:
        """The text as it is when it is split: normalised, escaped, its spaces written as `▁`."""
        with _library():
            return str(self._engine.normalizer.normalize_str(valid(text)))

    def words(self, text: str) -> list[tuple[str, int]]:
        """What tokens never reach across: each part of the prepared text, with the number of its tokens."""
        if self.sentence_pieces:
            return self.sentence_pieces.words(text)
        encoding = self._encode(text)
        assert isinstance(encoding, tokenizers.Encoding)
        counts = Counter(encoding.word_ids)
        return [(part, counts[i]) for i, part in enumerate(self._parts(text))]

    def _parts(self, text: str) -> list[str]:
        assert not isinstance(self._engine, SentencePieces)
        return [part for part, _ in self._engine.pre_tokenizer.pre_tokenize_str(self.prepared(text))]

    def encode(self, text: str) -> list[int]:
        """The ids of a text's tokens, without any special token."""
        return self._encode(text).ids

    def count(self, text: str) -> int:
        """How many tokens a text has. Where tokens never reach across spaces, words are counted, and remembered."""
        if not text or not self._splits_at_spaces:
            return len(self.encode(text)) - len(self.opening)
        return sum(map(self._count_word, text.split(" ")))

    @cached_property
    def _splits_at_spaces(self) -> bool:
        """Whether a text has the tokens of its words, each with the space before it: so it is in files of our own."""
        if self.of_whole_words or isinstance(self._engine, SentencePieces):
            return False
        ours = pre_tokenizer("bpe", cased=self.has_case_tokens)
        same = self._engine.pre_tokenizer.__getstate__() == ours.__getstate__()  # as JSON
        return bool(same and self.prepared("a") == f"{SPACE}a")

    @cached_property
    def _count_word(self) -> Callable[[str], int]:
        space = len(self.encode("  ")) - len(self.encode(" "))
        return lru_cache(REMEMBERED)(lambda word: len(self.encode(word)) if word else space)

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """`encode` for many texts, on all cores."""
        try:
            with _library():
                return [e.ids for e in self._engine.encode_batch_fast(texts, add_special_tokens=False)]
        except Exception:
            return [self.encode(text) for text in texts]  # says which text is wrong, and why

    def tokens(self, text: str) -> list[str]:
        """The tokens of a text, to read: `["▁Hello", "▁world"]`."""
        return self._encode(text).tokens

    def pieces(self, text: str) -> list[Piece]:
        """The tokens with the characters of the original text that each stands for; together they cover the text.

        A character written as bytes has several pieces, all with its place.
        """
        encoding = self._encode(text)
        tokens, offsets = encoding.tokens, encoding.offsets  # each is made anew when it is asked for
        marks = MARKS if self.has_case_tokens else ()
        shown = [i for i, token in enumerate(tokens) if token not in marks]
        spans = exact_spans(text, [tokens[i] for i in shown], [offsets[i] for i in shown])
        if spans and tokens[shown[0]] == SPACE and self.kind in ("bpe", "unigram"):
            spans[0] = (0, 0)  # the space put before the text
        for i in (i for i, token in enumerate(tokens) if token in marks):
            spans.insert(i, (spans[i][0], spans[i][0]))  # nothing of the text, right before what it marks
        return [
            Piece(i, token, start, end, i == self.special.unk)
            for i, token, (start, end) in zip(encoding.ids, tokens, spans, strict=True)
        ]

    def decode(self, ids: Iterable[int]) -> str:
        """The text of these ids. Padding, start and end are left out; an unknown token is shown by its name."""
        with _library():
            text = str(self._engine.decode(self._shown(ids), skip_special_tokens=False))
        return with_capitals(text) if self.has_case_tokens else text

    def decode_batch(self, many: Iterable[Sequence[int]]) -> list[str]:
        """`decode` for many, on all cores."""
        hidden, size = self._hidden, self.size

        def is_shown(ids: Sequence[int]) -> bool:  # true of nearly all, and quick
            return not ids or (hidden.isdisjoint(ids) and min(ids) >= 0 and max(ids) < size)

        shown = [ids if is_shown(ids) else self._shown(ids) for ids in many]
        with _library():
            texts = list(self._engine.decode_batch(shown, skip_special_tokens=False))
        return list(map(with_capitals, texts)) if self.has_case_tokens else texts

    def id(self, token: str) -> int | None:
        """The id of a token, None if the vocabulary does not hold it."""
        return self._engine.token_to_id(token)

    def spells(self, word: str) -> bool:
        """Whether the vocabulary holds all letters and marks of a word, and numbers like ½ and ²; a vocabulary of words
        needs none."""
        if self.of_whole_words:
            return True
        letters = normalize("NFC", word.lower() if self.has_case_tokens else word)
        return all(self.id(sign) is not None for sign in letters if is_spelled(sign))

    def token(self, id: int) -> str:  # noqa: A002
        """The token of an id."""
        token = self._engine.id_to_token(id) if 0 <= id < self.size else None
        if token is None:
            raise TokenizerError(f"there is no token {id}", found=f"a vocabulary of {self.size} tokens")
        return token

    def vocabulary(self) -> list[str]:
        """All tokens, in the order of their ids."""
        ids = self._engine.get_vocab()
        return sorted(ids, key=ids.__getitem__)

    def fingerprint(self) -> str:
        """A checksum (sha256) of everything that decides how texts are split."""
        import hashlib

        return hashlib.sha256(self.file_text().encode()).hexdigest()

    def _shown(self, ids: Iterable[int]) -> list[int]:
        given = [int(i) for i in ids]
        wrong = [i for i in given if not 0 <= i < self.size]
        if wrong:
            raise TokenizerError(f"there is no token {wrong[0]}", found=f"a vocabulary of {self.size} tokens")
        return [i for i in given if i not in self._hidden]

    def _encode(self, text: str) -> tokenizers.Encoding | Encoding:
        try:
            with _library():
                return self._engine.encode(text, add_special_tokens=False)
        except TokenizerError:
            raise
        except Exception as error:
            valid(text)
            raise self._unknown(text, error) from None

    def _unknown(self, text: str, error: Exception) -> TokenizerError:
        """A vocabulary without a token for the unknown met a word that it does not hold."""
        missing = [word for word in self._parts(text) if self.id(word) is None]
        if not missing:
            return TokenizerError("this text cannot be split into tokens", found=str(error))
        return TokenizerError(
            f"the vocabulary does not hold {missing[0]!r}",
            found=f"nearest: {nearest(missing[0], self.vocabulary())}",
            do="use the vocabulary's words, or a tokenizer that has a token for the unknown",
        )

    def _check(self) -> None:
        problems = []
        if not 0 < self.size <= LARGEST_VOCABULARY:
            problems.append(f"{self.size:,} tokens, not from 1 to {LARGEST_VOCABULARY:,}")
        elif set(self._engine.get_vocab().values()) != set(range(self.size)):
            problems.append(f"the ids of its {self.size} tokens are not 0 to {self.size - 1}")
        problems += [f"no token {i}, which should be special" for i in sorted(self._specials) if not 0 <= i < self.size]
        if problems:
            raise TokenizerError("this tokenizer cannot be used", found="; ".join(problems), do="use an undamaged one")


@contextmanager
def _library() -> Iterator[None]:
    """The library at work. What it raises in a panic, at what it does not expect in a file, is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise TokenizerError(
            "this tokenizer cannot be used", found=f"{error!s:.200}", do="use an undamaged model folder"
        ) from None


def read_tokenizers(folder: Path, config: ModelConfig) -> tuple[Tokenizer, Tokenizer]:
    """The source's and the target's tokenizer of a model: one and the same, unless the vocabularies are separate."""
    separate = folder / "target-tokenizer.json"
    check_files(folder, TOKENIZERS if separate.is_file() else TOKENIZERS[:1])
    source = Tokenizer.load(folder / "tokenizer.json", config.special)
    target = Tokenizer.load(separate, config.special) if separate.is_file() else source
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
