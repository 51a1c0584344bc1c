"""text/repetition.py: what repeats itself is found; what only repeats a word is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.repetition import repeats


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("dog", "the dog the dog the dog the dog", True),
        ("ha ha ha ha ha", "ja ja ja ja ja", False),  # the source says it again and again, too
        ("no no", "no no no", False),
        ("that that", "que que", False),
        ("hello", "hola hola hola hola hola", True),
        ("hello", "", False),
    ],
)
def test_the_source_may_say_it_again_and_again(source: str, target: str, found: bool) -> None:
    words = {word: n for n, word in enumerate({*source.split(), *target.split()})}
    assert repeats([words[w] for w in source.split()], [words[w] for w in target.split()]) is found


@given(st.lists(st.integers(0, 3), min_size=1, max_size=8), st.integers(4, 9), st.lists(st.integers(4, 9)))
def test_what_is_said_four_times_is_found(some: list[int], times: int, before: list[int]) -> None:
    assert repeats([], [*before, *some * times])


@given(st.lists(st.integers(0, 2), max_size=30))
def test_it_is_found_by_the_plain_way(ids: list[int]) -> None:
    assert repeats([], ids) == any(
        ids[at : at + n] * 4 == ids[at : at + 4 * n] for n in range(1, 9) for at in range(len(ids) - 4 * n + 1)
    )
