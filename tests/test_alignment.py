"""Test word alignment: which source word each word of a translation comes from, for any text."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hiding import mask
from small_models import WORDS, write_model
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.words import token_places, word_of_each, worded, words
from vidrio.translate.alignment import links, mean_of_words, origins, shares
from vidrio.translate.translation import Word
from vidrio.translate.translator import Translator


def test_shares_by_hand():
    attention_TS = np.array([[0.5, 0.1, 0.3], [0.1, 0.6, 0.1], [0.0, 0.2, 0.5]])
    # Two target words, the first with two tokens, and two source words, the second with two tokens.
    found = shares(attention_TS, [0, 0, 1], [0, 1, 1], 2, 2)
    assert found == pytest.approx(np.array([[0.3, (0.4 + 0.7) / 2], [0.0, 0.7]]))
    assert shares(attention_TS, [0, -1, 0], [1, -1, 0], 1, 2) == pytest.approx(np.array([[0.4, 0.25]]))
    assert shares(attention_TS, [-1, -1, -1], [0, 1, 1], 1, 2).tolist() == [[0, 0]]
    assert shares(np.zeros((0, 3)), [], [0, 0, 0], 0, 1).shape == (0, 1)


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.integers(1, 6))
def test_the_shares_of_a_word_are_what_its_tokens_gave(seed, targets, sources):
    generator = np.random.default_rng(seed)
    attention_TS = generator.dirichlet(np.ones(sources + 1), size=targets)[:, :sources]
    target, source = sorted(generator.integers(0, 4, targets)), sorted(generator.integers(0, 4, sources))
    found = shares(attention_TS, target, source, 4, 4)
    for word in range(4):
        own = attention_TS[np.equal(target, word)]
        assert found[word].sum() == pytest.approx(own.sum(axis=1).mean() if len(own) else 0)
        assert (found[word] >= 0).all()


def test_the_confidence_of_a_word_is_the_mean_of_its_tokens():
    assert mean_of_words(np.array([[0.5], [0.7], [0.9]]), [0, 0, 1], 2).ravel() == pytest.approx([0.6, 0.9])


def test_a_word_goes_to_the_word_that_it_attends_to_most_but_never_to_a_sign():
    source = [Word("the", 0, 3), Word("cat", 4, 7), Word(".", 8, 9)]
    target = [Word("gato", 0, 4), Word(".", 4, 5)]
    share_WW = np.array([[0.2, 0.1, 0.5], [0.1, 0.2, 0.4]])
    assert [str(link) for link in links(source, target, share_WW)] == ["the → gato 0.20", ". → . 0.40"]
    share_WW[0, 1] = 0.25
    assert [str(link) for link in links(source, target, share_WW)] == ["cat → gato 0.25", ". → . 0.40"]
    assert links(source[2:], target[:1], share_WW[:1, 2:]) == ()


def test_a_packaged_model_aligns_what_belongs_together():
    found = Translator.load("en-es").translate("My friend eats bread. I bought two red books yesterday.")
    pairs = {(link.source.text, link.target.text) for link in found.alignment}
    assert {("friend", "amigo"), ("bread", "pan"), ("two", "dos"), ("red", "rojos"), ("books", "libros")} <= pairs


@pytest.fixture(scope="module")
def nonsense(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "nonsense"
    write_model(folder, seed=3, norm="pre", ends=True)
    return Translator.load(folder)


pieces = st.lists(st.sampled_from([*WORDS[:6], "{name}", "€18.10", ".", ",", "\n", "zebra", "ñ"]), max_size=10)


@given(pieces)
def test_every_link_is_between_words_of_the_texts(nonsense, parts):
    text = " ".join(parts)
    found = nonsense.translate(text)
    for link in found.alignment:
        assert text[link.source.start : link.source.end] == link.source.text
        assert found.text[link.target.start : link.target.end] == link.target.text
        assert 0 <= link.weight <= 1.001
    written = {(s.target_start + a, s.target_start + b) for s in found.sentences for a, b in words(s.text)}
    assert {(link.target.start, link.target.end) for link in found.alignment} <= written
    # Every target word with letters is aligned, because only text without letters bypasses the model.
    letters = {place for place in written if worded(found.text[slice(*place)])}
    assert letters <= {(link.target.start, link.target.end) for link in found.alignment}


SOURCE = "see {first_name} and\n  https://b.org now"
TOKENIZER = Tokenizer.learn(["see and now", "ve y ahora"] * 3, 300)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("ve ① y ②", "ve {first_name} y https://b.org"), ("② ve y ①.", "https://b.org ve y {first_name}.")],
)
def test_places_through_symbols_and_line_breaks(written, expected):
    """Check that positions refer to the texts, although the model uses ① for a name and a space for a line break."""
    masked = mask(SOURCE, "①②")
    given = masked.given
    assert given == "see ① and ② now"
    tokens = TOKENIZER.pieces(given)
    origin = origins(SOURCE, given, masked.things)
    places = [(origin[token.start], origin[token.end]) for token in tokens]
    named = [SOURCE[slice(*place)] for place, token in zip(places, tokens, strict=True) if "①" in given[token.start :]]
    assert named[-1] == "{first_name}"
    assert [SOURCE[a:b] for a, b in words(SOURCE)] == ["see", "{first_name}", "and", "https://b.org", "now"]
    assert set(word_of_each(places, words(SOURCE))) == set(range(5))
    ids = TOKENIZER.encode(written)
    assert masked.restore(written) == expected
    origin = origins(expected, written, masked.things)
    back = [(origin[start], origin[end]) for start, end in token_places(ids, TOKENIZER)]
    assert "".join(expected[a:b] for a, b in back) == expected
    assert {"{first_name}", "https://b.org"} <= {expected[a:b].strip() for a, b in back}


def test_places_of_signs_that_the_model_read_otherwise():
    source = "\ufeffse\u00ade \ufb01,and\x00  now"
    masked = mask(source, "")
    assert masked.given == "see fi, and now"
    places = origins(source, masked.given, masked.things)
    assert places == sorted(places)
    assert places[-1] == len(source)
    assert source[places[masked.given.index("now")] :] == "now"


def test_nothing_is_aligned_with_nothing(nonsense):
    assert nonsense.translate("").alignment == nonsense.translate("18.10 🙂").alignment == ()
