"""Train models on small tasks with `vidrio train`, and count the correct outputs for 200 unseen sources.

    python benchmarks/small_tasks.py [--time 2m | --steps N] [--tasks reversed,templates] [--seeds 1,2] [-- OPTION …]

Each task has 4,000 training pairs and 200 different test sources:
  reversed    2 to 6 of 24 words, to be put in reverse order
  copied      the same words in the same order, except that a word after "twice" is repeated
  templates   English sentences from a few templates, translated into Spanish with gender and number agreement

Arguments after `--` are passed to `vidrio train`, for example `--dropout 0.1`.
"""

import argparse
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

PAIRS, UNSEEN = 4_000, 200
WORDS = [a + b for a in ("ka", "mo", "ti", "su", "re", "lon") for b in ("", "na", "vir", "pos")]
NOUNS = {  # English, plural, Spanish, plural, feminine
    "house": ("houses", "casa", "casas", True),
    "book": ("books", "libro", "libros", False),
    "table": ("tables", "mesa", "mesas", True),
    "dog": ("dogs", "perro", "perros", False),
    "flower": ("flowers", "flor", "flores", True),
    "car": ("cars", "coche", "coches", False),
    "letter": ("letters", "carta", "cartas", True),
    "shoe": ("shoes", "zapato", "zapatos", False),
}
COLOURS = {"red": "rojo", "white": "blanco", "black": "negro", "yellow": "amarillo", "old": "viejo", "new": "nuevo"}
NUMBERS = {"two": "dos", "three": "tres", "four": "cuatro", "five": "cinco", "six": "seis", "seven": "siete"}
WHO = {
    "I have": "Tengo",
    "We have": "Tenemos",
    "She sees": "Ella ve",
    "They buy": "Ellos compran",
    "Anna wants": "Ana quiere",
    "My brother sells": "Mi hermano vende",
}
WHERE = {"": "", " here": " aquí", " today": " hoy", " in the city": " en la ciudad", " again": " otra vez"}


def reversed_words(draw: random.Random) -> tuple[str, str]:
    words = draw.choices(WORDS, k=draw.randint(2, 6))
    return " ".join(words), " ".join(reversed(words))


def copied_words(draw: random.Random) -> tuple[str, str]:
    source: list[str] = []
    target: list[str] = []
    for word in draw.choices(WORDS, k=draw.randint(2, 6)):
        twice = draw.random() < 0.25
        source += ["twice", word] if twice else [word]
        target += [word, word] if twice else [word]
    return " ".join(source), " ".join(target)


def templated(draw: random.Random) -> tuple[str, str]:
    who, where, number = draw.choice(list(WHO)), draw.choice(list(WHERE)), draw.choice(["a", *NUMBERS])
    phrases = [thing(draw, number)]
    if draw.random() < 0.5:
        phrases.append(thing(draw, draw.choice(["a", *NUMBERS])))
    source, target = (" and ".join(p[0] for p in phrases), " y ".join(p[1] for p in phrases))
    return f"{who} {source}{where}.", f"{WHO[who]} {target}{WHERE[where]}."


def thing(draw: random.Random, number: str) -> tuple[str, str]:
    """Return a number, an optional colour and a noun, in both languages."""
    noun, colour = draw.choice(list(NOUNS)), draw.choice(["", *COLOURS])
    several, una, unas, feminine = NOUNS[noun]
    one = number == "a"
    article = "an" if one and colour == "old" else number
    english = f"{article} {colour} {noun if one else several}".replace("  ", " ")
    ending = COLOURS[colour][:-1] + ("a" if feminine else "o") + ("" if one else "s") if colour else ""
    count = ("una" if feminine else "un") if one else NUMBERS[number]
    return english, f"{count} {una if one else unas} {ending}".strip()


TASKS: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "reversed": reversed_words,
    "copied": copied_words,
    "templates": templated,
}


def pairs_of(task: str, seed: int) -> list[tuple[str, str]]:
    """Return pairs with distinct sources, first for training, then for testing."""
    draw, pairs = random.Random(f"{task} {seed}"), dict[str, str]()
    while len(pairs) < PAIRS + UNSEEN:
        source, target = TASKS[task](draw)
        pairs[source] = target
    return list(pairs.items())


def run(task: str, seed: int, options: list[str]) -> None:
    """Train and test a model, and print one line of results."""
    vidrio = [sys.executable, "-m", "vidrio"]
    pairs = pairs_of(task, seed)
    with tempfile.TemporaryDirectory() as folder:
        file, model = Path(folder) / "pairs.tsv", str(Path(folder) / "model")
        file.write_text("".join(f"{source}\t{target}\n" for source, target in pairs[:PAIRS]), encoding="utf-8")
        began = time.monotonic()
        command = [*vidrio, "train", str(file), "--to", model, "--languages", "en,es", "--seed", str(seed), *options]
        trained = subprocess.run(command, capture_output=True, text=True, check=False)
        if trained.returncode:
            raise SystemExit(trained.stderr)
        seconds = time.monotonic() - began
        asked = "".join(f"{source}\n" for source, _ in pairs[PAIRS:])
        translate = [*vidrio, "translate", "--model", model]
        answers = subprocess.run(translate, input=asked, capture_output=True, text=True, check=True).stdout.splitlines()
    right = sum(answer == target for answer, (_, target) in zip(answers, pairs[PAIRS:], strict=True))
    chosen = re.findall(
        r"model: [^,]*, [\d,]+ parameters|batches of [\d,]+ tokens|dropout [\d.]+|rate [\d.]+", trained.stderr
    )
    steps = re.search(r"trained ([\d,]+) steps, ([\d.]+) passes", trained.stderr)
    print(
        f"{task:<10} seed {seed}: {right} of {UNSEEN} right; {steps[1] if steps else '?'} steps, "
        f"{steps[2] if steps else '?'} passes, {seconds:.0f} s with all; {', '.join(chosen)}",
        flush=True,
    )


def main() -> None:
    ours, theirs = sys.argv[1:], list[str]()
    if "--" in ours:
        place = ours.index("--")
        ours, theirs = ours[:place], ours[place + 1 :]
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--time", default="2m", help="duration of each training run")
    parser.add_argument("--steps", help="train for a fixed number of steps instead, for use on a busy machine")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--seeds", default="1", help="comma-separated")
    given = parser.parse_args(ours)
    end = ["--steps", given.steps] if given.steps else ["--time", given.time]
    for task in given.tasks.split(","):
        for seed in given.seeds.split(","):
            run(task, int(seed), [*end, *theirs])


if __name__ == "__main__":
    main()
