"""What is tried next, for every outcome; and what a sentence is assembled from."""

import pytest

from vidrio.hypothesis import Hypothesis, Options
from vidrio.text.reading.prepared import Prepared
from vidrio.text.reading.protect import Protected, protected
from vidrio.translate.attempts import (
    CLEARLY,
    FAR,
    NO_CHARACTERS,
    REPETITION,
    Attempt,
    Outcome,
    Tried,
    assemble,
    next_attempts,
)
from vidrio.translate.translation import Sentence

FIRST = Attempt(protected("Click {next} now."), whole=True)


def sentence(text: str, translation: str) -> Sentence:
    source = protected(text)
    best = Hypothesis((5,), -1.0, -0.5, (), True)
    return Sentence(text, (translation,), (best,), (5, 3), Prepared(source, text, text), Options())


DONE = sentence(FIRST.source.text, "Pulsa {next} ahora.")
WORDS = ((0, 5), (13, 17))  # "Click" and "now."
PARTS = [Attempt(protected(part), part=True) for part in ("Click", "now.")]
AVOIDING = FIRST._replace(avoid=REPETITION)
OTHERWISE = FIRST._replace(otherwise=True)
PLAINLY = FIRST._replace(hide_names=False)


@pytest.mark.parametrize(
    ("attempt", "outcome", "following"),
    [
        (FIRST, Outcome(DONE), []),
        (FIRST, Outcome(DONE, named=True), []),  # names came through, as most do
        (FIRST, Outcome(avoid=REPETITION), [AVOIDING]),
        (FIRST, Outcome(avoid=NO_CHARACTERS), [FIRST._replace(avoid=NO_CHARACTERS)]),
        (FIRST, Outcome(DONE, doubted=True), [OTHERWISE]),
        (AVOIDING, Outcome(DONE, doubted=True), [OTHERWISE]),  # which may repeat itself or not
        (FIRST, Outcome(None, WORDS, named=True), [PLAINLY]),  # a symbol was lost, and names were hidden
        (FIRST, Outcome(DONE, WORDS, named=True), [PLAINLY]),  # something else was lost
        (AVOIDING, Outcome(DONE, WORDS, named=True), [PLAINLY]),
        (OTHERWISE, Outcome(DONE, WORDS, named=True), [OTHERWISE._replace(hide_names=False)]),
        (PLAINLY, Outcome(None, WORDS), PARTS),
        (FIRST, Outcome(None, WORDS), PARTS),
        (FIRST, Outcome(DONE, WORDS), PARTS),  # a number was lost, or it did not come to an end
        (FIRST, Outcome(None, ()), []),  # nothing but what is copied
    ],
)
def test_what_is_tried_next(attempt: Attempt, outcome: Outcome, following: list[Attempt]) -> None:
    assert next_attempts(attempt, outcome) == following
    assert outcome.done == (not following and outcome.parts is None)


def tried(outcomes: dict[Attempt, Outcome]) -> Tried:
    return {a: (outcome, next_attempts(a, outcome)) for a, outcome in outcomes.items()}


def text_of(pieces: tuple[Sentence, ...]) -> list[tuple[int, str, str]]:
    return [(piece.source_start, piece.source, piece.text) for piece in pieces]


def test_parts_stand_where_they_stood_without_the_full_stop_of_a_whole_sentence() -> None:
    outcomes = {
        FIRST: Outcome(None, WORDS),
        PARTS[0]: Outcome(sentence("Click", "Pulsa.")),
        PARTS[1]: Outcome(sentence("now.", "Ahora.")),
    }
    pieces = assemble(FIRST, tried(outcomes))
    assert text_of(pieces) == [(0, "Click", "Pulsa"), (13, "now.", "ahora.")]
    assert [piece.target_start for piece in pieces] == [0, 13]


def test_parts_of_parts_and_what_is_only_copied() -> None:
    outcomes = {
        FIRST: Outcome(avoid=REPETITION),
        AVOIDING: Outcome(DONE, ((0, 12),), named=True),
        PLAINLY: Outcome(DONE, ((0, 12), (13, 17))),
        Attempt(protected("Click {next}"), part=True): Outcome(None, ((0, 5),)),
        PARTS[0]: Outcome(sentence("Click", "Pulsa")),
        PARTS[1]: Outcome(None, ()),
    }
    assert text_of(assemble(FIRST, tried(outcomes))) == [(0, "Click", "Pulsa")]


@pytest.mark.parametrize(
    ("text", "first", "second", "gain", "is_second"),
    [
        ("hello", "hello", "Hola.", CLEARLY + 0.01, True),
        ("hello", "hello", "Hola.", CLEARLY, False),
        ("hello", "hello", "Hola.", -5.0, False),
        ("hello", "hello", "Hello!", 5.0, False),  # neither has a translation
        ("hello", "agua", "Hola.", FAR + 0.01, True),
        ("hello", "agua", "Hola.", FAR, False),
        ("Recipe", "Recipio", "Receta", CLEARLY + 0.01, True),
        ("Recipe", "Recipio", "Receta", CLEARLY, False),
        ("who said it", "lo que es", "qué es", 0.01, True),
        ("who said it", "lo que es", "qué es", 0.0, False),
    ],
)
def test_of_two_rivals_the_second_is_taken_if_it_is_clearly_likelier(
    text: str, first: str, second: str, gain: float, is_second: bool
) -> None:
    word = Attempt(Protected(text))
    other = sentence(text, second)
    likelier = other._replace(hypotheses=(other.best._replace(log_prob=other.best.log_prob + gain),))
    outcomes = {
        word: Outcome(sentence(text, first), doubted=True),
        word._replace(otherwise=True): Outcome(likelier),
    }
    assert assemble(word, tried(outcomes))[0].text == (second if is_second else first)
