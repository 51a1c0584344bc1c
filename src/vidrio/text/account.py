"""What a sentence says that its translation must say too, and nothing else of the kind: its facts.

`facts` finds them on both sides by the same rules, `compare` tells which were lost and which were invented. A fact is
known by its key, whatever form it has: twelve, 12th, XII and 12 are one number; 1,234.5 and 1.234,5 another. A fact is
sure, or it may be something else (a second, "May I?"): it then excuses its like on the other side, and demands nothing.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from vidrio.text.lexicon import NONE, Lexicon
from vidrio.text.protect import MONEY, UNITS, Protected, is_free, number_key

ALWAYS = (
    "thing",
    "name",
    "number",
    "calendar",
    "measure",
    "sign",
    "list",
    "obligation",
    "words",
)  # what is worth another search
_TOKEN = (
    r"(?P<ordinal>\d+\.?(?:[ºª]|(?:st|nd|rd|th|er|[rdtmvn][oa])\b))|(?P<percent>(?i:por cien(?:to)?|per ?cent)\b)"
    r"|(?<!_)(?P<word>[^\W\d_]++(?:['’][^\W\d_]++)*+)(?![\d_])"
)
ROMAN = r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_MEASURE = rf"(?<=\d)\s?(?:{UNITS})(?!\w)|(?<=\d)\s?[%‰]|[{MONEY}°]"
_SIGN = rf"[^\w\s.,:;!?¡¿'‘’‚‛´`‹›{{}}…–—―/{MONEY}°%‰ºª&-]"
_ODD = r"[^\w\s.,:;!?¡¿'’-]|\d|(?<!\w)['’]|['’](?!\w)"
_SINGLE_QUOTE = r"(?<!\w)['‘’]|['‘’](?!\w)"
_QUOTES = '“”„«»"'
OF_ALL = ("list", "words")  # facts of a sentence, and not of one of its places; they can be lost only
LONG_LIST, LONG_ITEM = 4, 2  # items that make a list; words that make an item
_ROUND_YEAR = r"(?:1[5-9]|20)\d0"
_ACCENTS = str.maketrans("áéíóúü’", "aeiouu'")
_BY_DIGITS = ("number", "date", "time")


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
    return Faults(_without(source, written), tuple(fact for fact in invented if fact.kind not in OF_ALL))


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
    for token in tokens:
        if token.word in lexicon.calendar:
            capital = token.text[0].isupper() and token.start > 0
            sure = token.word not in (lexicon.names if capital else lexicon.unsure)
            found.append(Fact("calendar", lexicon.calendar[token.word], token.start, token.end, sure))
        elif token.word in lexicon.measures:
            found.append(
                Fact("measure", lexicon.measures[token.word], token.start, token.end, sure=token.kind == "percent")
            )
    found += _signs(text)
    if lexicon.negative:
        found += (*_items(written, lexicon), *_polarity(tokens, written, lexicon))
    if not any(map(str.isalpha, outside(text))):
        return tuple(found)
    return (*found, Fact("words", "", 0, len(written)))


def folded(word: str) -> str:
    """Small letters without the accents of vowels."""
    return word.lower().translate(_ACCENTS)


def outside(text: Protected) -> str:
    """What stands around the spans."""
    ends, starts = [0, *(span.end for span in text.spans)], [*(span.start for span in text.spans), len(text.text)]
    return " ".join(text.text[end:start] for end, start in zip(ends, starts, strict=True))


@lru_cache(1)
def _token_pattern() -> re.Pattern[str]:
    return re.compile(_TOKEN)


def _tokens(text: Protected) -> Iterator[_Token]:
    """Words and numbers, without what stands in addresses, tags and code."""
    at = end = 0
    for span in (*text.spans, None):
        for match in _token_pattern().finditer(text.text, at, span.start if span else len(text.text)):
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
        token = tokens[at]
        read = _read_number(tokens, at, lexicon)
        if read:
            key, after, sure = read
            yield Fact("number", key, token.start, tokens[after - 1].end, sure, _is_century(tokens, at, lexicon))
            if re.fullmatch(_ROUND_YEAR, number_key(token.text)):  # the 1980s may be 1980 elsewhere, or the 80s
                other = number_key(token.text) if len(key) == 2 else key[2:]
                yield Fact("number", other, token.start, token.end, sure=False)
            at = after
            continue
        if token.kind == "ordinal":
            is_century = _is_century(tokens, at, lexicon)
            yield Fact("number", re.sub(r"\D", "", token.text), token.start, token.end, lexicon is not NONE, is_century)
        elif token.word in lexicon.about:
            yield Fact("number", str(lexicon.about[token.word]), token.start, token.end, sure=False)
        elif token.text.isupper() and re.fullmatch(ROMAN, token.text) and not _is_pronoun(tokens, at, lexicon):
            sure = lexicon is not NONE and not shouted and _is_numeral(tokens, at, lexicon)
            is_century = _is_century(tokens, at, lexicon)
            yield Fact("number", str(_of_roman(token.text)), token.start, token.end, sure, is_century)
        at += 1


def _is_century(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> bool:
    """Whether this is the number of a century: the 12th and the 13th century, siglos XII y XIII."""
    near = tokens[at + 1 : at + 5] if lexicon.century_follows else tokens[max(0, at - 4) : at][::-1]
    for token in near:
        if token.word in lexicon.centuries:
            return True
        if (
            token.kind != "ordinal"
            and token.word not in lexicon.values
            and not re.fullmatch(f"{ROMAN}|.{{,3}}", token.text)
        ):
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
    total, group, room, sure, begin, end = Decimal(0), Decimal(0), Decimal("Infinity"), False, at, at
    if tokens[at].kind in _BY_DIGITS:
        if tokens[at].kind != "number" or not _power_follows(tokens, at, lexicon):
            return _of_digits(tokens, at, lexicon), at + 1, True
        group, room, sure, at = _decimal(tokens[at].text, lexicon), Decimal(0), True, at + 1
    elif tokens[at].word in lexicon.halves:
        power = at + 1 + (at + 1 < len(tokens) and tokens[at + 1].word in lexicon.articles)
        if power < len(tokens) and tokens[power].joined and tokens[power].word in lexicon.powers:
            return _key(Decimal(lexicon.powers[tokens[power].word]) / 2), power + 1, True
    while at < len(tokens) and (at == begin or tokens[at].joined):
        word = tokens[at].word
        value, power = lexicon.values.get(word), lexicon.powers.get(word, 0)
        touching = at > begin and tokens[at].start == tokens[at - 1].end
        if touching:
            power = lexicon.short.get(word, power)
        if value is not None and value < room:
            group, room = group + value, Decimal(10 if value in range(20, 91, 10) else 100 if value >= 100 else 1)
        elif value is not None and lexicon.hundreds and at == end and 10 <= group <= 20 and value >= 10 and at > begin:
            group, room = group * 100 + value, Decimal(10 if value in range(20, 91, 10) else 1)  # nineteen eighty-four
        elif word in lexicon.hundreds and room != 100:
            group, room = (group or Decimal(1)) * 100, Decimal(100)
        elif power and room:
            group, room = total % power + group, Decimal(power)
            if not group:
                group = Decimal(1)
            total, group = total - total % power + group * power, Decimal(0)
        elif power and tokens[begin].kind == "number":
            group, room = total % power + group, Decimal(power)
            total, group = total - total % power + group * power, Decimal(0)
        elif word in lexicon.joints and at > begin:
            at += 1
            continue
        else:
            break
        multiplies = power or word in lexicon.hundreds
        bare = multiplies and at == begin and not (begin and tokens[begin - 1].word in lexicon.articles)
        sure = sure or (word not in lexicon.unsure and not bare)
        at = end = at + 1
    return (_key(total + group), end, sure) if end > begin else None


def _power_follows(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> bool:
    if at + 1 == len(tokens) or not tokens[at + 1].joined or not tokens[at].text[-1:].isdigit():
        return False
    word, touching = tokens[at + 1].word, tokens[at].end == tokens[at + 1].start
    return word in lexicon.powers or (touching and word in lexicon.short)


def _of_digits(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> str:
    """The key of a number in digits. The 1980s and los años 1980 are the 80s."""
    key = number_key(tokens[at].text)
    if not re.fullmatch(_ROUND_YEAR, key):
        return key
    after = at + 1 < len(tokens) and tokens[at + 1].start - tokens[at].end < 2 and tokens[at + 1].text == "s"
    before = {token.word for token in tokens[max(0, at - 2) : at]}
    return key[2:] if after or before & lexicon.decades else key


def _decimal(text: str, lexicon: Lexicon) -> Decimal:
    """A number in a language's notation; where that makes no sense, a point is a point."""
    digits = re.sub(rf"[^\d{lexicon.point}]", "", text).strip(lexicon.point)
    return Decimal(digits.replace(lexicon.point, ".") if digits.count(lexicon.point) < 2 else re.sub(r"\D", "", digits))


def _key(number: Decimal) -> str:
    return f"{number.normalize():f}"


# --- signs and negations ----------------------------------------------------------------------------------------------


def _signs(text: Protected) -> Iterator[Fact]:
    written, taken = text.text, text.spans
    if not re.search(_ODD, written):
        return
    for found in re.finditer(_MEASURE, written):
        yield Fact("measure", found[0].strip(), *found.span(), found[0] != "°")
    for found in re.finditer(_SINGLE_QUOTE, written):
        yield Fact("quotation", '"', *found.span(), sure=False)
    for found in re.finditer(_SIGN, written):
        if is_free(*found.span(), taken):
            sort = "bracket" if found[0] in "()[]" else "quotation" if found[0] in _QUOTES else "sign"
            yield Fact(sort, '"' if sort == "quotation" else found[0], *found.span())


def _items(text: str, lexicon: Lexicon) -> Iterator[Fact]:
    """How many items a list has, if the sentence is one; what is no list may be translated by one."""
    items = re.split(lexicon.between, text) if "," in text else []
    is_list = len(items) >= LONG_LIST and all(len(item.split()) <= LONG_ITEM for item in items[1:-1])
    if items:
        yield Fact("list", f"{len(items)} items", 0, len(text), is_list)


def _polarity(tokens: Sequence[_Token], text: str, lexicon: Lexicon) -> Iterator[Fact]:
    """Whether a text negates; and whether it forbids or leaves free, or neither, which contradicts nothing."""
    negative = [token for token in tokens if token.word in lexicon.negative or token.word.endswith("n't")]
    almost = negative or [token for token in tokens if token.word.startswith(lexicon.almost_negative)]
    yield from (Fact("negation", "", token.start, token.end, bool(negative)) for token in almost[:1])
    patterns = {"forbidden": lexicon.forbidden, "needless": lexicon.needless} if negative else {}
    said = [
        Fact("obligation", key, *found.span())
        for key, pattern in patterns.items()
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]
    yield from said or [Fact("obligation", key, 0, 0, sure=False) for key in ("forbidden", "needless")]
