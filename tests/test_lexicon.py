"""A lexicon that lies with a model: how it is looked into, and what it helps with."""

import random
from copy import copy
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.hypothesis import Sampling
from vidrio.model.find import find
from vidrio.translate.lexicon import (
    NAME,
    WORDS,
    Lexicon,
    SortedLines,
    alike,
    words_of,
    write,
    write_sorted,
    written_like,
)
from vidrio.translate.translator import Translator

LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n"), min_size=1, max_size=6)


# --- the file ---------------------------------------------------------------------------------------------------------


@given(st.lists(LINES, max_size=30), st.lists(LINES, max_size=10))
def test_lines_are_found_by_how_they_begin(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], asked: list[str]
) -> None:
    path = tmp_path_factory.getbasetemp() / "lines"
    write_sorted(path, lines)
    there = SortedLines(path)
    assert sorted(there) == sorted(lines)
    for start in [*asked, *lines, *(line[:1] for line in lines)]:
        assert sorted(there.beginning(start)) == sorted(line for line in lines if line.startswith(start)), start


def test_a_word_has_its_translations_and_those_of_its_other_forms(tmp_path: Path) -> None:
    entries = [("casa", "house", 0.9), ("casa", "home", 0.1), ("casado", "married", 0.8), ("casar", "marry", 0.7)]
    write(tmp_path, [*entries, ("casualmente", "casually", 0.9), ("caza", "hunt", 0.5)])
    there = Lexicon.of(tmp_path)
    assert there
    assert {*there} == {*entries, ("casualmente", "casually", 0.9), ("caza", "hunt", 0.5)}
    for _ in range(2):  # what was found is remembered
        assert there.translations("Casa") == {"house": 0.9, "home": 0.1}
    assert there.translations("casas") == {}
    assert there.of_its_kind("casados") == there.of_its_kind("CASAR") == {"house", "home", "married", "marry"}
    assert there.of_its_kind("cazar") == {"hunt"}
    assert Lexicon.of(tmp_path / "none") is None


@pytest.mark.parametrize(
    "line", ["casa", "casa\thouse", "casa\thouse\t2", "casa\t\t0.5", "casa\thouse\tx\ty", "casa\tx\tnan"]
)
def test_a_damaged_line_says_nothing(tmp_path: Path, line: str) -> None:
    (tmp_path / NAME).write_text(f"{line}\ncasa\ttent\t0.25\n", encoding="utf-8")
    assert Lexicon(tmp_path).translations("casa") == {"tent": 0.25}


def listed(folder: Path, content: bytes) -> Lexicon:
    write(folder, [])
    (folder / WORDS).write_bytes(content)
    there = Lexicon.of(folder)
    assert there
    return there


def test_a_word_is_invented_if_it_is_in_no_list_and_not_in_the_source(tmp_path: Path) -> None:
    there = listed(tmp_path, "casa\nes\nla\nniño\n".encode())
    assert there.invented("Anna's house", "La casa es de Anna: casa, casona, casona!") == {"de", "casona"}
    assert there.invented("", "¿NIÑO? 18,10 €…") == there.invented("x", "") == set()
    (tmp_path / WORDS).unlink()
    assert Lexicon(tmp_path).invented("", "casona") == set()


@pytest.mark.parametrize("model", ["en-es", "es-en"])
def test_the_packaged_lists_are_sorted_and_whole(model: str) -> None:
    words = (find(model) / WORDS).read_bytes().split(b"\n")
    assert words.pop() == b""
    assert words == sorted(set(words))
    assert len(words) > 100_000
    there = Lexicon(find(model))
    for line in random.Random(1).sample(words, 500):
        assert words_of(line.decode()) == {line.decode()}
        assert there.invented("", line.decode()) == set()


# --- what it helps with -----------------------------------------------------------------------------------------------

SURNAME = "How is your surname pronounced?"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-es", workers=1)


def test_a_word_that_the_model_does_not_know_is_the_lexicons(translator: Translator) -> None:
    [sentence] = translator.translate(SURNAME).sentences
    assert sentence.text == "¿Cómo se pronuncia tu apellido?"
    assert sentence.passed_over == "¿Cómo se pronuncia tu momento?"
    three = translator.translate(SURNAME, replace(translator.options, n_best=3)).sentences[0]
    assert three.alternatives[:2] == (sentence.text, sentence.passed_over)
    assert len(three.alternatives) == len(three.hypotheses) == 3


def test_its_log_p_is_what_the_model_gives_it(translator: Translator) -> None:
    [sentence] = translator.translate(SURNAME).sentences
    [log_probs] = translator.score([(sentence.given, sentence.text)])
    assert sentence.best.token_log_probs == log_probs
    assert sentence.best.score == pytest.approx(sum(log_probs) / len(log_probs))


def test_a_word_that_it_knows_stays_though_no_list_has_it(translator: Translator, tmp_path: Path) -> None:
    """*Novecientos* is no translation of *nine*, and the model is sure of it."""
    assert translator.translate("nine hundred twelve").text == "novecientos doce"
    assert translator.lexicon
    assert "novecientos" not in translator.lexicon.translations("nine")


def test_nothing_is_put_in_place_without_a_lexicon_or_a_beam_or_where_one_has_drawn(translator: Translator) -> None:
    without = copy(translator)
    without.lexicon = None
    assert without.translate(SURNAME).text == "¿Cómo se pronuncia tu momento?"
    for options in (
        replace(translator.options, beam=1),
        replace(translator.options, beam=1, n_best=1, sampling=Sampling(top_k=5, seed=3)),
    ):
        assert translator.translate(SURNAME, options).text == without.translate(SURNAME, options).text


def test_what_must_be_copied_is(translator: Translator) -> None:
    for text, word, copied in (
        ("Write your surname here: %s.", "apellido", "%s"),
        ("My surname is on https://example.com.", "apellido", "https://example.com"),
        ("Mr. Smith has an unbearable surname (Kowalczyk).", "apellido", "(Kowalczyk)"),
    ):
        translation = translator.translate(text)
        assert word in translation.text
        assert copied in translation.text
        assert translation.sentences[0].passed_over


def test_a_translation_does_not_depend_on_those_beside_it(translator: Translator) -> None:
    texts = [SURNAME, "She installed a new electric stove in the room.", "Hello.", "Mary has braces.", "I pray."]
    texts += ["An unbearable stove.", "The steam engine revolutionised the industry.", "God heard my prayers."]
    alone = [translator.translate(text).text for text in texts]
    assert [translation.text for translation in translator.translate(texts)] == alone
    assert [translation.text for translation in translator.stream(reversed(texts))] == alone[::-1]


def test_the_model_is_asked_only_where_there_is_doubt(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    forced = translator.engine.forced
    monkeypatch.setattr(translator.engine, "forced", lambda pairs: asked.append(len(pairs)) or forced(pairs))
    translator.translate(["Good morning.", "The cat sleeps.", "I have two dogs.", SURNAME])
    assert [count for count in asked if count] == [1, 1]  # what was written, and what it became


FORMS = {("asked", "ask"), ("cry", "crying"), ("speaks", "speak"), ("casa", "caso"), ("ir", "ir"), ("momento", "mom")}
OTHERS = {("momento", "monte"), ("humanidad", "manzana"), ("ir", "irse"), ("casa", "camisa")}


@pytest.mark.parametrize(("one", "other"), sorted(FORMS | OTHERS))
def test_forms_of_a_word_are_alike(one: str, other: str) -> None:
    assert alike(one, other) == alike(other, one) == ((one, other) in FORMS)


def test_capital_letters_are_those_of_the_word_before() -> None:
    written = [written_like(word, "apellido") for word in ("momento", "Momento", "MOMENTO")]
    assert written == ["apellido", "Apellido", "APELLIDO"]
    assert written_like("libies", "Libyans") == "Libyans"
