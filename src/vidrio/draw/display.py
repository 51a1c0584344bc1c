"""A run or a part of it, to look at: text in a terminal, tables in a notebook."""

from dataclasses import dataclass

from vidrio.draw import html, terminal
from vidrio.glass.numbers.trace import Trace
from vidrio.look.blocks import Table, Words
from vidrio.look.page import glance, part
from vidrio.look.quantities import at
from vidrio.look.run import Look
from vidrio.look.writing import PRECISION, shape


@dataclass(frozen=True, repr=False)
class Drawn:
    """Something to look at."""

    text: str
    html: str

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return html.in_notebook(self.html)


def display(seen: Look | Trace, where: str = "", precision: int = PRECISION) -> Drawn:
    """What stands at an address; without one, of a run the words out, of a trace everything it holds in a line each."""
    trace = seen.trace if isinstance(seen, Look) else seen
    if where:
        text = terminal.text(at(trace, where, None, precision), precision)
        return Drawn(text, html.fragment(part(trace, where, precision), precision))
    if isinstance(seen, Look):
        return Drawn(repr(seen), html.fragment(glance(seen, precision), precision))
    named = ((name, trace.stages[name], array) for name, array in trace.values.items())
    rows = [
        [Words(name, "code"), *map(Words, (" × ".join(s.axes), shape(a), s.says, s.formula, s.place))]
        for name, s, a in named
    ]
    heads = ("address", "axes", "shape", "what it is", "formula", "place in the paper")
    return Drawn(repr(trace), html.fragment([Table(rows, heads, name="quantities")]))
