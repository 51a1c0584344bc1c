"""Test that the browser's `tokenizers` and the library agree on tokens, positions, words and decoding of 500 texts.

A slow test in test_site.py compares 2,000 texts in the browser itself.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from unicodedata import normalize

import numpy as np
import pytest
import safetensors
import safetensors.numpy
import tokenizers

from site_texts import texts
from vidrio.model.find import find
from vidrio.site.browser import tokenizers as ours
from vidrio.site.browser.safetensors.numpy import load_file, save
from vidrio.site.classes import classes
from vidrio.text.tokens.tokenizer import Tokenizer

TEXTS = 500


@pytest.fixture(scope="module", autouse=True)
def asked_of_the_library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    path = tmp_path_factory.mktemp("classes") / "classes.json"
    path.write_text(json.dumps(classes()), "utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ours, "CLASSES", path)
        yield


@pytest.fixture(scope="module")
def cased(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tokenizer file with case tokens."""
    path = tmp_path_factory.mktemp("cased") / "tokenizer.json"
    book = Path(__file__).parent / "texts" / "alice.txt"
    Tokenizer.learn(book.read_text("utf-8").splitlines(), 1_500, case_tokens=True).save(path)
    return path


@pytest.mark.parametrize("name", ["en-es", "es-en", "lesson", "cased"])
def test_texts_become_the_same_tokens(name: str, cased: Path) -> None:
    path = cased if name == "cased" else find(name) / "tokenizer.json"
    theirs = tokenizers.Tokenizer.from_str(path.read_text("utf-8"))
    theirs.encode_special_tokens = True
    own = ours.Tokenizer.from_str(path.read_text("utf-8"))
    assert own.get_vocab() == theirs.get_vocab()
    for text in texts(4 * TEXTS, "es-en" if name == "es-en" else "en-es")[::4]:  # a sample of every kind
        here, there = own.encode(text), theirs.encode(text, add_special_tokens=False)
        assert here.tokens == there.tokens, text
        assert (here.ids, here.word_ids) == (there.ids, there.word_ids), text
        if normalize("NFC", text) == text:
            assert here.offsets == there.offsets, text
        assert own.normalizer.normalize_str(text) == theirs.normalizer.normalize_str(text)
        assert own.pre_tokenizer.pre_tokenize_str(text) == theirs.pre_tokenizer.pre_tokenize_str(text)
    draw, size = random.Random(0), len(own.get_vocab())
    for _ in range(TEXTS):  # output that only a model produces: invalid UTF-8, marks without a letter
        ids = [draw.randrange(draw.choice((300, size))) % size for _ in range(6)]
        assert own.decode_batch([ids]) == theirs.decode_batch([ids], skip_special_tokens=False), ids


def test_a_letter_and_its_marks_have_one_place() -> None:
    own = ours.Tokenizer.from_str((find("en-es") / "tokenizer.json").read_text("utf-8"))
    for text, places in (("e\u0301a", {(0, 2), (2, 3)}), ("xe\u0323\u0301", {(0, 1), (1, 4)})):
        assert set(own.prepare(text)[1]) == places


def test_what_our_files_never_have_is_refused() -> None:
    told = json.loads((find("en-es") / "tokenizer.json").read_text("utf-8"))
    with pytest.raises(ValueError, match="ByteLevel"):
        ours.Tokenizer.from_str(json.dumps({**told, "pre_tokenizer": {"type": "ByteLevel"}}))


def test_arrays_come_back_from_the_browser_s_safetensors(tmp_path: Path) -> None:
    generator = np.random.default_rng(0)
    arrays = {"a.b": generator.standard_normal((3, 5)).astype(np.float32), "c": np.arange(7), "d": np.int8([[-3]])}
    arrays |= {"e": np.zeros((0, 4)), "f": np.array(2.5)}
    for written in (save(arrays), safetensors.numpy.save(arrays)):
        path = tmp_path / "x.safetensors"
        path.write_bytes(written)
        for read in (load_file(path), safetensors.numpy.load_file(path)):
            assert {name: (a.dtype, a.shape, a.tobytes()) for name, a in read.items()} == {
                name: (a.dtype, a.shape, a.tobytes()) for name, a in arrays.items()
            }
