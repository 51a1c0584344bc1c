"""Draws docs/images/architecture.svg from the imports: `python docs/architecture.py`. A test compares the two.

A box is a package, or a module at the root, with its text from the README's source layout. A line leads down from a box
to one that it imports. Imports that follow from other lines are not drawn.
"""

import re
import sys
from html import escape
from pathlib import Path
from textwrap import wrap

REPOSITORY = Path(__file__).resolve().parent.parent
PICTURE = REPOSITORY / "docs" / "images" / "architecture.svg"
LEFT_OUT = {"__init__", "__main__", "_version", "cli", "errors"}  # these import, or are imported by, almost all others

# The centre of each box, in columns and rows.
PLACES = {
    "commands": (2.5, 0),
    **{"learn": (0, 1), "interop": (1, 1), "site": (3, 1), "wide": (5, 1)},
    "serve": (3, 2),
    **{"score": (0, 3), "look": (3.17, 3), "documents": (4.12, 3), "lessons": (5.07, 3)},
    **{"data": (1, 4), "translate": (2, 4), "glass": (3, 4), "search": (4, 4)},
    **{"text": (1.5, 5), "engine": (2.6, 5)},
    "hypothesis": (3.1, 6),
    "model": (2.2, 7),
}
ACROSS, DOWN = 190, 94  # from box to box
WIDTH, HEIGHT = 172, 58  # of a box

MODELS = {"engine", "glass", "learn"}  # the three implementations of the Transformer

Graph = dict[str, set[str]]


def packages(files: Graph) -> Graph:
    """Which package imports which."""
    graph: Graph = {}
    for name, imported in files.items():
        package = name.partition(".")[0]
        graph.setdefault(package, set()).update(other.partition(".")[0] for other in imported)
    return {a: others - LEFT_OUT - {a} for a, others in sorted(graph.items()) if a not in LEFT_OUT}


def below(graph: Graph, name: str) -> set[str]:
    """All that a package imports, directly or not."""
    return {deeper for other in graph[name] for deeper in {other} | below(graph, other)}


def lines(graph: Graph) -> list[tuple[str, str]]:
    """The imports that do not follow from others."""
    return [
        (a, b) for a, others in graph.items() for b in sorted(others) if not any(b in below(graph, c) for c in others)
    ]


def texts(readme: str) -> dict[str, str]:
    """What the README's source layout says of each package."""
    return dict(re.findall(r"^  (\w+)(?:/|\.py) +(.+)$", readme, re.MULTILINE))


def svg(files: Graph, readme: str) -> str:
    graph, said = packages(files), texts(readme)
    if graph.keys() != PLACES.keys():
        raise SystemExit(f"PLACES in {Path(__file__).name} needs other boxes: {sorted(graph.keys() ^ PLACES.keys())}")
    at = {name: (x * ACROSS + WIDTH / 2 + 8, y * DOWN + 8) for name, (x, y) in PLACES.items()}
    right, bottom = (round(max(places)) for places in zip(*at.values(), strict=True))
    width, height = right + WIDTH // 2 + 8, bottom + HEIGHT + 8
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
        ' font-family="system-ui, sans-serif" text-anchor="middle">',
        "<title>Which package imports which</title>",
        '<marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#667"/></marker>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for a, b in lines(graph):
        (x1, y1), (x2, y2) = at[a], at[b]
        out.append(
            f'<path d="M{x1:g} {y1 + HEIGHT:g} {x2:g} {y2:g}" stroke="#667" fill="none" marker-end="url(#end)"/>'
        )
    for name, (x, y) in at.items():
        shown = wrap(said[name].partition(":")[0].partition(";")[0], 25)
        fill = "#ffe9c7" if name in MODELS else "#eef4f8"
        box = f'x="{x - WIDTH / 2:g}" y="{y:g}" width="{WIDTH}" height="{HEIGHT}" rx="6"'
        out.append(f'<rect {box} fill="{fill}" stroke="#357"/>')
        out.append(f'<text x="{x:g}" y="{y + 17:g}" font-size="14" font-weight="600">{name}</text>')
        for n, line in enumerate(shown[:3]):
            out.append(f'<text x="{x:g}" y="{y + 31 + 12 * n:g}" font-size="11">{escape(line)}</text>')
    return "\n".join([*out, "</svg>", ""])


if __name__ == "__main__":
    sys.path.insert(0, str(REPOSITORY / "tests"))
    from source import import_graph

    PICTURE.write_text(svg(import_graph(), (REPOSITORY / "README.md").read_text("utf-8")), encoding="utf-8")
