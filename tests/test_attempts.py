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
AS_SENTENCE = FIRST._replace(as_sentence=True)
PLAINLY = FIRST._replace(hide_names=False)


@pytest.mark.parametrize(
    ("attempt", "outcome", "following"),
    [
        (FIRST, Outcome(DONE), []),
        (FIRST, Outcome(DONE, named=True), []),  # names came through, as most do
        (FIRST, Outcome(avoid=REPETITION), [AVOIDING]),
        (FIRST, Outcome(avoid=NO_CHARACTERS), [FIRST._replace(avoid=NO_CHARACTERS)]),
        (FIRST, Outcome(DONE, short=True), [AS_SENTENCE]),
        (AVOIDING, Outcome(DONE, short=True), [AS_SENTENCE]),  # which may repeat itself or not
        (FIRST, Outcome(None, WORDS, named=True), [PLAINLY]),  # a symbol was lost, and names were hidden
        (FIRST, Outcome(DONE, WORDS, named=True), [PLAINLY]),  # something else was lost
        (AVOIDING, Outcome(DONE, WORDS, named=True), [PLAINLY]),
        (AS_SENTENCE, Outcome(DONE, WORDS, named=True), [AS_SENTENCE._replace(hide_names=False)]),
        (PLAINLY, Outcome(None, WORDS), PARTS),
        (FIRST, Outcome(None, WORDS), PARTS),
        (FIRST, Outcome(DONE, WORDS), PARTS),  # a number was lost, or it did not come to an end
        (FIRST, Outcome(None, ()), []),  # nothing but what is copied
    ],
)
def test_what_is_tried_next(attempt: Attempt, outcome: Outcome, following: list[Attempt]) -> None:
    assert next_attempts(attempt, outcome) == following
    assert outcome.done == (not following and outcome.parts is None)


def tried(outcomes: dict[Attempt, Outcome], likely: dict | None = None) -> Tried:
    following = {a: next_attempts(a, outcome) for a, outcome in outcomes.items() if not outcome.done}
    return Tried(outcomes, following, likely or {})


def text_of(pieces: tuple[Sentence, ...]) -> list[tuple[int, str, str]]:
    return [(piece.source_start, piece.source, piece.text) for piece in pieces]


def test_parts_stand_where_they_stood_without_the_full_stop_of_a_whole_sentence() -> None:
    outcomes = {
        FIRST: Outcome(None, WORDS),
        PARTS[0]: Outcome(sentence("Click", "Pulsa.")),
        PARTS[1]: Outcome(sentence("now.", "Ahora.")),
    }
    unscored: list = []
    pieces = assemble(FIRST, tried(outcomes), unscored)
    assert text_of(pieces) == [(0, "Click", "Pulsa"), (13, "now.", "ahora.")]
    assert [piece.target_start for piece in pieces] == [0, 13]
    assert not unscored


def test_parts_of_parts_and_what_is_only_copied() -> None:
    outcomes = {
        FIRST: Outcome(avoid=REPETITION),
        AVOIDING: Outcome(DONE, ((0, 12),), named=True),
        PLAINLY: Outcome(DONE, ((0, 12), (13, 17))),
        Attempt(protected("Click {next}"), part=True): Outcome(None, ((0, 5),)),
        PARTS[0]: Outcome(sentence("Click", "Pulsa")),
        PARTS[1]: Outcome(None, ()),
    }
    assert text_of(assemble(FIRST, tried(outcomes), [])) == [(0, "Click", "Pulsa")]


WORD = Attempt(Protected("hello"))


@pytest.mark.parametrize(
    ("first", "gain", "is_second"),
    [
        ("hello", CLEARLY + 0.01, True),
        ("hello", CLEARLY, False),
        ("hello", -5.0, False),
        ("agua", FAR + 0.01, True),
        ("agua", FAR, False),
    ],
)
def test_of_two_rivals_the_second_is_taken_if_it_is_clearly_likelier(first: str, gain: float, is_second: bool) -> None:
    as_it_stood, as_sentence = sentence("hello", first), sentence("hello", "Hola.")
    outcomes = {WORD: Outcome(as_it_stood, short=True), WORD._replace(as_sentence=True): Outcome(as_sentence)}
    unscored: list = []
    assemble(WORD, tried(outcomes), unscored)
    assert unscored == [(as_it_stood,), (as_sentence,)]
    likely = {(as_it_stood,): -3.0, (as_sentence,): -3.0 + gain}
    assert assemble(WORD, tried(outcomes, likely), [])[0].text == ("Hola." if is_second else first)


def test_a_rival_that_is_no_better_is_not_scored() -> None:
    again = sentence("hello", "Hello!")
    outcomes = {
        WORD: Outcome(sentence("hello", "hello"), short=True),
        WORD._replace(as_sentence=True): Outcome(again),
    }
    unscored: list = []
    assert assemble(WORD, tried(outcomes), unscored)[0].text == "hello"
    assert not unscored
