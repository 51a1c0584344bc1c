"""Read shortlists: the likely translations of each source token, as in Marian's lex*.bin files."""

import struct
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from vidrio.errors import ModelError
from vidrio.model.config import ModelConfig

FILE = "shortlist.bin"  # in a model folder
# The file consists of this header, u64 offsets and u32 tokens.
HEADER = struct.Struct(
    "<6Q"
)  # magic, checksum, number of tokens always listed, maximum per token, number of offsets, number of tokens
MAGIC, LARGEST_FILE = 0xF11A48D5013417F5, 1 << 28  # bytes


class Shortlist(NamedTuple):
    always: int  # tokens below this id, the most frequent ones, are always listed
    offsets: "memoryview[int]"
    tokens: "memoryview[int]"  # translations of source token i: tokens[offsets[i] : offsets[i + 1]]
    copies: bool  # whether source tokens are also listed, which requires a shared vocabulary

    def of(self, source: Iterable[int]) -> list[int]:
        """Return the tokens that may occur in the translation of a sentence, in ascending order."""
        ids = set(source)
        found = {*range(self.always), *(ids if self.copies else ())}
        for i in ids:
            found.update(self.tokens[self.offsets[i] : self.offsets[i + 1]])
        return sorted(found)


def folder_shortlist(folder: Path, config: ModelConfig, copies: bool) -> Shortlist | None:
    """Read the shortlist in a model folder, if there is one."""
    if not (folder / FILE).is_file():
        return None
    try:
        return read_shortlist(folder / FILE, config, copies)
    except ValueError as error:
        raise ModelError(f"{folder / FILE} is damaged", found=str(error), do="import the model again") from None


def read_shortlist(path: Path, config: ModelConfig, copies: bool) -> Shortlist:
    """Read a shortlist. Raises ValueError if the file is damaged or belongs to a different vocabulary."""
    size, source = path.stat().st_size, config.source_vocabulary
    if size > LARGEST_FILE:
        raise ValueError(f"{size:,} bytes")
    data = path.read_bytes()
    magic, _, always, _, n_offsets, n_tokens = HEADER.unpack_from(data.ljust(HEADER.size, b"\0"))
    begin = HEADER.size + 8 * n_offsets
    if magic != MAGIC or n_offsets != source + 1 or begin + 4 * n_tokens != size:
        raise ValueError(f"{n_offsets:,} offsets and {n_tokens:,} tokens in {size:,} bytes, for {source:,} tokens")
    offsets, tokens = memoryview(data)[HEADER.size : begin].cast("Q"), memoryview(data)[begin:].cast("I")
    in_order = not offsets[0] and offsets[-1] == n_tokens and all(a <= b for a, b in pairwise(offsets))
    if not in_order or max(always - 1, max(tokens, default=0)) >= config.target_vocabulary:
        raise ValueError("tokens that are not in the vocabulary, or lists that overlap")
    return Shortlist(always, offsets, tokens, copies)
