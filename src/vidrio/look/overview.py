"""The whole machine on one page of text: a line a step, then the translation token by token."""

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import NamedTuple

import numpy as np

from vidrio.glass.comparison import first
from vidrio.glass.engine import WHOLE_NUMBERS
from vidrio.look.blocks import Bar, Block, Note, Prediction, Predictions, Rows, Table, Title, Value, Words, apart
from vidrio.look.command_line import CommandLine
from vidrio.look.layout import wrap
from vidrio.look.measures import classes, likeliest
from vidrio.look.run import Look
from vidrio.look.translated import COPIED
from vidrio.look.writing import NO_BREAK, PRECISION, WIDTH, cut, left, number, shape, visible
from vidrio.model.config import ModelConfig
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
TOP = 5


def overview(seen: Look, again: CommandLine, precision: int = PRECISION) -> Iterator[Block]:
    """Everything at one glance: the text in, the way, the words out, and where to look next."""
    if seen.copied:
        yield from (
            Note(f"{seen.text} → {seen.translation}", hang=2),
            Note(f"{COPIED[0].upper()}{COPIED[1:]}: the model reads nothing of it. Nothing was computed."),
        )
    elif seen.empty:
        yield "The text is empty, and so is its translation. Nothing was computed."
    else:
        yield from apart(_parts(seen, again, precision))


def _parts(seen: Look, again: CommandLine, precision: int) -> Iterator[Iterable[Block]]:
    yield headline(seen)
    yield [Title("The text in"), text_in(seen), *unknown(seen)]
    yield way(seen)
    if seen.stopped:
        yield [Note(f"! {why_stopped(seen)}", hang=2)]
    elif seen.result:
        title = "The words out, step by step" + (" (given, not searched for)" if seen.forced else "")
        yield [Title(title), words_out(seen), "", *how_found(seen, precision)]
    else:
        yield classes_out(seen)
    yield onward(seen, again)


def headline(seen: Look) -> Iterator[Block]:
    """What went in and came out, what must be known before any number is read, and which machine it was."""
    yield Note(f"{seen.text} → {seen.translation or '(nothing)'}", hang=2)
    if seen.result and not seen.result.ended and not seen.forced:
        steps = len(seen.chosen_ids)
        yield Note(f"(cut: it had not ended after {steps} token{'s' * (steps != 1)}, the longest allowed)")
    for change in seen.changes:
        yield warning(f"Changed: {change}")
    if not seen.model.machine.causal and seen.target_ids:
        yield warning(
            "Without the mask earlier rows see later words; the decoder's numbers are those of the last step."
        )
    yield ""
    yield Note(f"The machine  {describe(seen)}", hang=13)


def warning(text: str) -> Note:
    return Note(f"! {text}", hang=2, tone="warning")


def describe(seen: Look) -> str:
    """A model in one sentence."""
    c = seen.model.config
    layers = c.layers_in_words.replace(" ", NO_BREAK)
    sizes = ", ".join(
        f"{a}{NO_BREAK}{n}" for a, n in zip("DHKF", (c.d_model, c.n_heads, c.d_head, c.d_ff), strict=True)
    )
    return (
        f"{seen.model.name}: {c.shape.replace('-', '–')}, {layers} layers, {sizes}, {c.activation}, "
        f"norm {'after' if c.norm == 'post' else 'before'} each sub-layer, {count(c):,} parameters, {computed_in(seen)}"
    )


def computed_in(seen: Look) -> str:
    """`float64`, or `int8 and float32`."""
    model = seen.model
    return "int8 and float32" if model.machine.arithmetic is WHOLE_NUMBERS else str(model.dtype)


def text_in(seen: Look) -> Table:
    """The tokens of the text, each with the characters that it stands for."""
    config = seen.model.config
    rows = [
        (p.token, p.id, f"“{cut(seen.text[p.start : p.end], 24)}”", ": not in the vocabulary" * p.unknown)
        for p in seen.pieces
    ]
    if len(seen.source_ids) > len(seen.pieces):
        rows.append((seen.trace.source_tokens[-1], seen.source_ids[-1], "the end", ""))
    if not config.has_encoder:
        rows.insert(0, (seen.trace.target_tokens[0], seen.target_ids[0], "the start", ""))
    side = "src" if config.has_encoder else "tgt"
    cells: Rows = [
        [str(i), Words(cut(token, 24)), Value(id_, f"{side}.ids[{i}]", label="id "), Words(stands_for), Words(note)]
        for i, (token, id_, stands_for, note) in enumerate(rows)
    ]
    return Table(cells, align="rlrl", name="tokens")


def unknown(seen: Look) -> Iterator[Note]:
    """The words that the model cannot read."""
    for word in seen.unknown:
        yield warning(
            f"{visible(word)!r} is not in the vocabulary: it became the unknown token, "
            f"and the model cannot tell it from any other unknown word."
        )


# --- the way ----------------------------------------------------------------------------------------------------------


def way(seen: Look) -> Iterator[Block]:
    """Every step from ids to probabilities. The first layer of each side in full; the others do the same."""
    trace = seen.trace
    letters = {letter for name in trace.values for letter in trace.stages[name].axes}
    legend = (f"{a} {trace.sizes[a]:,} ({says})".replace(" ", NO_BREAK) for a, says in AXES.items() if a in letters)
    yield Note(f"The way  {', '.join(legend)}", hang=9)
    steps = list(_steps(seen))
    shapes, addresses = (max(len(getattr(step, column)) for step in steps) for column in ("shape", "address"))
    room = WIDTH - addresses - shapes - 7 - 8
    for title, under in groupby(steps, key=lambda step: step.title):
        yield ""
        yield wrap(title, indent="  ")
        for step in under:
            first, *rest = wrap(step.says, room).splitlines()
            yield f"  {left(first, room)}  {step.shape:>{shapes}}  {step.place:7}  {step.address}"
            yield from (f"  {line}" for line in rest)


class WayStep(NamedTuple):
    """What a quantity is, and where."""

    title: str  # of what it belongs to
    says: str
    address: str
    shape: str
    place: str  # §3.1, not `§3.1, layer norm`; `departs` where the model does something else than the paper


def _steps(seen: Look) -> Iterator[WayStep]:
    trace, config = seen.trace, seen.model.config
    last_of = {tuple(address.split(".")[:2]): address for address in trace.values}  # of each layer
    for address, array in trace.values.items():
        stage = trace.stages[address]
        side, *rest = address.split(".")
        layer = rest[0] if rest and rest[0].isdigit() else ""
        head = re.search(r"\.h(\d+)$", address)
        if (stage.kind == "aggregate" and address != "out.pooled") or (head and head[1] != "0"):
            continue
        later = layer not in ("", "0")
        if later and address != last_of[side, layer]:
            continue
        name = f"{address}…{config.n_heads - 1}" if head and config.n_heads > 1 else address
        says = f"what layer {layer} makes of it" if later else stage.says
        place = stage.place.split(",")[0].split(":")[0]
        yield WayStep(_title(side, layer, rest, config), says, name, shape(array), place)


def _title(side: str, layer: str, rest: list[str], config: ModelConfig) -> str:
    if side in ("enc", "dec") and layer:
        name, layers = {"enc": ("Encoder", config.n_encoder_layers), "dec": ("Decoder", config.n_decoder_layers)}[side]
        if layer != "0":
            several = "s 1 to " + str(layers - 1) if layers > 2 else " 1"
            return f"{name} layer{several}: the same steps, own parameters"
        sub = {"self": "self-attention", "cross": "cross-attention, which reads the source", "ffn": "feed-forward"}
        masked = ", masked" if side == "dec" and rest[1] == "self" else ""
        return f"{name} layer 0: {sub[rest[1]]}{masked}"
    if side in ("src", "enc", "memory"):
        return "Encoder, done" if side == "memory" or rest[0] == "norm" else "Source tokens to rows"
    if side in ("tgt", "dec"):
        return "Decoder, done" if side == "dec" and rest[0] in ("out", "norm") else "Target tokens so far, to rows"
    return "Rows to words" if config.has_decoder else "Row to classes"


# --- the words out ----------------------------------------------------------------------------------------------------


def words_out(seen: Look) -> Predictions:
    """Each decoding step: the token taken, and the likeliest ones with their probabilities."""
    trace, prompt = seen.trace, 0 if seen.forced else len(seen.options.prefix)
    steps = [
        Prediction(trace.target_tokens[t], token, float(log_p), likeliest(seen, t, TOP), given=t < prompt)
        for t, (token, log_p) in enumerate(zip(trace.chosen_tokens, trace.values["out.score"], strict=True))
    ]
    return Predictions(steps, drawn=seen.options.sampling is not None)


def how_found(seen: Look, precision: int = PRECISION) -> Iterator[Block]:
    """Which search, and what score."""
    result, options = seen.result, seen.options
    if result is None:
        return
    log_prob = number(result.log_prob, precision)
    if seen.forced:
        yield Note(f"The whole: log p {log_prob}, the sum of the steps'.", indent=2)
        return
    way = f"beam {options.beam}" if options.beam > 1 else "greedy: the likeliest token at every step"
    if options.sampling:
        s = options.sampling
        way = f"drawn at random, temperature {s.temperature:g}, top-k {s.top_k or 'off'}, "
        way += f"top-p {s.top_p:g}, seed {s.seed}"
    yield Note(
        f"The whole: log p {log_prob}, score {number(result.score, precision)} "
        f"(log p / length^{options.length_penalty:g}). Search: {way}.",
        indent=2,
    )


def why_stopped(seen: Look) -> str:
    """Where it came to NaN or infinity."""
    step = len(seen.target_ids) - 1
    where = f"at step {step} " if seen.model.config.has_decoder else ""
    found = {"NaN": first(seen.trace, np.isnan), "infinity": first(seen.trace, np.isinf)}
    firsts = "; ".join(f"first {what}: {address}" for what, address in found.items() if address)
    return f"Nothing can be chosen: {where}the numbers are no longer numbers ({firsts})."


def classes_out(seen: Look) -> Iterator[Block]:
    """A classifier's classes with their probabilities."""
    yield Title("The classes")
    rows: Rows = [
        [Words(cut(name, 30)), Value(p, f"out.prob[{c}]", share=True), Bar(p, 20)] for name, c, p in classes(seen)
    ]
    yield Table(rows, align="l.l")


def onward(seen: Look, again: CommandLine) -> Iterator[Block]:
    """Where to look next."""
    names = seen.trace.values
    side = "enc.0" if "enc.0.self.concat" in names else "dec.0"
    best = "dec.0.cross.weights.h0" if "dec.0.cross.weights.h0" in names else f"{side}.self.weights.h0"
    yield Title("Look closer")
    commands = [
        ("one layer, every matrix", again.look("--at", side)),
        ("one matrix", again.look("--at", best)),
        ("where one number comes from", again.why(f"{best}[0,0]")),
        ("all of it as a page", again.look("--html", "page.html")),
    ]
    fits = all(len(line) <= WIDTH - 32 for _, line in commands)
    yield from (f"  {what:28}  {line}" if fits else f"  {what}:\n    {line}" for what, line in commands)
