"""Pairs as ids, to learn from: in memory, or on disk and memory-mapped (ten million take a few megabytes of memory).

    FOLDER/tokens-KEY/
      source.ids   target.ids        ids of all sentences, one after the other (uint16; uint32 above 65,536 tokens)
      source.starts   target.starts  where each sentence begins, and the end of the last (uint64)
      store.json                     how many, of which type; written last

A pair takes two bytes (or four) for each token and 16 more. KEY is a checksum of the pairs and the tokenizers, so a
store is made once and found again while they are the same. No start or end tokens are stored.
"""

import json
import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidrio.data.prepare import Prepared, Share
from vidrio.data.progress import Progress, Work
from vidrio.errors import DataError
from vidrio.model.files import write_all, write_atomically
from vidrio.model.json_text import json_text
from vidrio.text.tokens.tokenizer import Tokenizer

Ids = NDArray[np.integer[Any]]
Sentences = tuple[NDArray[np.int64], NDArray[np.int64]]  # their ids, one after the other, and their lengths
# Sentences, a rate, where random numbers come from → the same, split otherwise.
Resplit = Callable[[NDArray[np.int64], NDArray[np.int64], float, np.random.Generator], Sentences]
Repeats = Sequence[tuple[int, float]]  # so many pairs, each so many times in an epoch; then so many others …
_ROUND = 10_000  # pairs that are encoded together, on all cores
_SIDES = ("source", "target")


@dataclass(frozen=True)
class Side:
    """All sentences of one side, without special tokens."""

    ids: Ids
    starts: Ids
    lengths: NDArray[np.int32]  # tokens of each sentence

    @staticmethod
    def of(ids: Ids, starts: Ids) -> "Side":
        return Side(ids, starts, np.diff(starts).astype(np.int32))

    def gather(self, which: Ids) -> Sentences:
        """The ids of some sentences, one after the other, and their lengths."""
        starts = self.starts[which].astype(np.int64)
        lengths = self.starts[np.asarray(which) + 1].astype(np.int64) - starts
        begins = np.cumsum(lengths) - lengths
        places = np.arange(lengths.sum()) + np.repeat(starts - begins, lengths)
        return self.ids[places].astype(np.int64), lengths


@dataclass(frozen=True)
class Examples:
    """What is learned from: pairs of sentences, wherever they lie."""

    source: Side
    target: Side
    repeats: Repeats
    # How each side's words may be split otherwise: BPE dropout. Classes, or nothing at all, have no words.
    resplit: tuple[Resplit | None, Resplit | None] = (None, None)

    def __len__(self) -> int:
        return len(self.source.starts) - 1


def in_memory(pairs: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Examples:
    """Pairs of ids in memory, as examples to learn from."""
    sides = []
    for side in (0, 1):
        ids = np.fromiter(chain.from_iterable(pair[side] for pair in pairs), dtype=np.int64)
        sides.append(Side.of(ids, np.cumsum([0, *(len(pair[side]) for pair in pairs)])))
    return Examples(sides[0], sides[1], [(len(pairs), 1.0)])


def store(prepared: Prepared, source: Tokenizer, target: Tokenizer, progress: Progress) -> Examples:
    """The ids of the prepared training pairs, as they lie there already or made now."""
    key = sha256(f"{prepared.key} {source.fingerprint()} {target.fingerprint()}".encode()).hexdigest()
    folder = prepared.folder / f"tokens-{key[:16]}"
    if not (folder / "store.json").exists():
        for old in prepared.folder.glob("tokens-*"):
            shutil.rmtree(old)
        part = folder.with_suffix(".part")
        part.mkdir()
        try:
            _write(part, prepared, (source, target), progress)
        except OSError as error:
            shutil.rmtree(part, ignore_errors=True)
            raise DataError(
                f"the tokens cannot be written to {part}", found=str(error.strerror), do="make room"
            ) from None
        part.rename(folder)
    return read(folder, prepared.shares)


def read(folder: Path, shares: Sequence[Share]) -> Examples:
    """A store on disk, checked for being whole."""
    try:
        about = json.loads((folder / "store.json").read_text(encoding="utf-8"))
        ids, count = np.dtype(about["dtype"]), int(about["pairs"])
        sides = [
            Side.of(_mapped(folder / f"{s}.ids", ids), _mapped(folder / f"{s}.starts", np.dtype(np.uint64)))
            for s in _SIDES
        ]
        if not all(len(side.starts) == count + 1 and side.starts[-1] == len(side.ids) for side in sides):
            raise ValueError("files of other sizes than it says")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{folder} holds no readable tokens", found=str(error), do="remove it: it is made again"
        ) from None
    return Examples(sides[0], sides[1], [(share.pairs, share.weight) for share in shares])


def _write(folder: Path, prepared: Prepared, tokenizers: tuple[Tokenizer, Tokenizer], progress: Progress) -> None:
    dtype = np.dtype(np.uint16 if max(t.size for t in tokenizers) <= 1 << 16 else np.uint32)
    encoding = progress.work = Work("encoding pairs", prepared.pairs["train"])
    tokens = dict.fromkeys(_SIDES, 0)
    with ExitStack() as stack:
        lines = stack.enter_context((prepared.folder / "train.tsv").open(encoding="utf-8", newline="\n"))
        names = [f"{side}.{what}" for side in _SIDES for what in ("ids", "starts")]
        # Unbuffered: a round is written at once, and closing a file never fails.
        files = {name: stack.enter_context((folder / name).open("wb", buffering=0)) for name in names}
        for side in _SIDES:
            write_all(files[f"{side}.starts"], np.zeros(1, dtype=np.uint64).tobytes())
        while rows := list(islice(lines, _ROUND)):
            columns = zip(*(line[:-1].split("\t") for line in rows), strict=True)
            for side, tokenizer, texts in zip(_SIDES, tokenizers, columns, strict=True):
                encoded = tokenizer.encode_batch(texts)
                ends = tokens[side] + np.cumsum([len(ids) for ids in encoded], dtype=np.uint64)
                write_all(files[f"{side}.ids"], np.fromiter(chain.from_iterable(encoded), dtype=dtype).tobytes())
                write_all(files[f"{side}.starts"], ends.tobytes())
                tokens[side] = int(ends[-1])
            encoding.done += len(rows)
        for file in files.values():
            os.fsync(file.fileno())
    progress.work = None
    about = {"pairs": encoding.done, "dtype": dtype.name, "tokens": tokens}
    write_atomically(folder / "store.json", json_text(about).encode())


def _mapped(path: Path, dtype: np.dtype) -> Ids:
    """A file as a read-only array; of no bytes, an empty one, which cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
