"""Texts come in chunks, and a sentence that comes again, now or a little later, is not found again."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, Event

import pytest

from vidrio.translate.stream import Memory, in_chunks


def test_chunks_hold_all_texts_in_order_and_follow_the_size():
    sizes = iter([3, 1, 10, 10])
    texts = ["a", "b", "cc", "", "d" * 30, "e", "f"]
    chunks = list(in_chunks(iter(texts), lambda: next(sizes)))
    assert chunks == [["a", "b"], ["cc"], ["", "d" * 30], ["e", "f"]]
    assert list(in_chunks(iter([]), lambda: 1)) == []


def test_what_somebody_is_at_work_on_is_not_found_again():
    asked, both_there, memory = Counter(), Barrier(2, timeout=20), Memory(100)

    def find(sentences):
        asked.update(sentences)
        both_there.wait()  # each finds its own while the other is at work
        return [(sentence.upper(),) for sentence in sentences]

    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda sentences: memory.share(sentences, find), (["a", "b", "c"], ["b", "c", "d"])))
    assert found == [{"a": ("A",), "b": ("B",), "c": ("C",)}, {"b": ("B",), "c": ("C",), "d": ("D",)}]
    assert set(asked.values()) == {1}


def test_only_the_latest_are_remembered():
    asked, memory = Counter(), Memory(2)

    def find(sentences):
        asked.update(sentences)
        return [(sentence,) for sentence in sentences]

    for sentences in (["a", "b", "c"], ["b", "c"], ["a"]):
        assert list(memory.share(sentences, find)) == sentences
    assert asked == {"a": 2, "b": 1, "c": 1}


def test_who_waits_for_what_fails_is_told():
    memory, both_there, at_work = Memory(9), Barrier(2, timeout=20), Event()

    def fail(sentences):
        at_work.set()
        both_there.wait()
        raise ValueError(f"no {sentences}")

    def find(sentences):
        both_there.wait()
        return [(sentence,) for sentence in sentences]

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(memory.share, ["a"], fail)
        assert at_work.wait(20)
        second = pool.submit(memory.share, ["a", "b"], find)
        for one in (first, second):
            with pytest.raises(ValueError, match="no \\['a'\\]"):
                one.result(20)
