"""Package a trained model: quantise it to int8, score it on three test sets, and write its model card.

python ship.py WORK DIRECTION TO
"""

import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from corpora import SYMBOLS, read
from vidrio.learn.train import trainings
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.folder import About, read_config, read_parameters, write_config, write_parameters
from vidrio.model.parameters import count
from vidrio.model.quantised import quantise
from vidrio.score.evaluate import evaluate
from vidrio.score.metrics import usual_metrics
from vidrio.translate.translator import Translator

TESTS = {
    "tatoeba-test-v2020-07-28": "short everyday sentences",
    "newstest2012": "news",
    "flores200-dev": "Wikipedia",
}
ALONE = {  # sources of the monolingual sentences, for the model card
    "en": """| Common Voice | CC0 |
| | UD treebanks, schema-guided dialogues; topical-chat, CallHome | CC BY-SA; CDLA-Sharing 1.0 |
| | Taskmaster; OpenStax textbooks; Pratham stories; Global Voices | CC BY 4.0; CC BY 3.0 |
| | United Nations General Debate, Standard Ebooks, CIA World Factbook, ELTeC | CC0, public domain |
| | parliamentary committees of Canada and Wales (QMSum) | open parliament licences |
| | Wikipedia (WikiNEuRal) | CC BY-SA |
""",
    "es": """| Common Voice | CC0 |
| | UD treebanks | CC BY-SA |
| | presidential speeches from Mexico and Argentina; laws of Uruguay and Argentina | official texts |
| | Congreso de los Diputados; OpenStax; gazettes and news from Valencia and Catalonia (PILAR) | CC BY 4.0, CC0 |
| | Global Voices; NUBes health records; Wikipedia (WikiNEuRal) | CC BY 3.0; CC BY-SA |
| | novels and plays, 1830 to 1940 (textbox, ELTeC, CONHA19, DraCor) | public domain |
""",
}


def ship(work: Path, direction: str, to: Path) -> None:
    run = work / direction
    config, about = read_config(run)
    to.mkdir(parents=True, exist_ok=True)
    (to / "config.json").unlink(missing_ok=True)
    parameters = quantise(read_parameters(run), config)
    write_parameters(to, parameters)
    shutil.copy(run / "tokenizer.json", to / "tokenizer.json")
    about = replace(about, name=direction, symbols=SYMBOLS, scores=[])
    write_config(to, config, about)
    translator = Translator.load(to)
    scores = [score for test in TESTS for score in scored(translator, work, test, direction)]
    about = replace(about, scores=scores)
    write_config(to, config, about)
    held_out = len(sides(work / "dev.tsv", direction)[0])
    write_atomically(to / "README.md", card(direction, about, config, held_out=held_out).encode())


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


def training(number: int, told: dict[str, Any]) -> str:
    """Return the row for one training run in the model card's table."""
    machine = told["machine"].partition(" (")[0]
    return f"| {number} | {told['steps']:,} | {told['passes']:g} | {told['seconds'] / 3600:.1f} | {machine} |"


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
            train=told["pairs"]["train"],
            held_out=held_out,
            alone=f"| back-{direction[-2:]} {ALONE[direction[-2:]]}| forward-{direction[:2]} {ALONE[direction[:2]]}",
            source_code=direction[:2],
            target_code=direction[-2:],
            times=len(done),
            where=", the first two from English to Spanish" if direction == "es-en" else "",
            trainings="\n".join(map(training, range(1, len(done) + 1), done)),
            versions=", ".join(f"{name} {number}" for name, number in told["versions"].items()),
        )
    )


if __name__ == "__main__":
    ship(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
