"""A list of words that lies with a model, and what is chosen by it."""

import random
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.errors import ModelError
from vidrio.hypothesis import Sampling
from vidrio.text.reading import word_list
from vidrio.text.reading.word_list import NAME, WordList, words_of
from vidrio.translate.translator import Translator

LETTERS = st.text(st.characters(codec="utf-8", categories=["L"]), min_size=1, max_size=6)


def listed(folder: Path, words: set[str], end: str = "\n") -> WordList:
    path = folder / NAME
    path.write_bytes(b"\n".join(sorted(word.encode() for word in words)) + end.encode())
    return WordList(path)


@given(st.sets(LETTERS, max_size=30), st.lists(LETTERS, max_size=30), st.sampled_from(["\n", ""]))
def test_it_has_what_a_set_has(
    tmp_path_factory: pytest.TempPathFactory, words: set[str], asked: list[str], end: str
) -> None:
    there = listed(tmp_path_factory.getbasetemp(), words, end)
    for word in [*words, *asked, *(word[:-1] for word in words if word[1:]), *(word + "a" for word in words)]:
        assert (word in there) == (word in words), word


def test_a_word_is_invented_if_it_is_in_no_list_and_not_in_the_source(tmp_path: Path) -> None:
    there = listed(tmp_path, {"la", "casa", "es", "niño"})
    for _ in range(2):  # what was found is known the second time
        assert there.invented("Anna's house", "La casa es de Anna: casa, casona, casona!") == {"de", "casona"}
    assert there.invented("", "¿NIÑO? 18,10 €…") == set()
    assert there.invented("x", "") == set()


def test_what_is_remembered_has_a_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_list, "REMEMBERED", 50)
    words = {f"{a}{b}" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"}
    there = listed(tmp_path, words)
    for word in sorted(words):
        assert there.invented("", word) == set()
        assert len(there._found) <= 51


def test_a_file_that_is_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_list, "LARGEST", 10)
    with pytest.raises(ModelError, match=r"words\.txt is too large"):
        listed(tmp_path, {"casa", "casona"}).invented("", "casa")


@pytest.mark.parametrize("content", [b"", b"\n", b"\n\n\n", b"zeta\nalfa\n", b"\xff\xfe\n\x00", b"casa"])
def test_no_content_harms(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    there = WordList.of(tmp_path)
    assert there is not None
    assert there.invented("", "una casa") in ({"una"}, {"una", "casa"})


def test_a_model_needs_none(tmp_path: Path) -> None:
    assert WordList.of(tmp_path) is None
    (tmp_path / NAME).mkdir()
    assert WordList.of(tmp_path) is None


@pytest.mark.parametrize("model", ["en-es", "es-en"])
def test_the_packaged_ones_are_sorted_and_whole(model: str) -> None:
    translator = Translator.load(model, workers=1)
    lines = (translator.folder / NAME).read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert lines == sorted(set(lines))
    assert len(lines) > 100_000
    assert translator.words
    some = random.Random(1).sample(lines, 500)
    assert all(words_of(line.decode()) == {line.decode()} for line in some)
    assert all(line.decode() in translator.words for line in some)


# --- what is chosen ---------------------------------------------------------------------------------------------------

HUMILLANTE = "Eso es humillante."


@pytest.fixture(scope="module")
def translator() -> Translator:
    """Without the lexicon, which puts other words in place of those that are invented."""
    translator = Translator.load("es-en", workers=1)
    translator.lexicon = None
    return translator


def test_of_translations_that_are_nearly_as_likely_one_in_real_words_is_taken(translator: Translator) -> None:
    assert translator.words
    [sentence] = translator.translate(HUMILLANTE).sentences
    assert sentence.text == "That's humiliating."
    assert sentence.passed_over == "That's humiliant."
    three = translator.translate(HUMILLANTE, replace(translator.options, n_best=3)).sentences[0]
    assert three.alternatives[:2] == ("That's humiliating.", "That's humiliant.")
    assert len(three.alternatives) == 3


def test_it_is_the_likeliest_that_has_as_few(translator: Translator) -> None:
    [sentence] = translator.translate(HUMILLANTE, replace(translator.options, n_best=4)).sentences
    assert translator.words
    invented = [len(translator.words.invented(HUMILLANTE, text)) for text in sentence.alternatives]
    of_few = [h.score for h, count in zip(sentence.hypotheses, invented, strict=True) if count == min(invented)]
    assert invented[0] == min(invented) < max(invented)
    assert sentence.best.score == max(of_few)


def test_none_is_taken_that_leaves_something_out(translator: Translator) -> None:
    assert translator.words
    text = "Durante el primer mes después del accidente ella sólo podía tomar líquidos con pajita."
    [sentence] = translator.translate(text, replace(translator.options, n_best=4)).sentences
    shorter = [other for other in sentence.alternatives if other.endswith(" take liquids.")]
    assert shorter
    assert not translator.words.invented(text, shorter[0])
    assert translator.words.invented(text, sentence.text)


def test_no_other_is_taken_without_a_list_or_a_beam_or_where_one_has_drawn(translator: Translator) -> None:
    without = translator.__copy__()
    without.words = None
    assert without.translate(HUMILLANTE).text == "That's humiliant."
    assert not without.translate(HUMILLANTE).sentences[0].passed_over
    for options in (
        replace(translator.options, beam=1),
        replace(translator.options, beam=1, n_best=1, sampling=Sampling(top_k=5, seed=3)),
    ):
        assert translator.translate(HUMILLANTE, options).text == without.translate(HUMILLANTE, options).text


def test_alternatives_that_are_asked_for_stay_in_their_order(translator: Translator) -> None:
    without = translator.__copy__()
    without.words = None
    asked = [of.begin_with(HUMILLANTE, "That", 4).sentences[0].alternatives for of in (translator, without)]
    assert asked[0] == asked[1]
