"""Measure how long explanations take, as medians over sentences of about twenty words, in milliseconds.

    python benchmarks/why_speed.py --model en-es --texts FILE [--count 10]

- all sums: compare every word of the translation with its runner-up;
- one to tokens: one word's difference, carried down to the tokens;
- words hidden, words deleted, heads off, rows patched: one batch each, including the new translations; for rows
  patched, one word of the second text is replaced with another of the same number of tokens;
- what-if: turn one head off, including all numbers and the comparison with the original run.

The run itself is not timed.
"""

import argparse
import os
import statistics
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # must be set before NumPy is imported

from vidrio.look.changed import with_changes
from vidrio.look.interventions import each_head_off, each_word_deleted, each_word_hidden, rows_patched, source_words
from vidrio.look.parts import decisions, runner_up
from vidrio.look.run import Look, open_model
from vidrio.look.translated import look_at, translator_of
from vidrio.look.why_word import why_step


def all_sums(seen: Look) -> None:
    that = [runner_up(seen.trace, row, token) for row, token in enumerate(seen.chosen_ids)]
    decisions(seen.trace, seen.chosen_ids, that)


def exchanged(seen: Look) -> str:
    """Replace the text's last single-token word with another of its single-token words."""
    single = [word for word in source_words(seen) if len(word.rows) == 1 and word.start]
    last, other = single[-1], single[0]
    return seen.text[: last.start] + other.text + seen.text[last.end :]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="en-es")
    parser.add_argument("--texts", type=Path, required=True, help="file with one sentence per line")
    parser.add_argument("--count", type=int, default=10)
    given = parser.parse_args()
    model = open_model(given.model)
    translator = translator_of(model)
    lines = [line.strip() for line in given.texts.read_text("utf-8").splitlines() if 18 <= len(line.split()) <= 22]
    runs = [look_at(model, translator.translate(line)) for line in lines[: given.count]]
    timed: dict[str, Callable[[Look], object]] = {
        "all sums": all_sums,
        "one to tokens": lambda seen: why_step(seen, len(seen.chosen_ids) // 2).tokens,
        "words hidden": each_word_hidden,
        "words deleted": lambda seen: each_word_deleted(seen, translator),
        "heads off": each_head_off,
        "rows patched": lambda seen: rows_patched(
            seen, why_step(seen, len(seen.chosen_ids) // 2).decision, exchanged(seen)
        ),
        "what-if": lambda seen: with_changes(seen, model, [("heads-off", "dec.1.cross.h5")]).compared,
    }
    tokens = statistics.median(len(seen.source_ids) for seen in runs)
    print(f"{given.model}, {len(runs)} sentences of {tokens:.0f} tokens (median)")
    for name, work in timed.items():
        work(runs[0])  # warm up
        taken = []
        for seen in runs:
            start = time.perf_counter()
            work(seen)
            taken.append(1e3 * (time.perf_counter() - start))
        print(f"  {name:14} {statistics.median(taken):7.1f}  (from {min(taken):.1f} to {max(taken):.1f})")


if __name__ == "__main__":
    main()
