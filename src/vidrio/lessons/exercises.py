"""The first document's eight exercises: a question to think about, then an answer that computes its evidence.

`vidrio lesson exercises 5` asks; `--answer`, or Enter on a terminal, runs the experiment.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import click

from vidrio.draw import show
from vidrio.errors import LessonError
from vidrio.lessons import exercise_attention, exercise_choosing, exercise_running
from vidrio.lessons.as_data import json_text


@dataclass(frozen=True)
class Exercise:
    """A question as the document asks it, something to think with, and the experiment that answers it."""

    question: str
    hints: tuple[str, ...]
    measure: Callable[[], Any]
    tell: Callable[[Any, int], Iterator[str]]  # of what was measured, and the precision


EXERCISES = (
    Exercise(
        "What is the purpose of the positional encoding?",
        (
            "Exchange two rows of X. What happens to the rows of softmax(X Xᵀ) X?",
            "Which number in Q Kᵀ knows that one word stands before the other?",
        ),
        exercise_attention.measure_word_order,
        exercise_attention.tell_positions,
    ),
    Exercise(
        "How does self-attention and encoder-decoder attention differ?",
        (
            "From which sequence is each of Q, K and V made?",
            "3 source tokens, 5 target tokens: how many rows and columns have the weights?",
        ),
        exercise_attention.measure_attentions,
        exercise_attention.tell_attentions,
    ),
    Exercise(
        "What would happen if our attention dimension was too small? What about if it was too large?",
        (
            "What is the rank of a product of an L × K and a K × L matrix?",
            "How large is a sum of K random products, compared with one of them?",
        ),
        exercise_attention.measure_widths,
        exercise_attention.tell_width,
    ),
    Exercise(
        "Briefly describe the structure of a feed-forward layer.",
        (
            "Which matrices, of which shapes, and what stands between them? What if it did not?",
            "Does row 2 of the output depend on row 1 of the input?",
        ),
        exercise_attention.measure_feed_forward,
        exercise_attention.tell_feed_forward,
    ),
    Exercise(
        "Why is the decoder slower than the encoder?",
        (
            "What does the decoder have to know before it can compute its third word?",
            "A sentence of 24 words: how often does each go through all its layers?",
        ),
        exercise_running.measure_speed,
        exercise_running.tell_speed,
    ),
    Exercise(
        "What is the purpose of the residual connections and layer normalization?",
        (
            "What is the derivative of x + f(x)? And of f(f(f(x))), if f' is small?",
            "What happens to numbers that are multiplied by a random matrix again and again?",
        ),
        exercise_running.measure_depths,
        exercise_running.tell_depth,
    ),
    Exercise(
        "How do we go from the decoder output to probabilities?",
        (
            "Which shape has a matrix that makes V numbers of D?",
            "What do these numbers lack for being probabilities?",
        ),
        exercise_choosing.measure_probabilities,
        exercise_choosing.tell_probabilities,
    ),
    Exercise(
        "Why is picking the most likely next token every single time problematic?",
        (
            "A sentence's probability is a product. Can its first factor be the largest there is, and the product not?",
            "Draw the tree of all sentences of three words. Which path does greedy take?",
        ),
        exercise_choosing.measure_greedy,
        exercise_choosing.tell_greedy,
    ),
)


@click.command("exercises")
@click.argument("number", type=int, required=False)
@click.option("--answer", is_flag=True, help="Show the answer at once, and run its experiment.")
@click.option("--precision", type=click.IntRange(0, 17), default=show.PRECISION, show_default=True, help="Decimals.")
@click.option("--json", "as_json", is_flag=True, help="The questions, and what was measured, as JSON.")
def command(number: int | None, answer: bool, precision: int, as_json: bool) -> None:
    """Eight questions; each is answered by an experiment that runs here and now.

    \b
    vidrio lesson exercises               the questions
    vidrio lesson exercises 5             one, with something to think about
    vidrio lesson exercises 5 --answer    its answer
    """
    if number is not None and not 1 <= number <= len(EXERCISES):
        raise LessonError(
            f"there is no exercise {number}", found=f"exercises 1 to {len(EXERCISES)}", do="choose one of them"
        )
    if as_json:
        chosen = EXERCISES if number is None else EXERCISES[number - 1 : number]
        told = [{"question": one.question, "hints": one.hints} for one in chosen]
        click.echo(json_text(told if number is None else told[0] | {"measured": chosen[0].measure()}))
        return
    if number is None:
        click.echo("The first document's exercises; `vidrio lesson exercises NUMBER` asks one:\n")
        for n, exercise in enumerate(EXERCISES, 1):
            click.echo(show.wrap(exercise.question, indent=f"  {n}  ", hang="     "))
        return
    exercise = EXERCISES[number - 1]
    click.echo(show.wrap(exercise.question, indent=f"{number}. ", hang="   "))
    if not answer:
        click.echo("\nTo think about")
        for hint in exercise.hints:
            click.echo(show.wrap(hint, indent="  - ", hang="    "))
        if not (sys.stdin.isatty() and sys.stdout.isatty()):
            click.echo(f"\nWhen you have thought: vidrio lesson exercises {number} --answer")
            return
        click.echo("\nWhen you have thought, press Enter. ", err=True, nl=False)
        if not sys.stdin.readline():
            return  # the reader has left
    click.echo("")
    for text in exercise.tell(exercise.measure(), precision):
        click.echo(text)
