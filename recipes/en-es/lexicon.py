"""Extract word translations from the corpora, and use them to generate more pairs with rare words.

    python lexicon.py CLEAN TO APART…    # writes words, lists, swapped, renamed and said (.tsv), without test sentences

In Tatoeba's hundred thousand pairs, "fridge" occurs nine times, "churches" twice, and most names are "Tom". Two words
count as translations of each other if each is the other's best match in the sentence pairs, by Dice's coefficient (the
simplest form of competitive linking, Melamed 2000). Rare words then replace frequent ones in sentences, which helps
with small corpora (Fadaee, Bisazza and Monz 2017, "Data augmentation for low-resource neural machine translation").
All random choices use fixed seeds. See model-log.md for the results.
"""

import random
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from corpora import CORPORA, WORDS, Pair, both, read, unseen, write

HERE = Path(__file__).parent
WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
PARALLEL = [corpus for corpus in CORPORA if corpus not in WORDS | {"tech", "help"}]  # corpora for matching words
ENOUGH, ALIKE = 3, 0.25  # minimum number of pairs that contain a word; minimum Dice coefficient of a match
FREQUENT = 0.02  # ignore words in a larger share of sentences, because "the" and "de" match everything
SPANISH_ARTICLES = {
    "el": "m", "un": "m", "del": "m", "al": "m", "la": "f", "una": "f",
    "los": "ms", "unos": "ms", "las": "fs", "unas": "fs",
}  # fmt: skip
ONSETS, VOWELS, ENDS = (*"bdfgkmptz", "bl", "fl", "gr", "sn"), (*"aeiou",), (*"bnpx", "ck", "mp", "rp", "")
STRANGE = (ONSETS, VOWELS, ONSETS, VOWELS, ENDS)  # syllable parts of an invented word
BEFORE_EN = r"(?:the|an?|my|his|her|your|our|their)"
BEFORE_ES = r"(?:el|un|del|al|la|una|los|unos|las|unas|mi|tu|su|mis|tus|sus)"
OFTEN = {"Tom": "man", "Mary": "woman", "Boston": "place", "Jackson": "family"}
MARY = "María"  # a frequent translation of Mary in Tatoeba


@dataclass(frozen=True)
class Link:
    source: str
    target: str
    count: int
    gender: str  # m, f, ms or fs, from the articles before the Spanish word; empty if unknown


def links(pairs: Iterable[Pair]) -> list[Link]:
    """Return the pairs of words that are each other's best match, most frequent first."""
    sides = [(set(WORD.findall(source)), WORD.findall(target)) for source, target in pairs]
    count_en = Counter(word for source, _ in sides for word in source)
    count_es = Counter(word for _, target in sides for word in set(target))
    most = FREQUENT * len(sides)
    known_en = {word for word, count in count_en.items() if ENOUGH <= count <= most}
    known_es = {word for word, count in count_es.items() if ENOUGH <= count <= most}
    together: Counter[Pair] = Counter()
    articles: dict[str, Counter[str]] = {}
    for source, target in sides:
        here = known_es.intersection(target)
        together.update((s, t) for s in source & known_en for t in here)
        for before, word in pairwise(target):
            if word in here and before.lower() in SPANISH_ARTICLES:
                articles.setdefault(word, Counter())[SPANISH_ARTICLES[before.lower()]] += 1
    best_en: dict[str, tuple[float, str]] = {}
    best_es: dict[str, tuple[float, str]] = {}
    for (s, t), count in together.items():
        dice = 2 * count / (count_en[s] + count_es[t])
        best_en[s] = max(best_en.get(s, (0.0, "")), (dice, t))
        best_es[t] = max(best_es.get(t, (0.0, "")), (dice, s))
    found = []
    for s, (dice, t) in best_en.items():
        if dice >= ALIKE and best_es[t][1] == s and together[s, t] >= ENOUGH:
            seen = articles.get(t, Counter()).most_common(1)
            found.append(Link(s, t, together[s, t], seen[0][0] if seen and 3 * seen[0][1] >= together[s, t] else ""))
    return sorted(found, key=lambda link: (-link.count, link.source))


def words(chance: random.Random, found: list[Link]) -> Iterator[Pair]:
    """Yield each word alone, in the ways people type it."""
    for link in found:
        pair = link.source, link.target
        yield pair
        if pair[0].islower() and pair[1].islower():
            if chance.random() < 0.35:
                yield both(pair, str.capitalize)
            if chance.random() < 0.2:
                yield both(pair, str.upper)
            if chance.random() < 0.15:
                yield both(pair, lambda text: f"{text.capitalize()}.")
            if link.gender and chance.random() < 0.5:
                article = {"m": "el", "f": "la", "ms": "los", "fs": "las"}[link.gender]
                yield f"the {pair[0]}", f"{article} {pair[1]}"


def lists(chance: random.Random, nouns: list[Link], how_many: int) -> Iterator[Pair]:
    """Generate lists of nouns, and phrases of two nouns joined by "of the", as in headings."""
    for _ in range(how_many if len(nouns) > 1 else 0):
        some = chance.sample(nouns, min(len(nouns), chance.choice((2, 2, 3, 3, 4, 5, 6))))
        if chance.random() < 0.2:
            some.append(chance.choice(some))
        source, target = [link.source for link in some], [link.target for link in some]
        draw = chance.random()
        if draw < 0.3:
            pair = ", ".join(source), ", ".join(target)
        elif draw < 0.7:
            also = "e" if re.match(r"h?[ií](?![aeoáé])", target[-1]) else "y"
            comma = chance.choice(("", ",")) if len(some) > 2 else ""
            pair = f"{', '.join(source[:-1])}{comma} and {source[-1]}", f"{', '.join(target[:-1])} {also} {target[-1]}"
        else:
            of = {"m": "del", "f": "de la", "ms": "de los", "fs": "de las"}[some[1].gender]
            pair = f"{source[0]} of the {source[1]}", f"{target[0]} {of} {target[1]}"
        if chance.random() < 0.3:
            pair = both(pair, lambda text: text[0].upper() + text[1:])
        if chance.random() < 0.1:
            pair = both(pair, str.upper)
        yield pair


def swapped(chance: random.Random, pairs: list[Pair], nouns: list[Link], each: int) -> Iterator[Pair]:
    """Replace nouns in sentences with others of the same gender and number, preferably rare ones.

    A noun is replaced only if it occurs once in each sentence, after an article or a possessive, which also fits the
    new noun. In a few sentences, the new noun is an invented word that is the same in both languages.
    """
    places: dict[str, list[tuple[Pair, Pair]]] = {}
    by_source = {link.source: link for link in nouns}
    for pair in pairs:
        for word in dict.fromkeys(WORD.findall(pair[0])):
            link = by_source.get(word)
            if link and len(pair[0]) < 90 and stands_once(link, pair):
                places.setdefault(link.gender, []).append((pair, (link.source, link.target)))
    for link in nouns:
        times = each if link.count < 60 else each // 2 if link.count < 300 else 0
        for _ in range(times if link.gender in places else 0):
            pair, noun = chance.choice(places[link.gender])
            yield exchanged(pair, noun, (link.source, link.target))
    for _ in range(len(nouns) // 3 if places else 0):
        pair, noun = chance.choice(places[chance.choice(sorted(places))])
        strange = "".join(chance.choice(part) for part in STRANGE)
        yield exchanged(pair, noun, (strange, strange))


def stands_once(link: Link, pair: Pair) -> bool:
    """Return whether the noun occurs once in each sentence, after a word that would also fit another noun."""
    return all(
        len(re.findall(rf"\b{re.escape(word)}\b", text)) == 1 and re.search(rf"\b{before} {re.escape(word)}\b", text)
        for word, text, before in ((link.source, pair[0], BEFORE_EN), (link.target, pair[1], BEFORE_ES))
    )


def exchanged(pair: Pair, old: Pair, new: Pair) -> Pair:
    source = re.sub(rf"\b{re.escape(old[0])}\b", new[0], pair[0])
    source = re.sub(rf"\ban? (?={re.escape(new[0])}\b)", "an " if new[0][0] in VOWELS else "a ", source)
    return source, re.sub(rf"\b{re.escape(old[1])}\b", new[1], pair[1])


def renamed(chance: random.Random, pairs: list[Pair], fillers: dict[str, list[Pair]]) -> Iterator[Pair]:
    """Replace Tom, Mary, Boston and Jackson with other people and places."""
    for source, target in pairs:
        pair = source, re.sub(rf"\b{MARY}\b", "Mary", target) if re.search(r"\bMary\b", source) else target
        for name, kind in OFTEN.items():
            other = chance.choice(fillers[kind])[0]
            if all(re.search(rf"\b{name}\b", text) for text in pair):
                pair = exchanged(pair, (name, name), (other, other))
        if pair[0] != source and not any(re.search(rf"\b{name}\b", pair[0]) for name in OFTEN):
            yield pair


def said(chance: random.Random, frames: list[Pair], fillers: dict[str, list[Pair]], each: int) -> Iterator[Pair]:
    """Fill each frame (greetings, ages, dates, letters and times of day) with many names and numbers."""
    for source, target in frames:
        for _ in range(each):
            filled: dict[str, Pair] = {}
            for key in dict.fromkeys(re.findall(r"{(\w+)}", source)):
                others = [pair for pair in fillers[key.rstrip("2")] if pair not in filled.values()]
                filled[key] = chance.choice(others)
            yield (
                source.format_map({key: pair[0] for key, pair in filled.items()}),
                target.format_map({key: pair[1] for key, pair in filled.items()}),
            )


def read_fillers() -> dict[str, list[Pair]]:
    """Return the values of the placeholders in the sayings, by kind."""
    fillers: dict[str, list[Pair]] = {}
    for line in (HERE / "fillers.tsv").read_text(encoding="utf-8").splitlines():
        kind, source, target = line.split("\t")
        fillers.setdefault(kind, []).append((source, target))
    return {**fillers, "name": fillers["man"] + fillers["woman"]}


def main(clean: Path, to: Path, *apart: Path) -> None:
    fillers = read_fillers()
    corpora = {corpus: read(clean / f"{corpus}.tsv") for corpus in CORPORA}
    found = links(pair for corpus in PARALLEL for pair in corpora[corpus])
    nouns = [link for link in found if link.gender and link.source.islower() and link.target.islower()]
    nouns = [link for link in nouns if min(len(link.source), len(link.target)) > 2]
    made = {
        "words": words(random.Random("words"), [link for link in found if link.source != link.target]),
        "lists": lists(random.Random("lists"), nouns, 3 * len(nouns)),
        "swapped": swapped(random.Random("swapped"), corpora["tatoeba"], nouns, 8),
        "renamed": renamed(random.Random("renamed"), corpora["tatoeba"], fillers),
        "said": dict.fromkeys(said(random.Random("said"), read(HERE / "sayings.tsv"), fillers, 30)),
    }
    for name, pairs in made.items():
        write(to / f"{name}.tsv", unseen(pairs, *apart))


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
