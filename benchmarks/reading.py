"""What it is worth that titles, small letters, capitals, questions without their mark and words without their
accents are read as sentences (src/vidrio/text/reading: capitals.py, questions.py, mending.py).

    python benchmarks/reading.py test.tsv [--model MODEL] [--lines 500]

The pairs of a test set (source, tab, reference) that are one sentence of 3 to 9 words with a full stop are typed in
other ways: without capital letter and full stop, As A Title, IN CAPITALS, with one word SHOUTED, without accents. Each
is translated as it stands and as it is read, and scored with chrF against the reference, typed in the same way.

Sentences with a comma or ¿ are typed with blanks in other places, or without ¿, which the model should not notice:
BLEU and chrF. Questions are typed without marks, also all in small letters and without accents, and so are sentences
that ask nothing but begin like them: BLEU and chrF, marks and letters' sizes left out, where questions are not looked
for, and as they are read now.
"""

import argparse
import random
import re
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from unittest.mock import patch

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from vidrio.text.reading.capitals import WORD, capital_first
from vidrio.text.reading.capitals import shouted as all_capitals
from vidrio.text.reading.prepared import Prepared, Reader, Way
from vidrio.text.reading.protect import Protected
from vidrio.text.reading.questions import MAYBE
from vidrio.translate.attempts import Attempts
from vidrio.translate.translator import Translator

Change = Callable[[str], str]
BARE = str.maketrans("áéíóúñÁÉÍÓÚÑ", "aeiounAEIOUN")


def small(text: str) -> str:
    return re.sub(r"\bI\b", "i", text[:1].lower() + text[1:].removesuffix("."))


def title(text: str) -> str:
    return WORD.sub(lambda word: capital_first(word[0]), text.removesuffix("."))


def shouted(text: str) -> str:
    """One word of four letters or more in capitals, but not the first."""
    words = [word for word in WORD.finditer(text) if word.start() and word[0].islower() and len(word[0]) > 3]
    if not words:
        return text
    word = random.Random(text).choice(words)
    return text[: word.start()] + word[0].upper() + text[word.end() :]


def small_reference(text: str) -> str:
    return text[:1].lower() + text[1:].removesuffix(".")


WAYS: dict[str, tuple[Change, Change]] = {
    "as it is": (str, str),
    "small letters": (small, small_reference),
    "and small names": (lambda text: small(text).lower(), small_reference),
    "a title": (title, lambda text: text.removesuffix(".")),
    "capitals": (str.upper, str.upper),
    "one word in capitals": (shouted, str),
    "without accents": (lambda text: text.translate(BARE), str),
}


def unmarked(text: str) -> str:
    return re.sub(r"[¿?¡!.]", "", text)


TYPED: dict[str, Change] = {
    "no mark": unmarked,
    "and small": lambda text: re.sub(r"\bI\b", "i", unmarked(text)[:1].lower() + unmarked(text)[1:]),
    "and no accents": lambda text: unmarked(text).lower().translate(BARE),
}


SET: dict[str, Change] = {
    "as they are": str,
    "no blanks after": lambda text: re.sub(r"([,;?!]) ", r"\1", text),
    "blanks before": lambda text: re.sub(r"([,;?!.])", r" \1", text),
    "two blanks": lambda text: text.replace(" ", "  "),
    "no ¿": lambda text: text.replace("¿", ""),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--lines", type=int, default=500)
    given = parser.parse_args()
    lines = (line.split("\t")[:2] for line in given.pairs.read_text("utf-8").splitlines())
    all_pairs = list(lines)
    pairs = [pair for pair in all_pairs if all(map(one_sentence, pair)) and 3 <= len(pair[0].split()) <= 9][
        : given.lines
    ]
    read, plain = Translator.load(given.model), Translator.load(given.model)
    plain.reader.prepare_all = as_it_stands(plain.reader)  # type: ignore[method-assign]
    print(f"{len(pairs)} pairs of {given.pairs.name}, chrF\n{'typed':<22}as it stands   as it is read")
    for way, (change, change_reference) in WAYS.items():
        sources = [change(source) for source, _ in pairs]
        references = [change_reference(reference) for _, reference in pairs]
        scores = [
            CHRF().corpus_score([found.text for found in translator.translate(sources)], [references]).score
            for translator in (plain, read)
        ]
        print(f"{way:<22}{scores[0]:12.1f}{scores[1]:16.1f}")
    marked = [pair for pair in all_pairs if re.search(r", |¿", pair[0])][: given.lines]
    print(f"\n{len(marked)} with a comma or ¿, BLEU and chrF")
    for way, change in SET.items():
        found = [translation.text for translation in read.translate([change(source) for source, _ in marked])]
        scores = [metric.corpus_score(found, [[r for _, r in marked]]).score for metric in (BLEU(), CHRF())]
        print(f"{way:<22}{scores[0]:.1f} {scores[1]:.1f}", flush=True)
    typed_so = [pair for pair in all_pairs if MAYBE.match(unmarked(pair[0])) and len(pair[0].split()) > 2]
    alone = [pair for pair in typed_so if not re.search(r"[.,?!].", pair[0])]
    for what, some in {
        "questions": [pair for pair in alone if pair[0].endswith("?")],
        "sentences that begin like them": [pair for pair in alone if pair[0].endswith(".")],
    }.items():
        unmarked_questions(what, some[: given.lines], read)


def unmarked_questions(what: str, pairs: Sequence[Sequence[str]], translator: Translator) -> None:
    print(f"\n{len(pairs)} {what}, BLEU and chrF\n{'typed':<22}no questions    read now")
    references = [unmarked(reference).lower() for _, reference in pairs]
    for way, change in TYPED.items():
        sources = [change(source) for source, _ in pairs]
        with ExitStack() as as_typed:
            as_typed.enter_context(patch.object(Attempts, "_is_doubted", return_value=False))
            for room in ("capitals", "prepared"):
                as_typed.enter_context(patch(f"vidrio.text.reading.{room}.SURELY", re.compile(r"(?!)")))
            first = translator.translate(sources)
        both = [
            [
                metric.corpus_score([unmarked(of.text).lower() for of in found], [references]).score
                for metric in (BLEU(), CHRF())
            ]
            for found in (first, translator.translate(sources))
        ]
        print(f"{way:<22}" + "     ".join(f"{bleu:.1f} {chrf:.1f}" for bleu, chrf in both), flush=True)


def as_it_stands(reader: Reader) -> Callable[..., list[Prepared]]:
    """How it reads with names hidden, but every letter as it is."""
    prepare_all = reader.prepare_all

    def plainly(sources: Sequence[Protected], ways: Sequence[Way]) -> list[Prepared]:
        return [
            Prepared(source, source.text, source.text)
            if all_capitals(source)
            else prepare_all([source], [way._replace(forms=False)])[0]
            for source, way in zip(sources, ways, strict=True)
        ]

    return plainly


def one_sentence(text: str) -> bool:
    return text.endswith(".") and text.count(".") == 1


if __name__ == "__main__":
    main()
