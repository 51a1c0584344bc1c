"""What becomes of a translation when each word of the source is deleted in turn."""

from typing import NamedTuple

from vidrio.hypothesis import Options
from vidrio.look.run import Look
from vidrio.text.words import word_of_each, worded, words
from vidrio.translate.translation import without_places
from vidrio.translate.translator import Translator


class Word(NamedTuple):
    """A word of the source: where it stands in the text, and which rows its tokens have."""

    text: str
    start: int
    end: int
    rows: tuple[int, ...]


def source_words(seen: Look) -> list[Word]:
    """The words that the encoder read; signs without a letter or digit are left out."""
    places = words(seen.text)
    of = word_of_each([(piece.start, piece.end) for piece in seen.pieces], places)
    found = [
        Word(seen.text[a:b], a, b, tuple(row for row, word in enumerate(of) if word == n))
        for n, (a, b) in enumerate(places)
    ]
    return [word for word in found if worded(word.text) and word.rows]


class Deleted(NamedTuple):
    """A source word, the translation of the text without it, and how much less likely the old tokens became."""

    word: str
    translation: str
    losses: tuple[float, ...]  # of each token of the old translation: the fall of its log-probability


def each_word_deleted(seen: Look, translator: Translator, options: Options) -> list[Deleted]:
    """Search anew without each word, and score the tokens of this run without it: one batch each."""
    deleted = source_words(seen)
    texts = [without_places(seen.text, [(word.start, word.end)]) for word in deleted]
    taken = tuple(seen.chosen_ids)
    end = seen.model.config.special.end
    written = taken[:-1] if taken[-1:] == (end,) else taken
    read = [(*translator.source.encode(text), *seen.model.config.source_close) for text in (seen.text, *texts)]
    before, *after = translator.engine.forced([(ids, written) for ids in read])
    found = translator.translate(texts, options)
    return [
        Deleted(word.text, new.text, tuple(old - now for old, now in zip(before, scores, strict=True)))
        for word, new, scores in zip(deleted, found, after, strict=True)
    ]
