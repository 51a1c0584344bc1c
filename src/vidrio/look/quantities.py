"""One part of a trace as text: a layer, a matrix, or a single number, by address."""

from collections.abc import Iterator, Sequence

import numpy as np

from vidrio.draw.show import (
    LIMIT,
    NO_BREAK,
    PRECISION,
    WIDTH,
    cut,
    matrix,
    number,
    shape,
    text_width,
    vector,
    visible,
    wrap,
)
from vidrio.errors import AddressError, InputError, nearest
from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Address, Trace, parse_address
from vidrio.glass.paper.maths import Array
from vidrio.look.command_line import CommandLine
from vidrio.search import largest

TOKENS = 48  # rows or columns that stand for tokens are worth more room than others
TOP = 10  # words shown of a vocabulary
DRAWN_AT_MOST = 40  # matrices of a layer; beyond that, only the first head's


def at(trace: Trace, where: str, again: CommandLine | None, precision: int = PRECISION) -> str:
    """What stands at an address: one number, one quantity, or all quantities under it."""
    address = parse_address(where)
    if address.index:
        return "\n".join(_one_number(trace, address, again, precision))
    if address.name in trace:
        return "\n".join(_one_quantity(trace, address, again, precision))
    if not trace.values:
        raise InputError("the text is empty, so nothing was computed", do="give a text")
    return "\n\n".join(_part(trace, address, again, precision))


# --- one number -------------------------------------------------------------------------------------------------------


def _one_number(trace: Trace, address: Address, again: CommandLine | None, precision: int) -> Iterator[str]:
    stage = trace.stage(address.name)
    value = trace.number(address)
    places = trace.position(address)
    drawn = str(int(value)) if stage.kind in ("input", "choice") else number(value, precision)
    whole = "" if stage.kind in ("input", "choice") or float(drawn) == value else f"   in full {value!r}"
    yield f"{address} = {drawn}{whole}"
    for what, place, axis in zip(("row", "column"), places, trace.axis_names(address), strict=False):
        tokens = trace.axis_tokens(address.name, axis)
        yield f"  {what if len(places) > 1 else 'place'} {place}" + (f": {visible(tokens[place])}" if tokens else "")
    yield from _about(stage)
    if again and stage.kind != "parameter":
        yield f"Where it comes from, recomputed:\n  {again.why(str(address))}"


# --- one quantity -----------------------------------------------------------------------------------------------------


def _one_quantity(trace: Trace, address: Address, again: CommandLine | None, precision: int) -> Iterator[str]:
    stage = trace.stage(address.name)
    array = trace.rows_at_step(address.name, address.step)
    yield heading(trace, address)
    yield from _about(stage)
    yield ""
    yield draw(trace, address, precision, tokens=TOKENS)
    if again and array.size:
        example = Address(address.name, ("0",) * array.ndim, address.step)
        yield f"\nOne of its numbers:\n  {again.look('--at', str(example))}"
        if stage.kind != "parameter":
            yield f"Where that one comes from:\n  {again.why(str(example))}"


def _about(stage: Stage) -> Iterator[str]:
    yield wrap(f"{stage.says}. {stage.place}", hang="  ", indent="  ")
    if stage.inputs:
        yield wrap(f"= {stage.formula}", indent="  ", hang="    ")
        yield wrap(f"from {', '.join(stage.inputs)}", indent="  ", hang="    ")


def heading(trace: Trace, address: Address) -> str:
    """`enc.0.self.scores.h0   S × S = 2 × 2`."""
    array = trace.rows_at_step(address.name, address.step)
    axes = " × ".join(trace.axis_names(address))
    return f"{address}   {axes} = {shape(array)}" if axes else str(address)


def draw(trace: Trace, address: Address, precision: int, *, tokens: int = LIMIT) -> str:
    """The numbers of a quantity with the tokens of its rows and columns; of a vocabulary the largest ones only."""
    stage = trace.stage(address.name)
    array, axes = trace.rows_at_step(address.name, address.step), trace.axis_names(address)
    names = [trace.axis_tokens(address.name, axis) or None for axis in axes]
    limits = [tokens if name else LIMIT for name in names]
    shaded = stage.operation == "softmax"
    if axes and axes[-1] == "V" and array.shape[-1] > limits[-1] and stage.kind != "parameter":
        return "\n".join(_largest(array, names, precision, shares=shaded))
    if array.ndim == 2:
        return matrix(array, names[0], names[1], precision, limit=(limits[0], limits[1]), shaded=shaded)
    if array.ndim == 1:
        return vector(array, names[0], precision, limit=limits[0], shaded=shaded)
    return number(float(array), precision)


def _largest(array: Array, names: Sequence[Sequence[str] | None], precision: int, *, shares: bool) -> Iterator[str]:
    """Of each row over the vocabulary, the largest numbers, and what is left."""
    rows, words = np.atleast_2d(array), names[-1] or ()
    for r, row in enumerate(rows):
        order = largest(row, TOP)
        head = f"{r} {cut(names[0][r], 16)}  " if array.ndim == 2 and names[0] else ""
        parts = [f"{cut(words[i], 16)} {number(float(row[i]), precision)}" for i in order]
        others = np.delete(row, order)
        rest = f"all {len(others):,} others: sum {number(others.sum(), precision)}"
        if not shares:
            rest = f"{len(others):,} others: {number(others.min(), precision)} … {number(others.max(), precision)}"
        text = " · ".join(part.replace(" ", NO_BREAK) for part in [*parts, rest])
        yield wrap(text, WIDTH, head, " " * text_width(head))


# --- a part -----------------------------------------------------------------------------------------------------------


def _part(trace: Trace, address: Address, again: CommandLine | None, precision: int) -> Iterator[str]:
    names = under(trace, address.name)
    values = [name for name in names if trace.stages[name].kind != "parameter"]
    heads = {f"h{h}" for h in range(1, trace.sizes["H"])}
    drawn = [n for n in values if n.rsplit(".", 1)[-1] not in heads] if len(values) > DRAWN_AT_MOST else values
    yield f"{address.name}: {len(values)} quantities, in the order in which they are computed"
    for name in drawn:
        here = Address(name, (), address.step)
        stage = trace.stages[name]
        about = wrap(f"{stage.says}: {stage.formula}. {stage.place}", indent="  ")
        yield "\n".join([heading(trace, here), about, draw(trace, here, precision)])
    if len(drawn) < len(values):
        told = f"Heads 1 to {trace.sizes['H'] - 1} are computed likewise"
        second = next(n for n in values if n.endswith(".h1"))
        yield f"{told}; for example:\n  {again.look('--at', second)}" if again else f"{told}: {second}, …"
    parameters = [f"{n} ({shape(trace.array(n))})" for n in names if trace.stages[n].kind == "parameter"]
    if parameters:
        drawn_parameters = ", ".join(text.replace(" ", NO_BREAK) for text in parameters)
        yield wrap(f"Its parameters, which --at shows too: {drawn_parameters}", hang="  ")


def under(trace: Trace, prefix: str) -> list[str]:
    """The quantities under a prefix; if there are none, the nearest prefixes and addresses are told."""
    names = trace.addresses(prefix)
    if not names:
        every = trace.addresses()
        prefixes = {".".join(name.split(".")[:n]) for name in every for n in range(1, name.count(".") + 2)}
        raise AddressError(
            f"there is no {prefix!r} in this run",
            found=f"the nearest: {nearest(prefix, sorted(prefixes | set(every)))}",
            do="`vidrio look TEXT` lists what there is",
        )
    return names
