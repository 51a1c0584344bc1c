"""Test that `look`, `why` and `check` read the text as the translator does, and report any change to the text."""

import json

import pytest

from vidrio.model import find as models
from vidrio.translate.translator import Translator

SENTENCE = "We met Mr. Kowalczykowski."  # a symbol replaces the name
READ = "We met Mr. ①."


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
    found = packaged.translate(SENTENCE)
    result = run("look", SENTENCE)
    assert found.sentences[0].given == READ
    assert f"read as “{READ}” (① is Kowalczykowski)" in result.stderr
    assert f"its translation is written “{found.text}”" in result.stderr
    assert result.stdout.startswith(f"{READ} → ")
    assert f'vidrio look "{SENTENCE}" --at' in result.stdout.replace("\n", " ")


def test_as_typed_reads_the_text_itself(run):
    result = run("look", SENTENCE, "--as-typed")
    assert "read as" not in result.stderr
    assert result.stdout.startswith(f"{SENTENCE} → ")
    assert f'vidrio look "{SENTENCE}" --as-typed --at' in result.stdout.replace("\n", " ")
    assert "read as" not in run("look", SENTENCE, "--target", "El mar").stderr


def test_symbols_say_what_they_stand_for(run):
    result = run("look", "Hello {name}, see you in London!", "--json")
    assert "read as “Hello ①, see you in London!” (① is {name}); its translation is written “" in result.stderr
    assert "{name}" in result.stderr.partition("written")[2]
    assert json.loads(result.stdout)["read"] == "Hello ①, see you in London!"


def test_why_and_check_read_the_same(run):
    assert f"read as “{READ}”" in run("why", "out.score[0]", SENTENCE).stderr
    assert f"read as “{READ}”" in run("check", SENTENCE).stderr


def test_several_sentences_are_read_as_one_and_that_is_told(run):
    told = "the translator splits this into 2 sentences"
    assert told in run("look", "hello world. Good world.", "--model", models.LESSON).stderr
    assert told not in run("look", "hello world. Good world.", "--model", models.LESSON, "--as-typed").stderr


@pytest.mark.parametrize("text", ["hello world", "42", ""])
def test_what_is_read_as_it_stands_is_not_told(text, run):
    assert len(run("look", text, "--model", models.LESSON).stderr.splitlines()) == 1  # the line that names the model
