"""A long text (the first chapter of Alice's Adventures in Wonderland, Lewis Carroll, 1865; in the public domain) comes
back sentence for sentence, with all that stands between, through every packaged translator from English."""

from pathlib import Path

import pytest

from vidrio.model import find as models
from vidrio.model.folder import read_config
from vidrio.text.sentences import split
from vidrio.translate.translator import LONGEST, Translator

TEXT = (Path(__file__).parent / "texts" / "alice.txt").read_text(encoding="utf-8")
FROM_ENGLISH = [
    name
    for name, folder in models.packaged().items()
    if name not in models.WORKED_EXAMPLES and read_config(folder)[1].source_language == "en"
]


def gaps(text, places):
    ends = [0, *(end for _, end in places)]
    starts = [*(start for start, _ in places), len(text)]
    return [text[end:start] for end, start in zip(ends, starts, strict=True)]


def test_the_text_is_a_long_one():
    assert len(TEXT.split()) > 2000
    sentences = [TEXT[a:b] for a, b in split(TEXT)]
    assert len(sentences) > 70
    assert (
        "".join(part for pair in zip(gaps(TEXT, split(TEXT)), [*sentences, ""], strict=True) for part in pair) == TEXT
    )


@pytest.mark.parametrize("name", FROM_ENGLISH)
def test_it_comes_back_sentence_for_sentence(name):
    translator = Translator.load(name)
    found = translator.translate(TEXT)
    read = [(s.source_start, s.source_start + len(s.source)) for s in found.sentences]
    written = [(s.target_start, s.target_start + len(s.text)) for s in found.sentences]
    # Every sentence with words is there, once, in order: whole, or in parts where it is too long for the model.
    for start, end in split(TEXT):
        if any(map(str.isalpha, TEXT[start:end])):
            parts = [place for place in read if start <= place[0] and place[1] <= end]
            left = gaps(TEXT[start:end], [(a - start, b - start) for a, b in parts])
            assert parts, TEXT[start:end]
            assert not any(map(str.isalpha, "".join(left))), (TEXT[start:end], left)
    assert read == sorted(read)
    # What stands between them is what stood there.
    assert gaps(TEXT, read) == gaps(found.text, written)
    assert [line.strip() == "" for line in TEXT.split("\n")] == [line.strip() == "" for line in found.text.split("\n")]
    for sentence in found.sentences:
        assert sentence.text.strip()
        assert sentence.best.ended
        assert len(sentence.source_ids) <= LONGEST + 1
