"""What it is worth that titles, small letters, capitals, questions without their mark and words without their
accents are read as sentences (src/vidrio/text/reading: capitals.py, questions.py, mending.py).

    python benchmarks/reading.py test.tsv [--model MODEL] [--lines 500]

The pairs of a test set (source, tab, reference) that are one sentence of 3 to 9 words with a full stop are typed in
other ways: without capital letter and full stop, As A Title, IN CAPITALS, with one word SHOUTED, without accents. Each
is translated as it stands and as it is read, and scored with chrF against the reference, typed in the same way.

Then BLEU and chrF, as typed and as it is read now, marks and letters' sizes left out: of sentences with a comma or ¿
that have their blanks in other places or no ¿; of sentences with accents, without them; of sentences in small letters;
of questions without marks, and of sentences that ask nothing but begin like them.
"""

import argparse
import random
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from unittest.mock import patch

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from vidrio.text.reading.capitals import WORD, capital_first
from vidrio.text.reading.capitals import shouted as all_capitals
from vidrio.text.reading.prepared import Prepared, Reader, Way
from vidrio.text.reading.protect import Protected
from vidrio.text.reading.questions import MAYBE
from vidrio.text.reading.signs import SET_OTHERWISE, SPACED
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


UNMARKED: dict[str, Change] = {
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
NO_ACCENTS: dict[str, Change] = {
    "as they are": str,
    "no accents": lambda text: text.translate(BARE),
    "and in capitals": lambda text: text.translate(BARE).upper(),
}
SMALL: dict[str, Change] = {"small letters": lambda text: text.removesuffix(".").lower()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--lines", type=int, default=500)
    given = parser.parse_args()
    all_pairs = [line.split("\t")[:2] for line in given.pairs.read_text("utf-8").splitlines()]
    short = [pair for pair in all_pairs if all(map(one_sentence, pair)) and 3 <= len(pair[0].split()) <= 9]
    pairs = short[: given.lines]
    read, plain = Translator.load(given.model), Translator.load(given.model)
    plain.reader.prepare_all = as_it_stands(plain.reader)  # type: ignore[method-assign]
    print(f"{len(pairs)} pairs of {given.pairs.name}, chrF\n{'typed':<22}as it stands   as it is read")
    for way, (change, change_reference) in WAYS.items():
        sources = [change(source) for source, _ in pairs]
        references = [change_reference(reference) for _, reference in pairs]
        chrf = [
            CHRF().corpus_score([found.text for found in translator.translate(sources)], [references]).score
            for translator in (plain, read)
        ]
        print(f"{way:<22}{chrf[0]:12.1f}{chrf[1]:16.1f}")
    typed_so = [pair for pair in all_pairs if MAYBE.match(unmarked(pair[0])) and len(pair[0].split()) > 2]
    alone = [pair for pair in typed_so if not re.search(r"[.,?!].", pair[0])]
    for what, some, ways in (
        ("sentences with a comma or ¿", [pair for pair in all_pairs if re.search(r", |¿", pair[0])], SET),
        ("sentences with accents", [pair for pair in all_pairs if pair[0] != pair[0].translate(BARE)], NO_ACCENTS),
        ("sentences", all_pairs[:: max(1, len(all_pairs) // given.lines)], SMALL),
        ("questions", [pair for pair in alone if pair[0].endswith("?")], UNMARKED),
        ("sentences that begin like them", [pair for pair in alone if pair[0].endswith(".")], UNMARKED),
    ):
        compare(what, some[: given.lines], ways, read)


def compare(what: str, pairs: Sequence[Sequence[str]], ways: dict[str, Change], translator: Translator) -> None:
    if not pairs:
        return
    print(f"\n{len(pairs)} {what}, BLEU and chrF\n{'typed':<22}as typed    read now    changed: as typed    read now")
    for way, change in ways.items():
        sources = [change(source) for source, _ in pairs]
        with as_typed():
            first = translator.translate(sources)
        both = [[bare(found.text) for found in some] for some in (first, translator.translate(sources))]
        references = [bare(reference) for _, reference in pairs]
        changed = [n for n, texts in enumerate(zip(*both, strict=True)) if len(set(texts)) > 1]
        figures = [scores(texts, references) for texts in both]
        figures += [scores([texts[n] for n in changed], [references[n] for n in changed]) for texts in both]
        print(
            f"{way:<22}{figures[0]}   {figures[1]}   {len(changed):7}: {figures[2]}            {figures[3]}", flush=True
        )


def bare(text: str) -> str:
    return unmarked(text).lower()


def scores(texts: Sequence[str], references: Sequence[str]) -> str:
    return (
        " ".join(f"{metric.corpus_score(texts, [references]).score:.1f}" for metric in (BLEU(), CHRF()))
        if texts
        else ""
    )


@contextmanager
def as_typed() -> Iterator[None]:
    """Nothing is read in two ways, no question is looked for, and blanks stay where they are."""
    never, blanks = re.compile(r"(?!)"), re.compile(SET_OTHERWISE.pattern.replace(f"|{SPACED}| {{2,}}", ""))
    with ExitStack() as patched:
        patched.enter_context(patch.object(Attempts, "_is_doubted", return_value=False))
        for name in ("capitals.SURELY", "prepared.SURELY", "prepared.UNOPENED"):
            patched.enter_context(patch(f"vidrio.text.reading.{name}", never))
        patched.enter_context(patch("vidrio.text.reading.prepared.SET_OTHERWISE", blanks))
        yield


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
