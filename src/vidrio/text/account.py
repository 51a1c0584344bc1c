"""What a sentence says that its translation must say too, and nothing else of the kind: its facts.

`facts` finds them on both sides by the same rules, `compare` tells which were lost and which were invented. A fact is
known by its key, whatever form it has: twelve, 12th, XII and 12 are one number; 1,234.5 and 1.234,5 another. A fact is
sure, or it may be something else (a second, "May I?"): it then excuses its like on the other side, and demands nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from vidrio.text.lexicon import NONE, Lexicon
from vidrio.text.protect import MONEY, UNITS, Protected, is_free, number_key

# Kinds that are worth another search.
ALWAYS = ("thing", "name", "number", "calendar", "measure", "sign", "list", "obligation", "words")
_TOKEN = (
    r"(?P<ordinal>\d+\.?(?:[ºª]|(?:st|nd|rd|th|er|[rdtmvn][oa])\b))|(?P<percent>(?i:por cien(?:to)?|per ?cent)\b)"
    r"|(?<!_)(?P<word>[^\W\d_]++(?:['’][^\W\d_]++)*+)(?![\d_])"
)
ROMAN = r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_MEASURE = rf"(?<=\d)\s?(?:{UNITS})(?!\w)|(?<=\d)\s?[%‰]|[{MONEY}°]"
_SIGN = rf"[^\w\s.,:;!?¡¿'‘’‚‛´`‹›{{}}…–—―/{MONEY}°%‰ºª&-]"
_SINGLE_QUOTE = r"(?<!\w)['‘’]|['‘’](?!\w)"
_QUOTES = '“”„«»"'
_OF_ALL = ("list", "words")  # facts of a sentence, and not of one of its places; they can be lost only
_LONG_LIST, _LONG_ITEM = 4, 2  # items that make a list; words that make an item
_ROUND_YEAR = r"(?:1[5-9]|20)\d0"
_ACCENTS = str.maketrans("áéíóúü’", "aeiouu'")
_BY_DIGITS = ("number", "date", "time")
_LONG_NUMBER = 32  # characters; a longer one is a number by itself


class Fact(NamedTuple):
    """Something that a text says, and where."""

    kind: str
    key: str
    start: int
    end: int
    sure: bool = True
    of_century: bool = False


class Faults(NamedTuple):
    """The source's facts that a translation lacks, and the translation's that the source lacks."""

    lost: tuple[Fact, ...] = ()
    invented: tuple[Fact, ...] = ()

    @property
    def grave(self) -> int:
        """How many are worth another search."""
        return sum(fact.kind in ALWAYS for fact in (*self.lost, *self.invented))


class _Token(NamedTuple):
    text: str
    word: str  # the same, folded
    start: int
    end: int
    joined: bool  # nothing but a space or a hyphen parts it from the token before
    kind: str  # word, percent, ordinal, or the kind of a span


def compare(source: Sequence[Fact], written: Sequence[Fact]) -> Faults:
    """What a translation with these facts has lost of its source, and what it has invented."""
    invented = _without(written, source)
    return Faults(_without(source, written), tuple(fact for fact in invented if fact.kind not in _OF_ALL))


def _without(facts: Sequence[Fact], others: Sequence[Fact]) -> tuple[Fact, ...]:
    """The sure ones of which the others have not as many."""
    there = Counter((fact.kind, fact.key) for fact in others)
    there.subtract((fact.kind, fact.key) for fact in facts if fact.sure)
    return tuple(
        fact for fact in facts if fact.sure and there[fact.kind, fact.key] < 0 and not there.update([fact[:2]])
    )


def facts(text: Protected, lexicon: Lexicon = NONE) -> tuple[Fact, ...]:
    """Everything that a text says and a translation must say too, in order within each kind."""
    written = text.text
    found = [Fact("thing", written[a:b], a, b) for a, b, kind in text.spans if kind not in _BY_DIGITS]
    tokens = list(_tokens(text))
    found += _numbers(tokens, lexicon, shouted=written.isupper())
    for _, word, start, end, _, kind in tokens:
        if word in lexicon.calendar:
            capital = start > 0 and written[start].isupper()
            sure = word not in (lexicon.names if capital else lexicon.unsure)
            found.append(Fact("calendar", lexicon.calendar[word], start, end, sure))
        elif word in lexicon.measures:
            found.append(Fact("measure", lexicon.measures[word], start, end, sure=kind == "percent"))
    found += _signs(text)
    if lexicon.negative:
        found += (*_items(written, lexicon), *_polarity(tokens, written, lexicon))
    if any(sign.isalpha() and is_free(n, n + 1, text.spans) for n, sign in enumerate(written)):
        found.append(Fact("words", "", 0, len(written)))
    return tuple(found)


def folded(word: str) -> str:
    """Small letters without the accents of vowels."""
    return word.lower().translate(_ACCENTS)


def _tokens(text: Protected) -> Iterator[_Token]:
    """Words and numbers, without what stands in addresses, tags and code."""
    at = end = 0
    for span in (*text.spans, None):
        for match in re.compile(_TOKEN).finditer(text.text, at, span.start if span else len(text.text)):
            joined = text.text[end : match.start()] in ("", " ", "-", "\xa0")
            yield _Token(match[0], folded(match[0]), *match.span(), joined, str(match.lastgroup))
            end = match.end()
        if span and span.kind in _BY_DIGITS:
            joined = text.text[end : span.start] in ("", " ", "-", "\xa0")
            yield _Token(text.text[span.start : span.end], "", span.start, span.end, joined, span.kind)
            end = span.end
        at = span.end if span else at


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(tokens: Sequence[_Token], lexicon: Lexicon, *, shouted: bool) -> Iterator[Fact]:
    at = 0
    while at < len(tokens):
        token, after, key, sure = tokens[at], at + 1, "", lexicon is not NONE
        if read := _read_number(tokens, at, lexicon):
            key, after, sure = read
        elif token.kind == "ordinal":
            key = re.sub(r"\D", "", token.text)
        elif token.word in lexicon.about:
            key, sure = lexicon.about[token.word], False
        elif token.text.isupper() and re.fullmatch(ROMAN, token.text) and not _is_pronoun(tokens, at, lexicon):
            key = str(_of_roman(token.text))
            sure = sure and not shouted and _is_numeral(tokens, at, lexicon)
        if key:
            yield Fact("number", key, token.start, tokens[after - 1].end, sure, _is_century(tokens, at, lexicon))
        year = number_key(token.text) if token.kind == "number" else ""
        if after == at + 1 and re.fullmatch(_ROUND_YEAR, year):  # the 1980s may be 1980 elsewhere, or the 80s
            yield Fact("number", year[2:] if key == year else year, token.start, token.end, sure=False)
        at = after


def _is_century(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> bool:
    """Whether this is the number of a century: the 12th and the 13th century, siglos XII y XIII."""
    near = tokens[at + 1 : at + 5] if lexicon.century_follows else tokens[max(0, at - 4) : at][::-1]
    for token in near:
        if token.word in lexicon.centuries:
            return True
        between = token.kind == "ordinal" or token.word in lexicon.values
        if not between and not re.fullmatch(f"{ROMAN}|.{{,3}}", token.text):
            return False
    return False


def _is_pronoun(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> bool:
    """Whether this is the English I, which follows no name."""
    is_after_name = at > 0 and tokens[at].joined and tokens[at - 1].text[0].isupper()
    return tokens[at].word in lexicon.pronouns and not (is_after_name and tokens[at - 1].word not in lexicon.calendar)


def _is_numeral(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> bool:
    """Whether a word of these letters is surely a number: XII is; X is after a century or a name."""
    word, before = tokens[at].text, tokens[at - 1] if at and tokens[at].joined else tokens[at]
    if before.word in lexicon.centuries:
        return True
    if len(word) > 1:
        return not set(word) & set("LCDM")
    return word in "VX" and before.text[:1].isupper() and at > 1


def _of_roman(word: str) -> int:
    values = [_ROMAN_VALUES[letter] for letter in word]
    return sum(-a if a < b else a for a, b in pairwise([*values, 0]))


def _read_number(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> tuple[str, int, bool] | None:
    """The number that begins at a token: its key, the token after it, and whether it is nothing but a number."""
    if tokens[at].kind in _BY_DIGITS:
        in_powers = _read_words(tokens, at, lexicon) if _takes_power(tokens[at]) else None
        return in_powers or (_of_digits(tokens, at, lexicon), at + 1, True)
    if tokens[at].word in lexicon.halves:
        power = at + 1 + (at + 1 < len(tokens) and tokens[at + 1].word in lexicon.articles)
        if power < len(tokens) and tokens[power].joined and tokens[power].word in lexicon.powers:
            return str(lexicon.powers[tokens[power].word] // 2), power + 1, True
    return _read_words(tokens, at, lexicon)


def _takes_power(token: _Token) -> bool:
    """Whether it is a number in digits that may stand before "million": 2.5, and not 5 km nor 10:30."""
    return token.kind == "number" and token.text[-1:].isdigit() and len(token.text) < _LONG_NUMBER


def _read_words(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> tuple[str, int, bool] | None:
    """A number in words, or in digits and powers: 2.5 million. A value smaller than `room` is added to
    `group`, and a power multiplies the group. Both count in units of the last decimal place."""
    begin = end = at
    total, group, unit, room, sure = 0, 0, 1, inf, False
    if tokens[at].kind == "number":
        group, unit = _in_units(tokens[at].text, lexicon.point)
        at, room, sure = at + 1, 0, True
    while at < len(tokens) and (at == begin or tokens[at].joined):
        word = tokens[at].word
        value, power = lexicon.values.get(word), lexicon.powers.get(word, 0)
        if at > begin and tokens[at].start == tokens[at - 1].end:
            power = lexicon.short.get(word, power)
        if not room and not power:
            break
        if value is not None and value < room:
            group, room = group + value * unit, _room_after(value)
        elif value is not None and lexicon.hundreds and at == end > begin and 10 <= group <= 20 and value >= 10:
            group, room = group * 100 + value, _room_after(value)  # nineteen eighty-four
        elif word in lexicon.hundreds and room != 100:
            group, room = (group or unit) * 100, 100
        elif power:
            small = total % (power * unit)
            total, group, room = total - small + (small + group or unit * (room > 0)) * power, 0, power
        elif word in lexicon.joints and at > begin:
            at += 1
            continue
        else:
            break
        multiplies = power or word in lexicon.hundreds
        bare = multiplies and at == begin and not (begin and tokens[begin - 1].word in lexicon.articles)
        sure = sure or (word not in lexicon.unsure and not bare)
        at = end = at + 1
    whole, rest = divmod(total + group, unit)
    key = f"{whole}.{rest:0{len(str(unit)) - 1}}".rstrip("0").rstrip(".") if rest else str(whole)
    return (key, end, sure) if end > begin else None


def _room_after(value: int) -> int:
    """What is added to a number after this value is smaller: twenty-one, ciento veinte."""
    return 10 if value in range(20, 91, 10) else 100 if value >= 100 else 1


def _in_units(text: str, point: str) -> tuple[int, int]:
    """A number as an integer in units of its last decimal place, and how many units make 1. Without a valid decimal
    separator, all digits form one integer."""
    digits = re.sub(rf"[^\d{point}]", "", text).strip(point)
    fraction = digits.partition(point)[2] if digits.count(point) == 1 else ""
    return int(digits.replace(point, "")), 10 ** len(fraction)


def _of_digits(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> str:
    """The key of a number in digits. The 1980s and los años 1980 are the 80s."""
    key = number_key(tokens[at].text)
    if not re.fullmatch(_ROUND_YEAR, key):
        return key
    after = at + 1 < len(tokens) and tokens[at + 1].start - tokens[at].end < 2 and tokens[at + 1].text == "s"
    before = {token.word for token in tokens[max(0, at - 2) : at]}
    return key[2:] if after or before & lexicon.decades else key


# --- signs and negations ----------------------------------------------------------------------------------------------


def _signs(text: Protected) -> Iterator[Fact]:
    written = text.text
    for found in re.finditer(_MEASURE, written):
        yield Fact("measure", found[0].strip(), *found.span(), found[0] != "°")
    for found in re.finditer(_SINGLE_QUOTE, written):
        yield Fact("quotation", '"', *found.span(), sure=False)
    for found in re.finditer(_SIGN, written):
        if is_free(*found.span(), text.spans):
            sort = "bracket" if found[0] in "()[]" else "quotation" if found[0] in _QUOTES else "sign"
            yield Fact(sort, '"' if sort == "quotation" else found[0], *found.span())


def _items(text: str, lexicon: Lexicon) -> Iterator[Fact]:
    """How many items a list has, if the sentence is one; what is no list may be translated by one."""
    items = re.split(lexicon.between, text) if "," in text else []
    is_list = len(items) >= _LONG_LIST and all(len(item.split()) <= _LONG_ITEM for item in items[1:-1])
    if items:
        yield Fact("list", f"{len(items)} items", 0, len(text), is_list)


def _polarity(tokens: Sequence[_Token], text: str, lexicon: Lexicon) -> Iterator[Fact]:
    """Whether a text negates; and whether it forbids or leaves free, or neither, which contradicts nothing."""
    negative = [token for token in tokens if token.word in lexicon.negative or token.word.endswith("n't")]
    almost = negative or [token for token in tokens if token.word.startswith(tuple(lexicon.almost_negative))]
    yield from (Fact("negation", "", token.start, token.end, bool(negative)) for token in almost[:1])
    patterns = {"forbidden": lexicon.forbidden, "needless": lexicon.needless} if negative else {}
    said = [
        Fact("obligation", key, *found.span())
        for key, pattern in patterns.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]
    yield from said or [Fact("obligation", key, 0, 0, sure=False) for key in ("forbidden", "needless")]
