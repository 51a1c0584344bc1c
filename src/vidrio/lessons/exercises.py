"""The first document's eight exercises: a question to think about, then an answer that computes its evidence.

`vidrio lesson exercises 5` asks; `--answer`, or Enter on a terminal, runs the experiment. The words are in
data/exercises.toml; `measure_…` runs an experiment, and `values_of_…` is what its numbers are called on the page.
"""

import sys
from collections.abc import Callable, Mapping
from typing import Any

import click

from vidrio.draw import show
from vidrio.errors import LessonError
from vidrio.lessons import exercise_attention, exercise_choosing, exercise_running
from vidrio.lessons.as_data import json_text
from vidrio.lessons.pages import laid_out, pages

# exercise: what runs its experiment, and what names the results for its page, written with a precision
EXPERIMENTS: dict[int, tuple[Callable[[], Any], Callable[[Any, int], Mapping[str, Any]]]] = {
    1: (exercise_attention.measure_word_order, exercise_attention.values_of_word_order),
    2: (exercise_attention.measure_attentions, exercise_attention.values_of_attentions),
    3: (exercise_attention.measure_widths, exercise_attention.values_of_widths),
    4: (exercise_attention.measure_feed_forward, exercise_attention.values_of_feed_forward),
    5: (exercise_running.measure_speed, exercise_running.values_of_speed),
    6: (exercise_running.measure_depths, exercise_running.values_of_depths),
    7: (exercise_choosing.measure_probabilities, exercise_choosing.values_of_probabilities),
    8: (exercise_choosing.measure_greedy, exercise_choosing.values_of_greedy),
}


def answer(number: int, measured: Any, precision: int) -> str:
    """The answer, with what its experiment has measured."""
    page, values_of = pages("exercises")["exercise"][number - 1]["answer"], EXPERIMENTS[number][1]
    return laid_out(page, values_of(measured, precision), precision)


@click.command("exercises")
@click.argument("number", type=int, required=False)
@click.option("--answer", "wants_answer", is_flag=True, help="Show the answer at once, and run its experiment.")
@click.option("--precision", type=click.IntRange(0, 17), default=show.PRECISION, show_default=True, help="Decimals.")
@click.option("--json", "as_json", is_flag=True, help="The questions, and what was measured, as JSON.")
def command(number: int | None, wants_answer: bool, precision: int, as_json: bool) -> None:
    """Eight questions; each is answered by an experiment that runs here and now.

    \b
    vidrio lesson exercises               the questions
    vidrio lesson exercises 5             one, with something to think about
    vidrio lesson exercises 5 --answer    its answer
    """
    asked = [{"question": e["question"], "hints": e["hints"]} for e in pages("exercises")["exercise"]]
    if number is None and as_json:
        click.echo(json_text(asked))
    elif number is None:
        click.echo("The first document's exercises; `vidrio lesson exercises NUMBER` asks one:\n")
        for n, exercise in enumerate(asked, 1):
            click.echo(show.wrap(exercise["question"], indent=f"  {n}  ", hang="     "))
    elif number not in EXPERIMENTS:
        raise LessonError(
            f"there is no exercise {number}", found=f"exercises 1 to {len(asked)}", do="choose one of them"
        )
    elif as_json:
        click.echo(json_text(asked[number - 1] | {"measured": EXPERIMENTS[number][0]()}))
    else:
        click.echo(show.wrap(asked[number - 1]["question"], indent=f"{number}. ", hang="   "))
        if wants_answer or _has_thought(number, asked[number - 1]["hints"]):
            click.echo(f"\n{answer(number, EXPERIMENTS[number][0](), precision)}")


def _has_thought(number: int, hints: list[str]) -> bool:
    """Give the hints; on a terminal, wait for Enter."""
    click.echo("\nTo think about")
    for hint in hints:
        click.echo(show.wrap(hint, indent="  - ", hang="    "))
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        click.echo(f"\nWhen you have thought: vidrio lesson exercises {number} --answer")
        return False
    click.echo("\nWhen you have thought, press Enter. ", err=True, nl=False)
    return bool(sys.stdin.readline())  # nothing at all: the reader has left
