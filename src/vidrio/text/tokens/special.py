"""Which tokens of a vocabulary are special: padding, unknown, start and end; and those of single bytes."""

import json
from pathlib import Path
from typing import NamedTuple

import tokenizers

from vidrio.errors import TokenizerError
from vidrio.model.config import SpecialIds

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
LARGEST_VOCABULARY = 1_000_000
NONE = -1  # the id of a special token that a vocabulary does not have


class SpecialNames(NamedTuple):
    """What the special tokens are called in a vocabulary; None where there is none."""

    pad: str | None = "<pad>"
    unk: str | None = "<unk>"
    start: str | None = "<s>"
    end: str | None = "</s>"

    def given(self) -> list[str]:
        return [name for name in self if name is not None]


def special_ids(engine: tokenizers.Tokenizer, names: SpecialNames) -> SpecialIds:
    ids = engine.get_vocab()
    pad, unk, start, end = (NONE if name is None else ids[name] for name in names)
    return SpecialIds(pad=pad, unk=unk, start=start, end=end)


def told_special_ids(engine: tokenizers.Tokenizer, path: Path) -> SpecialIds:
    """The special tokens as the file tells them: its template's edges, its model's unknown, padding as what is left."""
    data = json.loads(engine.to_str())
    template = [part for part in (data.get("post_processor") or {}).get("single") or [] if isinstance(part, dict)]
    names = [next(iter(part.values())).get("id") if "SpecialToken" in part else None for part in template]
    middle = names.index(None) if None in names else 0
    start = names[0] if middle else None
    end = names[-1] if names[middle + 1 :] else None
    model = data["model"]
    unk = model.get("unk_token")
    if model["type"] == "Unigram" and model.get("unk_id") is not None:
        unk = model["vocab"][model["unk_id"]][0]
    if unk is not None and engine.token_to_id(unk) is None:
        unk = None  # the library writes a name even where there is no such token
    pads = [token["content"] for token in data["added_tokens"] if token["special"]]
    pads = [name for name in pads if name not in (start, end, unk)]
    if end is None or len(pads) > 1:
        raise TokenizerError(
            f"{path} does not tell which tokens are special",
            found=f"start {start}, end {end}, unknown {unk}, padding {' or '.join(pads) or None}",
            do="give their ids",
        )
    return special_ids(engine, SpecialNames(pads[0] if pads else None, unk, start, end))
