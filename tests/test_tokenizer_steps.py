"""Test that a tokenizer file may contain only the steps that Vidrio writes. Others can expand a word to gigabytes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vidrio.errors import TokenizerError
from vidrio.model.find import packaged
from vidrio.text.tokens.normalise import ESCAPE
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.vocabulary import SpecialNames

# The second text contains the characters that stand for escapes, spaces and capitals.
TEXTS = ["Hello world, hello Madrid", f"HELLO <s> ▁1 ⇧ {ESCAPE}2", "¡Ñandú!"] * 30
OWN = {
    "bpe": lambda: Tokenizer.learn(TEXTS, 400),
    "case": lambda: Tokenizer.learn(TEXTS, 400, case_tokens=True),
    "case, no capitals": lambda: Tokenizer.learn(["日本"] * 30, 400, case_tokens=True),
    "words": lambda: Tokenizer.of_words(["a", "b"]),
    "cased words": lambda: Tokenizer.of_words(["a", "B"], lowercase=False),
    "names": lambda: Tokenizer.of_words(["a", "SOS"], names=SpecialNames(None, None, "SOS", "E*[OS]")),
    "no names": lambda: Tokenizer.of_words(["a"], names=SpecialNames(None, None, None, None)),
}


@pytest.mark.parametrize("name", OWN)
def test_every_tokenizer_of_ours_is_read_again(tmp_path: Path, name: str) -> None:
    one = OWN[name]()
    assert one.of_whole_words or all(one.decode(one.encode(text)) == text for text in TEXTS[:3])
    one.save(tmp_path / "t.json")
    assert Tokenizer.load(tmp_path / "t.json", one.special).file_text() == one.file_text()


@pytest.mark.parametrize("name", packaged())
def test_the_packaged_ones_are_read(name: str) -> None:
    assert json.loads((packaged()[name] / "tokenizer.json").read_text("utf-8"))["normalizer"]["normalizers"]
    assert Tokenizer.load(packaged()[name] / "tokenizer.json").size


def replace(pattern: str, content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": {"String": pattern}, "content": content}


def added(content: str, i: int, *, special: bool) -> dict[str, Any]:
    flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": i, "content": content, **flags, "special": special}


def grow(data: dict[str, Any]) -> None:
    data["normalizer"]["normalizers"] += [replace("a", "a" * 1000)] * 9


def grow_escapes(data: dict[str, Any]) -> None:
    data["normalizer"]["normalizers"].insert(1, replace(ESCAPE, f"{ESCAPE}0" * 99))


def grow_decoded(data: dict[str, Any]) -> None:
    data["decoder"]["decoders"] += [replace("a", "a" * 1000)] * 9


def backtrack(data: dict[str, Any]) -> None:
    data["pre_tokenizer"] = {"type": "Split", "pattern": {"Regex": "(a+)+b"}, "behavior": "Isolated", "invert": False}


def repeat_letters(data: dict[str, Any]) -> None:
    data["normalizer"]["normalizers"] += [replace("A", "a")] * 99


def add_names(data: dict[str, Any]) -> None:
    data["added_tokens"] += [added(f"<{i}>", i, special=True) for i in range(400, 500)]


def add_words(data: dict[str, Any]) -> None:
    data["added_tokens"].append(added("world", 400, special=False))


def no_decoder(data: dict[str, Any]) -> None:
    data["decoder"] = None


CHANGES = (grow, grow_escapes, grow_decoded, backtrack, repeat_letters, add_names, add_words, no_decoder)


@pytest.mark.parametrize("name", ["bpe", "case", "words"])
@pytest.mark.parametrize("change", CHANGES)
def test_other_steps_are_refused(tmp_path: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    data = json.loads(OWN[name]().file_text())
    change(data)
    (tmp_path / "t.json").write_text(json.dumps(data))
    with pytest.raises(TokenizerError, match="its steps are not those that vidrio writes"):
        Tokenizer.load(tmp_path / "t.json")
