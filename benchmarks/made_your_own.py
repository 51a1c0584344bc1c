"""Fine-tune a model on a company's 300 terms, and measure what it learns and forgets, with and without general text.

    python benchmarks/made_your_own.py                                  # the packaged en-es model, 10 minutes per run
    python benchmarks/made_your_own.py --model en-pt --language pt --general FILE

This follows docs/own-model.md: it runs `vidrio train --from` on the pairs from recipes/company, first by themselves and
then together with general sentences that the model itself has translated. For each model, it prints chrF on the
company's held-out sentences, the number of correct terms, and chrF on general text. If there is no reference for the
general text, the original model's translations are used, so that chrF shows how much the translations change.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from shared import ENGLISH_SPANISH, REPOSITORY, lines_of, processor

sys.path.insert(0, str(REPOSITORY / "recipes/company"))
import pairs as company

from vidrio.model.find import find
from vidrio.score.metrics import corpus_scores, usual_metrics
from vidrio.translate.translator import Translator

WRITTEN = [REPOSITORY / "recipes/en-es/written" / f"{name}.tsv" for name in ("everyday", "news", "encyclopedic")]
GENERAL, REFERENCE = (ENGLISH_SPANISH / f"dev/newstest2012.{language}" for language in ("en", "es"))


def chrf(texts: list[str], references: list[str]) -> float:
    [score] = corpus_scores(texts, [references], {"chrF": usual_metrics()["chrF"]})[0]
    return score.value


def vidrio(*arguments: object) -> None:
    """Run a `vidrio` command, and raise an error if it fails."""
    subprocess.run([sys.executable, "-m", "vidrio", *map(str, arguments)], check=True, stderr=subprocess.DEVNULL)


def write_mixed_in(model: Path, count: int, to: Path) -> None:
    """Write general sentences, sampled evenly from recipes/en-es/written, with the model's own translations."""
    sources = [line.split("\t")[1] for path in WRITTEN for line in lines_of(path)]
    some = sources[:: max(1, len(sources) // count)][:count]
    found = Translator.load(model).stream(some)
    to.write_text("".join(f"{s}\t{one.text}\n" for s, one in zip(some, found, strict=True)), encoding="utf-8")


def expected(source: str, language: str) -> list[str]:
    """Return the translations of the terms in a sentence.

    "the oak shutter box" contains "the oak shutter", but does not count as an occurrence of it.
    """
    text = source.lower()
    count = {said: text.count(said) for said, _ in company.terms(language) if said in text}
    longer = {said: sum(count[other] for other in count if other != said and other.startswith(said)) for said in count}
    return [of for said, of in company.terms(language) if count.get(said, 0) > longer.get(said, 0)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", default="en-es", help="model from English to the company's language")
    parser.add_argument("--language", choices=company.LANGUAGES, default="es")
    parser.add_argument("--time", default="10m", help="duration of each training run")
    parser.add_argument("--mixed-in", type=int, default=5000, help="number of general sentences to add")
    parser.add_argument("--general", type=Path, default=GENERAL, help="general test text, one sentence per line")
    parser.add_argument("--reference", type=Path, help="its translation")
    parser.add_argument("--lines", type=int, default=1000, help="maximum number of lines of general text")
    given = parser.parse_args()
    reference = given.reference or (REFERENCE if given.general == GENERAL and given.language == "es" else None)
    general = lines_of(given.general)[: given.lines]
    base = find(given.model)
    print(processor(), f"{base.name}, {given.time} each, {len(general)} general lines", sep="\n", flush=True)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        company.write(place, given.language)
        write_mixed_in(base, given.mixed_in, place / "general.tsv")
        files = {"taught": ["train.tsv"], "taught, with general text": ["train.tsv", "general.tsv"]}
        models = {"before": base}
        for what, of in files.items():
            models[what] = place / what.replace(", ", "-").replace(" ", "-")
            told = ("--from", base, "--to", models[what], "--time", given.time)
            vidrio("train", *(place / file for file in of), *told)
        tested = [line.split("\t") for line in lines_of(place / "test.tsv")]
        sources, targets = ([pair[side] for pair in tested] for side in (0, 1))
        terms = [expected(source, given.language) for source in sources]
        before: list[str] = lines_of(reference)[: given.lines] if reference else []
        for what, model in models.items():
            translator = Translator.load(model)
            own, found = ([one.text for one in translator.translate(texts)] for texts in (sources, general))
            before = before or found
            right = sum(term in text.lower() for text, of in zip(own, terms, strict=True) for term in of)
            print(
                f"{what:<26} company: chrF {chrf(own, targets):5.1f}, {right} of {sum(map(len, terms))} terms right; "
                f"general: chrF {chrf(found, before):5.1f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
