"""Test that `look` shows what `translate` printed: the same tokens of the same sentence, and copied text."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from vidrio import cli
from vidrio.engine.engine import Engine
from vidrio.hypothesis import Hypothesis, Ids, Options, default_options
from vidrio.look.run import LoadedModel, Printed, look, open_model
from vidrio.look.translated import look_at, read_as_translated, reading
from vidrio.translate.translator import Translator

SENTENCES = [
    "The old man gave Tom three books yesterday, but he did not read them.",
    "If you had told me the truth, I would not have been so angry with you.",
    "I paid £1,250.50 for it (in May).",
    "HELLO WORLD",
    "Ask Przybylski about {name}",
]


@pytest.fixture(scope="module")
def model() -> LoadedModel:
    return open_model()


@pytest.mark.parametrize(("text", "beam"), [*zip(SENTENCES, [1, 4, 1, 4, 4], strict=True)])
def test_the_tokens_shown_are_those_that_were_printed(text: str, beam: int, model: LoadedModel) -> None:
    options = replace(default_options(model.config), beam=beam)
    sentence = Translator.load(model.path).translate(text, options).sentences[0]
    read = read_as_translated(model, text, options)
    seen = look(model, read.text, options=options, target=read.printed)
    end = model.config.special.end
    assert seen.chosen_ids == [*sentence.best.ids, *([end] if sentence.best.ended else [])]
    assert seen.hypotheses == [sentence.best]


@pytest.mark.parametrize("text", SENTENCES[:2])
def test_the_engine_s_pass_is_the_walk_s_bit_for_bit(text: str, model: LoadedModel) -> None:
    translation = Translator.load(model.path).translate(text)
    by_engine = look_at(model, translation)
    walked = look(model, by_engine.text, target=by_engine.chosen_ids)
    assert list(by_engine.trace.values) == list(walked.trace.values), "in the order of the way"
    assert by_engine.trace.sizes == walked.trace.sizes
    for name, value in walked.trace.values.items():
        found = by_engine.trace.values[name]
        assert (found.dtype, found.shape, found.tobytes()) == (value.dtype, value.shape, value.tobytes()), name


def test_the_glass_walks_where_the_engine_computes_otherwise() -> None:
    translation = Translator.load("lesson").translate("hello world")
    for dtype, whole in ((None, False), (np.int8, True), (np.float32, False)):
        glass = open_model("lesson", dtype)
        seen = look_at(glass, translation)
        assert seen.translation == "hola mundo"
        assert ("enc.0.self.x.whole" in seen.trace.values) is whole
        assert seen.trace.values["memory"].dtype == glass.dtype


def saying(words: str) -> Callable[..., object]:
    """Return a search method that always finds these words."""

    def search(self: object, sources: Sequence[Ids], options: Options, *_: object) -> list[list[Hypothesis]]:
        ids = tuple(open_model("lesson").target_tokenizer.encode(words))
        return [[Hypothesis(ids, -1.0, -1.0, (-0.5, -0.5), True)] for _ in sources]

    return search


def test_the_tokens_printed_are_shown_though_the_glass_would_choose_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Engine, "search", saying("mundo"))
    assert cli.main(["look", "hello world", "--model", "lesson"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "hello world → mundo" in out
    assert "0 after SOS → mundo log p -5" in out
    assert "hola 0.96" in out


def test_a_what_if_starts_from_what_was_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Engine, "search", saying("mundo"))
    assert cli.main(["look", "hello world", "--model", "lesson", "--set", "enc.0.self.out[0,0]=0.1"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "before mundo" in out


@pytest.mark.parametrize("text", ["\N{THUMBS UP SIGN}", "{name}", "€18.10"])
def test_what_is_copied_is_shown_as_copied(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["translate", text]) == 0
    assert capsys.readouterr().out.strip() == text
    assert cli.main(["look", text]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"{text} → {text}\n")
    assert "text is copied unchanged, so the model does not read it" in out
    assert cli.main(["look", text, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["text"], data["translation"], data["steps"]) == (text, text, [])
    assert cli.main(["check", text]) == 0
    assert "nothing was computed" in capsys.readouterr().out
    assert cli.main(["why", "out.prob[0,0]", text]) == 1
    assert "this text is copied unchanged" in capsys.readouterr().err
    assert cli.main(["look", text, "--at", "enc.0"]) == 1


def test_of_two_sentences_it_is_told_which_one_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["look", "Good morning. How are you?"]) == 0
    out, err = capsys.readouterr()
    assert out.startswith("Good morning. → ")
    assert "2 sentences" in err
    assert "here is number 1, “Good morning.”" in err
    assert 'vidrio look "How are you?"' in err


def test_a_translation_is_looked_into_sentence_by_sentence(model: LoadedModel) -> None:
    translation = Translator.load(model.path).translate("Good morning. How are you?")
    for n, sentence in enumerate(translation.sentences):
        seen = look_at(model, translation, n)
        assert seen.text == sentence.given
        assert seen.target_ids[1:] == sentence.best.ids
        assert any(f"here is number {n + 1}" in note for note in seen.notes)
    copied = look_at(model, Translator.load(model.path).translate("{name}"))
    assert (copied.copied, copied.translation, copied.empty) == (True, "{name}", True)
    alone = Translator.load(model.path).translate("Good morning.")
    [sentence] = alone.sentences
    assert reading(model, alone).printed == Printed(sentence.best, sentence.options, alone.translator.engine)
    assert look_at(model, alone).notes == []
