"""The first document's eight exercises: a question to think about, then an answer that computes its evidence.

`vidrio lesson exercises 5` asks; `--answer`, or Enter on a terminal, runs the experiment. The words are in
data/exercises.toml, which names what an experiment has measured; nothing is written down beforehand.
"""

import sys
from collections.abc import Callable
from typing import Any

import click

from vidrio.errors import LessonError
from vidrio.lessons import exercise_attention, exercise_choosing, exercise_running, pages
from vidrio.look import layout, writing

EXPERIMENTS: dict[int, Callable[[], Any]] = {
    1: exercise_attention.measure_word_order,
    2: exercise_attention.measure_attentions,
    3: exercise_attention.measure_widths,
    4: exercise_attention.measure_feed_forward,
    5: exercise_running.measure_speed,
    6: exercise_running.measure_depths,
    7: exercise_choosing.measure_probabilities,
    8: exercise_choosing.measure_greedy,
}


def answer(number: int, measured: Any, precision: int) -> str:
    """The answer, with what its experiment has measured."""
    page = pages.pages("exercises")["exercise"][number - 1]["answer"]
    settings = exercise_attention.SETTINGS if number == 3 else {}
    return pages.text(page, pages.public(measured) | settings, precision)


@click.command("exercises")
@click.argument("number", type=int, required=False)
@click.option("--answer", "wants_answer", is_flag=True, help="Show the answer at once, and run its experiment.")
@click.option("--precision", type=click.IntRange(0, 17), default=writing.PRECISION, show_default=True, help="Decimals.")
def command(number: int | None, wants_answer: bool, precision: int) -> None:
    """Eight questions; each is answered by an experiment that runs here and now.

    \b
    vidrio lesson exercises               the questions
    vidrio lesson exercises 5             one, with something to think about
    vidrio lesson exercises 5 --answer    its answer
    """
    texts = pages.pages("exercises")
    asked = [{"question": e["question"], "hints": e["hints"]} for e in texts["exercise"]]
    if number is None:
        values = {"questions": [(n, exercise["question"]) for n, exercise in enumerate(asked, 1)]}
        click.echo(pages.text(texts["list"], values))
        return
    if number not in EXPERIMENTS:
        raise LessonError(
            f"there is no exercise {number}", found=f"exercises 1 to {len(asked)}", do="choose one of them"
        )
    exercise = asked[number - 1]
    click.echo(layout.wrap(exercise["question"], indent=f"{number}. ", hang="   "))
    if not wants_answer:
        click.echo("\n" + pages.text(texts["think"], exercise))
    if wants_answer or _has_thought(number):
        click.echo(f"\n{answer(number, EXPERIMENTS[number](), precision)}")


def _has_thought(number: int) -> bool:
    """On a terminal, wait for Enter."""
    when = pages.pages("exercises")["when"]
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo("\n" + pages.text(when["later"], {"number": number}))
        return False
    click.echo("\n" + when["now"], err=True, nl=False)
    return bool(sys.stdin.readline())  # nothing at all: the reader has left
