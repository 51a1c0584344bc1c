"""Test text-to-text translation: nothing is lost, whatever the text and however it is passed."""

import math
import time
from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vidrio
from small_models import WORDS, write_model
from vidrio.errors import InputError, TokenizerError
from vidrio.model import find as models
from vidrio.model.folder import read_config
from vidrio.text.account import compare, facts
from vidrio.translate.judging import repeats
from vidrio.translate.stream import SLOW, in_order
from vidrio.translate.translator import NoTranslator, Translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "nonsense"
    write_model(folder, seed=3, norm="pre", ends=True)
    return folder


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder, workers=2)


class Counting:
    """An engine that counts its calls."""

    def __init__(self, engine):
        self.engine, self.asked, self.calls = engine, Counter(), 0

    def search(self, sources, options, stopped, shortlists):
        self.calls += 1
        self.stopped = stopped
        self.asked.update((*source, options.no_repeat_ngram) for source in sources)
        return self.engine.search(sources, options, stopped, shortlists)


def counted(folder):
    translator = Translator.load(folder)
    translator.engine = Counting(translator.engine)
    return translator


sentence_st = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(
    lambda words: " ".join(words).capitalize() + "."
)
gap_st = st.text(" \n\t\r\u00a0\u2003", min_size=1, max_size=4)


@given(
    gaps=st.lists(gap_st, min_size=5, max_size=5),
    sentences=st.lists(sentence_st, min_size=0, max_size=4),
    edges=st.booleans(),
)
def test_what_stands_between_sentences_comes_back_byte_for_byte(translator, gaps, sentences, edges):
    first, *between = gaps if edges else ["", *gaps[1:]]
    text = first + "".join(sentence + gap for sentence, gap in zip(sentences, between, strict=False))
    found = translator.translate(text)
    assert found.source == text
    source_at = target_at = 0
    for sentence in found.sentences:
        gap = text[source_at : sentence.source_start]
        assert not gap.strip()
        assert found.text[target_at : sentence.target_start] == gap
        source_at = sentence.source_start + len(sentence.source)
        target_at = sentence.target_start + len(sentence.text)
        assert text[sentence.source_start : source_at] == sentence.source
        assert found.text[sentence.target_start : target_at] == sentence.text
    assert found.text[target_at:] == text[source_at:]
    assert not text[source_at:].strip()


@pytest.mark.parametrize("text", ["", " ", "\n", " \t\n\u2003 "])
def test_a_text_without_words_is_its_own_translation(translator, text):
    found = translator.translate(text)
    assert (found.text, found.sentences, found.score) == (text, (), 0)


def test_half_a_character_is_told(translator):
    with pytest.raises(TokenizerError, match=r"lone surrogate U\+D83D at character 5"):
        translator.translate("bala \ud83d")


def test_long_sentences_are_translated_in_parts_and_none_of_their_words_is_dropped(translator):
    text = " ".join(WORDS * 20)
    found = translator.translate(text)
    assert " ".join(sentence.source for sentence in found.sentences) == text
    limit = translator.config.max_positions
    assert all(len(translator.source.encode(sentence.given)) <= limit for sentence in found.sentences)
    assert len(found.sentences) > 480 / limit


protected_st = st.sampled_from(
    [
        "https://example.org/a?b=c",
        "ana@example.com",
        "{name}",
        "%1$s",
        "{{ x }}",
        "<b>",
        "€18.10",
        "1,234.5",
        "17",
        "🙂",
        "$HOME",
    ]
)
mixed_st = st.lists(st.sampled_from(WORDS) | protected_st | st.sampled_from([",", ".", "!", "\n"]), max_size=14)


@given(words=mixed_st)
def test_addresses_numbers_and_placeholders_come_through_whole_whatever_the_model_does(translator, words):
    """The model knows none of these and translates into nonsense, but copied text cannot be lost."""
    text = " ".join(words)
    found = facts(translator.translate(text).text)
    assert not compare(facts(text), found).serious


def test_duplicates_are_translated_once(folder):
    translator = counted(folder)
    texts = ["Bala core. Dila gare.", "Dila gare.", "Bala core.", "Bala core. Bala core."] * 3
    alone = {text: translator.translate(text).text for text in set(texts)}
    translator.engine.asked.clear()
    assert [found.text for found in translator.translate(texts)] == [alone[text] for text in texts]
    assert set(translator.engine.asked.values()) == {1}
    assert [found.text for found in translator.stream(texts)] == [alone[text] for text in texts]


def test_a_stream_is_in_order_reads_as_it_needs_and_equals_one_by_one(translator):
    texts = [f"{a} {b}, {a}." for a in WORDS for b in WORDS] * 6  # more than are read ahead
    read = 0

    def reading():
        nonlocal read
        for text in texts:
            read += 1
            yield text

    stream = translator.stream(reading())
    first = next(stream)
    assert read < len(texts)
    found = [first, *stream]
    assert [translation.source for translation in found] == texts
    for translation in found[::97]:
        assert translator.translate(translation.source) == translation


def test_what_comes_of_chunks_is_in_order_and_an_empty_chunk_asks_for_what_is_there():
    answered = []

    def chunks():
        yield from (["a"], ["b"], [])
        answered.append(len(found))
        yield from (["c"], [])
        raise ValueError("no more")

    found = []
    with pytest.raises(ValueError, match="no more"):
        found.extend(in_order(chunks(), lambda texts, stopped: texts[0]))
    assert (found, answered) == (["a", "b", "c"], [2])
    with pytest.raises(ZeroDivisionError):
        list(in_order([["a"]], lambda texts, stopped: 1 // 0))


def test_a_stream_that_is_left_or_fails_ends(translator):
    def failing():
        yield "bala."
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match="the source broke"):
        list(translator.stream(failing()))
    stream = translator.stream(["bala."] * 5000)
    next(stream)
    stream.close()
    assert list(translator.stream([])) == []


def test_alternatives_scores_and_places(translator):
    options = replace(translator.options, beam=4, n_best=3)
    text = "Bala core dila.\n Gare hoso."
    found = translator.translate(text, options)
    assert found.alternatives[0] == found.text == str(found)
    assert len(found.alternatives) == 3
    data = found.to_json()
    raw, out = text.encode(), found.text.encode()
    assert [raw[a:b].decode() for a, b in (s["source"] for s in data["sentences"])] == ["Bala core dila.", "Gare hoso."]
    assert [out[a:b].decode() for a, b in (s["target"] for s in data["sentences"])] == [s.text for s in found.sentences]
    assert data["alternatives"] == found.alternatives
    total = count = 0
    for told, sentence in zip(data["sentences"], found.sentences, strict=True):
        assert sum(token["log_prob"] for token in told["tokens"]) == pytest.approx(sentence.best.log_prob, abs=0.05)
        scores = [one["score"] for one in told["alternatives"]][1:]  # the first is the most faithful
        assert scores == sorted(scores, reverse=True)
        total += sentence.best.log_prob
        count += len(told["tokens"])
    assert data["score"] == pytest.approx(total / count)


def test_words_that_the_vocabulary_does_not_hold_are_told(translator):
    assert translator.translate("bala zebra core zebra yak.").unknown == ["zebra", "yak"]
    assert translator.translate("bala core.").unknown == []


def test_a_slow_source_is_answered_text_by_text(translator):
    came: list[int] = []

    def slowly():
        for n in range(4):
            time.sleep(2 * SLOW)
            came.append(n)
            yield "bala core."

    assert [len(came) for _ in translator.stream(slowly())] == [1, 2, 3, 4]


def test_one_text_is_no_stream(translator):
    with pytest.raises(InputError, match="stream needs several texts"):
        next(translator.stream("bala"))


def test_what_repeats_itself_is_searched_again(folder):
    translator = counted(folder)
    text = "Dila gare."
    found = translator.translate(text).sentences[0]
    assert translator.engine.calls == 2
    source_ids, _ = translator._pair_ids(text, "")
    plain = translator.engine.engine.search([source_ids], translator.options)[0][0]
    assert repeats(source_ids, plain.ids)
    assert not repeats(source_ids, found.best.ids)
    other = translator.translate(text, replace(translator.options, no_repeat_ngram=9)).sentences[0]
    assert other.best.ids == plain.ids  # an explicit no_repeat_ngram is respected
    assert translator.engine.calls == 3


# --- finding a model, and models that cannot translate ----------------------------------------------------------------


def test_the_default_model_translates_hello_world():
    found = vidrio.load().translate("Hello world")
    _, about = read_config(models.find())
    assert about.target_language == "es"
    assert "hola mundo" in found.text.lower()


def test_a_model_is_found_by_folder_and_by_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "mine")
    assert models.find("mine").samefile(tmp_path / "mine")
    assert models.find(tmp_path / "mine") == tmp_path / "mine"
    assert models.find("lesson") == models.packaged()["lesson"]
    write_model(tmp_path / "lesson")  # a folder here comes before a packaged model
    assert models.find("lesson").samefile(tmp_path / "lesson")


def test_symbols_that_a_model_loses_are_copied_around(folder):
    """The model copies nothing, so the words around each placeholder are translated separately."""
    translator = Translator.load(folder)
    text = "Bala {x} core `y`."
    plain = [translator.translate(part).text for part in ("Bala", "core")]
    translator._masker.symbols = "①②"
    found = translator.translate(text)
    assert found.text == f"{plain[0]} {{x}} {plain[1]} `y`."
    assert translator.translate("Bala core.").sentences[0].given == "Bala core."


def test_a_model_that_does_not_translate_is_refused(tmp_path):
    write_model(tmp_path / "decoder", shape="decoder")
    with pytest.raises(NoTranslator, match="does not translate"):
        Translator.load(tmp_path / "decoder")


def test_confidence_is_the_mean_probability_of_tokens(translator):
    found = translator.translate("Bala core dila. Gare hoso.")
    log_probs = [p for sentence in found.sentences for p in sentence.best.token_log_probs]
    assert found.confidence == pytest.approx(sum(map(math.exp, log_probs)) / len(log_probs))
    assert translator.translate("").confidence == 1
    for sentence in found.sentences:  # a token is a word here
        of_words = [word.confidence for word in translator.details([sentence])[0].words]
        probs = list(map(math.exp, sentence.best.token_log_probs[: len(sentence.best.ids)]))
        tokens = [translator.target.token(i) for i in sentence.best.ids]
        assert of_words == pytest.approx([p for p, token in zip(probs, tokens, strict=True) if token.isalpha()])
