"""All attention heads at a glance, and how alike the tokens' embeddings are."""

from collections.abc import Iterator, Sequence

import numpy as np

from vidrio.errors import InputError
from vidrio.glass.numbers.trace import Trace
from vidrio.look.blocks import Block, Note, Numbers, apart
from vidrio.look.command_line import CommandLine
from vidrio.look.layout import shade, table
from vidrio.look.measures import Head, alike, heads
from vidrio.look.writing import NO_BREAK, PRECISION, WIDTH, cut, number, text_width


def overview(trace: Trace, again: CommandLine, precision: int = PRECISION) -> Iterator[Block]:
    """Every head in a line: how spread out it is, and its largest weight."""
    if not trace.values:
        raise InputError("the text is empty, so no attention was computed")
    every = heads(trace)
    yield from _lines(every, precision)
    yield ""
    yield Note(
        "Entropy: −Σ w log₂ w of a row, in bits, mean over the rows: 0 where each row looks at one place only, "
        "“at most” where it looks at all that it may see alike. The bar is entropy / at most. “world → hello”: "
        "row world takes its largest share from column hello. Of masked attention the first row is left out here: "
        "it can see only itself."
    )
    yield ""
    yield "One of them:"
    yield f"  {again.look('--at', every[-1].address)}"


def _lines(every: Sequence[Head], precision: int) -> Iterator[str]:
    """A line a head, cut to the width: the tokens of its largest weight take what room there is."""
    rows = [
        [
            head.address,
            number(head.entropy, precision),
            shade(head.entropy / head.most) if head.most else " ",
            *(number(value, precision) for value in (head.most, head.largest)),
        ]
        for head in every
    ]
    title, *lines = table(rows, ["head", "entropy", "", "at most", "largest"], "l.l..").splitlines()
    places = [f"[{head.row},{head.column}]" for head in every]
    room = max(4, (WIDTH - max(map(text_width, lines)) - max(map(len, places)) - len("   → ")) // 2)
    yield f"{title}  where"
    for line, place, head in zip(lines, places, every, strict=True):
        yield f"{line}  {place} {cut(head.asks, room)} → {cut(head.asked, room)}"


def embeddings(trace: Trace, precision: int = PRECISION) -> Iterator[Block]:
    """The tokens' embeddings: how alike they are among each other, and what stands near them in the vocabulary."""
    if not trace.values:
        raise InputError("the text is empty, so there are no embeddings to compare")
    config = trace.machine.config
    sides = ["src"] * config.has_encoder + ["tgt"] * config.has_decoder
    note = Note("cos(a, b) = a · b / (|a| |b|): 1 for the same direction, 0 for none in common, −1 for opposite ones.")
    yield from apart([*(_side(trace, side, precision) for side in sides), [note]])


def _side(trace: Trace, side: str, precision: int) -> Iterator[Block]:
    told = alike(trace, side)
    yield f"{'Source' if side == 'src' else 'Target'} tokens: cosine of each embedding with each, from {told.quantity}"
    yield Numbers(told.cosines, "", told.tokens, told.tokens, limit=(24, 24))
    yield f"Nearest in the whole table {told.table}, by cosine"
    table_VD = trace.array(told.table)
    for i, nearest in told.near.items():
        near = [f"{cut(told.words[j], 16)} {number(c, precision)}" for j, c in nearest]
        length = number(float(np.linalg.norm(table_VD[i])), precision)
        text = " · ".join(part.replace(" ", NO_BREAK) for part in near)
        yield Note(f"{cut(told.words[i], 16)} (length {length}): {text}", indent=2, hang=4)
