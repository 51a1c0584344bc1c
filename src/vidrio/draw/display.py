"""A run or a part of it, to look at: text in a terminal, the page in a notebook."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from vidrio.draw import terminal
from vidrio.draw.page import blocks_page
from vidrio.glass.numbers.trace import Trace
from vidrio.look.blocks import Block, Page, Section, Table, Words
from vidrio.look.glance import glance, part
from vidrio.look.quantities import at
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
        return Drawn(where, text, list(part(trace, where, precision)), precision)
    if isinstance(seen, Look):
        return Drawn(f"{seen.text} → {seen.translation}", repr(seen), list(glance(seen, precision)), precision)
    named = ((name, stage, trace.values[name]) for name, stage in trace.stages.items() if name in trace.values)
    rows = [
        [Words(name, "code"), *map(Words, (" × ".join(s.axes), shape(a), s.says, s.formula, s.place))]
        for name, s, a in named
    ]
    heads = ("address", "axes", "shape", "what it is", "formula", "place in the paper")
    return Drawn("Quantities", repr(trace), [Table(rows, heads, name="quantities")])
