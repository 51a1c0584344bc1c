"""Extract the facts that a sentence states, to check that its translation states the same facts.

`facts` applies the same rules to source and translation, and `compare` returns the facts that were lost or invented.
Facts are compared by key, not by form: twelve, 12th, XII and 12 are the same number, and so are 1,234.5 and 1.234,5.
Facts from ambiguous words (a second, "May I?") are not `sure`: they match the same fact on the other side, but may also
be missing there.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

from vidrio.text.lexicon import NONE, Lexicon, folded
from vidrio.text.protect import MONEY, UNITS, Span, gaps, is_free, number_key, spans

MINOR = ("negation", "bracket", "quotation")  # kinds that are only used to choose between hypotheses
_OF_SENTENCE = ("list", "words")  # facts about a whole sentence, without a position; they can be lost, but not invented
_WORD = (
    r"(?P<ordinal>\d+\.?(?:[ºª]|(?:st|nd|rd|th|er|[rdtmvn][oa])\b))|(?P<percent>(?i:por cien(?:to)?|per ?cent)\b)"
    r"|(?<!_)(?P<word>[^\W\d_]++(?:['’][^\W\d_]++)*+)(?![\d_])"
)
_SIGNS = (
    rf"(?P<measure>(?<=\d)\s?(?:{UNITS})(?!\w)|(?<=\d)\s?[%‰]|[{MONEY}°])|(?P<single>(?<!\w)['‘’]|['‘’](?!\w))"
    rf"|(?P<quotation>[“”„«»\"])|(?P<bracket>[()\[\]])|(?P<sign>[^\w\s.,:;!?¡¿'‘’‚‛´`‹›{{}}…–—―{MONEY}°%‰ºª&/\u0300-\u036f-])"
)
ROMAN = r"(?=[IVXLCDM])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})"
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}
_LONG_LIST, _LONG_ITEM = 4, 2  # the minimum number of items in a list; the maximum number of words in an item
_TENS = r"(?:(?:1[5-9]|20)\d|[2-9])0"  # a number that may denote a decade
_BY_DIGITS = ("number", "date", "time")
_LONG_NUMBER = 32  # characters; a longer number is not combined with the words after it
_NEAR = 5  # the number of words in which to look for the word "century"


class Fact(NamedTuple):
    """A fact that a text states, and its position."""

    kind: str
    key: str
    start: int
    end: int
    sure: bool = True
    of_century: bool = False


class Faults(NamedTuple):
    """The facts that a translation lost, and the facts that it invented."""

    lost: tuple[Fact, ...] = ()
    invented: tuple[Fact, ...] = ()

    @property
    def serious(self) -> int:
        """The number of faults that are serious enough to search again."""
        return sum(fact.kind not in MINOR for fact in (*self.lost, *self.invented))


class _Token(NamedTuple):
    text: str
    word: str  # the folded text
    start: int
    end: int
    before: str  # the text between the previous token and this one
    kind: str  # word, percent, ordinal, or the kind of a protected span

    @property
    def joined(self) -> bool:
        """Whether at most a space or a hyphen separates this token from the previous one."""
        return self.before in ("", " ", "-", "\xa0")


def compare(source: Sequence[Fact], written: Sequence[Fact]) -> Faults:
    """Return the facts that a translation lost and invented, given the facts of the source and of the translation."""
    invented = _without(written, source)
    return Faults(_without(source, written), tuple(fact for fact in invented if fact.kind not in _OF_SENTENCE))


def _without(facts: Sequence[Fact], others: Sequence[Fact]) -> tuple[Fact, ...]:
    """Return the sure facts that occur more often in `facts` than in `others`."""
    there = Counter(fact[:2] for fact in others)
    there.subtract(fact[:2] for fact in facts if fact.sure)
    return tuple(fact for fact in facts if fact.sure and there[fact[:2]] < 0 and not there.update([fact[:2]]))


def facts(text: str, lexicon: Lexicon = NONE) -> tuple[Fact, ...]:
    """Return all facts of a text, in order within each kind."""
    places = spans(text)
    found = [Fact("thing", text[a:b], a, b) for a, b, kind in places if kind not in _BY_DIGITS]
    tokens = list(_tokens(text, places))
    found += _numbers(tokens, lexicon, shouted=text.isupper())
    found += _words(tokens, lexicon)
    for sign in re.finditer(_SIGNS, text):
        kind = str(sign.lastgroup)
        if kind in ("measure", "single") or is_free(*sign.span(), places):
            quotes = kind in ("single", "quotation")
            key, sure = sign[0].strip(), kind != "single" and sign[0] != "°"
            found.append(Fact("quotation" if quotes else kind, '"' if quotes else key, *sign.span(), sure))
    if lexicon.negative:
        found += (*_items(text, lexicon), *_polarity(tokens, text, lexicon))
    if any(sign.isalpha() and is_free(n, n + 1, places) for n, sign in enumerate(text)):
        found.append(Fact("words", "", 0, len(text)))
    return tuple(found)


def _tokens(text: str, places: Sequence[Span]) -> Iterator[_Token]:
    """Yield the words and numbers of a text that are outside addresses, tags and code."""
    parts = gaps(0, len(text), places)
    words = (match for part in parts for match in re.compile(_WORD).finditer(text, *part))
    found = [place for place in places if place.kind in _BY_DIGITS]
    end = 0
    for place in sorted([*found, *(Span(*word.span(), str(word.lastgroup)) for word in words)]):
        said = text[place.start : place.end]
        yield _Token(said, folded(said).removesuffix("'s"), place.start, place.end, text[end : place.start], place.kind)
        end = place.end


def _words(tokens: Sequence[_Token], lexicon: Lexicon) -> Iterator[Fact]:
    """Yield the facts stated by words: months and days, units, and rulers (names before a Roman numeral)."""
    for n, (text, word, start, end, _, kind) in enumerate(tokens):
        if word in lexicon.calendar:
            capital = start > 0 and text[0].isupper()
            sure = word not in (lexicon.names if capital else lexicon.unsure)
            yield Fact("calendar", lexicon.calendar[word], start, end, sure)
        elif kind == "percent" or word in lexicon.measures:
            key = lexicon.measures.get(word, "%")
            counted = any(one.kind == "number" or one.word in lexicon.numeric for one in tokens[max(0, n - 2) : n])
            is_money = key in MONEY and counted and word not in lexicon.unsure
            yield Fact("measure", key, start, end, kind == "percent" or is_money)
        elif word in lexicon.rulers and text.istitle() and tokens[n + 1 :]:
            is_ruler = re.fullmatch(ROMAN, tokens[n + 1].text)
            yield from [Fact("name", lexicon.rulers[word], start, end)] if is_ruler else []


# --- numbers ----------------------------------------------------------------------------------------------------------


def _numbers(tokens: Sequence[_Token], lexicon: Lexicon, *, shouted: bool) -> Iterator[Fact]:
    at = 0
    while at < len(tokens):
        token, before = tokens[at], tokens[at - 1] if at and tokens[at].joined else None
        key, after, sure = _read_number(tokens, at, lexicon, shouted=shouted)
        others = lexicon.about.get(token.word, [])
        if token.kind == "number" and re.fullmatch(_TENS, year := number_key(token.text)):
            others = sorted({year, year[-2:], f"{year[-2:]}s"})  # the other side may have 80 or the 80s for 1980
        if re.fullmatch(_TENS, key) and _is_decade(tokens, at, after, lexicon):
            key = f"{key[-2:]}s"
        of_century = bool(key or others) and _is_century(tokens, at, lexicon)
        if key and token.kind == "number" and (following := tokens[after : after + 1]):
            key += _damage(following[0], lexicon, of_century=of_century)
        if shouted or not _is_odd(token, before, lexicon, of_century=of_century):
            article = before and token.word in lexicon.powers and before.word in lexicon.articles
            start = before.start if before and article else token.start
            sure = sure or (of_century and token.word in lexicon.ordinals)
            yield from [Fact("number", key, start, tokens[after - 1].end, sure, of_century)] if key else []
            for other in others if after == at + 1 else ():
                yield from [Fact("number", other, token.start, token.end, sure=False)] if other != key else []
        at = after


def _damage(following: _Token, lexicon: Lexicon, *, of_century: bool) -> str:
    """Return text after a number that makes the number invalid, as in the model's errors "siglo 3r" and "66-six"."""
    is_word = following.word in lexicon.values and following.word not in {*lexicon.ordinals, *lexicon.unsure}
    damages = following.before == "" if of_century else following.before == "-" and is_word
    return following.before + following.text if damages else ""


def _is_decade(tokens: Sequence[_Token], at: int, after: int, lexicon: Lexicon) -> bool:
    """Return whether a round number is a decade: the 1980s or los años veinte, but not "20 años 30 personas"."""
    if any(token.text == "s" for token in tokens[after : after + 1]):
        return True
    before = [token.word for token in tokens[max(0, at - 2) : at]]
    counted = at > 1 and (tokens[at - 2].kind == "number" or before[0] in lexicon.numeric)
    return tokens[at].joined and not counted and not lexicon.decades.isdisjoint((*before[-1:], "_".join(before)))


def _is_odd(token: _Token, before: _Token | None, lexicon: Lexicon, *, of_century: bool) -> bool:
    """Return whether a model wrote this token instead of a Roman numeral: siglo SEGUNDA, Henry EIGHTEENTH."""
    if before and before.text.istitle() and token.word in lexicon.ordinals:
        return token.text.isupper()
    is_usual = token.text.islower() or re.fullmatch(rf"{ROMAN}|\d.*", token.text)
    return of_century and not lexicon.century_follows and not is_usual


def _is_century(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> bool:
    """Return whether a token is the number of a century: the 12th and the 13th century, siglos XII y XIII."""
    follows = lexicon.century_follows
    for token in tokens[at + 1 : at + 1 + _NEAR] if follows else tokens[max(0, at - _NEAR) : at][::-1]:
        if token.word in lexicon.centuries:
            return True
        between = token.kind == "ordinal" or token.word in lexicon.values
        if not between and not re.fullmatch(f"{ROMAN}|.{{,3}}", token.text):
            return False
    return False


def _read_roman(token: _Token, before: _Token | None, lexicon: Lexicon) -> tuple[str, bool]:
    """Return the key of a Roman numeral, and whether it is certainly a numeral: XII always is, but X is only after a
    ruler or the word for a century."""
    if not re.fullmatch(ROMAN, token.text):
        return "", False
    is_century, is_ruler = (bool(before and before.word in words) for words in (lexicon.centuries, lexicon.rulers))
    is_letter = len(token.text) == 1
    if is_letter and not is_century and not (before and before.text[0].isupper()):
        return "", False
    values = [_ROMAN_VALUES[letter] for letter in token.text]
    usual = not set(token.text) & set("LCDM") and (not is_letter or (token.text != "I" and is_ruler))
    return str(sum(-a if a < b else a for a, b in pairwise([*values, 0]))), is_century or usual


def _read_number(tokens: Sequence[_Token], at: int, lexicon: Lexicon, *, shouted: bool) -> tuple[str, int, bool]:
    """Read the number that begins at a token. Return its key (empty if there is none), the index of the token after it,
    and whether it is certainly a number. In a `shouted` text (all in capitals), MIX may be a word."""
    token = tokens[at]
    if (token.kind == "number" or token.word in lexicon.numeric) and (found := _read_words(tokens, at, lexicon)):
        return found
    if token.kind in _BY_DIGITS:
        return number_key(token.text), at + 1, True
    if token.kind == "ordinal":
        return re.sub(r"\D", "", token.text), at + 1, bool(lexicon.values)
    key, sure = _read_roman(token, tokens[at - 1] if at and token.joined else None, lexicon)
    return key, at + 1, sure and not shouted and bool(lexicon.values)


def _read_words(tokens: Sequence[_Token], at: int, lexicon: Lexicon) -> tuple[str, int, bool] | None:
    """Read a number written in words, or in digits and powers (2.5 million). A value below `room` is added to `group`,
    and a power multiplies `group`. `group` and `total` count units of the last decimal place."""
    begin = end = at
    total, group, unit, room, sure, vague = 0, 0, 1, inf, False, False
    if tokens[at].kind == "number":
        if not tokens[at].text[-1].isdigit() or len(tokens[at].text) >= _LONG_NUMBER:
            return None
        (group, unit), room, sure = _in_units(tokens[at].text, lexicon.point), 0, True
        at += 1
    elif tokens[at].word in lexicon.halves:
        group, unit, room, sure = 5, 10, 0, True
        at += 2 if tokens[at + 1 :] and tokens[at + 1].word in lexicon.articles else 1
    while at < len(tokens) and (at == begin or tokens[at].joined):
        word = tokens[at].word
        value, power = lexicon.values.get(word), lexicon.powers.get(word, 0)
        if at > begin and tokens[at].start == tokens[at - 1].end:
            power = lexicon.short.get(word, power)
        if value is not None and value < room:
            group, room = group + value * unit, _room_after(value)
        elif value is not None and lexicon.hundreds and at == end > begin and 10 <= group <= 20 and value >= 10:
            group, room = group * 100 + value, _room_after(value)  # nineteen eighty-four
        elif word in lexicon.hundreds and room != 100:
            group, room = (group or unit) * 100, 100
        elif power:
            small = total % (power * unit)
            total, group, room = total - small + (small + group or unit * (room > 0)) * power, 0, power
        elif at > begin and not {word, f"{tokens[at - 1].word}_{word}"}.isdisjoint(lexicon.joints):
            at += 1
            continue
        else:
            break
        multiplies = power or word in lexicon.hundreds
        near = tokens[max(0, begin - 2) : begin + 1]
        before = {one.word for one, after in pairwise(near) if after.joined and near[-1].joined}
        bare = multiplies and at == begin and not before & {*lexicon.articles, *lexicon.powers}
        plural = power and len(lexicon.written[str(power)]) > 1 and word == folded(lexicon.written[str(power)][-1])
        vague = vague or bool(bare and plural)  # miles de millones
        sure = sure or (word not in lexicon.unsure and not bare)
        at = end = at + 1
    whole, rest = divmod(total + group, unit)
    key = f"{whole}.{rest:0{len(str(unit)) - 1}}".rstrip("0").rstrip(".")
    return (key, end, sure and not vague) if end > begin else None


def _room_after(value: int) -> int:
    """Return the limit below which the next value is added to this one, as in twenty-one and ciento veinte."""
    return 10 if value in range(20, 91, 10) else 100 if value >= 100 else 1


def _in_units(text: str, point: str) -> tuple[int, int]:
    """Return a number as an integer in units of its last decimal place, and how many of these units make 1. Without a
    valid decimal separator, all digits form one integer."""
    digits = re.sub(rf"[^\d{point}]", "", text).strip(point)
    fraction = digits.partition(point)[2] if digits.count(point) == 1 else ""
    return int(digits.replace(point, "")), 10 ** len(fraction)


# --- lists and negations ----------------------------------------------------------------------------------------------


def _items(text: str, lexicon: Lexicon) -> Iterator[Fact]:
    """Yield the number of items if a text contains commas. The fact is sure only if the text is clearly a list, because
    a translation may turn other texts into lists."""
    items = re.split(lexicon.between, text) if "," in text else []
    short = [item.split() for item in items[1:-1] if not re.search('[“”«»"]', item)]
    are_items = [item and len(item) <= _LONG_ITEM and item[0] not in lexicon.sentences["starters"] for item in short]
    is_list = len(items) >= _LONG_LIST and len(short) == len(items) - 2 and all(are_items)
    if items:
        yield Fact("list", f"{len(items)} items", 0, len(text), is_list)


def _polarity(tokens: Sequence[_Token], text: str, lexicon: Lexicon) -> Iterator[Fact]:
    """Yield whether a text contains a negation, and whether it says "must not" or "need not". A text that says neither
    is compatible with both."""
    negative = [token for token in tokens if token.word in lexicon.negative or token.word.endswith("n't")]
    apart = [found.span() for found in re.finditer(lexicon.no_negation, text, re.IGNORECASE)]
    sure = [token for token in negative if not any(start <= token.start < end for start, end in apart)]
    almost = sure or negative or [token for token in tokens if token.word.startswith(lexicon.almost_negative)]
    yield from (Fact("negation", "", token.start, token.end, bool(sure)) for token in almost[:1])
    said = [
        Fact("obligation", key, *found.span())
        for key, pattern in (lexicon.obligations.items() if negative else ())
        for found in re.finditer(pattern, text, re.IGNORECASE)
    ]
    yield from said or [Fact("obligation", key, 0, 0, sure=False) for key in lexicon.obligations]
