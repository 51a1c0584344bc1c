"""Summarises a run as text: one line for each step of the computation, then the translation token by token."""

from collections.abc import Iterable, Iterator
from itertools import groupby

import numpy as np

from vidrio.glass.compared import first
from vidrio.glass.words import without_head
from vidrio.look.measures import Candidate, classes, likeliest
from vidrio.look.run import Look
from vidrio.look.translated import COPIED
from vidrio.look.writing import (
    NO_BREAK,
    PRECISION,
    WIDTH,
    CommandLine,
    apart,
    cut,
    left,
    note,
    number,
    shape,
    table,
    visible,
    wrap,
)
from vidrio.model.parameters import count

AXES = {
    "S": "source tokens",
    "T": "target tokens",
    "D": "model width",
    "H": "heads",
    "K": "width of a head",
    "E": "heads side by side",
    "F": "feed-forward width",
    "V": "vocabulary",
    "C": "classes",
    "P": "positions",
}
TOP = 5  # number of most probable tokens to list per decoding step


def overview(seen: Look, again: CommandLine, precision: int = PRECISION) -> Iterator[str]:
    """Format the overview: the text, the steps, the translation, and commands for a closer look."""
    if seen.copied:
        yield note(f"{seen.text} → {seen.translation}", hang=2)
        yield note(f"{COPIED[0].upper()}{COPIED[1:]}, so the model does not read it. Nothing was computed.")
    elif seen.empty:
        yield "The text is empty, and so is its translation. Nothing was computed."
    else:
        yield from apart(_parts(seen, again, precision))


def _parts(seen: Look, again: CommandLine, precision: int) -> Iterator[Iterable[str]]:
    yield _headline(seen)
    yield _text_in(seen)
    yield _way(seen)
    if seen.stopped:
        yield [note(f"! {_why_stopped(seen)}", hang=2)]
    elif seen.result:
        yield _words_out(seen, precision)
    else:
        yield _classes_out(seen, precision)
    yield _onward(seen, again)


def _headline(seen: Look) -> Iterator[str]:
    """Format the text, the translation and the model."""
    yield note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if seen.result and not seen.result.ended and not seen.forced:
        steps = len(seen.chosen_ids)
        why = ", the maximum" if steps == seen.options.max_length else ""
        yield note(f"(cut: it had not ended after {steps} token{'s' * (steps != 1)}{why})")
    yield ""
    yield note(f"The machine  {_described(seen)}", hang=13)


def _described(seen: Look) -> str:
    """Describe the model in one sentence."""
    c = seen.model.config
    layers = c.layers_in_words.replace(" ", NO_BREAK)
    sizes = ", ".join(
        f"{a}{NO_BREAK}{n}" for a, n in zip("DHKF", (c.d_model, c.n_heads, c.d_head, c.d_ff), strict=True)
    )
    numbers = "int8 and float32" if seen.model.machine.whole else str(seen.model.dtype)
    return (
        f"{seen.model.name}: {c.shape.replace('-', '–')}, {layers} layers, {sizes}, {c.activation}, "
        f"norm {'after' if c.norm == 'post' else 'before'} each sub-layer, {count(c):,} parameters, {numbers}"
    )


def _text_in(seen: Look) -> Iterator[str]:
    """Format the tokens of the text with their characters, and list the words that are not in the vocabulary."""
    config = seen.model.config
    rows = [
        (p.token, p.id, f"“{cut(seen.text[p.start : p.end], 24)}”", ": not in the vocabulary" * p.unknown)
        for p in seen.pieces
    ]
    if len(seen.source_ids) > len(seen.pieces):
        rows.append((seen.trace.source_tokens[-1], seen.source_ids[-1], "the end", ""))
    if not config.has_encoder:
        rows.insert(0, (seen.trace.target_tokens[0], seen.target_ids[0], "the start", ""))
    cells = [[str(i), cut(token, 24), f"id {id_}", *others] for i, (token, id_, *others) in enumerate(rows)]
    yield "The text in"
    yield table(cells, align="rlrl", indent=2)
    for word in seen.unknown:
        yield note(
            f"! {visible(word)!r} is not in the vocabulary: it became the unknown token, "
            f"and the model cannot tell it from any other unknown word.",
            hang=2,
        )


# --- from ids to probabilities ----------------------------------------------------------------------------------------


def _way(seen: Look) -> Iterator[str]:
    """Format every step from ids to probabilities. Only the first layer of each stack is shown in full, because all
    layers have the same structure."""
    trace = seen.trace
    letters = {letter for name in trace.values for letter in trace.stages[name].axes}
    legend = (f"{a} {trace.sizes[a]:,} ({says})".replace(" ", NO_BREAK) for a, says in AXES.items() if a in letters)
    yield note(f"The way  {', '.join(legend)}", hang=9)
    rows = [(_title(seen, address), *_step(seen, address)) for address in _shown(seen)]
    shapes, addresses = (max(len(row[column]) for row in rows) for column in (2, 4))
    room = WIDTH - addresses - shapes - 7 - 8
    for title, under in groupby(rows, key=lambda row: row[0]):
        yield ""
        yield wrap(title, indent="  ")
        for _, says, shaped, place, address in under:
            first, *rest = wrap(says, room).splitlines()
            yield f"  {left(first, room)}  {shaped:>{shapes}}  {place:7}  {address}"
            yield from (f"  {line}" for line in rest)


def _layer(address: str) -> int:
    """Return the index of the layer that contains a quantity, or -1 if it is not part of a layer."""
    parts = address.split(".")
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else -1


def _shown(seen: Look) -> Iterator[str]:
    """Yield the addresses to show: layer 0 of each stack, in which head 0 represents all heads, and the outputs of the
    later layers."""
    last_of = {tuple(address.split(".")[:2]): address for address in seen.trace.values}
    for address in seen.trace.values:
        later = _layer(address) > 0 and address != last_of[tuple(address.split(".")[:2])]
        aggregate = seen.trace.stages[address].kind == "aggregate" and address != "out.pooled"
        if not (later or aggregate or without_head(address)[1] not in ("", ".h0")):
            yield address


def _step(seen: Look, address: str) -> tuple[str, str, str, str]:
    """Return a quantity's description, shape, section of the paper (`§3.1, layer norm` is shortened to §3.1) and
    address."""
    stage, heads, layer = seen.trace.stages[address], seen.model.config.n_heads, _layer(address)
    says = f"what layer {layer} makes of it" if layer > 0 else stage.says
    name = f"{address}…{heads - 1}" if without_head(address)[1] and heads > 1 else address
    return says, shape(seen.trace.array(address)), stage.place.split(",")[0].split(":")[0], name


def _title(seen: Look, address: str) -> str:
    config, layer, (side, *rest) = seen.model.config, _layer(address), address.split(".")
    if layer >= 0:
        name, layers = {"enc": ("Encoder", config.n_encoder_layers), "dec": ("Decoder", config.n_decoder_layers)}[side]
        if layer > 0:
            several = "s 1 to " + str(layers - 1) if layers > 2 else " 1"
            return f"{name} layer{several}: the same steps, own parameters"
        sub = {
            **{"self": "self-attention", "cross": "cross-attention, which reads the source", "ffn": "feed-forward"},
            "ssru": "a recurrent cell, which keeps a state",
        }
        masked = ", masked" if side == "dec" and rest[1] == "self" else ""
        return f"{name} layer 0: {sub[rest[1]]}{masked}"
    if side in ("src", "enc", "memory"):
        return "Encoder, done" if side == "memory" or rest[0] == "norm" else "Source tokens to rows"
    if side in ("tgt", "dec"):
        return "Decoder, done" if side == "dec" and rest[0] in ("out", "norm") else "Target tokens so far, to rows"
    return "Rows to words" if config.has_decoder else "Row to classes"


# --- the output -------------------------------------------------------------------------------------------------------


def _words_out(seen: Look, precision: int) -> Iterator[str]:
    """Format each decoding step: the chosen token, then the most probable tokens with their probabilities."""
    trace, prompt = seen.trace, 0 if seen.forced else len(seen.options.prefix)
    yield "The words out, step by step" + (" (given, not searched for)" if seen.forced else "")
    steps = enumerate(zip(trace.target_tokens, trace.chosen_tokens, trace.values["out.score"], strict=True))
    rows = [
        [str(t), f"after {cut(after, 20)}", f"→ {cut(token, 20)}", f"log p {number(log_p, precision)}"]
        + ["given: the prompt"] * (t < prompt)
        for t, (after, token, log_p) in steps
    ]
    for t, head in enumerate(table(rows, align="rlll").splitlines()):
        yield f"  {head}"
        yield _likely(likeliest(seen, t, TOP), precision)
    yield ""
    yield _how_found(seen, precision)


def _likely(candidates: Iterable[Candidate], precision: int) -> str:
    """Format the most probable tokens of a step: `hola 0.9951 · mundo 0.0020 · …`."""
    parts = (f"{cut(c.token, 16)} {number(c.p, precision)}" for c in candidates)
    return wrap(" · ".join(part.replace(" ", NO_BREAK) for part in parts), indent="     ")


def _how_found(seen: Look, precision: int) -> str:
    """Describe the search, and the score of its result."""
    result, options = seen.result, seen.options
    assert result is not None
    log_prob = number(result.log_prob, precision)
    if seen.forced:
        return note(f"The whole: log p {log_prob}, the sum of the steps'.", indent=2)
    way = f"beam {options.beam}" if options.beam > 1 else "greedy: the likeliest token at every step"
    if options.sampling:
        s = options.sampling
        way = f"drawn at random, temperature {s.temperature:g}, top-k {s.top_k or 'off'}, "
        way += f"top-p {s.top_p:g}, seed {s.seed}"
    return note(
        f"The whole: log p {log_prob}, score {number(result.score, precision)} "
        f"(log p / length^{options.length_penalty:g}). Search: {way}.",
        indent=2,
    )


def _why_stopped(seen: Look) -> str:
    """Explain that the search stopped because of NaN or infinity, and report where these values first occurred."""
    step = len(seen.target_ids) - 1
    where = f"at step {step} " if seen.model.config.has_decoder else ""
    found = {"NaN": first(seen.trace, np.isnan), "infinity": first(seen.trace, np.isinf)}
    firsts = "; ".join(f"first {what}: {address}" for what, address in found.items() if address)
    return f"No token can be chosen: {where}the logits are NaN or infinite ({firsts})."


def _classes_out(seen: Look, precision: int) -> Iterator[str]:
    """Format the classes of a classifier with their probabilities."""
    yield "The classes"
    yield table([[cut(name, 30), number(p, precision)] for name, _, p in classes(seen)], align="l.", indent=2)


def _onward(seen: Look, again: CommandLine) -> Iterator[str]:
    """Format commands for a closer look."""
    names = seen.trace.values
    side = "enc.0" if "enc.0.self.concat" in names else "dec.0"
    matrices = ("dec.0.cross.weights.h0", "enc.0.self.weights.h0", "dec.0.self.weights.h0", "dec.0.ssru.forget")
    best = next(name for name in matrices if name in names)
    yield "Look closer"
    commands = [
        ("one layer, every matrix", again.look("--at", side)),
        ("one matrix", again.look("--at", best)),
        ("where one number comes from", again.why(f"{best}[0,0]")),
        ("everything, as a page", again.look("--html", "page.html")),
    ]
    fits = all(len(line) <= WIDTH - 32 for _, line in commands)
    yield from (f"  {what:28}  {line}" if fits else f"  {what}:\n    {line}" for what, line in commands)
