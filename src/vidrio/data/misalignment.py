"""Where two files that should be aligned part: the line from which they fit better when one is shifted."""

from array import array
from pathlib import Path
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from vidrio.data.lines import read_lines
from vidrio.errors import DataError


def parting(source: Path, target: Path) -> DataError:
    """The error that tells how many lines the files have, and where they seem to part."""
    ours, theirs = _features(source), _features(target)
    n, m = len(ours), len(theirs)
    line = _line(ours, theirs) if n > m else _line(theirs, ours)
    shorter, longer = sorted((n, m))
    where = "the shorter one simply ends" if line > shorter else f"they seem to part near line {line:,}"
    return DataError(
        "the two files do not have the same number of lines",
        found=f"{source}: {n:,}, {target}: {m:,} ({longer - shorter:,} more); {where}",
        do="align them again, line by line: an empty line keeps its place",
    )


def _features(path: Path) -> NDArray[np.int64]:
    """Of each line its length, and a checksum of its digits (0 without any)."""
    rows = array("q")
    for line in read_lines(path):
        digits = "".join(filter(str.isdigit, line.text))
        rows.extend((len(line.text.strip()), crc32(digits.encode()) if digits else 0))
    return np.frombuffer(rows, dtype=np.int64).reshape(-1, 2)


def _line(longer: NDArray[np.int64], shorter: NDArray[np.int64]) -> int:
    """The line of the longer file where it has more: before it the lines fit as they stand, after it shifted."""
    shift = len(longer) - len(shorter)
    straight = _fit(longer[: len(shorter)], shorter)
    shifted = _fit(longer[shift:], shorter)
    total = np.concatenate([[0], np.cumsum(straight)]) + np.concatenate([np.cumsum(shifted[::-1])[::-1], [0]])
    return int(len(total) - 1 - np.argmax(total[::-1])) + 1


def _fit(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
    """How well lines fit: similar lengths, the same digits, both blank or neither."""
    (length_a, digits_a), (length_b, digits_b) = a.T, b.T
    fit = -np.abs(np.log((length_a + 5) / (length_b + 5)))
    fit += np.where(digits_a == digits_b, np.where(digits_a != 0, 2.0, 0.0), -1.0)
    return fit - 3.0 * ((length_a == 0) != (length_b == 0))
