"""What the libraries that were weighed do beside those that were chosen: docs/design.md has the figures.

    python benchmarks/libraries.py sentences --news FILE
    python benchmarks/libraries.py languages --english FILE --spanish FILE

`sentences`: `sentencex` in the place of our rules, within the paragraphs that ours find: the examples of
tests/test_sentences.py, lines of news that come out otherwise, time. `languages`: how often each detector that is
installed (py3langid is; lingua and langdetect need not be) is right on the first sentences of two files, and its time.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
DATA = Path("../shared/data/en-es")
FIRST = 1_000  # sentences of each language
SHORT = 20  # characters
NAMES = {"en": "english", "es": "spanish"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["sentences", "languages"])
    parser.add_argument("--news", type=Path, default=DATA / "dev/newstest2012.en")
    parser.add_argument("--english", type=Path, default=DATA / "test/tatoeba-test-v2020-07-28.en")
    parser.add_argument("--spanish", type=Path, default=DATA / "test/tatoeba-test-v2020-07-28.es")
    given = parser.parse_args()
    if given.what == "sentences":
        sentences(lines_of(given.news))
    else:
        languages([(text, code) for code in ("en", "es") for text in lines_of(vars(given)[NAMES[code]])[:FIRST]])


def sentences(news: Sequence[str]) -> None:
    from vidrio.text.sentences import split

    sys.path.insert(0, str(TESTS))
    import test_sentences

    marked = [
        text
        for mark in test_sentences.test_sentences_as_a_reader_sees_them.pytestmark
        if mark.name == "parametrize"
        for text in mark.args[1]
    ]

    def ours(text: str) -> list[str]:
        return [text[start:end] for start, end in split(text)]

    def theirs(text: str) -> list[str]:
        language = "es" if any(sign in text for sign in "áéíóúñ¿¡") else "en"
        return [text[start:end] for start, end in split(text, language=language)]

    for name, splits in (("ours", ours), ("sentencex", theirs)):
        right = sum(splits(text.replace("|", "")) == [p.strip() for p in text.split("|")] for text in marked)
        seconds = timed(splits, news)
        print(f"{name}: {right} of {len(marked)} examples, {1e6 * seconds / len(news):.1f} µs a line")
    print(f"{sum(ours(line) != theirs(line) for line in news)} of {len(news)} lines of news come out otherwise")


def languages(pairs: Sequence[tuple[str, str]]) -> None:
    texts = [text for text, _ in pairs]
    for name, make in (("py3langid", py3langid), ("lingua", lingua), ("langdetect", langdetect)):
        try:
            detect = make()
        except ImportError:
            print(f"{name}: not installed")
            continue
        wrong = [text for text, code in pairs if detect(text) != code]
        short = sum(len(text) < SHORT for text in texts)
        print(
            f"{name}: {len(wrong)} of {len(pairs)} wrong, {sum(len(text) < SHORT for text in wrong)} of the {short} "
            f"short ones; {1e3 * timed(detect, texts) / len(pairs):.2f} ms a sentence"
        )


def py3langid() -> Callable[[str], str]:
    from vidrio.serve.detect import Detector

    detector = Detector(["en", "es"])
    return lambda text: detector.ranked(text)[0].language


def lingua() -> Callable[[str], str]:
    from lingua import IsoCode639_1, LanguageDetectorBuilder  # type: ignore[import-not-found]

    codes = (IsoCode639_1.EN, IsoCode639_1.ES)
    detector = LanguageDetectorBuilder.from_iso_codes_639_1(*codes).build()

    def detect(text: str) -> str:
        language = detector.detect_language_of(text)
        return language.iso_code_639_1.name.lower() if language else ""

    return detect


def langdetect() -> Callable[[str], str]:
    from langdetect import DetectorFactory, LangDetectException, detect  # type: ignore[import-not-found]

    DetectorFactory.seed = 1

    def detected(text: str) -> str:
        try:
            return str(detect(text))
        except LangDetectException:
            return ""

    return detected


def timed(work: Callable[[str], object], texts: Sequence[str]) -> float:
    """Seconds for all of them, the first one apart: it may load something."""
    work(texts[0])
    began = time.perf_counter()
    for text in texts:
        work(text)
    return time.perf_counter() - began


def lines_of(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


if __name__ == "__main__":
    main()
