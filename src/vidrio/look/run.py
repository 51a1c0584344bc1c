"""Traces translations: opens a model, searches as `vidrio translate` does, and keeps all values of one forward pass.

    model = open_model()                 # the default model; or pass a name or a folder
    seen = look(model, "Hello world")
    seen.translation                     # "hola mundo"
    seen.trace.number(parse_address("dec.0.cross.weights.h1[1,0]"))

A trace is a single pass over the tokens of a translation. If the text has not been translated yet, a search finds the
translation first. Because of the causal mask, row t of the pass is identical to the row that the decoder computed at
step t. If a what-if removes the mask, the rows are those of the last decoding step.

Values are copied from the engine if it uses the same arithmetic as the reference. Otherwise, `glass/` computes them.
"""

from collections.abc import Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vidrio.engine.engine import Engine, Stopped
from vidrio.errors import ConfigError
from vidrio.glass.engine import FLOAT, INT8
from vidrio.glass.machine import Machine, build
from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.glass.walk import classify, decode, encode, logits, stepper, translate_forced
from vidrio.hypothesis import HeadOff, Hypothesis, Ids, Interventions, Options, default_options
from vidrio.model import find as models
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, read_arrays, read_config
from vidrio.model.quantised import uses_int8
from vidrio.search import Step, Tree, finish, never, restrict, search
from vidrio.text.tokens.tokenizer import Piece, Tokenizer, read_tokenizers
from vidrio.translate.judging import repeats


class InEngine(NamedTuple):
    """An engine, and the interventions that make it compute the same values as a machine."""

    engine: Engine
    interventions: Interventions = ()


@dataclass(frozen=True)
class LoadedModel:
    """A model opened for tracing. If source and target share a vocabulary, both tokenizers are the same object."""

    config: ModelConfig
    about: About
    machine: Machine
    source_tokenizer: Tokenizer
    target_tokenizer: Tokenizer
    path: Path
    may_ramble: bool = False  # whether to stop a search that repeats itself or grows too long, e.g. after a what-if
    in_engine: InEngine | None = None  # an engine that computes the same values as the machine, if there is one

    @property
    def name(self) -> str:
        return self.about.name or self.path.name

    @property
    def dtype(self) -> np.dtype[Any]:
        """The data type of the parameters."""
        return self.machine.dtype

    @cached_property
    def source_vocabulary(self) -> list[str]:
        return _names(self.source_tokenizer, self.config.source_vocabulary)

    @cached_property
    def target_vocabulary(self) -> list[str]:
        return _names(self.target_tokenizer, self.config.target_vocabulary)

    def in_floating_point(self) -> "LoadedModel":
        """Return a copy of the model that shares its parameters and computes in floating point, as training does."""
        return replace(self, machine=replace(self.machine, arithmetic=FLOAT, whole_parameters={}))


def open_model(name_or_path: str | Path | None = None, dtype: type | None = None) -> LoadedModel:
    """Open a model for tracing, by name or folder. The default is `en-es`.

    `dtype` is np.int8 (the engine's arithmetic), np.float32 or np.float64. The default is int8 for models that the
    engine runs in int8, and float64 for all others.
    """
    path = models.find(name_or_path)
    config, about = read_config(path)
    stored = read_arrays(path)
    whole = uses_int8(stored, config) if dtype is None else dtype is np.int8
    machine = build(config, stored, np.float32, INT8) if whole else build(config, stored, dtype or np.float64)
    source, target = read_tokenizers(path, config)
    return LoadedModel(config, about, machine, source, target, path)


class Printed(NamedTuple):
    """A translation to trace, with the search options and the engine that produced it."""

    hypothesis: Hypothesis
    options: Options
    engine: Engine


@dataclass(frozen=True, repr=False)
class Look:
    """One run: a text, its translation, and all intermediate values."""

    model: LoadedModel  #: the model that ran, with any what-if applied
    text: str  #: the sentence given to the model
    pieces: Sequence[Piece]  #: the tokens of the text, with their positions
    source_ids: Sequence[int]  #: the encoder's input, including the end token if the model uses one
    target_ids: Sequence[int]  #: the decoder's input, beginning with the start token
    hypotheses: Sequence[Hypothesis]  #: best first; empty for a classifier and for an empty text
    translation: str
    trace: Trace  #: all values, by address
    options: Options
    tree: Tree | None = None
    forced: bool = False  #: whether the translation was given, not found by a search
    notes: Sequence[str] = ()  #: notes on which sentence of a longer text this is, and how it was preprocessed
    stopped: bool = False  #: whether the search stopped because NaN or infinity left no token to choose

    @property
    def result(self) -> Hypothesis | None:
        return self.hypotheses[0] if self.hypotheses else None

    @property
    def empty(self) -> bool:
        """Whether nothing was computed, because the model had no input."""
        return not self.trace.values

    @property
    def copied(self) -> bool:
        """Whether the text was copied to the output without running the model."""
        return self.empty and bool(self.text.strip())

    @property
    def chosen_ids(self) -> list[int]:
        """The id of the token chosen at each decoding step."""
        taken = self.trace.values.get("out.choice")
        return [] if taken is None else taken.tolist()

    def allowed(self, step: int, options: Options) -> Array:
        """Return the log-probabilities that the search chooses from at a step, with −∞ for forbidden tokens."""
        logits_V, before = self.trace.values["out.logits"][step], tuple(self.chosen_ids[:step])
        return restrict(logits_V, before, self.model.config.special.end, options)

    @cached_property
    def unknown(self) -> list[str]:
        """The words in the text that are not in the vocabulary."""
        return list(dict.fromkeys(self.text[p.start : p.end] for p in self.pieces if p.unknown))

    def __repr__(self) -> str:
        return f"Look({self.text!r} → {self.translation!r}, {len(self.trace.values)} quantities)"


def look(
    model: LoadedModel,
    text: str,
    *,
    options: Options | None = None,
    target: Sequence[int] | Printed | None = None,
    tree: Tree | None = None,
    stopped: Stopped = None,
) -> Look:
    """Run the model on a text and keep all values.

    `target` replaces the search: it is either a sequence of ids to force (teacher forcing) or an existing translation
    to trace. `tree` records the search. `stopped` is called before each decoding step. If it returns True, the search
    raises CancelledError.
    """
    config = model.config
    options = target.options if isinstance(target, Printed) else options or default_options(config)
    options = replace(options, max_length=min(options.max_length, config.max_positions))
    tokenizer = model.source_tokenizer if config.has_encoder else model.target_tokenizer
    pieces = tokenizer.pieces(text)
    ids = [piece.id for piece in pieces]
    trace = Trace(
        model.machine,
        vocabulary=model.target_vocabulary,
        source_vocabulary=model.source_vocabulary,
        labels=model.about.labels,
    )
    seen = Look(model, text, pieces, (), (), (), "", trace, options, tree)
    if config.has_encoder and not ids:
        return seen
    if config.shape == "encoder":
        return _classified(seen, ids)
    if config.shape == "decoder":
        seen = replace(seen, options=replace(options, prefix=tuple(ids)))
    else:
        seen = replace(seen, source_ids=[*ids, *config.source_close])
    if target is None:
        return _searched(seen, stopped)
    if isinstance(target, Printed):
        seen = replace(seen, model=replace(model, in_engine=InEngine(target.engine)))
        return _concluded(_traced(seen, _taken(target.hypothesis, config)), [target.hypothesis])
    return _forced(seen, tuple(target))


def with_tree(seen: Look, stopped: Stopped = None) -> Look:
    """Return the run with a record of its search, repeating the search if it was not recorded."""
    if (seen.tree and seen.tree.nodes) or seen.forced or seen.options.sampling is not None:
        return seen
    return look(seen.model, seen.text, options=seen.options, tree=Tree(), stopped=stopped)


def target_ids(model: LoadedModel, text: str) -> list[int]:
    """Return the ids that force a translation on the decoder, including the end token."""
    return [*model.target_tokenizer.encode(text), model.config.special.end]


def _classified(seen: Look, ids: Sequence[int]) -> Look:
    """Run a classifier (an encoder without a decoder), and keep the most probable class."""
    trace, config = seen.trace, seen.model.config
    ids = [*ids, *config.source_close]
    trace.source_tokens = [trace.source_vocabulary[i] for i in ids]
    prob_C = classify(_tapped(seen), ids)
    if np.isnan(prob_C).any():
        return replace(seen, source_ids=ids, stopped=True)
    best = int(np.argmax(prob_C))
    return replace(seen, source_ids=ids, translation=trace.labels[best] if trace.labels else f"class {best}")


def _forced(seen: Look, target: Ids) -> Look:
    """Trace a pass over a given target. An empty target becomes the end token alone."""
    end = seen.model.config.special.end
    taken = target or (end,)
    seen = _traced(replace(seen, forced=True), taken)
    return _concluded(seen, [finish(taken, seen.trace.values["out.score"].tolist(), end, seen.options)])


def _searched(seen: Look, stopped: Stopped) -> Look:
    """Search for a translation, and trace the best result."""
    config, options, cut = seen.model.config, seen.options, never
    if seen.model.may_ramble:
        longest = max(options.min_length, len(options.prefix) + 3 * len(seen.source_ids or options.prefix) + 10)
        options = replace(options, max_length=min(options.max_length, longest))
        cut = partial(repeats, tuple(seen.source_ids))
    found = _found_in_engine(seen, options, stopped) if seen.tree is None else []
    if any(cut(hypothesis.ids) for hypothesis in found):
        found = []
    step = _step(seen.model.machine, seen.source_ids, stopped)
    try:
        found = found or search(step, config.special.start, config.special.end, options, seen.tree, cut)
    except _NoChoice as stop:
        return _stopped(seen, stop.prefix)
    taken = _taken(found[0], config)
    if not taken:
        raise ConfigError("no token may be taken", found="every one is forbidden", do="suppress fewer tokens")
    return _concluded(_traced(seen, taken), found)


def _found_in_engine(seen: Look, options: Options, stopped: Stopped) -> list[Hypothesis]:
    """Return the results of the engine's search, or an empty list if its arithmetic differs from the machine's."""
    if not (own := seen.model.in_engine) or not seen.model.machine.whole:
        return []
    [found] = own.engine.search_changed(tuple(seen.source_ids), options, [own.interventions], stopped)
    return found


def _taken(found: Hypothesis, config: ModelConfig) -> Ids:
    """Return the tokens of a hypothesis, including the end token if the hypothesis ended."""
    return (*found.ids, *[config.special.end] * found.ended)


def _concluded(seen: Look, hypotheses: Sequence[Hypothesis]) -> Look:
    return replace(seen, hypotheses=hypotheses, translation=seen.model.target_tokenizer.decode(list(hypotheses[0].ids)))


def _stopped(seen: Look, prefix: Ids) -> Look:
    """Trace the run up to the step at which NaN or infinity occurred."""
    said = seen.model.target_tokenizer.decode(prefix[1:])
    return replace(_passed(seen, prefix[1:], prefix), stopped=True, translation=said)


def _traced(seen: Look, taken: Ids) -> Look:
    """Trace a pass over the chosen tokens, and record the choices."""
    seen = _passed(seen, taken, (seen.model.config.special.start, *taken[:-1]))
    seen.trace.take(taken)
    return seen


def _passed(seen: Look, taken: Ids, target_ids: Ids) -> Look:
    """Run a pass and keep all values. walk.py runs the pass, unless the engine computes the same values."""
    trace = seen.trace
    trace.source_tokens = [trace.source_vocabulary[i] for i in seen.source_ids]
    trace.target_tokens = [token_of(trace, i) for i in target_ids]
    trace.chosen_tokens = [trace.vocabulary[i] for i in taken]
    own = seen.model.machine.whole and seen.model.in_engine
    if own and trace.keep(own.engine.quantities(seen.source_ids, target_ids[1:], own.interventions)):
        _keep_computed(trace, own.interventions)
    else:
        translate_forced(_tapped(seen), seen.source_ids, target_ids)
    return replace(seen, target_ids=target_ids)


def _keep_computed(trace: Trace, interventions: Interventions) -> None:
    """Recompute and keep the original values of the heads and scores that interventions replaced."""
    values, operations = trace.values, trace.machine.operations
    for one in interventions:
        if isinstance(one, HeadOff):
            weights, V = (values[f"{one.sub_layer}.{part}.h{one.head}"] for part in ("weights", "V"))
            trace.computed[f"{one.sub_layer}.head.h{one.head}"] = operations["rows_dot_columns"].run(weights, V)
    for name in [name for name in values if ".scaled.h" in name and np.isneginf(values[name]).any()]:
        scores = values[name.replace(".scaled.", ".scores.")]
        trace.computed[name] = operations["divide"].run(scores, trace.machine.config.d_head)


def token_of(trace: Trace, token: int) -> str:
    """Return the text of a token in the decoder's input, or ∅ if the model has no start token."""
    return "∅" if token < 0 else trace.vocabulary[token]


def _tapped(seen: Look) -> Machine:
    """Return the machine with a tap that keeps all values in the trace."""
    return seen.model.machine.tapped(seen.trace.tap_through(seen.model.machine.tap))


class _NoChoice(Exception):
    """Raised if no token can be chosen after a prefix, because the logits are NaN or infinite. This happens only if a
    what-if changed the machine."""

    def __init__(self, prefix: Ids) -> None:
        self.prefix = prefix


def _step(machine: Machine, source_ids: Sequence[int], stopped: Stopped) -> Step:
    """Return the step function of a search.

    Keys and values are cached, unless a what-if lets rows attend to later rows or edits individual rows. In that case,
    each step recomputes the entire prefix.
    """
    if machine.can_cache:
        go_on = stepper(machine, source_ids)
    else:
        memory_SD = encode(machine, source_ids) if machine.config.has_encoder else None

        def go_on(prefixes: Sequence[Ids]) -> Array:
            return np.stack([logits(machine, decode(machine, ids, memory_SD))[-1] for ids in prefixes])

    def step(prefixes: Sequence[Ids]) -> Array:
        if stopped and stopped():
            raise CancelledError
        logits_NV = go_on(prefixes)
        for prefix, row in zip(prefixes, logits_NV, strict=True):
            if not np.isfinite(row.max()):
                raise _NoChoice(prefix)
        return logits_NV

    return step


def _names(tokenizer: Tokenizer, size: int) -> list[str]:
    """Return the tokens by id. Embedding rows beyond the vocabulary are named `<unused …>`."""
    known = tokenizer.vocabulary()
    return [*known, *(f"<unused {i}>" for i in range(len(known), size))] if size else []
