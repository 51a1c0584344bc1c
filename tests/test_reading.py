"""`look`, `why` and `check` read what the translator gives the model, and say so."""

import json

import pytest

from vidrio.look.run import open_model
from vidrio.model import find as models
from vidrio.text.mask import Masked, Masker
from vidrio.text.protect import protected
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.translate.translator import Translator

TITLE = "The Old Man And The Sea"


def read(masker: Masker, sentence: str = "see the old sea", **way: bool) -> Masked:
    return masker.mask(protected(sentence), **way)


@pytest.fixture
def run(call_vidrio):
    def run(*arguments):
        result = call_vidrio(*arguments)
        assert result.returncode == 0, result.stderr
        return result

    return run


@pytest.fixture(scope="module")
def packaged():
    return Translator.load()


def test_look_reads_what_translating_reads(packaged, run):
    found = packaged.translate(TITLE)
    result = run("look", TITLE)
    assert found.sentences[0].given == "The old man and the sea."
    assert f"read as “{found.sentences[0].given}” (a title as a sentence)" in result.stderr
    assert f"its translation is written “{found.text}”" in result.stderr
    assert result.stdout.startswith("The old man and the sea. → ")
    assert f'vidrio look "{TITLE}" --at' in result.stdout.replace("\n", " ")


def test_as_typed_reads_the_text_itself(run):
    result = run("look", TITLE, "--as-typed")
    assert "read as" not in result.stderr
    assert result.stdout.startswith(f"{TITLE} → ")
    assert f'vidrio look "{TITLE}" --as-typed --at' in result.stdout.replace("\n", " ")
    assert "read as" not in run("look", TITLE, "--target", "El mar").stderr


def test_symbols_say_what_they_stand_for(run):
    result = run("look", "Hello {name}, see you in London!", "--json")
    assert "read as “Hello ①, see you in London!” (① is {name}); its translation is written “" in result.stderr
    assert "{name}" in result.stderr.partition("written")[2]
    assert json.loads(result.stdout)["read"] == "Hello ①, see you in London!"


def test_why_and_check_read_the_same(run):
    assert "read as “No smoking” (capitals as small letters)" in run("why", "out.score[0]", "NO SMOKING").stderr
    assert "read as “No smoking”" in run("check", "NO SMOKING").stderr
    assert "read as" not in run("check", "NO SMOKING", "--as-typed").stderr


def test_several_sentences_are_read_as_one_and_that_is_told(run):
    told = "translating reads this in 2 sentences"
    assert told in run("look", "hello world. Good world.", "--model", models.LESSON).stderr
    assert told not in run("look", "hello world. Good world.", "--model", models.LESSON, "--as-typed").stderr


@pytest.mark.parametrize("text", ["hello world", "42", ""])
def test_what_is_read_as_it_stands_is_not_told(text, run):
    assert len(run("look", text, "--model", models.LESSON).stderr.splitlines()) == 1  # which model it is


def test_what_is_written_otherwise_is_told(run):
    assert "its translation is written “HOLA MUNDO”" in run("look", "HELLO WORLD", "--model", models.LESSON).stderr


def test_only_a_model_that_has_learned_from_sentences_is_given_sentences():
    small = Tokenizer.learn(["see the old sea"] * 3, 300)
    cased = Tokenizer.learn(["The Old Man Sees The Sea In London Today, And He Is There: the old sea"] * 30, 500)
    assert not Masker(small).knows_forms
    assert Masker(cased).knows_forms
    assert read(Masker(small)).given == "see the old sea"
    assert read(Masker(cased)).given == "See the old sea."
    assert read(Masker(cased), forms=False).given == "see the old sea"
    assert Masker(open_model().source_tokenizer).knows_forms


def test_a_name_that_the_model_translates_is_not_hidden():
    tokenizer = open_model().source_tokenizer
    sentence = "We left Luxembourg and Wolverhampton on Saturday."
    assert read(Masker(tokenizer, "①②③"), sentence).given == "We left ① and ② on ③."
    told = read(Masker(tokenizer, "①②③", "Luxembourg Saturday"), sentence)
    assert told.given == "We left Luxembourg and ① on Saturday."
