"""What becomes of a translation when each word of the source is deleted in turn."""

from typing import NamedTuple

from vidrio.hypothesis import Options
from vidrio.look.run import Look
from vidrio.text.words import worded, words
from vidrio.translate.translation import without_places
from vidrio.translate.translator import Translator


class Deleted(NamedTuple):
    """A source word, the translation of the text without it, and how much less likely the old tokens became."""

    word: str
    translation: str
    losses: tuple[float, ...]  # of each token of the old translation: the fall of its log-probability


def each_word_deleted(seen: Look, translator: Translator, options: Options) -> list[Deleted]:
    """Search anew without each word, and score the tokens of this run without it: one batch each."""
    places = [(start, end) for start, end in words(seen.text) if worded(seen.text[start:end])]
    texts = [without_places(seen.text, [place]) for place in places]
    taken = tuple(seen.chosen_ids)
    end = seen.model.config.special.end
    written = taken[:-1] if taken[-1:] == (end,) else taken
    read = [(*translator.source.encode(text), *seen.model.config.source_close) for text in (seen.text, *texts)]
    before, *after = translator.engine.forced([(ids, written) for ids in read])
    found = translator.translate(texts, options)
    return [
        Deleted(seen.text[start:end], new.text, tuple(old - now for old, now in zip(before, scores, strict=True)))
        for (start, end), new, scores in zip(places, found, after, strict=True)
    ]
