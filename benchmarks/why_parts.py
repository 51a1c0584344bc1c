"""Check that the parts of each logit difference add up, for every word of many translations, and measure the time.

    python benchmarks/why_parts.py --model en-es --texts FILE [--count 2000]

The deviation is the part called `rounding`, relative to the logit difference. The sum of all parts must equal that
difference bit for bit, both in the engine's arithmetic and in float64.
"""

import argparse
import itertools
import statistics
import time
from pathlib import Path

from vidrio.look.parts import decisions, runner_up
from vidrio.look.run import Look, look, open_model
from vidrio.look.translated import look_at, translator_of


def explained(seen: Look) -> tuple[float, list[tuple[float, float]], int]:
    """Return the time for all words in seconds, each word's difference and rounding, and the number of inexact sums."""
    this = seen.chosen_ids
    start = time.perf_counter()
    that = [runner_up(seen.trace, row, token) for row, token in enumerate(this)]
    found = decisions(seen.trace, this, that)
    seconds = time.perf_counter() - start
    pairs = [(one.difference, one.parts[-1].value) for one in found]
    return seconds, pairs, sum(sum(part.value for part in one.parts) != one.difference for one in found)


def report(name: str, runs: list[tuple[float, list[tuple[float, float]], int]]) -> None:
    pairs = [pair for _, found, _ in runs for pair in found]
    shares = [abs(rounding / difference) for difference, rounding in pairs if difference]
    print(f"{name}: {len(runs)} sentences, {len(pairs)} words, {sum(wrong for *_, wrong in runs)} sums not exact")
    print(f"  rounding / difference: median {statistics.median(shares):.1e}, largest {max(shares):.1e}")
    print(f"  |rounding|: largest {max(abs(rounding) for _, rounding in pairs):.1e}")
    print(f"  milliseconds per sentence, all words: median {1e3 * statistics.median(run[0] for run in runs):.1f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en-es")
    parser.add_argument("--texts", type=Path, required=True, help="file with one sentence per line")
    parser.add_argument("--count", type=int, default=2000)
    given = parser.parse_args()
    model = open_model(given.model)
    translator, floating = translator_of(model), model.in_floating_point()
    engine, float64 = [], []
    with given.texts.open(encoding="utf-8") as lines:
        for line in itertools.islice(filter(str.strip, lines), given.count):
            seen = look_at(model, translator.translate(line.strip()))
            if seen.empty or seen.stopped:
                continue
            engine.append(explained(seen))
            float64.append(explained(look(floating, seen.text, target=seen.chosen_ids)))
    report("engine's arithmetic", engine)
    report("float64", float64)


if __name__ == "__main__":
    main()
