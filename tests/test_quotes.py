"""Quotation marks at the ends of a translation are put back where they were lost, and nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.text.reading.quotes import requoted, turns

TEXTS = st.text('ab "«»“”.,?(¿ ', max_size=12)


@pytest.mark.parametrize(
    ("sentence", "translation", "mended"),
    [
        ('"Hi."', '"Hola.', '"Hola."'),
        ('"Hi."', 'Hola."', '"Hola."'),
        ('"Hi."', "Hola.", '"Hola."'),
        ('He said "hi".', 'Dijo "hola.', 'Dijo "hola".'),
        ('"A," he said, "b."', '"A", dijo, "b.', '"A", dijo, "b."'),
        ("«Hola».", '"Hello.', '"Hello".'),
        ("«Hola».", "«Hello.", "«Hello»."),
        ("“Hi!”", "“¡Hola!", "“¡Hola!”"),
        ("Este día haremos historia».", "This day we'll make history.", "This day we'll make history\"."),
        ('The screen is 12"', "La pantalla tiene 12", 'La pantalla tiene 12"'),
    ],
)
def test_what_is_lost_at_an_end_is_put_back(sentence: str, translation: str, mended: str) -> None:
    assert requoted(sentence, translation) == mended


@pytest.mark.parametrize(
    ("sentence", "translation"),
    [
        ('"Hi," he said.', "Hola, dijo."),  # nobody knows where the second one stood
        ("«rey Tut» o «el niño rey».", '"King Tut" or the king" child.'),  # the one that is lost is another
        ('He said "hi".', 'Dijo "hola" "mundo.'),
        ('"Hi."', '"¡"Hola."'),
        ('"Hi."', "..."),
        ('"Hi."', ""),
        ("Hi.", "Hola."),
    ],
)
def test_others_stay_as_they_are(sentence: str, translation: str) -> None:
    assert requoted(sentence, translation) == translation


@given(sentence=TEXTS, translation=TEXTS)
def test_marks_are_put_at_the_ends_or_nowhere(sentence: str, translation: str) -> None:
    mended = requoted(sentence, translation)
    assert requoted(sentence, mended) == mended
    if mended != translation:
        assert turns(mended) == turns(sentence) != turns(translation)
        assert len(mended) - len(translation) in range(1, 3 + len(sentence))
        assert translation.rstrip(".,?") in mended
