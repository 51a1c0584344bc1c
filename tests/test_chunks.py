"""Texts come in chunks, and a sentence that comes again a little later is not found again."""

from collections import Counter

import pytest

from vidrio.translate import stream
from vidrio.translate.stream import in_chunks, in_order, remembering


def test_chunks_hold_all_texts_in_order_and_follow_the_size():
    texts = ["a", "b", "cc", "", "d" * 30, "e", "f"]
    assert list(in_chunks(iter(texts), 5)) == [["a", "b", "cc"], ["", "d" * 30], ["e", "f"]]
    assert list(in_chunks(iter([]), 1)) == []


def test_only_the_latest_are_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "REMEMBERED", 2)
    asked, memory = Counter[str](), dict[str, str]()

    def find(sentences: list[str]) -> list[str]:
        asked.update(sentences)
        return list(map(str.upper, sentences))

    for sentences in (["a", "b", "c"], ["b", "c"], ["a"]):
        assert remembering(memory, sentences, find) == {sentence: sentence.upper() for sentence in sentences}
    assert asked == {"a": 2, "b": 1, "c": 1}


def test_what_comes_of_chunks_is_in_order_and_an_error_comes_after_it() -> None:
    def chunks():
        yield from (["a"], ["b"], [], ["c"])
        raise ValueError("no more")

    found = in_order(chunks(), lambda texts, stopped: texts[0])
    assert [next(found) for _ in range(3)] == ["a", "b", "c"]
    with pytest.raises(ValueError, match="no more"):
        next(found)
    with pytest.raises(ZeroDivisionError):
        list(in_order([["a"]], lambda texts, stopped: 1 // 0))
