"""How well libraries tell English from Spanish: py3langid, which the server uses, beside lingua and langdetect.

    python benchmarks/libraries.py [--english FILE] [--spanish FILE]

How often each detector that is installed (lingua and langdetect need not be) is right on the first sentences of two
files, and how long it takes.
"""

import argparse
import time
from collections.abc import Callable
from pathlib import Path

from shared import TATOEBA, lines_of

FIRST = 1_000  # sentences of each language
SHORT = 20  # characters


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--english", type=Path, default=TATOEBA)
    parser.add_argument("--spanish", type=Path, default=TATOEBA.with_suffix(".es"))
    given = parser.parse_args()
    pairs = [
        (text, code) for code, file in (("en", given.english), ("es", given.spanish)) for text in lines_of(file)[:FIRST]
    ]
    short = sum(len(text) < SHORT for text, _ in pairs)
    for name, make in (("py3langid", py3langid), ("lingua", lingua), ("langdetect", langdetect)):
        try:
            detect = make()
        except ImportError:
            print(f"{name}: not installed")
            continue
        detect(pairs[0][0])  # it may load something
        began = time.perf_counter()
        wrong = [text for text, code in pairs if detect(text) != code]
        each = 1e3 * (time.perf_counter() - began) / len(pairs)
        wrong_short = sum(len(text) < SHORT for text in wrong)
        print(
            f"{name}: {len(wrong)} of {len(pairs)} wrong, {wrong_short} of the {short} short ones; {each:.2f} ms each"
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


if __name__ == "__main__":
    main()
