"""A run as one page: every quantity with its numbers, its formula, and links to what it is made from.

The page computes nothing: every number on it is the trace's, and its cell says which one.
"""

from collections.abc import Iterable, Iterator, Sequence

from vidrio.glass.numbers.trace import Address, Trace, parse_address
from vidrio.glass.proof.receipts import locate, receipt
from vidrio.look.blocks import Beside, Block, Cell, Fold, Heads, Note, Numbers, Page, Quantity, Section, Table, Words
from vidrio.look.command_line import CommandLine
from vidrio.look.decoding import tree
from vidrio.look.manifest import identity
from vidrio.look.overview import (
    AXES,
    classes_out,
    describe,
    how_found,
    letters,
    text_in,
    unknown,
    warning,
    warnings,
    why_stopped,
    words_out,
)
from vidrio.look.quantities import LIMIT, TOKENS, at, numbers, quantity, under
from vidrio.look.receipt import digits
from vidrio.look.run import Look
from vidrio.look.writing import PRECISION
from vidrio.model.parameters import count

LARGE = 200_000  # numbers; of a run beyond it the page draws one head of many, and less of each matrix
SMALL = 20_000  # parameters; up to here the page holds them too
TOP = 5
PARTS = {"self": "Self-attention", "cross": "Cross-attention: reading the source", "ffn": "Feed-forward"}


def page(seen: Look, again: CommandLine, precision: int = PRECISION) -> Page:
    """The whole page."""
    sections = (Section(anchor, title, list(blocks)) for anchor, title, blocks in _sections(seen, again, precision))
    return Page(
        title=f"{seen.text or '(an empty text)'} → {seen.translation or '(nothing)'}",
        header=list(_header(seen)),
        sections=list(sections),
        footer=f" from the model {seen.model.name}",
        checksums=list(identity(seen.model)["sha256"].items()),
    )


def glance(seen: Look, precision: int = PRECISION) -> Iterator[Block]:
    """The words out and what each read, for a notebook."""
    yield Note(f"{seen.text} → {seen.translation}")
    if seen.result:
        yield from _words_out(seen, precision)
    elif not (seen.stopped or seen.empty):
        yield from classes_out(seen)
    yield from _read(seen.trace)


def part(trace: Trace, where: str, precision: int = PRECISION) -> Iterator[Block]:
    """A quantity, or every quantity under an address, as it stands on the page; of a number, its quantity."""
    address = parse_address(where)
    if address.step is not None:
        yield from at(trace, where, None, precision)
    else:
        names = [address.name] if address.name in trace else under(trace, address.name)
        yield from (_quantity(trace, name) for name in names)


def _header(seen: Look) -> Iterator[Block]:
    yield Note(describe(seen), kind="quiet")
    if seen.empty:
        yield Note("Nothing of the text is read, so nothing was computed.")
    yield from unknown(seen)
    yield from warnings(seen)
    if seen.stopped:
        yield warning(why_stopped(seen))


def _sections(seen: Look, again: CommandLine, precision: int) -> Iterator[tuple[str, str, Iterable[Block]]]:
    """(anchor, title, blocks), in the order of the way of the data, after the two that are asked for most."""
    if seen.empty:
        return
    trace = seen.trace

    def starting(*starts: str) -> list[Quantity]:
        return [_quantity(trace, name) for name in trace.values if name.startswith(starts)]

    if seen.result:
        yield "words", "The words out, step by step", [*_words_out(seen, precision), _receipts(seen, precision)]
    elif not seen.stopped:
        yield "classes", "The classes", classes_out(seen)
    yield "read", "What each word read", _read(trace)
    yield "text", "The text in", [text_in(seen)]
    sizes: list[list[Cell]] = [[a, Words(AXES[a]), f"{trace.sizes[a]:,}"] for a in letters(seen)]
    yield "sizes", "Letters and sizes", [Table(sizes, name="sizes")]
    yield "source", "Source tokens to rows", starting("src.", "enc.in")
    yield "encoder", "The encoder", _layers(trace, "enc", "Encoder")
    yield "encoded", "The encoder's output", starting("enc.norm", "memory")
    yield "target", "Target tokens to rows", starting("tgt.", "dec.in")
    yield "decoder", "The decoder", _layers(trace, "dec", "Decoder")
    yield "out", "Rows to words", starting("dec.norm", "dec.out", "out.")
    if _holds_parameters(trace):
        names = (p for p in trace.addresses() if trace.stages[p].kind == "parameter")
        tables = [_quantity(trace, p) for p in names if not p.startswith(("enc.", "dec."))]
        yield "tables", "Parameters outside the layers", tables
    if seen.tree is not None and seen.tree.nodes:
        yield "tree", "The search tree", tree(seen, precision)
    yield "check", "How to check it", _check(seen, again)


# --- at a glance ------------------------------------------------------------------------------------------------------


def _words_out(seen: Look, precision: int) -> Iterator[Block]:
    yield Note(
        "At each step the decoder reads the source and its own words so far, and gives every word of the vocabulary a "
        "probability. ✗: the search may not take this token."
    )
    yield words_out(seen)
    yield from how_found(seen, precision)


def _receipts(seen: Look, precision: int) -> Fold:
    """How each chosen word came to its number and its probability, with the numbers put in."""
    about = "how each word came to its probability, with the numbers put in"
    steps = [
        Fold(f"Step {t}: {token}", "", [_receipt_lines(seen, t, precision)])
        for t, token in enumerate(seen.trace.chosen_tokens)
    ]
    return Fold("Receipts", about, steps)


def _receipt_lines(seen: Look, t: int, precision: int) -> str:
    parts = []
    for address in (f"out.logits[{seen.chosen_ids[t]}]@{t}", f"out.prob[{seen.chosen_ids[t]}]@{t}", f"out.score[{t}]"):
        bill = receipt(seen.trace, locate(seen.trace, parse_address(address)))
        result = bill.compared
        lines = [f"{address} = {bill.formula}", *(f"  = {line}" for line in bill.working(digits(precision)))]
        verdict = "agree" if result.agrees else "DO NOT AGREE"
        lines.append(
            f"  model {result.model!r}, recomputed {result.recomputed!r}: they {verdict} (difference "
            f"{result.difference:.1e}, rounding explains {result.tolerance:.1e})"
        )
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _read(trace: Trace) -> Iterator[Block]:
    """The last cross-attention, all heads; without an encoder or a decoder, the last self-attention."""
    weights = [name for name in trace.values if ".weights.h" in name]
    crossing = [name for name in weights if ".cross." in name]
    if not weights:
        return
    layer = (crossing or weights)[-1].rpartition(".weights.")[0]
    rows = "translation so far" if layer.startswith("dec") else "text"
    columns = "source token" if crossing else "token"
    yield Note(
        f"Each row is a token of the {rows}, each column a {columns}; the numbers are the shares that the row takes "
        f"from each column, and sum to 1. This is `{layer}`, in the last layer, head by head; the other layers are "
        f"further down."
    )
    heads = [name for name in weights if name.startswith(f"{layer}.")]
    yield Beside([_numbers(trace, name)._replace(caption=f"head {h}") for h, name in enumerate(heads)])


# --- the way ----------------------------------------------------------------------------------------------------------


def _is_large(trace: Trace) -> bool:
    """Whether the page has no room for everything."""
    return sum(array.size for array in trace.values.values()) > LARGE


def _holds_parameters(trace: Trace) -> bool:
    return count(trace.machine.config) <= SMALL


def _numbers(trace: Trace, name: str) -> Numbers:
    """A quantity's numbers, as many as fit a page for a run of this size."""
    if not _is_large(trace):
        return numbers(trace, Address(name), TOKENS, LIMIT)
    of_tokens = all(trace.axis_tokens(name, axis) for axis in trace.stages[name].axes)
    return numbers(trace, Address(name), 24 if of_tokens else 8, 8)


def _quantity(trace: Trace, name: str) -> Quantity:
    return quantity(trace, Address(name), _numbers(trace, name))


def _layers(trace: Trace, side: str, title: str) -> Iterator[Block]:
    """Each layer folded up, its sub-layers in order, the heads of a quantity side by side."""
    config = trace.machine.config
    for n in range(config.n_encoder_layers if side == "enc" else config.n_decoder_layers):
        names = [name for name in trace.values if name.startswith(f"{side}.{n}.")]
        if names:
            parts = list(dict.fromkeys(name.split(".")[2] for name in names))
            about = ", ".join(PARTS[p].split(":")[0].lower() for p in parts)
            blocks = [block for p in parts for block in _sub_layer(trace, f"{side}.{n}.{p}", names)]
            yield Fold(f"{title} layer {n}", about, blocks, f"{side}.{n}")


def _sub_layer(trace: Trace, prefix: str, names: Sequence[str]) -> Iterator[Block]:
    yield Note(f"{PARTS[prefix.split('.')[2]]}: `{prefix}`")
    yield from _groups(trace, [name for name in names if name.startswith(f"{prefix}.")])
    if _holds_parameters(trace):
        parameters = [p for p in trace.addresses(prefix) if trace.stages[p].kind == "parameter"]
        yield Fold(f"Parameters of {prefix}", "", list(_groups(trace, parameters)))


def _groups(trace: Trace, names: Sequence[str]) -> Iterator[Block]:
    """The quantities one after the other; those that every head has, side by side."""
    stems: dict[str, list[str]] = {}
    for name in names:
        stem, _, head = name.rpartition(".h")
        stems.setdefault(stem if head.isdigit() else name, []).append(name)
    for stem, heads in stems.items():
        drawn = heads[:1] if _is_large(trace) else heads
        if heads == [stem]:
            yield _quantity(trace, stem)
        else:
            yield Heads([_quantity(trace, name) for name in drawn])
        if len(drawn) < len(heads):
            left_out = f"Heads {len(drawn)} to {len(heads) - 1} are left out here; they are made likewise."
            yield Note(left_out, kind="quiet")


def _check(seen: Look, again: CommandLine) -> Iterator[Block]:
    yield Note(
        "Every number above stands in a cell that says its address (in the attribute `data-address`). This prints "
        "where one of them comes from, and recomputes it from its inputs:"
    )
    yield again.why("out.prob[0]@0" if seen.model.config.has_decoder else "out.prob[0]")
    yield Note("And this recomputes two hundred of them, drawn at random, by a second implementation:")
    yield again.check()
