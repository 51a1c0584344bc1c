"""A run or a part of it, to look at: text in a terminal, the page in a notebook.

Nothing is computed here: every number is the trace's.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

from vidrio.draw import terminal
from vidrio.draw.page import blocks_page
from vidrio.glass.numbers.trace import Address, Trace, parse_address
from vidrio.look.blocks import Beside, Block, Note, Numbers, Page, Section, Table, Words
from vidrio.look.overview import classes_out, how_found, words_out
from vidrio.look.quantities import TOKENS, at, numbers, quantity, under
from vidrio.look.run import Look
from vidrio.look.writing import PRECISION, shape


@dataclass(frozen=True, repr=False)
class Drawn:
    """Something to look at."""

    title: str
    text: str
    blocks: Sequence[Block]
    precision: int = PRECISION

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        """The page with these blocks in it, in a frame of its own that reaches nothing outside."""
        page = blocks_page(Page(self.title, (), [Section("here", "", self.blocks)], ()), self.precision)
        style = "width:100%;height:440px;border:0;resize:vertical"
        return f'<iframe sandbox="allow-scripts" style="{style}" srcdoc="{escape(page)}"></iframe>'


def display(seen: Look | Trace, where: str = "", precision: int = PRECISION) -> Drawn:
    """What stands at an address; without one, of a run the words out, of a trace everything it holds in a line each."""
    trace = seen.trace if isinstance(seen, Look) else seen
    if where:
        text = terminal.text(at(trace, where, None, precision), precision)
        return Drawn(where, text, list(_part(trace, where, precision)), precision)
    if isinstance(seen, Look):
        return Drawn(f"{seen.text} → {seen.translation}", repr(seen), list(_glance(seen, precision)), precision)
    rows = [
        [Words(name, "code"), *map(Words, (" × ".join(s.axes), shape(trace.values[name]), s.says, s.formula, s.place))]
        for name, s in trace.stages.items()
        if name in trace.values
    ]
    heads = ("address", "axes", "shape", "what it is", "formula", "place in the paper")
    return Drawn("Quantities", repr(trace), [Table(rows, heads, name="quantities")])


def _part(trace: Trace, where: str, precision: int) -> Iterator[Block]:
    """A quantity, or every quantity under an address, drawn as numbers; of a number, its quantity."""
    address = parse_address(where)
    if address.step is not None:
        yield from at(trace, where, None, precision)
    else:
        names = [address.name] if address.name in trace else under(trace, address.name)
        yield from (quantity(trace, Address(name), _numbers(trace, name)) for name in names)


def _glance(seen: Look, precision: int) -> Iterator[Block]:
    """The words out and what each read."""
    yield Note(f"{seen.text} → {seen.translation}")
    if seen.result:
        yield Note(
            "At each step the decoder reads the source and its own words so far, and gives every word of the "
            "vocabulary a probability. ✗: the search may not take this token."
        )
        yield words_out(seen)
        yield from how_found(seen, precision)
    elif not (seen.stopped or seen.empty):
        yield from classes_out(seen)
    yield from _read(seen.trace)


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
        f"from each column, and sum to 1. This is `{layer}`, in the last layer, head by head."
    )
    heads = [name for name in weights if name.startswith(f"{layer}.")]
    yield Beside([_numbers(trace, name)._replace(caption=f"head {h}") for h, name in enumerate(heads)])


def _numbers(trace: Trace, name: str) -> Numbers:
    """A quantity's numbers, as many as fit a notebook."""
    return numbers(trace, Address(name), TOKENS)
