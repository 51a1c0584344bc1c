"""Generate sentence pairs from templates: numbers in words, days, months, times of day and everyday objects.

    python frames.py CLEAN TO APART…    # writes counted, framed, named, priced, facts… (.tsv), without test sentences

Words such as "eighteen" and "hedgehog" are too rare in the corpora to be learned. A frame is a pair with placeholders
such as {the animal}, {n things} or {a look thing2}, which are filled according to the grammar of each language. The
columns of `things.tsv` are kind, English, English plural, Spanish, Spanish plural, and gender. For an adjective, the
Spanish columns are the masculine and feminine forms. All random choices use a fixed seed.
"""

import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import facts
import prices
import spelled
import typed
from corpora import Pair, as_typed, both, read, unseen, write
from lexicon import HERE, read_fillers

PLACE = re.compile(r"{((?:(?:a|the|how|look|ordinal|n|few) )*)([a-z]+?)(s?)(\d?)}")
COUNTED = {"n", "few"}
WEEKEND = [("Saturday", "sábado"), ("Sunday", "domingo")]
AN = re.compile(r"(?i)[aeiou](?!ni|ne|su|se)|hour")  # an apple, an hour, a university


@dataclass(frozen=True)
class Thing:
    kind: str
    english: str
    english_plural: str
    spanish: str
    spanish_plural: str  # for an adjective, the feminine form
    gender: str  # m, f, or fa: feminine, but with the article "el", as in "el agua"


@dataclass(frozen=True)
class Drawn:
    """The randomly drawn values that fill a placeholder in both languages."""

    thing: Thing
    look: Thing
    count: dict[str, int]
    rank: int


def in_english(drawn: Drawn, before: list[str], plural: bool) -> str:
    if "how" in before:
        return drawn.look.english
    counted = [spelled.english(drawn.count[word]) for word in before if word in COUNTED]
    words = [*counted, drawn.thing.english_plural if plural else drawn.thing.english]
    if "look" in before:
        words.insert(0, drawn.look.english)
    if "ordinal" in before:
        words.insert(0, spelled.ordinal(drawn.rank, "m")[0])
    if "the" in before:
        words.insert(0, "the")
    if "a" in before:
        words.insert(0, "an" if AN.match(words[0]) else "a")
    return " ".join(words)


def in_spanish(drawn: Drawn, before: list[str], plural: bool) -> str:
    thing = drawn.thing
    gender = thing.gender[0]
    if "how" in before:
        return agreeing(drawn.look, gender, plural)
    counted = [spelled.spanish(drawn.count[word], gender) for word in before if word in COUNTED]
    words = [*counted, thing.spanish_plural if plural else thing.spanish]
    if "look" in before:
        words.append(agreeing(drawn.look, gender, plural))
    if "ordinal" in before:
        words.insert(0, spelled.ordinal(drawn.rank, gender)[1])
    if "the" in before or "a" in before:
        like_masculine = gender == "m" or (thing.gender == "fa" and not plural and "ordinal" not in before)
        one, many, some = ("el", "los", "un") if like_masculine else ("la", "las", "una")
        words.insert(0, some if "a" in before else many if plural else one)
    return " ".join(words)


def agreeing(look: Thing, gender: str, plural: bool) -> str:
    word = look.spanish if gender == "m" else look.spanish_plural
    if not plural:
        return word
    return f"{word}s" if word[-1] in "aeo" else f"{word.replace('ó', 'o')}es"


def filled(chance: random.Random, frame: Pair, words: dict[str, list[Thing]]) -> Pair:
    """Fill a frame with the same values in both languages, without repeating a word."""
    drawn: dict[str, Drawn] = {}
    for kind, digit in dict.fromkeys((place[2], place[4]) for place in PLACE.finditer(frame[0])):
        taken = [other.thing for other in drawn.values()]
        count = {"few": chance.randint(2, 100), "n": max(2, spelled.some_number(chance))}
        made = {number: (spelled.english(count[number]), spelled.spanish(count[number])) for number in COUNTED}
        made |= {"price": prices.price(chance), "sum": prices.millions(chance)}
        made["year"] = spelled.year(chance.choice((chance.randint(1900, 2030), chance.randint(1400, 1900))))
        thing = (
            word(kind, made[kind]) if kind in made else chance.choice([one for one in words[kind] if one not in taken])
        )
        drawn[kind + digit] = Drawn(thing, chance.choice(words["look"]), count, chance.randint(1, 10))

    def side(text: str, say: Callable[[Drawn, list[str], bool], str]) -> str:
        return PLACE.sub(lambda place: say(drawn[place[2] + place[4]], place[1].split(), bool(place[3])), text)

    source, target = side(frame[0], in_english), side(frame[1], in_spanish)
    target = re.sub(r"\b([Dd]e|[Aa]) el\b", lambda two: f"{two[1]}l", target)
    target = re.sub(r"\blos (sábado|domingo)\b", r"los \1s", target)
    return both((source, target), capital) if frame[0][0].isupper() or frame[0][-1] in ".?!" else (source, target)


def capital(text: str) -> str:
    return re.sub(r"^(\W*)(\w)", lambda first: first[1] + first[2].upper(), text)


def word(kind: str, pair: Pair) -> Thing:
    """Return a Thing for words without a plural or a gender."""
    return Thing(kind, pair[0], pair[0], pair[1], pair[1], "m")


def read_words() -> dict[str, list[Thing]]:
    words: dict[str, list[Thing]] = {}
    for kind, pairs in read_fillers().items():
        words[kind] = [word(kind, pair) for pair in (*pairs, *(WEEKEND if kind == "day" else ()))]
    for line in (HERE / "things.tsv").read_text(encoding="utf-8").splitlines():
        thing = Thing(*line.split("\t"))
        words.setdefault(thing.kind, []).append(thing)
    return words


def framed(chance: random.Random, frames: list[Pair], words: dict[str, list[Thing]], each: int) -> Iterator[Pair]:
    """Fill each frame with many different words. A few of the pairs are in upper case or lack the full stop."""
    for frame in frames:
        for pair in dict.fromkeys(filled(chance, frame, words) for _ in range(each)):
            draw = chance.random()
            if draw < 0.04:
                yield both(pair, str.upper)
            elif draw < 0.12 and pair[0][-1] == ".":
                yield both(pair, lambda text: text[:-1])
            else:
                yield pair


def counted(chance: random.Random, each: int) -> Iterator[Pair]:
    """Yield each number up to 100 in the ways people type it, then random numbers of various lengths."""
    yield from as_typed((spelled.english(n), spelled.spanish(n)) for n in range(101))
    for n in dict.fromkeys(spelled.some_number(chance) for _ in range(each)):
        pair = spelled.english(n), spelled.spanish(n)
        yield both(pair, capital) if chance.random() < 0.3 else pair


def named(words: dict[str, list[Thing]]) -> Iterator[Pair]:
    """Yield single words in the ways people type them: singular and plural, with and without an article."""
    trades = {trade.english for trade in words["trade"]}
    for kind, things in words.items():
        for thing in things:
            if kind == "lady" and thing.english in trades:
                continue  # the English word alone does not reveal the gender
            drawn = Drawn(thing, thing, {}, 1)
            if kind in ("day", "month", "look"):
                yield from as_typed([(thing.english, thing.spanish)])
            elif kind in ("animal", "food", "ware", "trade", "lady", "thing", "danger"):
                yield from as_typed([(thing.english, thing.spanish)])
                forms = [(["the"], False)]
                if thing.english_plural != "-":
                    forms += [(["a"], False), ([], True), (["the"], True)]
                for before, plural in forms:
                    pair = in_english(drawn, before, plural), in_spanish(drawn, before, plural)
                    yield from (pair, both(pair, capital))


def main(clean: Path, to: Path, *apart: Path) -> None:
    words = read_words()
    chance = random.Random("frames")
    made = {
        "counted": [
            *counted(chance, 4_000),
            *framed(chance, read(HERE / "counting.tsv"), words, 250),
        ],
        "framed": [*framed(chance, read(HERE / "frames.tsv"), words, 80)],
        "named": [*named(words)],
    }
    made["facts"] = [*dict.fromkeys(facts.made(chance, read(HERE / "facts.tsv")))]
    named_in_words = [pair for corpus in ("written", "general", "tatoeba") for pair in read(clean / f"{corpus}.tsv")]
    priced = framed(chance, read(HERE / "prices.tsv"), words, 120)
    made["priced"] = [*priced, *prices.signed(chance, named_in_words, 4)]
    spoken = [pair for corpus in ("tatoeba", "talk", "phrases") for pair in read(clean / f"{corpus}.tsv")]
    right = [*made["counted"], *made["framed"]]
    made["typed-en"] = [*typed.english(chance, spoken), *typed.numbers(chance, right), *typed.days(chance, right)]
    made["typed-es"] = [*typed.spanish(chance, chance.sample([*spoken, *right], min(20_000, len(spoken))))]
    for name, pairs in made.items():
        write(to / f"{name}.tsv", unseen(pairs, *apart))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
