"""Text to text: nothing is lost on the way, whatever the text and however it is handed in."""

import asyncio
import copy
import multiprocessing
import os
import pickle
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from concurrent.futures import CancelledError
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

import vidrio
from small_models import WORDS, rewrite_config, write_model
from vidrio.errors import InputError, ModelError, TokenizerError
from vidrio.fast import export as export_module
from vidrio.fast.engine import Engine as Fast
from vidrio.fast.export import export
from vidrio.fast.files import read_manifest, write_manifest
from vidrio.hypothesis import Sampling
from vidrio.model import find as models
from vidrio.model.folder import read_config, read_parameters, write_parameters
from vidrio.text import protect
from vidrio.text.repetition import repeats, repetitions
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers
from vidrio.translate import engines
from vidrio.translate.engines import cache_place, open_engine
from vidrio.translate.glass_engine import Glass
from vidrio.translate.stream import SLOW
from vidrio.translate.translator import Translator


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "nonsense"
    write_model(folder, seed=3, norm="pre", ends=True)
    export(folder)
    return folder


@pytest.fixture(scope="module")
def translator(folder):
    return Translator.load(folder, workers=2)


class Counting:
    """An engine that counts what it is asked."""

    def __init__(self, engine):
        self.engine, self.asked, self.calls = engine, Counter(), 0

    def search(self, sources, options, stopped, note=None):
        self.calls += 1
        self.stopped = stopped
        self.asked.update((*source, options.no_repeat_ngram) for source in sources)
        return self.engine.search(sources, options, stopped, note)

    def score(self, pairs):
        return self.engine.score(pairs)


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


def test_draws_are_repeatable(translator):
    options = replace(translator.options, beam=1, sampling=Sampling(temperature=2.0, seed=4))
    texts = [f"{a} {b}.".capitalize() for a in WORDS for b in WORDS]
    drawn = [one.text for one in translator.stream(texts, options)]
    assert drawn == [one.text for one in translator.stream(texts, options)]
    other = replace(options, sampling=Sampling(temperature=2.0, seed=5))
    assert drawn != [one.text for one in translator.stream(texts, other)]


def test_a_sentence_by_itself_and_in_a_text_is_translated_alike(translator):
    one, two = "Bala core dila.", "Gare hoso mila."
    both = translator.translate(f"{one} {two}")
    assert both.text == f"{translator.translate(one)} {translator.translate(two)}"


def test_long_sentences_are_translated_in_parts_and_none_of_their_words_is_dropped(translator):
    text = " ".join(WORDS * 20)
    found = translator.translate(text)
    assert " ".join(sentence.source for sentence in found.sentences) == text
    limit = translator.config.max_positions
    assert all(len(sentence.source_ids) <= limit for sentence in found.sentences)
    assert len(found.sentences) > 480 / limit


def test_what_does_not_come_to_an_end_is_tried_again_in_halves(folder):
    translator = counted(folder)
    options = replace(translator.options, max_length=1, beam=1)  # so that nothing ends
    found = translator.translate("bala core dila gare", options)
    assert [sentence.source for sentence in found.sentences] == ["bala", "core", "dila", "gare"]
    assert not any(sentence.best.ended for sentence in found.sentences)
    assert translator.engine.calls == 3  # the whole, both halves together, all quarters together


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
    """The model here knows none of them, and translates into nonsense: what is copied cannot be lost."""
    text = " ".join(words)
    assert protect.check(*map(protect.protected, (text, translator.translate(text).text))) == []


def test_duplicates_are_translated_once(folder):
    translator = counted(folder)
    texts = ["Bala core. Dila gare.", "Dila gare.", "Bala core.", "Bala core. Bala core."] * 3
    alone = {text: translator.translate(text).text for text in set(texts)}
    translator.engine.asked.clear()
    assert [found.text for found in translator.translate(texts)] == [alone[text] for text in texts]
    assert set(translator.engine.asked.values()) == {1}
    translator.engine.asked.clear()
    many = [*texts, *(f"{word} hoso." for word in WORDS * 60), *texts]  # more than are worked on together
    assert len(list(translator.stream(many))) == len(many)
    assert set(translator.engine.asked.values()) == {1}  # chunks in flight know of each other


def test_a_stream_is_in_order_reads_as_it_needs_and_equals_one_by_one(translator):
    texts = [f"{a} {b}, {a}." for a in WORDS for b in WORDS] * 12
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


def test_an_empty_chunk_asks_for_what_is_there(translator):
    answered = []

    def chunks():
        yield ["bala."]
        yield []
        answered.append(len(found))
        yield ["core.", "dila."]
        yield []
        answered.append(len(found))

    found = []
    for translations in translator.stream_chunks(chunks()):
        found += translations
    assert answered == [1, 3]


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


def test_a_stream_that_is_left_is_not_worked_for(folder):
    translator = counted(folder)
    stream = translator.stream([f"{a} {b}." for a in WORDS for b in WORDS] * 20)
    next(stream)
    assert not translator.engine.stopped()
    stream.close()
    assert translator.engine.stopped()


@pytest.mark.parametrize("engine", ["glass", "fast"])
def test_engines_leave_what_nobody_wants(folder, engine):
    translator = Translator.load(folder, engine=engine)
    with pytest.raises(CancelledError):
        translator.engine.search([[4, 5, 3]], translator.options, lambda: True)


def test_many_threads_and_an_event_loop_may_share_a_translator(translator):
    texts = [f"{a} {b}." for a in WORDS[:8] for b in WORDS[:8]]
    expected = [translation.text for translation in translator.translate(texts)]
    found = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: [translator.translate(t).text for t in texts[n::4]]}))
        for n in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[n] for n in range(4)] == [expected[n::4] for n in range(4)]

    async def all_at_once():
        return await asyncio.gather(*(translator.translate_async(text) for text in texts[:10]))

    assert [translation.text for translation in asyncio.run(all_at_once())] == expected[:10]


def test_alternatives_scores_and_places(translator):
    options = replace(translator.options, beam=4, n_best=3)
    text = "Bala core dila.\n Gare hoso."
    found = translator.with_token_scores([translator.translate(text, options)])[0]
    assert found.alternative(0) == found.text == str(found)
    assert len({found.alternative(n) for n in range(3)}) == 3
    assert found.alternative(99) == found.alternative(2)
    data = found.to_json()
    raw, out = text.encode(), found.text.encode()
    assert [raw[a:b].decode() for a, b in (s["source"] for s in data["sentences"])] == ["Bala core dila.", "Gare hoso."]
    assert [out[a:b].decode() for a, b in (s["target"] for s in data["sentences"])] == [s.text for s in found.sentences]
    assert data["alternatives"] == [found.alternative(n) for n in range(3)]
    total = count = 0
    for told, sentence in zip(data["sentences"], found.sentences, strict=True):
        assert sum(token["log_prob"] for token in told["tokens"]) == pytest.approx(sentence.best.log_prob, abs=0.05)
        scores = [one["score"] for one in told["alternatives"]]
        assert scores == sorted(scores, reverse=True)
        total += sentence.best.log_prob
        count += len(told["tokens"])
    assert data["score"] == pytest.approx(total / count)


def test_places_are_told_in_bytes(translator):
    data = translator.translate("¡bala! ¿core?").to_json()
    assert data["sentences"][-1]["source"][1] == len("¡bala! ¿core?".encode())


def test_words_that_the_vocabulary_does_not_hold_are_told(translator):
    assert translator.translate("bala zebra core zebra yak.").unknown == ["zebra", "yak"]
    assert translator.translate("bala core.").unknown == []


def test_a_translation_can_be_looked_into(folder):
    translator = vidrio.load(folder, engine="glass")
    found = translator.translate("Bala core. Cola core.")
    seen = found.look(1)
    assert seen.text == "Cola core."
    assert seen.translation == found.sentences[1].text


def test_a_translation_can_be_copied_and_pickled(folder):
    found = vidrio.load(folder).translate("Bala core. Cola core.")
    assert copy.deepcopy(found) == copy.copy(found) == found
    read = pickle.loads(pickle.dumps(found))
    assert read == found
    assert (read.score, read.alternative(0)) == (found.score, found.text)
    for ask in (lambda: read.alignment, lambda: read.confidence, read.look):
        with pytest.raises(InputError, match="it was pickled"):
            ask()
    assert copy.deepcopy(found).alignment == found.alignment
    assert pickle.loads(pickle.dumps(found)).alignment == found.alignment  # asked for before
    judged = vidrio.load("en-es").translate("Hello world. The old man has a dog.")
    words = judged.words
    read = pickle.loads(pickle.dumps(judged))
    assert (read.words, read.confidence) == (words, judged.confidence)


FORKS = """
import multiprocessing, os, sys, vidrio
translator = vidrio.load(sys.argv[1], engine="fast", workers=2)
texts = ["Bala core.", "Dila gare hoso."] * 20
def all_of(_):
    return [found.text for found in translator.stream(texts)]
before = all_of(0)
if (child := os.fork()) == 0:
    os._exit(0 if all_of(0) == before else 1)
assert os.waitpid(child, 0)[1] == 0
with multiprocessing.get_context("fork").Pool(2) as pool:
    assert pool.map(all_of, range(4)) == [before] * 4
assert all_of(0) == before
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_translator_works_in_the_children_of_a_fork(folder):
    subprocess.run([sys.executable, "-c", FORKS, str(folder)], timeout=120, check=True)


SAMPLES = ["bala core. fula gaso!", "mila", "noso bare disa."]


def test_a_translator_is_pickled_as_its_folder_and_options_and_copied_with_its_engine(folder):
    translator = vidrio.load(folder)
    translator.options = replace(translator.options, beam=3)
    read = pickle.loads(pickle.dumps(translator))
    assert read.options == translator.options
    assert [one.text for one in read.translate(SAMPLES)] == [one.text for one in translator.translate(SAMPLES)]
    assert read.translate(SAMPLES[0]).look().translation == translator.translate(SAMPLES[0]).look().translation
    for other in (copy.copy(translator), copy.deepcopy(translator)):
        assert other.engine is translator.engine
        other.options = replace(translator.options, beam=1)
        assert translator.options.beam == 3
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.apply(translator.translate, (SAMPLES[0],)).text == translator.translate(SAMPLES[0]).text
    config, about = read_config(folder)
    made = Translator(folder, config, about, read_tokenizers(folder, config), translator.engine)
    with pytest.raises(InputError, match="cannot be pickled"):
        pickle.dumps(made)


def test_a_slow_source_is_answered_text_by_text(translator):
    came: list[int] = []

    def slowly():
        for n in range(4):
            time.sleep(2 * SLOW)
            came.append(n)
            yield SAMPLES[0]

    assert [len(came) for _ in translator.stream(slowly())] == [1, 2, 3, 4]


def test_ctrl_c_that_reaches_another_thread_ends_a_stream(translator, monkeypatch):
    """Python acts on it in the main thread, when that runs: it may not wait for a result without looking up."""

    def slowly(*arguments, **options):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        left.wait(120)
        ended.set()
        return []

    left, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(translator.engine, "search", slowly, raising=False)
    with pytest.raises(KeyboardInterrupt):
        list(translator.stream(["hello world"]))
    assert not ended.is_set(), "the result was waited for"
    left.set()


def test_one_text_is_no_stream(translator):
    with pytest.raises(InputError, match="a stream is of many texts"):
        next(translator.stream("bala"))


def test_what_repeats_itself_is_searched_again(folder):
    translator = counted(folder)
    text = "Dila gare."
    found = translator.translate(text).sentences[0]
    assert translator.engine.calls == 2
    plain = translator.engine.engine.search([found.source_ids], translator.options)[0][0]
    assert repeats(found.source_ids, plain.ids)
    assert repetitions(found.best.ids) < repetitions(plain.ids)
    (scores,) = translator.engine.score([(found.source_ids, found.best.ids)])
    assert found.best.log_prob == pytest.approx(sum(scores), abs=0.05)
    other = translator.translate(text, replace(translator.options, no_repeat_ngram=9)).sentences[0]
    assert other.best.ids == plain.ids  # whoever controls repetition has it their way
    assert translator.engine.calls == 3


def test_bytes_that_make_no_characters_are_searched_again(tmp_path):
    """This model likes nothing so much as the second byte of a character without the first."""
    tokenizer = Tokenizer.learn(["hola mundo, hola a todos"] * 9, "bpe", 290)
    config = write_model(
        tmp_path, source_vocabulary=tokenizer.size, target_vocabulary=tokenizer.size, special=tokenizer.special,
        output_bias=True,
    )  # fmt: skip
    tokenizer.save(tmp_path / "tokenizer.json")
    parameters = dict(read_parameters(tmp_path))
    parameters["out.b"][tokenizer.id("<0x85>")] = 100
    write_parameters(tmp_path, parameters)
    rewrite_config(tmp_path)
    translator = Translator.load(tmp_path, engine="glass")
    options = replace(translator.options, max_length=4)
    raw = translator.engine.search([[*tokenizer.encode("hola"), config.special.end]], options)[0][0]
    assert "\ufffd" in tokenizer.decode(raw.ids)
    found = translator.translate("hola", options)
    assert found.text
    assert "\ufffd" not in found.text


@pytest.mark.parametrize("engine", ["glass", "fast"])
def test_what_else_could_stand_there(folder, engine):
    translator = Translator.load(folder, engine=engine)
    text, start = " Bala core dila. ", "hola nure"
    begun = translator.begin_with(text, start)
    assert begun.text.strip().startswith(start)
    assert (begun.text[0], begun.text[-1]) == (" ", " ")
    found = translator.begin_with(text, start, 3)
    texts = [found.alternative(n).strip() for n in range(3)]
    assert len(set(texts)) == 3
    assert all(text.startswith(start) for text in texts)
    place = len(translator._target.encode(start))
    hypotheses = found.sentences[0].hypotheses
    assert len({hypothesis.ids[place : place + 1] for hypothesis in hypotheses}) == 3
    free = translator.begin_with(text, count=4).sentences[0]
    assert len({hypothesis.ids[:1] for hypothesis in free.hypotheses}) == len(free.alternatives) == 4
    with pytest.raises(InputError, match="only one sentence"):
        translator.begin_with("Bala. Core.", start)


def test_both_engines_find_the_same_alternatives(tmp_path):
    write_model(tmp_path / "model", seed=5, norm="pre", ends=True)
    export(tmp_path / "model", quantisation="float32")
    glass, fast = (Translator.load(tmp_path / "model", engine=engine) for engine in ("glass", "fast"))
    for start in ("", "hola", "hola nure"):
        one, other = (each.begin_with("Bala core dila.", start, 4).sentences[0] for each in (glass, fast))
        assert one.alternatives == other.alternatives
        for mine, theirs in zip(one.hypotheses, other.hypotheses, strict=True):
            assert mine.ids == theirs.ids
            assert mine.log_prob == pytest.approx(theirs.log_prob, abs=1e-3)
            assert mine.score == pytest.approx(theirs.score, abs=1e-3)


# --- engines ----------------------------------------------------------------------------------------------------------


def test_both_engines_translate_alike(tmp_path):
    write_model(tmp_path / "model", seed=5, norm="pre")
    export(tmp_path / "model", quantisation="float32")
    glass, fast = (Translator.load(tmp_path / "model", engine=name) for name in ("glass", "fast"))
    assert isinstance(glass.engine, Glass)
    assert isinstance(fast.engine, Fast)
    text = " ".join(f"{a} {b} {a}, {b}." for a, b in zip(WORDS, WORDS[5:], strict=False))
    options = replace(glass.options, beam=3, n_best=2)
    one, other = (each.with_token_scores([each.translate(text, options)])[0] for each in (glass, fast))
    assert one.text == other.text
    assert [s.alternatives for s in one.sentences] == [s.alternatives for s in other.sentences]
    assert one.score == pytest.approx(other.score, abs=1e-5)
    for a, b in zip(one.sentences, other.sentences, strict=True):
        assert a.best.token_log_probs == pytest.approx(b.best.token_log_probs, abs=1e-4)


def test_the_fast_files_are_made_at_first_use_and_again_when_the_model_has_changed(tmp_path):
    folder, told = tmp_path / "model", []
    config = write_model(folder)
    assert isinstance(open_engine(folder, config), Glass)  # so small that it needs no export
    assert isinstance(open_engine(folder, config, "fast", tell=told.append), Fast)
    assert len(told) == 1
    assert isinstance(open_engine(folder, config, tell=told.append), Fast)
    assert len(told) == 1
    write_model(folder, seed=8)
    assert isinstance(open_engine(folder, config, tell=told.append), Fast)
    assert len(told) == 2
    (folder / "model.safetensors").unlink()  # the fast files alone translate as well
    assert isinstance(open_engine(folder, config, tell=told.append), Fast)
    assert len(told) == 2


def test_a_folder_that_cannot_be_written_to_gets_its_files_elsewhere(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    config = write_model(folder)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    places = [folder / "fast"]

    def refusing(model, place):
        if place in places:
            raise PermissionError(place)
        return export(model, place)

    monkeypatch.setattr(export_module, "export", refusing)
    told = []
    assert isinstance(open_engine(folder, config, "fast", tell=told.append), Fast)
    assert (cache_place(folder) / "model.bin").is_file()
    assert isinstance(open_engine(folder, config, "fast", tell=told.append), Fast)
    assert len(told) == 1
    shutil.rmtree(tmp_path / "cache")
    places.append(cache_place(folder))
    assert isinstance(open_engine(folder, config, "fast", tell=told.append), Fast)  # for this process only
    assert not (tmp_path / "cache").exists()


def test_a_packaged_model_is_never_written_into(tmp_path, monkeypatch):
    folder = tmp_path / "package" / "models" / "xx-yy"
    config = write_model(folder)
    monkeypatch.setattr(engines, "PACKAGE", tmp_path / "package")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert isinstance(open_engine(folder, config, "fast"), Fast)
    assert not (folder / "fast").exists()


def test_files_that_come_out_as_promised_are_not_checked_again(tmp_path, monkeypatch):
    folder = tmp_path / "model"
    config = write_model(folder)
    promise = export(folder)
    checks = []
    check = export_module.check_float32
    monkeypatch.setattr(export_module, "check_float32", lambda *given: checks.append(given) or check(*given))
    told = []
    for damaged in (False, True):
        for name in promise.files:
            (folder / "fast" / name).unlink()
        if damaged:
            write_manifest(folder / "fast", replace(promise, files=promise.files | {"model.bin": "0" * 64}))
        assert isinstance(open_engine(folder, config, "fast", tell=told.append), Fast)
        assert len(checks) == damaged
        assert read_manifest(folder / "fast").files == promise.files
    (folder / "fast" / "model.bin").unlink()
    write_model(folder, seed=8)  # another model: what is promised is not for it
    assert isinstance(open_engine(folder, config, "fast", tell=told.append), Fast)
    assert (len(checks), len(told)) == (2, 1)


def test_a_damaged_fast_file_is_named(tmp_path):
    folder = tmp_path / "model"
    config = write_model(folder)
    export(folder)
    data = (folder / "fast" / "model.bin").read_bytes()
    (folder / "fast" / "model.bin").write_bytes(data[: len(data) // 2])
    with pytest.raises(ModelError, match=r"model\.bin is damaged\n  found: sha256"):
        open_engine(folder, config)


def test_engines_that_do_not_exist_and_models_that_do_not_translate_are_refused(tmp_path):
    config = write_model(tmp_path / "model")
    with pytest.raises(ModelError, match="choose one of auto, fast, glass"):
        open_engine(tmp_path / "model", config, "warp")
    decoder = write_model(tmp_path / "decoder", shape="decoder")
    with pytest.raises(ModelError, match="does not translate"):
        open_engine(tmp_path / "decoder", decoder)


# --- which model ------------------------------------------------------------------------------------------------------


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
    write_model(tmp_path / "lesson")  # what stands in front of the user comes first
    assert models.find("lesson").samefile(tmp_path / "lesson")


def test_a_model_that_is_not_there_is_refused_with_those_that_are(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_model(tmp_path / "mine")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("")
    for name, found in (
        ("theirs", "no such folder"),
        ("empty", "no config.json in it"),
        ("file", "a file, not a folder"),
    ):
        with pytest.raises(ModelError) as told:
            models.find(name)
        assert found in str(told.value)
        assert "lesson" in str(told.value)
        assert "./mine" in str(told.value)
    monkeypatch.setattr(models, "packaged", dict)
    with pytest.raises(ModelError, match="this installation has no model"):
        models.find()


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    config = write_model(tmp_path / "model")
    with pytest.raises(ModelError, match="31 tokens for 9 rows"):
        read_tokenizers(tmp_path / "model", replace(config, source_vocabulary=9, target_vocabulary=9))


def test_symbols_that_a_model_loses_are_copied_around(folder):
    """This model copies nothing, so the words beside a placeholder are translated by themselves."""
    translator = Translator.load(folder)
    text = "Bala {x} core `y`."
    plain = [translator.translate(part).text for part in ("Bala", "core")]
    translator.reader.symbols = "①②"
    found = translator.translate(text)
    assert found.text == f"{plain[0]} {{x}} {plain[1]} `y`."
    assert translator.translate("Bala core.").sentences[0].given == "Bala core."


def test_who_speaks_and_what_is_said_are_translated_by_themselves() -> None:
    translator = Translator.load("es-en")
    text = "—¿Vienes? —preguntó Juan.\n—Sí —dijo—. Vamos a casa."
    assert translator.translate(text).text == "—Are you coming? —he asked Juan.\n—Yes —he said—. Let's go home."
    greedy = translator.translate(text, replace(translator.options, beam=1)).text
    assert "".join(translator.live(text, lambda piece: False)) == greedy
