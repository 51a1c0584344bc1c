"""In the browser, this module is `tokenizers`: as much of the Rust library as our own tokenizer files take, in Python.

It reads a tokenizer.json whose normalizer, pre-tokenizer and decoder are of the kinds below (text/tokens/normalise.py
makes them) and whose model is BPE or WordLevel, and gives the same ids and tokens, and the same places but inside a
letter with several marks: a test compares the two (test_site_tokenizers.py). What letters, marks and numbers are
(`\\p{L}`), the site's writer asks the library itself, and writes down beside this file (classes.json).
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from unicodedata import combining, normalize

CLASSES = Path(__file__).with_name("classes.json")
Spans = list[tuple[int, int]]  # for each character, where it comes from in the original text


# --- regular expressions ----------------------------------------------------------------------------------------------


@cache
def _classes() -> dict[str, str]:
    """What stands inside [] for \\p{L}, \\p{M} and \\p{N}."""
    ranges = json.loads(CLASSES.read_text("utf-8"))
    return {name: "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in found) for name, found in ranges.items()}


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """The library's syntax in Python's: classes, \\x{2F}, and lookbehinds whose branches differ in length."""
    pattern = re.sub(r"\(\?<!((?:\[[^]]*\]|[^][()|])+)\|((?:\[[^]]*\]|[^][()|])+)\)", r"(?<!\1)(?<!\2)", pattern)
    pattern = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)
    inside, written = False, []
    for part in re.findall(r"\\p\{\w\}|\\.|.", pattern, re.DOTALL):
        inside = part == "[" or (inside and part != "]")
        if part.startswith(r"\p"):
            part = _classes()[part[3]] if inside else f"[{_classes()[part[3]]}]"
        written.append(part)
    return re.compile("".join(written))


class Regex(str):
    """A pattern, not a text."""


def _pattern(data: dict[str, str]) -> str:
    return Regex(data["Regex"]) if "Regex" in data else data["String"]


def _matches(pattern: str, text: str) -> Iterator[tuple[int, int]]:
    """Where a pattern, or a text, is found."""
    if isinstance(pattern, Regex):
        yield from (found.span() for found in compiled(pattern).finditer(text))
    elif pattern in text:
        yield from (found.span() for found in re.finditer(re.escape(pattern), text))


# --- before: each step takes a text with the places of its characters, and gives another ------------------------------


class Replace(NamedTuple):
    pattern: str
    content: str

    def apply(self, text: str, spans: Spans) -> tuple[str, Spans]:
        parts, places, last = [], [], 0
        for start, end in _matches(self.pattern, text):
            parts += [text[last:start], self.content]
            before = spans[end - 1] if end else (0, 0)  # what is put in shares the place of what stands before it
            places += [*spans[last:start], *[before] * len(self.content)]
            last = end
        return ("".join([*parts, text[last:]]), places + spans[last:]) if parts else (text, spans)

    def decode(self, tokens: list[str]) -> list[str]:
        if isinstance(self.pattern, Regex):
            return [compiled(self.pattern).sub(lambda _: self.content, token) for token in tokens]
        return [token.replace(self.pattern, self.content) for token in tokens]


class NFC(NamedTuple):
    """Canonical composition. A letter and its marks have one place, as a whole; the library's are finer."""

    def apply(self, text: str, spans: Spans) -> tuple[str, Spans]:
        if normalize("NFC", text) == text:
            return text, spans
        parts: list[str] = []
        places: Spans = []
        start = 0
        for end in range(1, len(text) + 1):
            before, after = text[start:end], text[end : end + 1]
            apart = normalize("NFC", before) + normalize("NFC", after)
            if not after or not (combining(after) or normalize("NFC", before + after) != apart):
                parts.append(normalize("NFC", before))
                places += [(spans[start][0], spans[end - 1][1])] * len(parts[-1])
                start = end
        return "".join(parts), places


class Lowercase(NamedTuple):
    def apply(self, text: str, spans: Spans) -> tuple[str, Spans]:
        lower = [character.lower() for character in text]
        return "".join(lower), [span for span, some in zip(spans, lower, strict=True) for _ in some]


class Prepend(NamedTuple):
    prepend: str

    def apply(self, text: str, spans: Spans) -> tuple[str, Spans]:
        return (self.prepend + text, [*spans[:1] * len(self.prepend), *spans]) if text else (text, spans)


class Steps(NamedTuple):
    """Normalizers, or decoders, one after the other."""

    steps: list[Any]

    def apply(self, text: str, spans: Spans) -> tuple[str, Spans]:
        for step in self.steps:
            text, spans = step.apply(text, spans)
        return text, spans

    def normalize_str(self, text: str) -> str:
        return self.apply(text, [(0, 0)] * len(text))[0]


class Split(NamedTuple):
    """Where a text is cut; what matches is a part by itself, or left out."""

    pattern: str
    behavior: str

    def split(self, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
        last = start
        for a, b in _matches(self.pattern, text[start:end]):
            if last < start + a:
                yield last, start + a
            if self.behavior.lower() == "isolated" and a < b:
                yield start + a, start + b
            last = start + b
        if last < end:
            yield last, end


class Splits(list[Split]):
    """Pre-tokenizers, one after the other."""

    def parts(self, text: str) -> list[tuple[int, int]]:
        parts = [(0, len(text))] if text else []
        for split in self:
            parts = [part for start, end in parts for part in split.split(text, start, end)]
        return parts

    def pre_tokenize_str(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        return [(text[start:end], (start, end)) for start, end in self.parts(text)]


# --- after: each step takes tokens, and gives others ------------------------------------------------------------------


class ByteFallback(NamedTuple):
    def decode(self, tokens: list[str]) -> list[str]:
        written: list[str] = []
        held = bytearray()
        for token in [*tokens, ""]:
            if found := re.fullmatch("<0x([0-9A-Fa-f]{2})>", token):
                held.append(int(found[1], 16))
                continue
            if held:
                try:
                    written.append(held.decode())
                except UnicodeDecodeError:
                    written += ["�"] * len(held)
                held.clear()
            written.append(token)
        return written[:-1]


class Fuse(NamedTuple):
    def decode(self, tokens: list[str]) -> list[str]:
        return ["".join(tokens)]


class Strip(NamedTuple):
    """One character before the text, as our files have it: the space put there."""

    content: str
    start: int
    stop: int

    def decode(self, tokens: list[str]) -> list[str]:
        return [token.removeprefix(self.content) for token in tokens]


class WordPiece(NamedTuple):
    prefix: str
    cleanup: bool

    def decode(self, tokens: list[str]) -> list[str]:
        joined = (t.removeprefix(self.prefix) if t.startswith(self.prefix) else f" {t}" for t in tokens[1:])
        return [*tokens[:1], *joined]


class BPE:
    """Byte-pair encoding: of all neighbours that may merge, those of the lowest rank do so first."""

    def __init__(self, model: dict[str, Any]) -> None:
        self._ids = model["vocab"]
        self._ranks = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}
        self._known: dict[str, list[tuple[str, int, int]]] = {}

    def tokens(self, word: str) -> list[tuple[str, int, int]]:
        """The tokens of a word and which of its characters each stands for."""
        found = self._known.get(word)
        if found is None:
            found = self._known[word] = self._split(word)
        return found

    def _split(self, word: str) -> list[tuple[str, int, int]]:
        symbols: list[tuple[str, int, int]] = []
        for i, character in enumerate(word):
            if character in self._ids:
                symbols.append((character, i, i + 1))
            else:
                symbols += [(f"<0x{byte:02X}>", i, i + 1) for byte in character.encode()]
        while True:
            ranked = [
                (rank, n)
                for n, (a, b) in enumerate(pairwise(symbols))
                if (rank := self._ranks.get((a[0], b[0]))) is not None
            ]
            if not ranked:
                return symbols
            _, n = min(ranked)
            (left, start, _), (right, _, end) = symbols[n : n + 2]
            symbols[n : n + 2] = [(left + right, start, end)]


class WordLevel:
    """Whole words."""

    def __init__(self, model: dict[str, Any]) -> None:
        self._ids, self._unknown = model["vocab"], model["unk_token"]

    def tokens(self, word: str) -> list[tuple[str, int, int]]:
        token = word if word in self._ids else self._unknown
        if token not in self._ids:
            raise ValueError("WordLevel error: Missing [UNK] token from the vocabulary")
        return [(token, 0, len(word))]


class Encoding(NamedTuple):
    ids: list[int]
    tokens: list[str]
    offsets: Spans
    word_ids: list[int]


class Tokenizer:
    """A tokenizer.json."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data, model = data, data["model"]
        self.normalizer, self.pre_tokenizer, self._decoder = (_read(data[part]) for part in PARTS)
        self.model = BPE(model) if model["type"] == "BPE" else WordLevel(model)
        self._ids = model["vocab"] | {token["content"]: token["id"] for token in data["added_tokens"]}
        self._names = {i: token for token, i in self._ids.items()}
        self.encode_special_tokens = True  # a text that says "</s>" is text

    @staticmethod
    def from_str(text: str) -> "Tokenizer":
        return Tokenizer(json.loads(text))

    def to_str(self, pretty: bool = False) -> str:
        return json.dumps(self._data, ensure_ascii=False, indent=2 if pretty else None)

    def no_padding(self) -> None:
        """Nothing is ever padded here."""

    def no_truncation(self) -> None:
        """Nothing is ever cut off here."""

    def get_vocab(self) -> dict[str, int]:
        return self._ids

    def encode(self, text: str, add_special_tokens: bool = False) -> Encoding:
        prepared, spans = self.normalizer.apply(text, [(i, i + 1) for i in range(len(text))])
        ids, tokens, offsets, words = [], [], [], []
        for nth, (first, last) in enumerate(self.pre_tokenizer.parts(prepared)):
            for token, start, end in self.model.tokens(prepared[first:last]):
                ids.append(self._ids[token])
                tokens.append(token)
                offsets.append((spans[first + start][0], spans[first + end - 1][1]))
                words.append(nth)
        return Encoding(ids, tokens, offsets, words)

    def encode_batch_fast(self, texts: Sequence[str], add_special_tokens: bool = False) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def decode_batch(self, many: Iterable[Sequence[int]], skip_special_tokens: bool = False) -> list[str]:
        return [self._decoded([self._names[i] for i in ids]) for ids in many]

    def _decoded(self, tokens: list[str]) -> str:
        for step in self._decoder.steps:
            tokens = step.decode(tokens)
        return "".join(tokens)


def _read(data: dict[str, Any]) -> Any:
    """One part of a file; a sequence becomes all its steps."""
    kind = data["type"]
    if kind == "Sequence":
        found = [_read(part) for name in LISTS if name in data for part in data[name]]
        return Splits([split for splits in found for split in splits]) if "pretokenizers" in data else Steps(found)
    if kind == "Split":
        return Splits([Split(_pattern(data["pattern"]), data["behavior"])])
    if kind == "Replace":
        return Replace(_pattern(data["pattern"]), data["content"])
    simple = {one.__name__: one for one in (NFC, Lowercase, Prepend, ByteFallback, Fuse, Strip, WordPiece)}
    if kind not in simple:
        raise ValueError(f"a tokenizer with {kind} cannot be read in the browser")
    return simple[kind](**{name: value for name, value in data.items() if name != "type"})


PARTS = ("normalizer", "pre_tokenizer", "decoder")  # of a file
LISTS = ("normalizers", "pretokenizers", "decoders")  # in a sequence of them


# What our files name of these modules where they learn a tokenizer, which no browser does.


class normalizers:
    Normalizer = Any


class pre_tokenizers:
    PreTokenizer = Any


class decoders:
    Decoder = Any


class models:
    BPE, WordLevel = BPE, WordLevel
