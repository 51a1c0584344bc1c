"""From a finished training to the folder in the package: eight bits, scores on three test sets, card.

python ship.py WORK DIRECTION TO
"""

import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from corpora import SYMBOLS, read
from lexicon import PARALLEL, ordinary, translated
from vidrio.learn.train import trainings
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.folder import About, read_config, read_parameters, write_config, write_parameters
from vidrio.model.parameters import count
from vidrio.model.quantised import quantise
from vidrio.score.evaluate import evaluate
from vidrio.score.metrics import usual_metrics
from vidrio.text.mask import RARE, RARE_FIRST
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate.translator import Translator
from word_lists import write_words

TESTS = {
    "tatoeba-test-v2020-07-28": "short everyday sentences",
    "newstest2012": "news",
    "flores200-dev": "Wikipedia",
}
OFTEN_ENOUGH = 10  # times that an ordinary word must stand in the pairs to be translated with a capital letter, too
BACK = {
    "es-en": "| back-en | Common Voice, translated by a model, as the next two | CC0 |\n"
    "| | UD treebanks, schema-guided dialogues | CC BY-SA |\n"
    "| | Taskmaster | CC BY |\n",
    "en-es": "| back-es | Common Voice, translated by a model, as the next two | CC0 |\n"
    "| | UD treebanks | CC BY-SA |\n"
    "| | speeches of the presidencies of Mexico and Argentina | official texts |\n",
}


def ship(work: Path, direction: str, to: Path) -> None:
    run = work / direction
    config, about = read_config(run)
    to.mkdir(parents=True, exist_ok=True)
    (to / "config.json").unlink(missing_ok=True)
    parameters = quantise(read_parameters(run), config)
    write_parameters(to, parameters)
    shutil.copy(run / "tokenizer.json", to / "tokenizer.json")
    write_words(work, direction, to)
    known = known_words(work, direction, read_tokenizers(run, config)[0])
    about = replace(about, name=direction, symbols=SYMBOLS, translated=known, scores=[])
    write_config(to, config, about)
    translator = Translator.load(to)
    scores = [score for test in TESTS for score in scored(translator, work, test, direction)]
    about = replace(about, scores=scores)
    write_config(to, config, about)
    held_out = len(sides(work / "dev.tsv", direction)[0])
    write_atomically(to / "README.md", card(direction, about, config, held_out=held_out).encode())


def known_words(work: Path, direction: str, tokenizer: Tokenizer) -> str:
    """Of the words that would be hidden as rare names, those that are none, and the names that the pairs translate."""
    pairs = [pair for corpus in PARALLEL for pair in zip(*sides(work / f"clean/{corpus}.tsv", direction), strict=True)]
    words = dict.fromkeys(translated(pairs), RARE)
    for word, times in sorted(ordinary(source for source, _ in pairs).items()):
        # The first word of a sentence has a capital letter anyway; within one an ordinary word seldom has.
        words[word] = RARE if times >= OFTEN_ENOUGH else RARE_FIRST
    return " ".join(word for word, tokens in words.items() if fewest(word.capitalize(), tokenizer.count) >= tokens)


def fewest(word: str, tokens: Callable[[str], int]) -> int:
    """As text/mask.py counts: with or without its capital letter, or with the s of a plural; of words that are joined
    those of the longest."""
    forms = word, word.lower()
    counts = [*map(tokens, forms)]
    if word.endswith("s") and any(tokens(form[:-1]) == 1 for form in forms):
        counts.append(2)
    if len(parts := [part for part in word.split("-") if part]) > 1:
        counts.append(max(fewest(part, tokens) for part in parts))
    return min(counts)


def scored(translator: Translator, work: Path, test: str, direction: str) -> list[dict[str, Any]]:
    sources, references = sides(work / f"{test}.tsv", direction)
    found = evaluate(translator, sources, [references], usual_metrics(), translator.options)
    (work / f"{direction}.{test}.txt").write_text("\n".join(found.run.translations) + "\n", encoding="utf-8")
    return [
        {"test": test, "metric": one.metric, "value": one.value, "signature": one.signature} for one in found.scores
    ]


def sides(path: Path, direction: str) -> tuple[list[str], list[str]]:
    english, spanish = (list(side) for side in zip(*read(path), strict=True))
    return (english, spanish) if direction == "en-es" else (spanish, english)


def training(told: dict[str, Any]) -> str:
    """A line of the card."""
    return (
        f"- `{told['command']}`: {told['steps']:,} steps, {told['passes']:g} passes over the data, "
        f"{told['seconds'] / 3600:.1f} hours on {told['machine']}"
    )


def card(direction: str, about: About, config: ModelConfig, *, held_out: int) -> str:
    told, done = about.provenance, trainings(about)
    source, target = ({"en": "English", "es": "Spanish"}[language] for language in direction.split("-"))
    metrics = list(dict.fromkeys(score["metric"] for score in about.scores))
    rows = [["test set", *metrics], ["---"] * (len(metrics) + 1)]
    for test, what in TESTS.items():
        rows.append([f"{test} ({what})", *(f"{s['value']:.2f}" for s in about.scores if s["test"] == test)])
    return (
        (Path(__file__).parent / "card.md")
        .read_text(encoding="utf-8")
        .format(
            direction=direction,
            source=source,
            target=target,
            parameters=count(config),
            config=config,
            scores="\n".join(f"| {' | '.join(row)} |" for row in rows),
            signatures="; ".join(dict.fromkeys(f"{s['metric']}: `{s['signature']}`" for s in about.scores)),
            symbols=about.symbols,
            forms=", and of verbs with their regular forms" if target == "Spanish" else "",
            train=told["pairs"]["train"],
            held_out=held_out,
            back=BACK[direction],
            times=("One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight")[len(done) - 1],
            where=", the first two from English to Spanish" if direction == "es-en" else "",
            trainings="\n".join(map(training, done)),
            versions=", ".join(f"{name} {number}" for name, number in told["versions"].items()),
        )
    )


if __name__ == "__main__":
    ship(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
