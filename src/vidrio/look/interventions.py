"""Measures the effect of removing a word or a head, or of substituting a row from another run.

Each function runs all its variants in the engine as one batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from vidrio.engine.engine import Engine, Stopped
from vidrio.engine.interventions import places_of
from vidrio.errors import InputError
from vidrio.hypothesis import HeadOff, Hidden, Ids, Interventions, RowSet
from vidrio.look.parts import SOURCE, TARGET, Decision
from vidrio.look.run import Look
from vidrio.text.words import word_of_each, worded, words
from vidrio.translate.translation import without_places
from vidrio.translate.translator import Translator, cores


class Word(NamedTuple):
    """A word in the source, with its position in the text and the rows of its tokens."""

    text: str
    start: int
    end: int
    rows: tuple[int, ...]


class Without(NamedTuple):
    """The effect of removing a word or a head."""

    what: str  # the removed word or head
    translation: str
    losses: tuple[float, ...]  # how much the log-probability of each original token drops


class Patched(NamedTuple):
    """A logit difference after replacing each row of a layer's output, in turn, with that of another run."""

    layer: str  # enc.in, enc.0, …
    side: str
    differences: tuple[float, ...]  # one per row


@dataclass(frozen=True)
class CausalMap:
    """A logit difference in two runs, and in the first run with single rows from the second."""

    other: str  # the other text
    other_tokens: Sequence[str]
    before: float  # the difference in the first run, without replaced rows
    of_other: float  # the difference in the other run
    layers: list[Patched]


def source_words(seen: Look) -> list[Word]:
    """Return the words in the encoder's input, excluding those without a letter or digit."""
    places = words(seen.text)
    of = word_of_each([(piece.start, piece.end) for piece in seen.pieces], places)
    found = [
        Word(seen.text[a:b], a, b, tuple(row for row, word in enumerate(of) if word == n))
        for n, (a, b) in enumerate(places)
    ]
    return [word for word in found if worded(word.text) and word.rows]


def engine_of(seen: Look) -> Engine:
    """Return the engine that computed a run, or load one with the same model."""
    if seen.model.config.shape != "encoder-decoder":
        raise InputError("this needs a translator", found=f"{seen.model.name} is a model of another shape")
    if seen.model.may_ramble:
        raise InputError("this cannot be combined with what-ifs", do="ask without them")
    own = seen.model.in_engine
    return own.engine if own else Engine.load(seen.model.path, seen.model.config, workers=cores())


def each_word_deleted(seen: Look, translator: Translator, stopped: Stopped = None) -> list[Without]:
    """Delete each word in turn, translate the remaining text, and rescore the original translation."""
    deleted = _removable_words(seen)
    texts = [without_places(seen.text, [(word.start, word.end)]) for word in deleted]
    read = [(*translator.source.encode(text), *seen.model.config.source_close) for text in (seen.text, *texts)]
    before, *after = translator.engine.forced([(ids, _written(seen)) for ids in read])
    found = translator.translate(texts, seen.options, stopped)
    return [
        Without(word.text, new.text, _losses(before, scores))
        for word, new, scores in zip(deleted, found, after, strict=True)
    ]


def each_word_hidden(seen: Look, stopped: Stopped = None) -> list[Without]:
    """Mask the rows of each word, in turn, in every attention layer. The text and its positions do not change."""
    found = _removable_words(seen)
    return _without(seen, [word.text for word in found], [tuple(map(Hidden, word.rows)) for word in found], stopped)


def each_head_off(seen: Look, stopped: Stopped = None) -> list[Without]:
    """Switch off each attention head in turn."""
    config = seen.model.config
    places = [place for place in places_of(config) if place.endswith((".self", ".cross"))]
    heads = [HeadOff(place, head) for place in places for head in range(config.n_heads)]
    return _without(seen, [f"{one.sub_layer}.h{one.head}" for one in heads], [(one,) for one in heads], stopped)


def rows_patched(seen: Look, decision: Decision, other: str, stopped: Stopped = None) -> CausalMap:
    """Measure a logit difference after replacing single rows with those of a run on another text.

    Both runs are forced to produce the same translation up to the decision.
    """
    model, row = seen.model, decision.row
    engine = engine_of(seen)
    ids = (*model.source_tokenizer.encode(other), *model.config.source_close)
    if len(ids) != len(seen.source_ids):
        tokens = " ".join(seen.trace.source_vocabulary[i] for i in ids)
        raise InputError(
            "the two texts must have the same number of tokens",
            found=f"{len(seen.source_ids)} and {len(ids)} tokens: {tokens}",
            do="replace one word with another of the same number of tokens",
        )
    written = _written(seen)[:row]
    wanted = [(-1, -1)] * row + [(decision.this, decision.that)]
    values = engine.quantities(ids, written)
    name = "{}.norm.out" if model.config.norm == "post" else "{}.sum"
    places = [place for place in places_of(model.config) if place.endswith(".ffn") or place == "enc.in"]
    variants: list[Interventions] = [()]
    for place in places:
        rows = np.asarray(values[place if place.endswith(".in") else name.format(place)])
        variants += [(RowSet(place, n, rows[n].tolist()),) for n in range(len(rows))]
    before, *after = [
        _difference(found) for found in engine.forced_changed((seen.source_ids, written), wanted, variants, stopped)
    ]
    [of_other] = engine.forced_changed((ids, written), wanted, [()])
    layers, at = [], 0
    for place in places:
        side, count = (SOURCE, len(ids)) if place.startswith("enc") else (TARGET, row + 1)
        layers.append(Patched(place.removesuffix(".ffn"), side, tuple(after[at : at + count])))
        at += count
    return CausalMap(other, [seen.trace.source_vocabulary[i] for i in ids], before, _difference(of_other), layers)


def _removable_words(seen: Look) -> list[Word]:
    """Return the words in the source. Raises InputError if removing one of them would leave nothing."""
    found = source_words(seen)
    if any(len(word.rows) == len(seen.source_ids) for word in found):
        raise InputError("without its only word, nothing of the text is left", do="give a text of several words")
    return found


def _written(seen: Look) -> Ids:
    """Return the tokens of the translation, without the end token."""
    end = seen.model.config.special.end
    taken = tuple(seen.chosen_ids)
    return taken[:-1] if taken[-1:] == (end,) else taken


def _without(seen: Look, names: Sequence[str], variants: Sequence[Interventions], stopped: Stopped) -> list[Without]:
    engine, source, written = engine_of(seen), tuple(seen.source_ids), _written(seen)
    wanted = [(token, -1) for token in (*written, seen.model.config.special.end)]
    before, *after = [
        [log_prob for log_prob, _ in rows]
        for rows in engine.forced_changed((source, written), wanted, [(), *variants], stopped)
    ]
    found = engine.search_changed(source, seen.options, variants, stopped)
    return [
        Without(name, seen.model.target_tokenizer.decode(best.ids), _losses(before, scores))
        for name, [best, *_], scores in zip(names, found, after, strict=True)
    ]


def _losses(before: Sequence[float], after: Sequence[float]) -> tuple[float, ...]:
    return tuple(old - new for old, new in zip(before, after, strict=True))


def _difference(rows: Sequence[tuple[float, float]]) -> float:
    """Return the difference between the log-probabilities in the last row, which equals the logit difference."""
    this, that = rows[-1]
    return this - that
