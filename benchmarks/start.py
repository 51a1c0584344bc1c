"""How long the commands take as whole processes, from the shell's point of view.

    python benchmarks/start.py [--rounds 30] [--what translate,look]

`vidrio translate "Hello world"` beside the shortest script that does the same with CTranslate2 (the same files, the
same beam), in turn, so that a busy machine slows both alike; `look`, its JSON, its page and `check` on 20 words. All
have their bytecode ready, as it is after an installation. Prints medians, the middle half of the rounds, and processor
time.
"""

import argparse
import os
import statistics
import sys
import tempfile
from pathlib import Path

from shared import SENTENCE, Cost, cost_of
from vidrio.interop.to_ctranslate2 import write_engine
from vidrio.model import find
from vidrio.translate.translator import Translator

SCRIPT = """
import sys, ctranslate2, tokenizers
folder, fast, beam = sys.argv[1], sys.argv[2], int(sys.argv[3])
tokenizer = tokenizers.Tokenizer.from_file(folder + "/tokenizer.json")
engine = ctranslate2.Translator(fast, inter_threads=1, intra_threads=1)
tokens = tokenizer.encode("Hello world", add_special_tokens=False).tokens
found = engine.translate_batch([[*tokens, "</s>"]], beam_size=beam, max_decoding_length=256)[0].hypotheses[0]
print(tokenizer.decode([tokenizer.token_to_id(token) for token in found]))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--what", default="translate,look")
    given = parser.parse_args()
    folder = find.find()
    with tempfile.TemporaryDirectory() as temporary:
        write_engine(folder, Path(temporary) / "ctranslate2")
        measure_all(given, folder, Path(temporary) / "ctranslate2")


def measure_all(given: argparse.Namespace, folder: Path, exported: Path) -> None:
    beam = Translator.load(folder).options.beam
    vidrio = [sys.executable, "-m", "vidrio"]
    commands = {
        "translate": {
            "a script on CTranslate2": [sys.executable, "-c", SCRIPT, str(folder), str(exported), str(beam)],
            "vidrio translate": [*vidrio, "translate", "Hello world"],
        },
        "look": {
            "vidrio look": [*vidrio, "look", SENTENCE],
            "vidrio look --json": [*vidrio, "look", "--json", SENTENCE],
            "vidrio look --html": [*vidrio, "look", "--html", "-", SENTENCE],
            "vidrio check": [*vidrio, "check", SENTENCE],
        },
    }
    with tempfile.TemporaryDirectory() as bytecode:
        for what in given.what.split(","):
            medians = measured(commands[what], given.rounds, bytecode)
            if what == "translate":
                print(f"vidrio translate : the script = {medians[1] / medians[0]:.2f}")


def measured(commands: dict[str, list[str]], rounds: int, bytecode: str) -> list[float]:
    """The medians of rounds in which the commands take turns, after one that does not count."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    taken: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(rounds + 1):
        for name, command in commands.items():
            taken[name].append(cost_of(command, environment))
    medians = []
    for name, costs in taken.items():
        seconds = sorted(cost.seconds for cost in costs[1:])
        quarter = len(seconds) // 4
        medians.append(statistics.median(seconds))
        middle = f"half of them {seconds[quarter]:.3f}–{seconds[-1 - quarter]:.3f}"
        processor = statistics.median(cost.processor for cost in costs[1:])
        print(f"{name:<24} {medians[-1]:.3f} s   {middle}   processor {processor:.3f} s", flush=True)
    return medians


if __name__ == "__main__":
    main()
