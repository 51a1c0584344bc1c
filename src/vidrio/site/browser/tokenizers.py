"""A substitute for `tokenizers` in the browser: the parts of the library that our files need, in pure Python.

It runs the steps in a tokenizer.json (as written by text/tokens/normalise.py), and returns the same ids, tokens and
positions as the library, except for positions within a letter that has several marks. classes.json lists the characters
that the library treats as letters, marks and numbers (`\\p{L}`, `\\p{M}`, `\\p{N}`).
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
Step = dict[str, Any]  # a step, as stored in the file
Spans = list[tuple[int, int]]  # the span of each character in the original text
Prepared = tuple[str, Spans]


# --- regular expressions ----------------------------------------------------------------------------------------------


@cache
def _classes() -> dict[str, str]:
    """Return ranges for a character class [] that are equivalent to \\p{L}, \\p{M} and \\p{N}, keyed by letter."""
    ranges = json.loads(CLASSES.read_text("utf-8"))
    return {name: "".join(f"\\U{a:08x}-\\U{b:08x}" for a, b in found) for name, found in ranges.items()}


@cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile one of the library's patterns after translating \\p, \\x{2F} and variable-width lookbehinds to Python."""
    pattern = re.sub(r"\(\?<!((?:\[[^]]*\]|[^][()|])+)\|((?:\[[^]]*\]|[^][()|])+)\)", r"(?<!\1)(?<!\2)", pattern)
    pattern = re.sub(r"\\x\{([0-9A-Fa-f]+)\}", lambda found: f"\\U{int(found[1], 16):08x}", pattern)
    inside, written = False, []
    for part in re.findall(r"\\p\{\w\}|\\.|.", pattern, re.DOTALL):
        inside = part == "[" or (inside and part != "]")
        if part.startswith(r"\p"):
            part = _classes()[part[3]] if inside else f"[{_classes()[part[3]]}]"
        written.append(part)
    return re.compile("".join(written))


def _matches(step: Step, text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans that match a step's pattern or string."""
    pattern = step["pattern"]
    if "Regex" in pattern or pattern["String"] in text:
        found = compiled(pattern["Regex"] if "Regex" in pattern else re.escape(pattern["String"])).finditer(text)
        yield from (match.span() for match in found)


# --- steps before splitting: text with spans → text with spans --------------------------------------------------------


def _replace(step: Step, text: str, spans: Spans) -> Prepared:
    content, parts, places, last = step["content"], [], [], 0
    for start, end in _matches(step, text):
        parts += [text[last:start], content]
        before = spans[end - 1] if end else (0, 0)  # inserted text takes the span of the preceding character
        places += [*spans[last:start], *[before] * len(content)]
        last = end
    return ("".join([*parts, text[last:]]), places + spans[last:]) if parts else (text, spans)


def _compose(step: Step, text: str, spans: Spans) -> Prepared:
    """Normalise to NFC. A letter and its marks share one span here; the library's spans are finer."""
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


def _lowercase(step: Step, text: str, spans: Spans) -> Prepared:
    lower = [character.lower() for character in text]
    return "".join(lower), [span for span, some in zip(spans, lower, strict=True) for _ in some]


def _prepend(step: Step, text: str, spans: Spans) -> Prepared:
    prefix = step["prepend"]
    return (prefix + text, [*spans[:1] * len(prefix), *spans]) if text else (text, spans)


# --- splitting --------------------------------------------------------------------------------------------------------


def _split(step: Step, text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a part of the text at matches, which become parts of their own or are removed."""
    last = start
    for a, b in _matches(step, text[start:end]):
        if last < start + a:
            yield last, start + a
        if step["behavior"].lower() == "isolated" and a < b:
            yield start + a, start + b
        last = start + b
    if last < end:
        yield last, end


# --- decoding steps: tokens → tokens ----------------------------------------------------------------------------------


def _replace_in_tokens(step: Step, tokens: list[str]) -> list[str]:
    pattern = compiled(step["pattern"].get("Regex") or re.escape(step["pattern"]["String"]))
    return [pattern.sub(lambda _: step["content"], token) for token in tokens]


def _bytes(step: Step, tokens: list[str]) -> list[str]:
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


def _fuse(step: Step, tokens: list[str]) -> list[str]:
    return ["".join(tokens)]


def _strip(step: Step, tokens: list[str]) -> list[str]:
    """Strip the space that was prepended to the text. In our files, at most one character is stripped, on the left."""
    return [token.removeprefix(step["content"]) for token in tokens]


def _word_pieces(step: Step, tokens: list[str]) -> list[str]:
    prefix = step["prefix"]
    return [*tokens[:1], *(t.removeprefix(prefix) if t.startswith(prefix) else f" {t}" for t in tokens[1:])]


NORMALIZERS = {"Replace": _replace, "NFC": _compose, "Lowercase": _lowercase, "Prepend": _prepend}
DECODERS = {
    **{"Replace": _replace_in_tokens, "ByteFallback": _bytes, "Fuse": _fuse},
    **{"Strip": _strip, "WordPiece": _word_pieces},
}


# --- models -----------------------------------------------------------------------------------------------------------


class BPE:
    """Byte-pair encoding. The adjacent pair with the lowest rank is merged first."""

    def __init__(self, model: dict[str, Any]) -> None:
        self._ids = model["vocab"]
        self._ranks = {(left, right): rank for rank, (left, right) in enumerate(model["merges"])}
        self.tokens = cache(self._tokens)

    def _tokens(self, word: str) -> list[tuple[str, int, int]]:
        """Return the tokens of a word with their start and end positions."""
        symbols: list[tuple[str, int, int]] = []
        for i, character in enumerate(word):
            known = character in self._ids
            spelled = [character] if known else [f"<0x{byte:02X}>" for byte in character.encode()]
            symbols += [(symbol, i, i + 1) for symbol in spelled]
        while True:
            pairs = enumerate(pairwise(symbols))
            ranked = [(self._ranks[a[0], b[0]], n) for n, (a, b) in pairs if (a[0], b[0]) in self._ranks]
            if not ranked:
                return symbols
            _, n = min(ranked)
            (left, start, _), (right, _, end) = symbols[n : n + 2]
            symbols[n : n + 2] = [(left + right, start, end)]


class WordLevel:
    """A vocabulary of whole words."""

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
    """A tokenizer defined by a tokenizer.json file."""

    def __init__(self, data: dict[str, Any]) -> None:
        self._data, model = data, data["model"]
        self._steps = _steps(data["normalizer"], "normalizers", NORMALIZERS)
        self._splits = _steps(data["pre_tokenizer"], "pretokenizers", ["Split"])
        self._decoders = _steps(data["decoder"], "decoders", DECODERS)
        self.model = BPE(model) if model["type"] == "BPE" else WordLevel(model)
        self._ids = model["vocab"] | {token["content"]: token["id"] for token in data["added_tokens"]}
        self._names = {i: token for token, i in self._ids.items()}
        self.normalizer = self.pre_tokenizer = self  # in the library, these are separate objects
        self.encode_special_tokens = True  # the text "</s>" is not encoded as the end token

    @staticmethod
    def from_str(text: str) -> "Tokenizer":
        return Tokenizer(json.loads(text))

    def to_str(self, pretty: bool = False) -> str:
        return json.dumps(self._data, ensure_ascii=False, indent=2 if pretty else None)

    def no_padding(self) -> None:
        """Do nothing, because this class never pads."""

    def no_truncation(self) -> None:
        """Do nothing, because this class never truncates."""

    def get_vocab(self) -> dict[str, int]:
        return self._ids

    def prepare(self, text: str) -> Prepared:
        spans = [(i, i + 1) for i in range(len(text))]
        for step in self._steps:
            text, spans = NORMALIZERS[step["type"]](step, text, spans)
        return text, spans

    def normalize_str(self, text: str) -> str:
        return self.prepare(text)[0]

    def _parts(self, text: str) -> list[tuple[int, int]]:
        parts = [(0, len(text))] if text else []
        for step in self._splits:
            parts = [part for start, end in parts for part in _split(step, text, start, end)]
        return parts

    def pre_tokenize_str(self, text: str) -> list[tuple[str, tuple[int, int]]]:
        return [(text[start:end], (start, end)) for start, end in self._parts(text)]

    def encode(self, text: str, add_special_tokens: bool = False) -> Encoding:
        prepared, spans = self.prepare(text)
        rows = [
            (self._ids[token], token, (spans[first + start][0], spans[first + end - 1][1]), nth)
            for nth, (first, last) in enumerate(self._parts(prepared))
            for token, start, end in self.model.tokens(prepared[first:last])
        ]
        columns: Any = ([row[column] for row in rows] for column in range(4))
        return Encoding(*columns)

    def encode_batch_fast(self, texts: Sequence[str], add_special_tokens: bool = False) -> list[Encoding]:
        return [self.encode(text) for text in texts]

    def decode_batch(self, many: Iterable[Sequence[int]], skip_special_tokens: bool = False) -> list[str]:
        return [self._decoded([self._names[i] for i in ids]) for ids in many]

    def _decoded(self, tokens: list[str]) -> str:
        for step in self._decoders:
            tokens = DECODERS[step["type"]](step, tokens)
        return "".join(tokens)


def _steps(data: Step, name: str, known: Iterable[str]) -> list[Step]:
    """Return the steps in one part of a tokenizer file."""
    steps: list[Step] = data[name] if data["type"] == "Sequence" else [data]
    if unknown := {step["type"] for step in steps} - {*known}:
        raise ValueError(f"a tokenizer with {', '.join(unknown)} cannot be read in the browser")
    return steps


# Names that text/tokens refers to. Training a tokenizer is not supported in the browser.

Regex = str


class normalizers:
    Normalizer = Any


class pre_tokenizers:
    PreTokenizer = Any


class decoders:
    Decoder = Any


class models:
    BPE, WordLevel = BPE, WordLevel
