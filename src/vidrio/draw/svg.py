"""Curves and heat maps as inline SVG: no script, no font, nothing fetched; colours are the page's own.

A picture of curves is narrow, so that its letters can be read on a telephone; the page puts several side by side.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import numpy as np

from vidrio.look.blocks import Curve, Curves, Heat
from vidrio.look.writing import clock, cut, minute_at, text_width, visible

WIDTH, HEIGHT = 340, 216
LEFT, RIGHT, TOP, BOTTOM = 50, 10, 10, 40
MOST_POINTS = 240  # of one curve; more are drawn as means of neighbours
CELL, LETTER = 30, 6.4  # of a heat map: the side of a cell, about the width of a letter
TOKEN = 14  # letters of a token


@dataclass(frozen=True)
class Frame:
    """What part of the numbers a picture shows, and where it puts them."""

    last: float  # step
    ticks: Sequence[float]

    def x(self, step: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * step / self.last

    def y(self, value: float) -> float:
        low, high = self.ticks[0], self.ticks[-1]
        return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (value - low) / (high - low)


def words(raw: str) -> str:
    """Text made safe for a page, and nothing in it that is invisible."""
    return escape(visible(raw))


def curves(block: Curves) -> str:
    """Some curves against steps, with the minutes below; nothing where there are no numbers."""
    lines = [Curve(line.name, thinned(line.points), line.marked) for line in block.lines if line.points]
    values = [value for line in lines for _, value in line.points if math.isfinite(value)]
    if not values:
        return ""
    frame = Frame(
        max(1.0, *(step for line in lines for step, _ in line.points)),
        list(ticks(min(0.0, *values) if block.from_zero else min(values), max(values))),
    )
    parts = [
        f'<svg class="curves" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{words(told(block.title, lines))}">'
    ]
    for tick in frame.ticks:
        y = frame.y(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="right" x="{LEFT - 6}" y="{y + 3.5:.1f}">{short(tick)}</text>')
    parts += _below(frame, block.minutes)
    for number, line in enumerate(lines):
        parts += _line(line, number, frame)
    names = "".join(f'<span class="c{number}">{words(line.name)}</span>' for number, line in enumerate(lines))
    legend = f'<span class="legend">{names}</span>' if len(lines) > 1 else ""
    return f"<figure>{''.join(parts)}</svg><figcaption>{words(block.title)}{legend}</figcaption></figure>"


def told(title: str, lines: Sequence[Curve]) -> str:
    """The picture in words, for who cannot see it."""
    ends = ((line.name, *line.points[0], *line.points[-1]) for line in lines)
    parts = [f"{name} from {short(a)} at step {i:,.0f} to {short(b)} at step {j:,.0f}" for name, i, a, j, b in ends]
    return f"{title}: {'; '.join(parts)}"


def _below(frame: Frame, minutes: Sequence[tuple[float, float]]) -> Iterator[str]:
    """The two lines of numbers below a picture."""
    y = HEIGHT - BOTTOM
    yield f'<text class="right" x="{LEFT - 12}" y="{y + 15}">step</text>'
    if minutes:
        yield f'<text class="right" x="{LEFT - 12}" y="{y + 29}">min</text>'
    for tick in (tick for tick in ticks(0, frame.last, 4) if tick <= frame.last):
        x = frame.x(tick)
        where = f'class="right" x="{x + 8:.1f}"' if x > WIDTH - RIGHT - 20 else f'class="middle" x="{x:.1f}"'
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + 4}"/>'
        yield f'<text {where} y="{y + 15}">{short(tick)}</text>'
        if minutes:
            yield f'<text {where} y="{y + 29}">{clock(minute_at(minutes, tick))}</text>'


def _line(line: Curve, number: int, frame: Frame) -> Iterator[str]:
    places = [(f"{frame.x(s):.1f}", f"{frame.y(v):.1f}") for s, v in line.points if math.isfinite(v)]
    yield f'<polyline class="c{number}" points="{" ".join(",".join(place) for place in places)}"/>'
    if line.marked or len(places) == 1:
        yield from (f'<circle class="c{number}" cx="{x}" cy="{y}" r="2.2"/>' for x, y in places)


def thinned(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """At most MOST_POINTS: each the mean of neighbours; the last one as it is."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return list(points)
    groups = (np.array(points[i : i + size], dtype=np.float64).mean(axis=0) for i in range(0, len(points), size))
    return [*((float(step), float(value)) for step, value in groups), points[-1]]


def ticks(low: float, high: float, most: int = 5) -> Iterator[float]:
    """Round numbers from below `low` to above `high`, at equal distances of 1, 2 or 5 · 10ⁿ."""
    if high - low <= 1e-12 * max(abs(low), abs(high), 1e-12):
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    distance = next(power * n for n in (1, 2, 5, 10) if (high - low) / (power * n) <= most)
    first, last = math.floor(low / distance + 1e-9), math.ceil(high / distance - 1e-9)
    yield from (n * distance for n in range(first, last + 1))


def short(value: float) -> str:
    """A number in few characters: 1.2M, 25k, 3.5, 0.0012."""
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e4, "k")):
        if abs(value) >= size:
            unit = 1e3 if letter == "k" else size
            return f"{value / unit:.3g}{letter}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def bar(share: float) -> str:
    """A share from 0 to 1, beside its digits."""
    return (
        '<svg class="bar" viewBox="0 0 120 10" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="track" width="120" height="10"/>'
        f'<rect width="{120 * min(1.0, max(0.0, share)):.1f}" height="10"/></svg>'
    )


# --- heat maps --------------------------------------------------------------------------------------------------------


def heat(block: Heat) -> str:
    """Shares from 0 to 1 as shaded cells with their hundredths; pointing at a cell tells it. A row sums to 1."""
    rows, columns = ([cut(token, TOKEN) for token in tokens] for tokens in (block.rows, block.columns))
    caption = words(block.caption)
    left = 12 + LETTER * max(map(text_width, rows), default=0)
    # The columns' tokens stand at 50 degrees: as high as 0.77 of their length, and as far to the right as 0.64.
    longest = LETTER * max(map(text_width, columns), default=0)
    top, width = 16 + 0.77 * longest, left + CELL * len(columns) + 0.64 * longest + 4
    height = top + CELL * len(rows) + 4
    parts = [
        f'<svg class="heat" width="{width:.0f}" height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'role="img" aria-label="{caption}">'
    ]
    for s, token in enumerate(columns):
        x = left + CELL * (s + 0.5)
        parts.append(f'<text transform="translate({x:.1f} {top - 6:.1f}) rotate(-50)">{words(token)}</text>')
    for t, token in enumerate(rows):
        y = top + CELL * t
        parts.append(f'<text class="right" x="{left - 6:.1f}" y="{y + CELL / 2 + 4:.1f}">{words(token)}</text>')
        parts += (
            _cell(float(block.weights_TS[t, s]), left + CELL * s, y, f"{token} reads {other}")
            for s, other in enumerate(columns)
        )
    return (
        f'<figure><div class="scroll" tabindex="0" role="region" aria-label="{caption}">{"".join(parts)}</svg>'
        f"</div><figcaption>{caption}</figcaption></figure>"
    )


def _cell(share: float, x: float, y: float, what: str) -> str:
    # No darker than 0.55, so that the digits can be read in both the light and the dark page.
    drawn = (
        f'<g><title>{words(what)}: {share:.4f}</title><rect x="{x:.1f}" y="{y:.1f}" width="{CELL - 2}" '
        f'height="{CELL - 2}" fill-opacity="{0.03 + 0.52 * share:.3f}"/>'
    )
    if share >= 0.095:
        middle = f'x="{x + CELL / 2 - 1:.1f}" y="{y + CELL / 2 + 2.5:.1f}"'
        drawn += f'<text class="middle digits" {middle}>{f"{share:.2f}".removeprefix("0")}</text>'
    return drawn + "</g>"
