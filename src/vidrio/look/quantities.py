"""One part of a trace as text: a layer, a matrix, or a single number, by address."""

from collections.abc import Iterator

from vidrio.errors import AddressError, InputError, nearest
from vidrio.glass.cells import Stage
from vidrio.glass.trace import Address, Trace, parse_address
from vidrio.glass.words import without_head
from vidrio.look.command_line import CommandLine
from vidrio.look.matrix import LIMIT, Numbers, likeliest_words, matrix
from vidrio.look.writing import NO_BREAK, PRECISION, note, number, shape, visible, wrap

TOKENS = 48  # rows or columns drawn that stand for tokens, which are worth more room
DRAWN_AT_MOST = 40  # matrices of a layer; beyond that, only the first head's


def at(trace: Trace, where: str, again: CommandLine, precision: int = PRECISION) -> Iterator[str]:
    """What stands at an address: one number, one quantity, or all quantities under it."""
    address = parse_address(where)
    if address.index:
        yield from _one_number(trace, address, again, precision)
    elif address.name in trace:
        yield from _one_quantity(trace, address, again, precision)
    elif not trace.values:
        raise InputError("the text is empty, so nothing was computed", do="give a text")
    else:
        yield from _part(trace, address, again, precision)


def _one_number(trace: Trace, address: Address, again: CommandLine, precision: int) -> Iterator[str]:
    stage = trace.stage(address.name)
    value = trace.number(address)
    places = trace.position(address)
    drawn = str(int(value)) if stage.kind in ("input", "choice") else number(value, precision)
    whole = "" if stage.kind in ("input", "choice") or float(drawn) == value else f"   in full {value!r}"
    yield f"{address} = {drawn}{whole}"
    for what, place, axis in zip(("row", "column"), places, trace.stage(address.name).axes, strict=False):
        tokens = trace.axis_tokens(address.name, axis)
        yield f"  {what if len(places) > 1 else 'place'} {place}" + (f": {visible(tokens[place])}" if tokens else "")
    yield from _about(stage)
    if stage.kind != "parameter":
        yield f"Where it comes from, recomputed:\n  {again.why(str(address))}"


def _one_quantity(trace: Trace, address: Address, again: CommandLine, precision: int) -> Iterator[str]:
    stage, array = trace.stage(address.name), trace.array(address.name)
    yield heading(trace, address)
    yield from _about(stage)
    yield ""
    yield from _drawn(trace, address, TOKENS, precision)
    if array.size:
        example = Address(address.name, ("0",) * array.ndim)
        yield f"\nOne of its numbers:\n  {again.look('--at', str(example))}"
        if stage.kind != "parameter":
            yield f"Where that one comes from:\n  {again.why(str(example))}"


def _about(stage: Stage) -> Iterator[str]:
    yield note(f"{stage.says}. {stage.place}", indent=2)
    if stage.inputs:
        yield note(f"= {stage.formula}", indent=2, hang=4)
        yield note(f"from {', '.join(stage.inputs)}", indent=2, hang=4)


def heading(trace: Trace, address: Address) -> str:
    """`enc.0.self.scores.h0   S × S = 2 × 2`."""
    axes = " × ".join(trace.stage(address.name).axes)
    return f"{address}   {axes} = {shape(trace.array(address.name))}" if axes else str(address)


def _drawn(trace: Trace, address: Address, tokens: int, precision: int) -> Iterator[str]:
    """A quantity with the tokens of its rows and columns, at most so many; of a vocabulary the largest numbers only."""
    stage, array = trace.stage(address.name), trace.array(address.name)
    names = [trace.axis_tokens(address.name, axis) or None for axis in stage.axes]
    limits = [tokens if name else LIMIT for name in names] or [LIMIT]
    rows, columns = names[0] if len(names) > 1 else None, names[-1] if names else None
    numbers = Numbers(array, rows, columns, (limits[0], limits[-1]), stage.operation == "softmax")
    if stage.axes[-1:] == "V" and stage.kind != "parameter" and array.shape[-1] > limits[-1]:
        yield from likeliest_words(numbers, precision)
    else:
        yield matrix(numbers, precision)


def _part(trace: Trace, address: Address, again: CommandLine, precision: int) -> Iterator[str]:
    names = under(trace, address.name)
    values = [name for name in names if trace.stages[name].kind != "parameter"]
    several = len(values) > DRAWN_AT_MOST
    drawn = [name for name in values if not several or without_head(name)[1] in ("", ".h0")]
    yield f"{address.name}: {len(values)} quantities, in the order in which they are computed"
    for name in drawn:
        stage = trace.stages[name]
        yield f"\n{heading(trace, Address(name))}"
        yield wrap(f"{stage.says}: {stage.formula}. {stage.place}", indent="  ")
        yield from _drawn(trace, Address(name), LIMIT, precision)
    if len(drawn) < len(values):
        second = next(n for n in values if n.endswith(".h1"))
        yield f"\nHeads 1 to {trace.sizes['H'] - 1} are computed likewise; for example:\n  {again.look('--at', second)}"
    parameters = [f"{n} ({shape(trace.array(n))})" for n in names if trace.stages[n].kind == "parameter"]
    if parameters:
        listed = ", ".join(text.replace(" ", NO_BREAK) for text in parameters)
        yield "\n" + note(f"Its parameters, which --at shows too: {listed}", hang=2)


def under(trace: Trace, prefix: str) -> list[str]:
    """The quantities under a prefix; if there are none, an error that names the nearest prefixes and addresses."""
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
