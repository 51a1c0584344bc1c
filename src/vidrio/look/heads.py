"""All attention heads at a glance, and how alike the tokens' embeddings are."""

from collections.abc import Iterator

import numpy as np

from vidrio.draw.show import NO_BREAK, PRECISION, WIDTH, cut, matrix, number, shade, table, text_width, wrap
from vidrio.errors import InputError
from vidrio.glass.numbers.trace import Trace
from vidrio.look.command_line import CommandLine
from vidrio.look.measures import cosines, heads, neighbours
from vidrio.model.parameters import source_table, target_table

NEIGHBOURS = 5


def overview(trace: Trace, again: CommandLine, precision: int = PRECISION) -> str:
    """Every head in a line: how spread out it is, and its largest weight."""
    if not trace.values:
        raise InputError("the text is empty, so no attention was computed")
    rows, wheres = [], []
    for head in heads(trace):
        stage = trace.stages[head.address]
        spread = shade(head.entropy / head.most) if head.most else " "
        numbers = [number(value, precision) for value in (head.entropy, head.most, head.largest)]
        rows.append([head.address, numbers[0], spread, numbers[1], numbers[2]])
        places = ((stage.axes[0], head.row), (stage.axes[1], head.column))
        wheres.append((f"[{head.row},{head.column}]", *(trace.axis_tokens(head.address, a)[i] for a, i in places)))
    drawn = table(rows, ["head", "entropy", "", "at most", "largest"], "l.l..")
    head_line, *lines = drawn.splitlines()
    room = WIDTH - max(map(text_width, lines)) - max(len(place) for place, *_ in wheres) - len("   → ")
    lines = [
        f"{line}  {place} {cut(asks, max(4, room // 2))} → {cut(asked, max(4, room // 2))}"
        for line, (place, asks, asked) in zip(lines, wheres, strict=True)
    ]
    drawn = "\n".join([f"{head_line}  where", *lines])
    note = (
        "Entropy: −Σ w log₂ w of a row, in bits, mean over the rows: 0 where each row looks at one place only, "
        "“at most” where it looks at all that it may see alike. The bar is entropy / at most. “world → hello”: "
        "row world takes its largest share from column hello. Of masked attention the first row is left out here: "
        "it can see only itself."
    )
    return "\n".join([drawn, "", wrap(note), "", "One of them:", f"  {again.look('--at', rows[-1][0])}"])


def embeddings(trace: Trace, precision: int = PRECISION) -> str:
    """The tokens' embeddings: how alike they are among each other, and what stands near them in the vocabulary."""
    if not trace.values:
        raise InputError("the text is empty, so there are no embeddings to compare")
    parts = []
    config = trace.machine.config
    if config.has_encoder:
        parts.append("\n".join(_side(trace, "src", source_table(config), precision)))
    if config.has_decoder:
        parts.append("\n".join(_side(trace, "tgt", target_table(config), precision)))
    parts.append(
        wrap("cos(a, b) = a · b / (|a| |b|): 1 for the same direction, 0 for none in common, −1 for opposite ones.")
    )
    return "\n\n".join(parts)


def _side(trace: Trace, side: str, table_name: str, precision: int) -> Iterator[str]:
    ids = trace.values[f"{side}.ids"]
    words = trace.source_vocabulary if side == "src" else trace.vocabulary
    tokens = [words[i] for i in ids]
    rows_LD = trace.values[f"{side}.embedding"]
    yield f"{'Source' if side == 'src' else 'Target'} tokens: cosine of each embedding with each, from {side}.embedding"
    yield matrix(cosines(rows_LD, rows_LD), tokens, tokens, precision, limit=24)
    yield f"Nearest in the whole table {table_name}, by cosine"
    table_VD = trace.array(table_name)
    for i in dict.fromkeys(int(i) for i in ids):
        near = [f"{cut(words[j], 16)} {number(c, precision)}" for j, c in neighbours(table_VD, i, NEIGHBOURS)]
        length = number(float(np.linalg.norm(table_VD[i])), precision)
        text = " · ".join(part.replace(" ", NO_BREAK) for part in near)
        yield wrap(f"{cut(words[i], 16)} (length {length}): {text}", indent="  ", hang="    ")
