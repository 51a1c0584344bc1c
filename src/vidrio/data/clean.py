"""Decide whether a sentence pair is usable. Excluded pairs are counted, and a few are kept as samples."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cache

from vidrio.text.fold import fold

# UTF-8 decoded as Windows-1252: the first byte of a multi-byte character, followed by continuation bytes.
_UPPER = "\u0080-\u00bf€‚ƒ„…†‡ˆ‰Š‹ŒŽ‘’“”•–—˜™š›œžŸ"
_BROKEN = re.compile(rf"[ÂÃÄÅ][{_UPPER}]|â[€‚„][{_UPPER}]|(?:[ÐÑ][{_UPPER}]){{2}}|ðŸ|\ufffd")
_CONTROL = re.compile(
    "[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ufeff\ufff9-\ufffb\ufdd0-\ufdef\ue000-\uf8ff\ufffe\uffff]"
)
_SPACES = re.compile(r"[\t\n\r\x0b\x0c\x85\u2028\u2029]+")
_LETTER = re.compile(r"[^\W\d_]")
# East Asian characters. A character represents a syllable or a word.
_WIDE = re.compile("[\u1100-\u11ff\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_BEYOND_LATIN = re.compile("[\u0370-\u1dff\u2c00-\ud7ff\uf900-\ufaff\U00010000-\U0001efff\U00020000-\U0003ffff]")
_NUMBER = re.compile(r"\d+(?:[.,\u00a0\u202f' ]\d{3})*(?:[.,]\d+)?")


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The limits that a pair must respect. A limit of 0 or an empty set of scripts disables a rule."""

    longest: int = 1000  # maximum number of characters in either text
    ratio: float = 3.0  # maximum ratio of the two lengths, relative to the usual ratio
    numbers: bool = True  # whether source and target must contain the same numbers
    identical: int = 3  # a target that is identical to its source is rejected if it has this many words or more
    source_scripts: frozenset[str] = frozenset()  # scripts to which at least half of the letters must belong
    target_scripts: frozenset[str] = frozenset()
    usual_ratio: float = 1.0  # usual ratio of source length to target length


def suited(limits: Limits, sample: Iterable[tuple[str, str]]) -> Limits:
    """Return limits with the usual length ratio and the scripts of a sample."""
    sources, targets = tuple(zip(*sample, strict=True)) or ((), ())
    ratio = (sum(map(_length, sources)) + 1) / (sum(map(_length, targets)) + 1)
    return replace(
        limits,
        usual_ratio=min(max(ratio, 1 / 3), 3.0),
        source_scripts=scripts_of(sources),
        target_scripts=scripts_of(targets),
    )


def scripts_of(texts: Iterable[str]) -> frozenset[str]:
    """Return the scripts that account for at least a twentieth of the letters."""
    counts = Counter(script(letter) for text in texts for letter in _LETTER.findall(text))
    return frozenset(name for name, count in counts.items() if count * 20 >= counts.total())


def tidy(text: str) -> str:
    """Strip surrounding whitespace, and replace tabs and line breaks with spaces."""
    text = text.strip()
    return _SPACES.sub(" ", text) if _SPACES.search(text) else text


def fault_of_text(text: str) -> str:
    """Return the reason why a tidied text is unusable, or an empty string if it is usable."""
    return ("broken encoding" if _BROKEN.search(text) else "") if text else "empty"


def fault(source: str, target: str, limits: Limits) -> str:
    """Return the reason why a tidied pair is unusable, or an empty string if it is usable."""
    if not source or not target:
        return "empty"
    if limits.longest and max(len(source), len(target)) > limits.longest:
        return "too long"
    if _BROKEN.search(source) or _BROKEN.search(target):
        return "broken encoding"
    if _CONTROL.search(source) or _CONTROL.search(target):
        return "control characters"
    if limits.identical and _identical(source, target, limits.identical):
        return "identical sides"
    if _strange(source, limits.source_scripts) or _strange(target, limits.target_scripts):
        return "wrong script"
    if limits.ratio:
        # The ratio varies more for short texts, so 15 characters are added to both lengths.
        ratio = (_length(source) + 15) / (_length(target) * limits.usual_ratio + 15)
        if not 1 / limits.ratio <= ratio <= limits.ratio:
            return "length ratio"
    if limits.numbers and _numbers_differ(source, target):
        return "numbers differ"
    return ""


@cache
def script(letter: str) -> str:
    """Return the Unicode name of a letter's script: LATIN, CYRILLIC, CJK …"""
    return unicodedata.name(letter, "UNKNOWN").split()[0].split("-")[0]


def _length(text: str) -> int:
    """Count characters. East Asian characters count as three, because each represents a syllable or a word."""
    return len(text) if text.isascii() else len(text) + 2 * len(_WIDE.findall(text))


def _identical(source: str, target: str, words: int) -> bool:
    letters = source[0].isalnum() and target[0].isalnum()
    if letters and source[0].casefold() != target[0].casefold():  # a quick test that rules out most pairs
        return False
    folded = fold(source)
    return folded.count(" ") + 1 >= words and folded == fold(target) and bool(_LETTER.search(folded))


def _strange(text: str, scripts: frozenset[str]) -> bool:
    if not scripts or ("LATIN" in scripts and not _BEYOND_LATIN.search(text)):
        return False
    letters = _LETTER.findall(text)
    return 2 * sum(script(letter) in scripts for letter in letters) < len(letters)


def _numbers_differ(source: str, target: str) -> bool:
    """Return whether a number with at least two digits occurs in only one of the texts.

    If one text has no numbers at all, only numbers with at least four digits count, because smaller numbers may
    be spelled out, as in "the nineties".
    """
    ours, theirs = _numbers(source), _numbers(target)
    return any(len(number) > (1 if ours and theirs else 3) for number in ours ^ theirs)


def _numbers(text: str) -> set[str]:
    """Return the numbers in a text, in ASCII digits: ２５ and ٢٥ are 25."""
    digits = ("".join(str(unicodedata.decimal(c)) for c in n if c.isdecimal()) for n in _NUMBER.findall(text))
    return {number.lstrip("0") or "0" for number in digits}


# --- excluded pairs ---------------------------------------------------------------------------------------------------

SAMPLES = 5  # maximum number of samples per reason
LONGEST_SAMPLE = 200  # maximum number of characters per text

# All reasons and their meanings, in the order in which they are checked.
REASONS = {
    "column missing": "the row lacks one of the columns",
    "empty": "source or target is blank",
    "too long": "source or target has too many characters",
    "broken encoding": "invalid UTF-8, or text decoded with the wrong encoding: Ã© for é",
    "control characters": "characters that do not occur in sentences",
    "identical sides": "source and target are identical, except for case and punctuation, and have three or more words",
    "wrong script": "most letters belong to a script that is rare in the corpus",
    "length ratio": "one text is far longer than the other, relative to the usual ratio",
    "numbers differ": "a number occurs in only one of the texts",
    "duplicate": "repeats an earlier pair, except for case and punctuation",
    "repeats a held-out sentence": "source or target occurs in a held-out pair, except for case and punctuation",
}


@dataclass
class Tally:
    """Counts the pairs excluded for each reason, and keeps the first few: file and line, source, target."""

    read: int = 0
    kept: int = 0
    skipped: dict[str, int] = field(default_factory=dict)
    samples: dict[str, list[list[str]]] = field(default_factory=dict)

    def skip(self, reason: str, place: str, source: str, target: str = "") -> None:
        """Count an excluded pair."""
        self.skipped[reason] = self.skipped.get(reason, 0) + 1
        samples = self.samples.setdefault(reason, [])
        if len(samples) < SAMPLES:
            samples.append([place, source[:LONGEST_SAMPLE], target[:LONGEST_SAMPLE]])

    def reasons(self) -> list[tuple[str, int]]:
        """Return the reasons that occurred and their counts, in the order in which the rules are checked."""
        return [(reason, self.skipped[reason]) for reason in REASONS if reason in self.skipped]

    def summary(self, left: int) -> str:
        """Summarise how many pairs were read, kept and excluded for each reason."""
        reasons = "; ".join(f"{count:,} {reason}" for reason, count in self.reasons())
        return f"{self.read:,} pairs read, {left:,} left" + (f" ({reasons})" if reasons else "")
