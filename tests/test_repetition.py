"""text/reading/repetition.py: what repeats itself is found; what only repeats a word is not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.repetition import LONGEST, MANY, repeats, repetitions


@pytest.mark.parametrize(
    ("text", "times"),
    [("", 0), ("a", 1), ("ab", 1), ("aab", 2), ("abab", 2), ("xababab", 3), ("abcabcabcabd", 3), ("abcdefgh" * 5, 5)],
)
def test_rounds_are_counted(text, times):
    assert repetitions([*map(ord, text)]) == times


@pytest.mark.parametrize(
    ("source", "target", "found"),
    [
        ("dog", "the dog the dog the dog the dog", True),
        ("ha ha ha ha ha", "ja ja ja ja ja", False),
        ("no no no", "no no no no", False),
        ("that that", "que que", False),
        ("hello", "hola hola hola hola hola", True),
    ],
)
def test_the_source_may_say_it_again_and_again(source, target, found):
    words = {word: n for n, word in enumerate({*source.split(), *target.split()})}
    assert repeats([words[w] for w in source.split()], [words[w] for w in target.split()]) is found


@given(st.lists(st.integers(0, 3), min_size=1, max_size=LONGEST), st.integers(1, 9), st.lists(st.integers(4, 9)))
def test_what_is_said_n_times_has_n_rounds_or_more(some, times, before):
    assert repetitions([*before, *some * times]) >= times
    if times > MANY:
        assert repeats([], [*before, *some * times])


@given(st.lists(st.integers(0, 2), max_size=30))
def test_rounds_are_those_of_the_plain_way(ids):
    def there(times):
        found = (
            ids[a : a + n] * times == ids[a : a + n * times] for n in range(1, LONGEST + 1) for a in range(len(ids))
        )
        return any(found)

    expected = max((t for t in range(1, len(ids) + 1) if there(t)), default=0)
    assert repetitions(ids) == expected
