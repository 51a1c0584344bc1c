"""The whole machine on one page of text: a line a step, then the translation token by token."""

from collections.abc import Iterator

import numpy as np

from vidrio.draw.show import (
    NO_BREAK,
    PRECISION,
    WIDTH,
    bar,
    cut,
    left,
    number,
    right,
    shape,
    table,
    text_width,
    visible,
    wrap,
)
from vidrio.glass.whatif.comparison import first
from vidrio.look.command_line import CommandLine
from vidrio.look.measures import Candidate, classes, likeliest
from vidrio.look.run import Look
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
COPIED = "Translating copies this text as it stands: the model reads nothing of it. Nothing was computed."


def overview(seen: Look, again: CommandLine, precision: int = PRECISION) -> str:
    """Everything at one glance: the text in, the way, the words out, and where to look next."""
    if seen.empty:
        if seen.copied:
            return "\n".join((wrap(f"{visible(seen.text)} → {visible(seen.translation)}", hang="  "), COPIED))
        return "The text is empty, and so is its translation. Nothing was computed."
    parts = ["\n".join(headline(seen)), "\n".join(text_in(seen)), "\n".join(way(seen))]
    if seen.stopped:
        parts.append(wrap(f"! {why_stopped(seen)}", hang="  "))
    elif seen.result:
        parts.append("\n".join(words_out(seen, precision)))
    else:
        parts.append("\n".join(classes_out(seen, precision)))
    parts.append("\n".join(onward(seen, again)))
    return "\n\n".join(parts)


def headline(seen: Look) -> Iterator[str]:
    """What went in and came out, and which machine it was."""
    yield wrap(f"{visible(seen.text)} → {visible(seen.translation) or '(nothing)'}", hang="  ")
    if seen.result and not seen.result.ended and not seen.forced:
        steps = len(seen.chosen_ids)
        yield wrap(f"(cut: it had not ended after {steps} token{'s' * (steps != 1)}, the longest allowed)")
    for change in seen.changes:
        yield wrap(f"! Changed: {change}", hang="  ")
    if seen.trace.steps:
        yield wrap(f"! {STEP_BY_STEP}", hang="  ")
    yield ""
    yield wrap(f"The machine  {describe(seen)}", hang=" " * 13)


def describe(seen: Look) -> str:
    """A model in one sentence."""
    c = seen.model.config
    counts = [n for n, there in ((c.n_encoder_layers, c.has_encoder), (c.n_decoder_layers, c.has_decoder)) if there]
    layers = f"{NO_BREAK}+{NO_BREAK}".join(map(str, counts))
    sizes = ", ".join(
        f"{a}{NO_BREAK}{n}" for a, n in zip("DHKF", (c.d_model, c.n_heads, c.d_head, c.d_ff), strict=True)
    )
    machine = seen.model.machine
    dtype = next(iter(machine.parameters.values())).dtype.name
    dtype = f"int8 and {dtype}" if machine.arithmetic.name == "eight bits" else dtype
    return (
        f"{seen.model.name}: {c.shape.replace('-', '–')}, {layers} layers, {sizes}, {c.activation}, "
        f"norm {'after' if c.norm == 'post' else 'before'} each sub-layer, {count(c):,} parameters, {dtype}"
    )


def text_in(seen: Look) -> Iterator[str]:
    """The tokens of the text, each with the characters that it stands for."""
    yield "The text in"
    config = seen.model.config
    rows = [
        [str(i), cut(piece.token, 24), f"id {piece.id}", f"“{cut(seen.text[piece.start : piece.end], 24)}”"]
        + ([": not in the vocabulary"] if piece.unknown else [])
        for i, piece in enumerate(seen.pieces)
    ]
    if len(seen.source_ids) > len(seen.pieces):
        rows.append([str(len(rows)), cut(seen.trace.source_tokens[-1], 24), f"id {seen.source_ids[-1]}", "the end"])
    if not config.has_encoder:
        rows = [[str(int(row[0]) + 1), *row[1:]] for row in rows]
        rows.insert(0, ["0", cut(seen.trace.target_tokens[0], 24), f"id {seen.target_ids[0]}", "the start"])
    for line in table(rows, align="rlrl").splitlines():
        yield f"  {line}"
    for word in seen.unknown:
        yield wrap(
            f"! {visible(word)!r} is not in the vocabulary: it became the unknown token, "
            f"and the model cannot tell it from any other unknown word.",
            hang="  ",
        )


# --- the way ----------------------------------------------------------------------------------------------------------


def way(seen: Look) -> Iterator[str]:
    """Every step from ids to probabilities. The first layer of each side in full; the others do the same."""
    lines = list(_steps(seen))
    sizes = seen.trace.sizes
    letters = [a for a in AXES if any(a in seen.trace.stages[n].axes for n in seen.trace.values)]
    legend = (f"{a} {sizes[a]:,} ({AXES[a]})".replace(" ", NO_BREAK) for a in letters)
    yield wrap(f"The way  {', '.join(legend)}", hang=" " * 9)
    address_width = max(text_width(address) for _, address, *_ in lines)
    shape_width = max(text_width(drawn) for *_, drawn, _ in lines)
    room = WIDTH - address_width - shape_width - 7 - 8
    for says, address, drawn, place in lines:
        if not address:
            yield ""
            yield wrap(says, indent="  ")
            continue
        first, *rest = wrap(says, room).splitlines()
        yield f"  {left(first, room)}  {right(drawn, shape_width)}  {left(place, 7)}  {address}"
        yield from (f"  {line}" for line in rest)


def _steps(seen: Look) -> Iterator[tuple[str, str, str, str]]:
    """(what it is, address, shape, place), or only the first for a heading."""
    trace = seen.trace
    n_heads = trace.sizes["H"]
    heading = ""
    for address in trace.values:
        stage = trace.stages[address]
        if stage.kind == "aggregate" and address != "out.pooled":
            continue
        side, *rest = address.split(".")
        layer = rest[0] if rest and rest[0].isdigit() else ""
        if address.rsplit(".", 1)[-1] in {f"h{h}" for h in range(1, n_heads)}:
            continue
        title = _title(side, layer, rest, trace.addresses())
        if layer and layer != "0" and not _ends_layer(address, trace.values):
            continue
        if title != heading:
            yield title, "", "", ""
            heading = title
        name = address if not address.endswith(".h0") or n_heads == 1 else f"{address}…{n_heads - 1}"
        says = f"what layer {layer} makes of it" if layer not in ("", "0") else stage.says
        yield says, name, shape(trace.values[address]), short_place(stage.place)


def _title(side: str, layer: str, rest: list[str], addresses: list[str]) -> str:
    if side in ("enc", "dec") and layer:
        name = {"enc": "Encoder", "dec": "Decoder"}[side]
        if layer != "0":
            last = max(
                int(a.split(".")[1]) for a in addresses if a.startswith(f"{side}.") and a.split(".")[1].isdigit()
            )
            return f"{name} layer{'s' * (last > 1)} 1{f' to {last}' * (last > 1)}: the same steps, own parameters"
        sub = {"self": "self-attention", "cross": "cross-attention, which reads the source", "ffn": "feed-forward"}
        masked = ", masked" if side == "dec" and rest[1] == "self" else ""
        return f"{name} layer 0: {sub[rest[1]]}{masked}"
    if side in ("src", "enc", "memory"):
        return "Encoder, done" if side == "memory" or rest[0] == "norm" else "Source tokens to rows"
    if side in ("tgt", "dec"):
        return "Decoder, done" if side == "dec" and rest[0] in ("out", "norm") else "Target tokens so far, to rows"
    return "Rows to words" if "tgt.ids" in addresses else "Row to classes"


def _ends_layer(address: str, names: dict[str, np.ndarray]) -> bool:
    """True for the last quantity of a layer."""
    ordered = list(names)
    after = ordered[ordered.index(address) + 1 :]
    return not after or address.split(".")[:2] != after[0].split(".")[:2]


def short_place(place: str) -> str:
    """§3.1, not `§3.1, layer norm`; `departs` where the model does something else than the paper."""
    return place.split(",")[0].split(":")[0]


# --- the words out ----------------------------------------------------------------------------------------------------


def words_out(seen: Look, precision: int = PRECISION, top: int = TOP) -> Iterator[str]:
    """Each decoding step: the token taken, and the likeliest ones with their probabilities."""
    trace = seen.trace
    yield "The words out, step by step" + (" (given, not searched for)" if seen.forced else "")
    heads = table(
        [
            [str(t), f"after {cut(trace.target_tokens[t], 20)}", f"→ {cut(token, 20)}", f"log p {log_prob}"]
            + (["given: the prompt"] if t < len(seen.options.prefix) and not seen.forced else [])
            for t, (token, log_prob) in enumerate(zip(trace.chosen_tokens, _log_probs(seen, precision), strict=True))
        ],
        align="rlll",
    )
    for t, head in enumerate(heads.splitlines()):
        yield f"  {head}"
        candidates = likeliest(seen, t, top)
        if seen.options.sampling is None:
            yield wrap(_in_line(candidates, precision), indent="     ")
        else:
            yield from (f"     {line}" for line in _in_table(candidates, precision).splitlines())
    yield ""
    yield from how_found(seen, precision)


def _log_probs(seen: Look, precision: int) -> list[str]:
    return [number(float(log_prob), precision) for log_prob in seen.trace.values["out.score"]]


def _in_line(candidates: list[Candidate], precision: int) -> str:
    """`hola 0.9951 · mundo 0.0020 · …`"""
    parts = [f"{cut(c.token, 16)} {number(c.p, precision)}" + " (forbidden)" * c.forbidden for c in candidates]
    return " · ".join(part.replace(" ", NO_BREAK) for part in parts)


def _in_table(candidates: list[Candidate], precision: int) -> str:
    """With sampling: the model's own probability beside the one that was drawn from."""
    rows = [
        [
            "→" * c.taken,
            cut(c.token, 16),
            number(c.p, precision),
            bar(c.p),
            number(c.drawable, precision),
            bar(c.drawable),
        ]
        for c in candidates
    ]
    return table(rows, ["", "", "p of the model", "", "p to be drawn", ""], "ll.l.l")


def how_found(seen: Look, precision: int = PRECISION) -> Iterator[str]:
    """Which search, what score, and whether the traced pass tells the same."""
    result, options = seen.result, seen.options
    if result is None:
        return
    log_prob = number(result.log_prob, precision)
    if seen.forced:
        yield f"  The whole: log p {log_prob}, the sum of the steps'."
        return
    way = f"beam {options.beam}" if options.beam > 1 else "greedy: the likeliest token at every step"
    if options.sampling:
        s = options.sampling
        way = f"drawn at random, temperature {s.temperature:g}, top-k {s.top_k or 'off'}, "
        way += f"top-p {s.top_p:g}, min-p {s.min_p:g}, seed {s.seed}"
    yield wrap(
        f"The whole: log p {log_prob}, score {number(result.score, precision)} "
        f"(log p / length^{options.length_penalty:g}). Search: {way}.",
        indent="  ",
    )
    if seen.otherwise is not None:
        yield wrap(f"! {otherwise(seen, precision)}", hang="  ")
    elif seen.disagreement <= seen.tolerance:
        text = f"the pass shown here gives the log p that the search saw, step by step, to {seen.tolerance:g}."
        yield wrap(f"Checked: {text}", indent="  ")
    else:
        yield wrap(f"! {disagreement(seen)}", hang="  ")


STEP_BY_STEP = (
    "Each decoding step was computed, and is kept, by itself, since in one pass earlier rows would not be what they "
    "were then: address@2 is step 2. Without @ the decoder's numbers are those of the last step."
)


def disagreement(seen: Look) -> str:
    """That the numbers shown are not quite those that the search saw."""
    return (
        f"The numbers shown give the chosen words other probabilities than the search saw: log p differs by up to "
        f"{seen.disagreement:.1e}, more than rounding explains."
    )


def otherwise(seen: Look, precision: int = PRECISION) -> str:
    """That the glass alone would have said something else than translating printed."""
    assert seen.otherwise
    assert seen.result
    other = visible(seen.model.target_tokenizer.decode(list(seen.otherwise.ids)))
    scores = f"score {number(seen.otherwise.score, precision)} against {number(seen.result.score, precision)}"
    machine = seen.model.machine
    dtype = next(iter(machine.parameters.values())).dtype.name
    dtype = f"int8 and {dtype}" if machine.arithmetic.name == "eight bits" else dtype
    return (
        f"This is what translating prints. The search of the glass alone, in {dtype}, would have chosen “{other}” "
        f"({scores}): the fast engine rounds to eight bits, and here that decides."
    )


def why_stopped(seen: Look) -> str:
    """Where it came to NaN or infinity."""
    step = len(seen.target_ids) - 1
    where = f"at step {step} " if seen.model.config.has_decoder else ""
    nan, infinite = first(seen.trace, np.isnan), first(seen.trace, np.isinf)
    parts = [f"first NaN: {nan}"] * bool(nan) + [f"first infinity: {infinite}"] * bool(infinite)
    return f"Nothing can be chosen: {where}the numbers are no longer numbers ({'; '.join(parts)})."


def classes_out(seen: Look, precision: int = PRECISION) -> Iterator[str]:
    """A classifier's classes with their probabilities."""
    yield "The classes"
    rows = [[cut(name, 30), number(p, precision), bar(p, 20)] for name, _, p in classes(seen)]
    yield from (f"  {line}" for line in table(rows, align="l.l").splitlines())


def onward(seen: Look, again: CommandLine) -> Iterator[str]:
    """Where to look next."""
    names = seen.trace.values
    side = "enc.0" if "enc.0.self.concat" in names else "dec.0"
    best = "dec.0.cross.weights.h0" if "dec.0.cross.weights.h0" in names else f"{side}.self.weights.h0"
    yield "Look closer"
    rows = [
        ["one layer, every matrix", again.look("--at", side)],
        ["one matrix", again.look("--at", best)],
        ["where one number comes from", again.why(f"{best}[0,0]")],
        ["every attention head", again.look("--heads")],
        ["all of it as a page", again.look("--html", "page.html")],
    ]
    fits = all(len(line) <= WIDTH - 32 for _, line in rows)
    for what, line in rows:
        yield f"  {left(what, 28)}  {line}" if fits else f"  {what}:\n    {line}"
