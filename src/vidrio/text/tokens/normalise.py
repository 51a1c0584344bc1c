"""Prepare text for tokenisation, and reverse the preparation when decoding.

Before a text is split into tokens, these steps are applied in order:

1. lower case, for a word tokenizer that was created with `lowercase` (`Tokenizer.of_words`);
2. Unicode normalisation form C: `e` + combining acute becomes `é`. Nothing else is folded, trimmed or repaired: white
   space, control characters, quotes and full-width forms stay as they are.

The remaining steps are reversible, and decoding reverses them:

3. escaping, so that no text can be mistaken for a special token. The noncharacter U+FDD0, which Unicode reserves for
   internal use, is followed by a digit: `0` for U+FDD0 itself, `1` for a literal `▁`, `3` and `4` for `⇧` and
   `⇪`, and `2` for a wedge, which keeps text such as `<s>` or `<0x41>` from being read as a special token or a byte;
4. each space becomes `▁`, and one `▁` is added before the text, so that a word has the same token everywhere
   (`▁Hello`);
5. with case tokens, capital letters become lower-case letters with a mark before them (case.py).

Therefore, `decode(encode(text)) == normalise(text)` for every valid text. Word tokenizers are an exception: they apply
only steps 1 to 3, and lose white space and unknown words.
"""

from collections.abc import Iterable
from typing import NamedTuple

import tokenizers
from tokenizers import Regex, decoders, normalizers, pre_tokenizers

from vidrio.errors import TokenizerError
from vidrio.text.tokens import case

SPACE = "▁"  # U+2581, SentencePiece's space
ESCAPE = "\ufdd0"
MARKS = {case.CAPITAL: "3", case.CAPITALS: "4"}  # the case marks, each with the digit that escapes it

WORDS = r"[\p{L}\p{M}\p{N}_]+(?:['’-][\p{L}\p{M}\p{N}_]+)*|[^\s\p{L}\p{M}\p{N}_]"


def normalise(text: str) -> str:
    """Apply step 2. Encoding and decoding preserve the result."""
    return normalizers.NFC().normalize_str(valid(text))


def valid(text: str) -> str:
    """Return the text if it is valid Unicode; raise an error if it contains a lone surrogate."""
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
    """The steps that prepare and split a text before tokenisation, and that convert tokens back to text."""

    normalizer: normalizers.Normalizer
    splitter: pre_tokenizers.PreTokenizer
    decoder: decoders.Decoder

    def install(self, engine: tokenizers.Tokenizer) -> None:
        engine.normalizer, engine.pre_tokenizer, engine.decoder = self


def for_bpe(names: Iterable[str], cased: str = "") -> Pipeline:
    """Return steps 2 to 5 and their inverses. `names` are the special tokens that texts must not imitate, and `cased`
    are the lower-case letters whose capitals are marked. Bytes that are not valid UTF-8, which only a model can
    produce, become U+FFFD. With case tokens, `with_capitals` completes the decoding."""
    steps = [normalizers.NFC(), normalizers.Replace(ESCAPE, f"{ESCAPE}0")]
    if cased:
        steps += [normalizers.Replace(mark, f"{ESCAPE}{digit}") for mark, digit in MARKS.items()]
    steps += [normalizers.Replace(SPACE, f"{ESCAPE}1"), *_wedges([*names, "<0x"])]
    steps += [normalizers.Replace(" ", SPACE), normalizers.Prepend(SPACE), *case.marking(cased)]
    # A token combines only letters or only signs. Digits and case marks are separate tokens.
    marks = "".join(MARKS) if cased else ""
    alone = f"[{marks}]|" if marks else ""
    letters, other = case.LETTERS, rf"[^{case.LETTERS}\p{{N}}{SPACE}{marks}]"
    parts = Regex(rf"{alone}{SPACE}?[{letters}]+|{SPACE}?\p{{N}}|{SPACE}?{other}+|{SPACE}")
    join = [decoders.Replace(SPACE, " "), decoders.ByteFallback(), decoders.Fuse()]
    join += _unescape("21") if cased else [decoders.Strip(" ", 1, 0), *_unescape("210")]
    return Pipeline(normalizers.Sequence(steps), pre_tokenizers.Split(parts, "isolated"), decoders.Sequence(join))


def for_words(names: Iterable[str], *, lowercase: bool) -> Pipeline:
    """Return steps 1 to 3 and their inverses for a tokenizer with a fixed vocabulary. White space is lost: the decoder
    writes one space between words, but none before closing or after opening punctuation."""
    lower = [normalizers.Lowercase()] if lowercase else []
    escape = normalizers.Replace(ESCAPE, f"{ESCAPE}0")
    white = pre_tokenizers.Split(Regex(r"\s+"), "removed")
    join = [decoders.WordPiece(f"{ESCAPE}3", False), decoders.Fuse()]  # no token has this prefix
    close = decoders.Replace(Regex(r" (?=[.,;:!?…)\]}»”])"), "")
    open_ = decoders.Replace(Regex(r"(?<=[¿¡(\[{«“]) "), "")
    return Pipeline(
        normalizers.Sequence([*lower, normalizers.NFC(), escape, *_wedges(names)]),
        pre_tokenizers.Sequence([white, pre_tokenizers.Split(Regex(WORDS), "isolated")]),
        decoders.Sequence([*join, close, open_, *_unescape("210")]),
    )


def _wedges(names: Iterable[str]) -> list[normalizers.Normalizer]:
    """Return the steps that insert a wedge after the first character of any text that could be read as a name."""
    rests: dict[str, list[str]] = {}
    for name in sorted(names):
        rests.setdefault(name[0], []).append(literal(name[1:]))
    return [
        normalizers.Replace(Regex(f"{literal(first)}(?={'|'.join(rest)})"), f"{first}{ESCAPE}2")
        for first, rest in rests.items()
    ]


def literal(text: str) -> str:
    """Return a regular expression that matches exactly this text."""
    return "".join(c if c.isalnum() else f"\\x{{{ord(c):X}}}" for c in text)


def _unescape(digits: str) -> list[decoders.Decoder]:
    meant = {"2": "", "1": SPACE, "0": ESCAPE}
    return [decoders.Replace(f"{ESCAPE}{digit}", meant[digit]) for digit in digits]


def with_capitals(text: str) -> str:
    """Complete the decoding of a text with case tokens: restore its capitals, and remove the space before it."""
    text = case.restore(text).removeprefix(" ")
    for mark, digit in MARKS.items():
        text = text.replace(f"{ESCAPE}{digit}", mark)
    return text.replace(f"{ESCAPE}0", ESCAPE)
