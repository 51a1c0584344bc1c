"""The only place where text is altered, and its inverse.

Before a text is split into tokens, in this order:

1. lower case, for a tokenizer of given words that were made so (`Tokenizer.of_words`);
2. Unicode normalisation form C: `e` + combining acute becomes `é`. Nothing else is folded, trimmed or repaired: white
   space, control characters, quotes and full-width forms stay as they are.

The rest is reversible, and decoding reverses it:

3. an escape, so that no text can imitate a token that means something else. The noncharacter U+FDD0, which Unicode
   reserves for use inside programs, is followed by a digit: `0` for itself, `1` for a real `▁`, `2` as a wedge that
   keeps the names of special tokens (`<s>`) and bytes (`<0x41>`) from being read as such, `3` and `4` as `⇧` and `⇪`;
4. a space becomes `▁`, and one `▁` is put before the text, so that a word has the same token everywhere (`▁Hello`);
5. with case tokens, capital letters become small ones with a mark before them (case.py).

So `decode(encode(text)) == normalise(text)` for every valid text, except with the word tokenizer, which does 1 to 3 and
loses white space and unknown words.
"""

from collections.abc import Iterable
from typing import NamedTuple

import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from vidrio.errors import TokenizerError
from vidrio.text.tokens import case

SPACE = "▁"  # U+2581, SentencePiece's space
ESCAPE = "\ufdd0"
MARKS = {case.CAPITAL: "3", case.CAPITALS: "4"}  # and the character that escapes one in a text

WORDS = r"[\p{L}\p{M}\p{N}_]+(?:['’-][\p{L}\p{M}\p{N}_]+)*|[^\s\p{L}\p{M}\p{N}_]"


def normalise(text: str) -> str:
    """The text as a tokenizer with all its letters returns it: step 2."""
    return normalizers.NFC().normalize_str(valid(text))


def valid(text: str) -> str:
    """The text, if it is valid Unicode; a lone surrogate is an error."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TokenizerError(
            "the text is not valid Unicode",
            found=f"the lone surrogate U+{ord(text[error.start]):04X} at character {error.start}",
            do="decode the bytes it came from as UTF-8",
        ) from None
    return text


class Pipeline(NamedTuple):
    """How a text is prepared, where it is split before tokenization, and how tokens become text."""

    normalizer: normalizers.Normalizer
    splitter: pre_tokenizers.PreTokenizer
    decoder: decoders.Decoder

    def install(self, engine: tokenizers.Tokenizer) -> None:
        engine.normalizer, engine.pre_tokenizer, engine.decoder = self


def for_bpe(names: Iterable[str], cased: str = "") -> Pipeline:
    """Steps 2 to 5, and back. `names` are the special tokens that texts must not imitate, `cased` the lower-case
    letters whose capitals have marks. Bytes that are not UTF-8 (only a model can produce them) become U+FFFD. With case
    tokens, `with_capitals` completes the decoding."""
    steps = [normalizers.NFC(), normalizers.Replace(ESCAPE, f"{ESCAPE}0")]
    if cased:
        steps += [normalizers.Replace(mark, f"{ESCAPE}{digit}") for mark, digit in MARKS.items()]
    steps += [normalizers.Replace(SPACE, f"{ESCAPE}1"), *_wedges([*names, "<0x"])]
    steps += [normalizers.Replace(" ", SPACE), normalizers.Prepend(SPACE), *case.marking(cased)]
    # Letters join letters, signs join signs, digits and case marks join nothing.
    marks = "".join(MARKS) if cased else ""
    alone = f"[{marks}]|" if marks else ""
    letters, other = case.LETTERS, rf"[^{case.LETTERS}\p{{N}}{SPACE}{marks}]"
    parts = Regex(rf"{alone}{SPACE}?[{letters}]+|{SPACE}?\p{{N}}|{SPACE}?{other}+|{SPACE}")
    join = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    join += _unescape("21") if cased else [decoders.Strip(" ", 1, 0), *_unescape("210")]
    return Pipeline(normalizers.Sequence(steps), pre_tokenizers.Split(parts, "isolated"), decoders.Sequence(join))


def for_words(names: Iterable[str], *, lowercase: bool) -> Pipeline:
    """Steps 1 to 3 for a tokenizer with a fixed list of words, and back. White space is lost: the decoder writes one
    space between words, and none before a comma or after an opening mark."""
    lower = [normalizers.Lowercase()] if lowercase else []
    escape = normalizers.Replace(ESCAPE, f"{ESCAPE}0")
    white = pre_tokenizers.Split(Regex(r"\s+"), "removed")
    join = [decoders.WordPiece(f"{ESCAPE}3", False), decoders.Fuse()]  # the first argument never occurs
    close = decoders.Replace(Regex(r" (?=[.,;:!?…)\]}»”])"), "")
    open_ = decoders.Replace(Regex(r"(?<=[¿¡(\[{«“]) "), "")
    return Pipeline(
        normalizers.Sequence([*lower, normalizers.NFC(), escape, *_wedges(names)]),
        pre_tokenizers.Sequence([white, pre_tokenizers.Split(Regex(WORDS), "isolated")]),
        decoders.Sequence([*join, close, open_, *_unescape("210")]),
    )


def _wedges(names: Iterable[str]) -> list[normalizers.Normalizer]:
    """The step that puts a wedge after the first character of any text that could be read as one of these."""
    rests: dict[str, list[str]] = {}
    for name in sorted(names):
        rests.setdefault(name[0], []).append(literal(name[1:]))
    return [
        normalizers.Replace(Regex(f"{literal(first)}(?={'|'.join(rest)})"), f"{first}{ESCAPE}2")
        for first, rest in rests.items()
    ]


def literal(text: str) -> str:
    """A regular expression for exactly this text."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def _unescape(digits: str) -> list[decoders.Decoder]:
    meant = {"2": "", "1": SPACE, "0": ESCAPE}
    return [decoders.Replace(f"{ESCAPE}{digit}", meant[digit]) for digit in digits]


def with_capitals(text: str) -> str:
    """The output of the decoder for a text with case tokens, with its capitals and without the space before it."""
    text = case.restore(text).removeprefix(" ")
    for mark, digit in MARKS.items():
        text = text.replace(f"{ESCAPE}{digit}", mark)
    return text.replace(f"{ESCAPE}0", ESCAPE)
