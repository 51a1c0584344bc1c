"""Judge a model by the behaviour cases of its direction. Run this in the root folder of the repository:

python -m tests.behaviour [--model MODEL] [--topic TOPIC] [--prose] [--json]

The exit code is 0 if at least 95 % of all cases pass, including every case whose topic is guaranteed by rules.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from behaviour.cases import HERE, read_cases
from behaviour.judge import as_json, as_text, good_enough, judge
from vidrio.translate.translator import Translator


def main() -> int:
    parser = argparse.ArgumentParser(description="Judges a model by the behaviour cases of its direction.")
    parser.add_argument("--model", help="a model folder or name [the default model]")
    parser.add_argument("--topic", action="append", help="only this topic (may be given again)")
    parser.add_argument(
        "--prose", action="store_true", help="use the cases of everyday prose, which require certain verbs and nouns"
    )
    parser.add_argument("--json", action="store_true", help="print every case and its translation as JSON")
    given = parser.parse_args()
    translator = Translator.load(given.model)
    direction = f"{translator.about.source_language}-{translator.about.target_language}"
    folder = HERE / "prose" if given.prose else HERE
    cases = [case for case in read_cases(direction, folder) if not given.topic or case.topic in given.topic]
    if not cases:
        parser.error(f"there are no cases for {direction}" + (f" and {given.topic}" if given.topic else ""))
    results = judge(lambda texts: [one.text for one in translator.translate(list(texts))], cases)
    print(as_json(results) if given.json else as_text(results))
    return 0 if good_enough(results) else 1


if __name__ == "__main__":
    sys.exit(main())
