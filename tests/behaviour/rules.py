"""Rules that every good translation satisfies, judged without a reference translation.

A rule is a pure function of a source, its translation and an argument. It returns None, or the reason why the
translation fails. Rules share no code with the package: `numbers`, for example, doesn't use text/protect.py.
Alternatives in an argument are separated by " | ".
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator

Rule = Callable[[str, str, str], str | None]

NEGATIONS = {
    "es": "no nunca jamás nadie nada ni tampoco sin ningún ninguno ninguna ningunos ningunas apenas",
    "en": "no not never nobody nothing nor neither without none nowhere cannot hardly barely",
}
# Words so common that few sentences contain none of them. Almost none of them exist in both languages.
FUNCTION_WORDS = {
    "es": "el la los las un una unos unas de del al en y que se su sus por para con mi mis tu tus te le les lo nos es "
    "he está están estoy estaba fue ha han hay muy más pero como cuando donde qué quién cómo ya este esta esto no si "
    "sobre entre hasta desde también aunque porque siempre nunca",
    "en": "the is are was were and of with you she they this that these those have had my your it its we our his her "
    "would could should there what when where which who why how from not but for at by been does did about into i he "
    "no",
}
OPENING = {"?": "¿", "!": "¡"}
PAIRS = {"(": ")", "[": "]", "{": "}", "«": "»", "“": "”"}
MARKER = re.compile(r"\s*(?:[-*•–+>#]+|\d{1,3}[.)]|[a-z][.)])(?=\s)")


def alternatives(argument: str) -> list[str]:
    return argument.split(" | ")


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def count_of(phrase: str, text: str) -> int:
    """Count a word or phrase in a text, as whole words and ignoring case. "com*" matches words with this prefix."""
    pattern = re.escape(phrase.lower()).replace(r"\*", r"\w*").replace(r"\ ", r"\s+")
    return len(re.findall(rf"(?<!\w){pattern}(?!\w)", text.lower()))


# --- rules for every case ---------------------------------------------------------------------------------------------


def no_loop(source: str, translation: str, _: str) -> str | None:
    """Check that no word or phrase occurs three times in a row, and no part of a word five times, unless the source
    repeats as often."""
    found, longest = max(runs(words(translation)), default=("", 0), key=lambda run: run[1])
    allowed = max(2, *(length for _, length in runs(words(source))), 0)
    if longest > allowed:
        return f"“{found}” occurs {longest} times in a row"
    found, longest = max(runs_within(translation), default=("", 0), key=lambda run: run[1])
    allowed = 2 + max(2, *(length for _, length in runs_within(source)), 0)
    return f"“{found}” occurs {longest} times in a row" if longest > allowed else None


def runs(units: list[str]) -> Iterator[tuple[str, int]]:
    """Yield phrases of up to six words that occur several times in a row, with the number of times."""
    for size in range(1, 7):
        at = 0
        while at < len(units):
            phrase, length = units[at : at + size], 1
            while units[at + length * size : at + (length + 1) * size] == phrase:
                length += 1
            if length > 1:
                yield " ".join(phrase), length
            at += max(1, (length - 1) * size)


def runs_within(text: str) -> Iterator[tuple[str, int]]:
    for match in re.finditer(r"(\S{1,12}?)\1{2,}", text):
        yield match[1], len(match[0]) // len(match[1])


def no_longer(source: str, translation: str, _: str) -> str | None:
    """Check that the length is at most 1.5 times the source's plus ten characters. More would be invented text."""
    most = 1.5 * len(source) + 10
    return f"{len(translation)} characters for {len(source)}" if len(translation) > most else None


# --- copied parts -----------------------------------------------------------------------------------------------------


def same(source: str, translation: str, _: str) -> str | None:
    """Check that the translation is the source, byte for byte."""
    return None if translation == source else "it differs from the source"


def keeps(source: str, translation: str, argument: str) -> str | None:
    """Check that each piece occurs as often as in the source, and that none is joined to a word."""
    for piece in alternatives(argument):
        wanted, found = source.count(piece), translation.count(piece)
        if found != wanted:
            return f"“{piece}” occurs {found} times, but {wanted} times in the source"
        if any(stuck(piece, source, translation)):
            return f"“{piece}” is joined to a word"
    return None


def stuck(piece: str, source: str, translation: str) -> Iterator[bool]:
    """Yield, for either end of a piece, whether it touches a letter or digit where it did not in the source.

    A tag or bracket may touch a word where it touched a mark: "<b>Ven</b>" for "<b>¡Ven!</b>" fails other rules.
    """
    whole = re.escape(piece)
    for edge, beside_a_word, beside_nothing in (
        (piece[0], rf"(?<=[^\W_]){whole}", rf"(?<!\S){whole}"),
        (piece[-1], rf"{whole}(?=[^\W_])", rf"{whole}(?!\S)"),
    ):
        before, now = (len(re.findall(beside_a_word, text)) for text in (source, translation))
        free = len(re.findall(beside_nothing, source))
        yield now > before if edge.isalnum() else now + free > source.count(piece)


def numbers(source: str, translation: str, _: str) -> str | None:
    """Check that the numbers are the same, in any order. 1,234.5 may become 1.234,5, and 9:30 may become 9.30."""
    wanted, found = (Counter(map(value, numbers_of(text))) for text in (source, translation))
    if wanted != found:
        lost, new = (", ".join(some.elements()) or "none" for some in (wanted - found, found - wanted))
        return f"numbers lost: {lost}; new: {new}"
    return None


def numbers_of(text: str) -> list[str]:
    grouped = r"(?<!\d)\d{1,3}(?:[ \u00a0\u202f]\d{3}(?!\d))+(?:[.,]\d+)?"
    return re.findall(rf"{grouped}|\d+(?:[.,:/'’]\d+)*", text)


def value(number: str) -> str:
    """Return a number's digits, with a full stop before its fraction.

    The digits after the last separator are a fraction if that separator occurs once, unless it is the only separator
    and three digits follow it.
    """
    signs = re.sub(r"\d", "", number)
    whole, _, last = re.sub(r"\D", " ", number).rpartition(" ")
    fraction = signs and signs.count(signs[-1]) == 1 and (len(signs) > 1 or len(last) != 3)
    return whole.replace(" ", "") + ("." if fraction else "") + last


def in_order(_: str, translation: str, argument: str) -> str | None:
    """Check that the pieces occur in this order, ignoring case."""
    at = 0
    for piece in alternatives(argument):
        found = translation.lower().find(piece.lower(), at)
        if found < 0:
            return f"“{piece}” is missing, or out of order"
        at = found + len(piece)
    return None


def layout(source: str, translation: str, _: str) -> str | None:
    """Check that whitespace at both ends, line breaks, tabs and wider gaps are the same, in order."""
    wanted, found = gaps(source), gaps(translation)
    return None if wanted == found else f"white space is {found}, not {wanted}"


def gaps(text: str) -> list[str]:
    inner = [gap for gap in re.findall(r"(?<=\S)\s+(?=\S)", text) if gap != " "]
    return [text[: len(text) - len(text.lstrip())], *inner, text[len(text.rstrip()) :] if text.strip() else ""]


def markers(source: str, translation: str, _: str) -> str | None:
    """Check that lines begin with the same bullets and numbers."""
    wanted, found = (
        [m[0] if (m := MARKER.match(line)) else "" for line in t.splitlines()] for t in (source, translation)
    )
    return None if wanted == found else f"lines begin with {found}, not {wanted}"


def alike(source: str, translation: str, _: str) -> str | None:
    """Check that identical source lines have identical translations, and that no line is missing or added."""
    lines = list(zip(source.splitlines(), translation.splitlines(), strict=False))
    for (one, first), (other, second) in ((a, b) for a in lines for b in lines):
        if one == other and first != second:
            return f"“{one}” is “{first}” here and “{second}” there"
    return None if len(source.splitlines()) == len(translation.splitlines()) else "the number of lines is not the same"


def mostly_kept(source: str, translation: str, argument: str) -> str | None:
    """Check that at least this share of the source's words is kept."""
    there, wanted = set(words(translation)), words(source)
    share = sum(word in there for word in wanted) / max(1, len(wanted))
    return f"{share:.0%} of the words are kept" if share < float(argument) else None


# --- words ------------------------------------------------------------------------------------------------------------


def has(_: str, translation: str, argument: str) -> str | None:
    """Check that at least one of these words or phrases occurs. "com*" matches words with this prefix."""
    return None if any(count_of(one, translation) for one in alternatives(argument)) else f"it has none of: {argument}"


def lacks(_: str, translation: str, argument: str) -> str | None:
    """Check that none of these words or phrases occurs."""
    found = [one for one in alternatives(argument) if count_of(one, translation)]
    return f"it has “{found[0]}”" if found else None


def at_most(_: str, translation: str, argument: str) -> str | None:
    """Check that there are at most this many words."""
    count = len(words(translation))
    return f"{count} words, at most {argument}" if count > int(argument) else None


def language(_: str, translation: str, argument: str) -> str | None:
    """Check that a function word of this language occurs, and none that only the other language has."""
    here, there = (set(FUNCTION_WORDS[name].split()) for name in (argument, "en" if argument == "es" else "es"))
    found = set(words(translation))
    if foreign := sorted(found & there - here):
        return f"“{foreign[0]}” is not translated"
    return None if found & here else f"it has no function word of {argument}"


def negated(_: str, translation: str, argument: str) -> str | None:
    """Check that a negation in this language occurs."""
    there = set(words(translation)) & set(NEGATIONS[argument].split())
    contracted = argument == "en" and re.search(r"n['’]t\b", translation.lower())
    return None if there or contracted else "the negation is lost"


def sentences(source: str, translation: str, _: str) -> str | None:
    """Check that the number of sentences is the same."""
    wanted, found = (len(re.findall(r"[.!?…]+[\"'”’»)\]]*(?=\s|\Z)", text)) for text in (source, translation))
    return None if wanted == found else f"{found} sentences, not {wanted}"


# --- punctuation and capitals -----------------------------------------------------------------------------------------


def question(source: str, translation: str, argument: str) -> str | None:
    """Check that the number of question marks is the same. In Spanish, each needs an opening mark."""
    return opened("?", source, translation, argument)


def exclamation(source: str, translation: str, argument: str) -> str | None:
    """Check that the number of exclamation marks is the same. In Spanish, each needs an opening mark."""
    return opened("!", source, translation, argument)


def opened(mark: str, source: str, translation: str, language: str) -> str | None:
    wanted, found, first = (
        text.count(sign) for text, sign in ((source, mark), (translation, mark), (translation, OPENING[mark]))
    )
    if found != wanted:
        return f"“{mark}” occurs {found} times, but {wanted} times in the source"
    if first != (wanted if language == "es" else 0):
        return f"“{OPENING[mark]}” occurs {first} times"
    return None


def ends_alike(source: str, translation: str, _: str) -> str | None:
    """Check that both texts end with the same punctuation mark, or both with none."""
    wanted, found = (
        mark[1] if (mark := re.search(r"([.?!:;…,])[\"'”’»)]*\s*\Z", t.replace("...", "…"))) else "none"
        for t in (source, translation)
    )
    return None if wanted == found else f"the last mark is {found}, not {wanted}"


def upper(_: str, translation: str, __: str) -> str | None:
    """Check that all letters are capitals."""
    small = [word for word in re.findall(r"\w+", translation) if word != word.upper()]
    if small:
        return f"“{small[0]}” is not in capitals"
    return None if any(map(str.isalpha, translation)) else "it has no letters"


def first_letter(_: str, translation: str, argument: str) -> str | None:
    """Check that the first letter is a capital or a small letter. The argument is "capital" or "small"."""
    letter = next(filter(str.isalpha, translation), "")
    fits = letter.isupper() if argument == "capital" else letter.islower()
    return None if fits else f"the first letter is “{letter}”"


def not_upper(_: str, translation: str, __: str) -> str | None:
    """Check that not all letters are capitals."""
    return "it is all capitals" if translation == translation.upper() else None


def balanced(source: str, translation: str, _: str) -> str | None:
    """Check that brackets and quotation marks are closed in order, and that as many brackets occur as in the source."""
    waiting: list[str] = []
    for character in translation:
        if character in PAIRS:
            waiting.append(PAIRS[character])
        elif character in PAIRS.values() and (not waiting or waiting.pop() != character):
            return f"“{character}” has no opening mark"
    if waiting:
        return f"“{waiting[-1]}” is missing"
    for sign in "([{":
        if source.count(sign) != translation.count(sign):
            return f"“{sign}” occurs {translation.count(sign)} times, but {source.count(sign)} times in the source"
    return None


def quoted(source: str, translation: str, _: str) -> str | None:
    """Check that the number of quotations is the same, whichever marks they use."""
    wanted, found = (len(re.findall(r"[«“]", text)) + text.count('"') / 2 for text in (source, translation))
    return None if wanted == found else f"{found:g} quotations, not {wanted:g}"


ALWAYS: tuple[Rule, ...] = (no_loop, no_longer)
WITHOUT_ARGUMENT: tuple[Rule, ...] = (
    *(no_loop, no_longer, same, numbers, layout, markers, alike, sentences, ends_alike, upper, not_upper),
    *(balanced, quoted),
)
WITH_ARGUMENT: tuple[Rule, ...] = (
    *(keeps, in_order, mostly_kept, has, lacks, at_most, language, negated, question, exclamation, first_letter),
)
RULES: dict[str, Rule] = {rule.__name__.replace("_", "-"): rule for rule in (*WITHOUT_ARGUMENT, *WITH_ARGUMENT)}
