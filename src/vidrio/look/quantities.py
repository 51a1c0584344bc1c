"""One part of a trace: a layer, a matrix, or a single number, by address."""

from collections.abc import Iterator

from vidrio.errors import AddressError, InputError, nearest
from vidrio.glass.cells import Stage
from vidrio.glass.trace import Address, Trace, parse_address
from vidrio.look.blocks import LIMIT, Block, Note, Numbers, Quantity, apart
from vidrio.look.command_line import CommandLine
from vidrio.look.writing import NO_BREAK, PRECISION, number, shape, visible

TOKENS = 48  # rows or columns drawn that stand for tokens, which are worth more room
DRAWN_AT_MOST = 40  # matrices of a layer; beyond that, only the first head's


def at(trace: Trace, where: str, again: CommandLine | None, precision: int = PRECISION) -> Iterator[Block]:
    """What stands at an address: one number, one quantity, or all quantities under it."""
    address = parse_address(where)
    if address.index:
        yield from _one_number(trace, address, again, precision)
    elif address.name in trace:
        yield from _one_quantity(trace, address, again)
    elif not trace.values:
        raise InputError("the text is empty, so nothing was computed", do="give a text")
    else:
        yield from _part(trace, address, again)


def _one_number(trace: Trace, address: Address, again: CommandLine | None, precision: int) -> Iterator[Block]:
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
    if again and stage.kind != "parameter":
        yield f"Where it comes from, recomputed:\n  {again.why(str(address))}"


def _one_quantity(trace: Trace, address: Address, again: CommandLine | None) -> Iterator[Block]:
    stage, array = trace.stage(address.name), trace.array(address.name)
    yield heading(trace, address)
    yield from _about(stage)
    yield ""
    yield most_of(trace, address, TOKENS)
    if again and array.size:
        example = Address(address.name, ("0",) * array.ndim)
        yield f"\nOne of its numbers:\n  {again.look('--at', str(example))}"
        if stage.kind != "parameter":
            yield f"Where that one comes from:\n  {again.why(str(example))}"


def _about(stage: Stage) -> Iterator[Block]:
    yield Note(f"{stage.says}. {stage.place}", indent=2)
    if stage.inputs:
        yield Note(f"= {stage.formula}", indent=2, hang=4)
        yield Note(f"from {', '.join(stage.inputs)}", indent=2, hang=4)


def heading(trace: Trace, address: Address) -> str:
    """`enc.0.self.scores.h0   S × S = 2 × 2`."""
    array = trace.array(address.name)
    axes = " × ".join(trace.stage(address.name).axes)
    return f"{address}   {axes} = {shape(array)}" if axes else str(address)


def numbers(trace: Trace, address: Address, tokens: int = LIMIT) -> Numbers:
    """A quantity with the tokens of its rows and columns; `tokens` of these are drawn."""
    stage, array = trace.stage(address.name), trace.array(address.name)
    names = [trace.axis_tokens(address.name, axis) or None for axis in trace.stage(address.name).axes]
    limits = [tokens if name else LIMIT for name in names] or [LIMIT]
    rows, columns = names[0] if len(names) > 1 else None, names[-1] if names else None
    return Numbers(array, str(address), rows, columns, (limits[0], limits[-1]), stage.operation == "softmax")


def most_of(trace: Trace, address: Address, tokens: int = LIMIT) -> Numbers:
    """The same, but of a vocabulary the largest numbers only."""
    every = numbers(trace, address, tokens)
    words = trace.stage(address.name).axes[-1:] == "V" and trace.stage(address.name).kind != "parameter"
    return every._replace(largest=words and every.array.shape[-1] > every.limit[-1])


def quantity(trace: Trace, address: Address, drawn: Numbers) -> Quantity:
    """A quantity, with as many of its numbers as are drawn."""
    return Quantity(str(address), " × ".join(trace.stage(address.name).axes), trace.stages[address.name], drawn)


def _part(trace: Trace, address: Address, again: CommandLine | None) -> Iterator[Block]:
    names = under(trace, address.name)
    values = [name for name in names if trace.stages[name].kind != "parameter"]
    heads = {f"h{h}" for h in range(1, trace.sizes["H"])}
    drawn = [n for n in values if n.rsplit(".", 1)[-1] not in heads] if len(values) > DRAWN_AT_MOST else values
    parts: list[Block] = [f"{address.name}: {len(values)} quantities, in the order in which they are computed"]
    here = map(Address, drawn)
    parts += [quantity(trace, one, most_of(trace, one)) for one in here]
    if len(drawn) < len(values):
        others = f"Heads 1 to {trace.sizes['H'] - 1} are computed likewise"
        second = next(n for n in values if n.endswith(".h1"))
        parts.append(f"{others}; for example:\n  {again.look('--at', second)}" if again else f"{others}: {second}, …")
    parameters = [f"{n} ({shape(trace.array(n))})" for n in names if trace.stages[n].kind == "parameter"]
    if parameters:
        listed = ", ".join(text.replace(" ", NO_BREAK) for text in parameters)
        parts.append(Note(f"Its parameters, which --at shows too: {listed}", hang=2))
    yield from apart([part] for part in parts)


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
