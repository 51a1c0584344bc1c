"""Prepare the training data for the English–Spanish models.

    python corpora.py sources DATA TO    # write one file per corpus, from the sources that may be redistributed
    python corpora.py vary CLEAN TO      # rewrite some of the pairs, and add texts that must be copied unchanged
    python corpora.py alone DATA TO      # write monolingual sentences for a model to translate
    python corpora.py split DATA TRAIN   # split the translations of monolingual sentences by kind of text
    python corpora.py apart FOLDER TEST  # fail if any pair in a folder shares a sentence with a test set

Run `vidrio data clean` between the first two commands. It removes bad pairs and pairs that contain a sentence
from a test or dev set, so that no rewritten pair contains one. All random choices use fixed seeds. See model-log.md.
"""

import lzma
import random
import re
import sys
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from vidrio.model.files import write_atomically
from vidrio.text.fold import fold
from vidrio.text.protect import spans

Pair = tuple[str, str]

CORPORA = {
    "tatoeba": "tatoeba",
    "general": "europarl europarl-head5k wmt-europarl-dev wmt-news-dev wmt-newscomm-dev oldi-seed pud mt-geneval",
    "light": "mozilla-lang mdn-tmx docs-gnome skycultures docs-hfcourse docs-electron opensource-guide",
    "tech": "docs-python docs-php",
    "more": "xed-subtitles mintaka xquad global-asp librelingo gov-direct-file gov-identity-idp gov-vote gov-vita-min "
    "gov-bloom un-testset docs-react docs-tldr docs-gnome-devel docs-gnome-apps docs-ruby docs-elixirschool "
    "docs-bitcoin docs-djangogirls",
    "dictionary": "wiktionary freedict-eng-spa freedict-spa-eng",
    "books": "openstax-physics openstax-chemistry openstax-statistics openstax-precalculus programming-historian "
    "architecture-of-consoles docs-debian-handbook",
    "stories": "game-cataclysm-dda game-wesnoth game-ufoai game-freedroidrpg game-fillets game-widelands game-freeciv "
    "global-asp-stories",
    "talk": "cocoa-mt tico19-dev covid-datashare udhr mozilla-legal mozilla-www gov-identity-site",
    "help": "docs-libreoffice docs-freecodecamp docs-debian docs-kstars docs-lilypond docs-freedombox docs-gbif "
    "docs-tensorflow docs-learning-bitcoin owasp-top10 cncf-glossary docs-carpentries game-freecol game-freeorion "
    "game-flare game-singularity game-unknownhorizons game-hedgewars",
    "terms": "apertium-eng-spa osm-tags cldr cldr-emoji iso-codes covid-terms",
    "senses": "omw-mcr30",
    "voices": "globalvoices-pivot",
    "written": "written-words written-senses written-constructions written-kinds-of-text written-encyclopedic "
    "written-news written-prose written-dialogue written-short",
    "daily": "daily-words daily-senses daily-constructions daily-kinds-of-text daily-prose daily-dialogue",
}
WORDS = {"dictionary", "terms", "senses"}  # words and short phrases, not sentences
FILES = ("train.tsv.xz", "train-more.tsv.xz", "dictionary.tsv.xz", "train-3.tsv.xz", "dictionary-2.tsv.xz")
MOST = {  # maximum number of pairs from a corpus or from a repetitive source
    "tech": 40_000,
    "openstax-precalculus": 6_000,
    "docs-libreoffice": 8_000,
    "docs-freecodecamp": 6_000,
    "docs-debian": 6_000,
    "docs-tensorflow": 5_000,
}

ALL = sys.maxsize
ALONE = {  # maximum number of monolingual sentences from each source
    "en": {
        **{"wikipedia": ALL, "factbook": ALL, "globalvoices": ALL, "openstax": 60_000, "topical-chat": 30_000},
        **{"taskmaster": ALL, "sgd": 6_000, "commonvoice": 30_000, "ud": ALL, "qmsum": 4_000, "pratham": ALL},
        **{"standardebooks": 15_000, "ungdc": 10_000, "eltec": 5_000},
    },
    "es": {
        **{"wikipedia": ALL, "globalvoices": ALL, "pilar-generalitat": ALL, "commonvoice": ALL, "ud": ALL},
        **{"openstax": ALL, "cfk": 15_000, "mananeras": 20_000, "parl": 50_000, "lit-textbox": 60_000},
        **{"lit-eltec": 15_000, "drama": 15_000, "nubes": 2_000, "law": 2_000, "pilar": 6_000},
    },
}
LOOSE = {  # sources of spoken or narrative sentences, which the teachers translate too literally
    "en": ("topical-chat", "taskmaster", "sgd", "commonvoice", "ud", "pratham"),
    "es": ("commonvoice", "ud", "lit-textbox", "drama", "lit-eltec", "nubes"),
}
SHORTEST_ALONE, LONGEST_ALONE = 15, 220  # in characters; longer sentences are translated worse

SYMBOLS = "①②③④⑤⑥"  # placeholders for text that must be copied; text/mask.py inserts them during translation
TRANSLATED = "⟲"  # tags a machine-translated source (Caswell, Chelba and Grangier 2019, "Tagged back-translation")
COPIED = {"url", "email", "tag", "placeholder", "code", "path", "domain"}
NAME = re.compile(r"\b[A-ZÁÉÍÓÚÑ][\w-]+(?: [A-ZÁÉÍÓÚÑ][\w-]+)*")
VOWELS, CONSONANTS = "aeiou", "bcdfghjklmnpqrstvwxyz"


def sources(data: Path, to: Path) -> None:
    corpus_of = {source: corpus for corpus, names in CORPORA.items() for source in names.split()}
    pairs: dict[str, dict[str, list[str]]] = {corpus: {} for corpus in CORPORA}
    for source, pair in sourced(data):
        if corpus := corpus_of.get(source):
            pairs[corpus].setdefault(source, []).append(pair)
    to.mkdir(parents=True, exist_ok=True)
    for corpus, by_source in pairs.items():
        all_of_it = [pair for source, of_it in by_source.items() for pair in at_most(source, of_it)]
        (to / f"{corpus}.tsv").write_text("".join(at_most(corpus, all_of_it)), encoding="utf-8")


def sourced(data: Path) -> Iterable[tuple[str, str]]:
    """Yield the source and the line of every pair."""
    for file in FILES:
        with lzma.open(data / file, "rt", encoding="utf-8") as lines:
            for line in lines:
                source, _, pair = line.partition("\t")
                yield source, pair
    with lzma.open(data / "train-4.tsv.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            pair, _, source = line.rstrip("\n").rpartition("\t")
            yield source, f"{pair}\n"
    for path in sorted((Path(__file__).parent / "written").glob("*.tsv")):
        for line in path.read_text(encoding="utf-8").splitlines(keepends=True):
            source, _, pair = line.partition("\t")
            yield source, pair


def at_most(name: str, pairs: list[str]) -> list[str]:
    return random.Random(name).sample(pairs, MOST[name]) if len(pairs) > MOST.get(name, ALL) else pairs


def alone(data: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    for language, most in ALONE.items():
        sentences: dict[str, list[str]] = {source: [] for source in most}
        for source, sentence in monolingual(data, language):
            name = next((name for name in most if source.startswith(name)), None)
            if name and SHORTEST_ALONE <= len(sentence) <= LONGEST_ALONE:
                sentences[name].append(sentence)
        taken: list[str] = []
        for name, of_it in sentences.items():
            taken += random.Random(name).sample(of_it, min(len(of_it), most[name]))
        taken = list(dict.fromkeys(taken))
        random.Random(language).shuffle(taken)
        (to / f"{language}.txt").write_text("".join(f"{text}\n" for text in taken), encoding="utf-8")


def monolingual(data: Path, language: str) -> Iterable[tuple[str, str]]:
    """Yield the source and the text of every monolingual sentence."""
    with lzma.open(data / f"mono.{language}.tsv.xz", "rt", encoding="utf-8") as lines:
        for line in lines:
            source, _, sentence = line.rstrip("\n").partition("\t")
            yield source, sentence
    spans = [row.split("\t") for row in (data / f"mono-2.{language}.sources.tsv").read_text("utf-8").splitlines()[1:]]
    with lzma.open(data / f"mono-2.{language}.xz", "rt", encoding="utf-8") as lines:
        for source, first, last in spans:
            for line in islice(lines, int(last) - int(first) + 1):
                yield source, line.rstrip("\n")


def split(data: Path, train: Path) -> None:
    """Move the loose translations in forward-LANGUAGE.tsv to forward-LANGUAGE-loose.tsv, so that they weigh less.

    If this is interrupted, it can be repeated: pairs that have been moved are read again.
    """
    for side, language in enumerate(("en", "es")):
        loose = {text for source, text in monolingual(data, language) if source.startswith(LOOSE[language])}
        whole, moved = (train / f"forward-{language}{end}.tsv" for end in ("", "-loose"))
        pairs = read(whole)
        if moved.exists():
            known = set(pairs)
            pairs += [pair for pair in read(moved) if pair not in known]
        write(moved, (pair for pair in pairs if pair[side] in loose))
        write(whole, (pair for pair in pairs if pair[side] not in loose))


def vary(clean: Path, to: Path) -> None:
    to.mkdir(parents=True, exist_ok=True)
    everything: list[Pair] = []
    for corpus in CORPORA:
        chance = random.Random(corpus)
        pairs = read(clean / f"{corpus}.tsv")
        everything += pairs
        varied = [varied_pair(chance, pair) for pair in pairs] if corpus not in WORDS else pairs
        joined = list(join(chance, pairs, 0.04)) if corpus == "tatoeba" else []
        write(to / f"{corpus}.tsv", [*varied, *joined])
    write(to / "unchanged.tsv", unchanged(random.Random("unchanged"), everything))
    write(to / "phrases.tsv", as_typed(read(clean / "phrases.tsv")))


def varied_pair(chance: random.Random, pair: Pair) -> Pair:
    pair = masked(chance, pair)
    draw, hidden = chance.random(), any(symbol in pair[0] for symbol in SYMBOLS)
    if not hidden and draw < 0.015:
        return pair[0].upper(), pair[1].upper()
    if not hidden and draw < 0.025:
        return title(pair[0]), title(pair[1])
    if draw < 0.050 and pair[0][-1:] == pair[1][-1:] == ".":
        return pair[0][:-1], pair[1][:-1]
    if not hidden and draw < 0.070 and pair[0].count(".") < 2:
        return both(pair, lambda text: text.lower().rstrip("."))
    return pair


def both(pair: Pair, change: Callable[[str], str]) -> Pair:
    return change(pair[0]), change(pair[1])


def title(text: str) -> str:
    return re.sub(r"(?<![\w'’])\w", lambda first: first[0].upper(), text)


def masked(chance: random.Random, pair: Pair) -> Pair:
    """Mask text that occurs exactly once in each sentence: most addresses and placeholders, and one name in eight."""
    source, target = pair
    if any(symbol in source + target for symbol in SYMBOLS):
        return pair
    whole = [source[a:b] for a, b, kind in spans(source) if kind in COPIED and chance.random() < 0.7]
    names = [name[0] for name in NAME.finditer(source) if chance.random() < 0.125]
    symbols = chance.sample(SYMBOLS, len(SYMBOLS))
    for text in dict.fromkeys([*whole, *names]):
        if symbols and occurs(text, source) == occurs(text, target) == 1:
            symbol = symbols.pop()
            source, target = source.replace(text, symbol), target.replace(text, symbol)
    return source, target


def occurs(text: str, where: str) -> int:
    """Count the occurrences of a text, or return 0 if any of them is part of a longer word."""
    inside = re.findall(rf"(?<!\w){re.escape(text)}(?!\w)" if text[0].isalnum() else re.escape(text), where)
    return len(inside) if where.count(text) == len(inside) else 0


def join(chance: random.Random, pairs: list[Pair], share: float) -> Iterable[Pair]:
    """Join randomly chosen pairs into pairs with two or three sentences on each side."""
    for _ in range(round(share * len(pairs))):
        some = chance.sample(pairs, chance.choice((2, 2, 3)))
        if all(source[-1:] in ".?!" and target[-1:] in ".?!" for source, target in some):
            yield " ".join(source for source, _ in some), " ".join(target for _, target in some)


def as_typed(pairs: Iterable[Pair]) -> Iterable[Pair]:
    """Yield words and greetings in the ways people type them: capitalised, in all caps, with a full stop, and so on."""
    for source, target in pairs:
        yield source, target
        yield both((source, target), lambda text: text[0].upper() + text[1:])
        yield source.upper(), target.upper()
        if source[-1].isalpha():
            yield both((source, target), lambda text: f"{text[0].upper()}{text[1:]}.")
            yield f"{source[0].upper()}{source[1:]}!", f"¡{target[0].upper()}{target[1:]}!"


def unchanged(chance: random.Random, pairs: list[Pair]) -> list[Pair]:
    """Generate texts that must be copied unchanged: sentences with permuted letters, and words of random letters."""
    found = []
    for source, target in chance.choices(pairs, k=3_000):
        text = chance.choice((source, target))
        exchange = {
            ord(a): b
            for letters in (VOWELS, CONSONANTS)
            for a, b in zip(letters, chance.sample(letters, len(letters)), strict=True)
        }
        found.append(text.lower().translate(exchange) if len(text) < 150 else text[:0])
    for _ in range(1_500):
        letters = VOWELS * 2 + CONSONANTS
        words = ("".join(chance.choices(letters, k=chance.randint(3, 11))) for _ in range(chance.randint(1, 6)))
        found.append(" ".join(words))
    return [(text, text) for text in found if text]


def apart(folder: Path, test: Path) -> None:
    """Exit with an error if any pair contains a sentence from the test set, ignoring case and punctuation."""
    tested = [set(map(fold, side)) for side in zip(*read(test), strict=True)]
    shared = [
        f"{path.name}:{number}: {text}"
        for path in sorted(folder.glob("*.tsv"))
        for number, pair in enumerate(read(path), 1)
        for text, sentences in zip(pair, tested, strict=True)
        if fold(text) in sentences
    ]
    if shared:
        sys.exit("\n".join([f"{len(shared)} sentences from {test} occur in the training pairs:", *shared[:20]]))


def unseen(pairs: Iterable[Pair], *apart: Path) -> list[Pair]:
    """Return the pairs that contain no sentence from these files, ignoring case and punctuation."""
    held_out = [set(map(fold, side)) for side in zip(*(pair for path in apart for pair in read(path)), strict=True)]
    return [pair for pair in pairs if not any(map(set.__contains__, held_out, map(fold, pair)))]


def read(path: Path) -> list[Pair]:
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    return [(source, target) for source, _, target in (line.partition("\t") for line in lines)]


def write(path: Path, pairs: Iterable[Pair]) -> None:
    write_atomically(path, "".join(f"{source}\t{target}\n" for source, target in pairs).encode())


if __name__ == "__main__":
    what = {"sources": sources, "vary": vary, "alone": alone, "split": split, "apart": apart}
    what[sys.argv[1]](Path(sys.argv[2]), Path(sys.argv[3]))
