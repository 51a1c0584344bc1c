"""What stands in a page that is one file, read without a browser."""

import json
import re
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from vidrio.look.blocks import Block
from vidrio.look.blocks_data import as_data


def data_of(source: str) -> dict[str, Any]:
    """Style, script and data stand in it, in this order: here the third."""
    parts = re.findall(r'<script type="text/plain" data-bytes="(\d+)">(.*?)</script>', source, re.DOTALL)
    length, digits = parts[2]
    codes = [20 if code == 126 else code - 40 for code in digits.encode()]
    numbers = (codes[i : i + 5] for i in range(0, len(codes), 5))
    content = b"".join(sum(d * 85 ** (4 - n) for n, d in enumerate(five)).to_bytes(4, "big") for five in numbers)
    data: dict[str, Any] = json.loads(zlib.decompress(content[: int(length)]))
    return data


def sections(source: str | Path) -> dict[str, str]:
    """Each section's text by its anchor; `header` what stands above them."""
    data = data_of(source if isinstance(source, str) else source.read_text("utf-8"))
    assert data["kind"] == "blocks"
    return {"header": text_of(data["header"])} | {s["anchor"]: text_of(s["blocks"]) for s in data["sections"]}


def text(blocks: Iterable[Block]) -> str:
    return text_of(json.loads(json.dumps(as_data(blocks), default=lambda array: array.tolist())))


def text_of(blocks: Iterable[dict[str, Any]]) -> str:
    """A line a block; of a table a line a row, its cells parted by ` | `."""
    return "\n".join(line for block in blocks for line in _lines(block))


def _lines(block: dict[str, Any]) -> Iterable[str]:
    kind = block["kind"]
    if kind == "table":
        yield " | ".join(block["heads"])
        yield from (" | ".join(map(_cell, row)) for row in block["rows"])
    elif kind in ("beside", "fold"):
        yield from [block["title"]] if kind == "fold" else []
        yield text_of(block["blocks"])
    elif kind == "pairs":
        yield from (f"{name} = {value}" for name, value in block["pairs"])
    elif kind == "curves":
        yield f"curves: {block['title']}"
    elif kind == "heat":
        yield f"heat: {block['caption']}"
    else:
        yield block.get("text", "")


def _cell(cell: Any) -> str:
    if isinstance(cell, str):
        return cell
    return str(cell.get("words", cell.get("value", "")))
