"""Parts of a file of lines: where they begin and end, their lines, and how they become one file again."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple

from vidrio.errors import DataError
from vidrio.model.json_text import json_text
from vidrio.wide.places import Place

PART = 1 << 18  # bytes, hardly more: some seconds of a worker's time
BLOCK = 1 << 16  # bytes


class Part(NamedTuple):
    """Some lines of a file."""

    number: int
    start: int  # the byte, in Parquet the row of its row group, where it begins
    bytes: int
    first: int  # the number of its first line, from 1
    lines: int
    group: int = 0  # the row group, in Parquet
    file: int = 0


class Cut(NamedTuple):
    """A file as its parts, and a checksum of all of it."""

    parts: Sequence[Part]
    bytes: int
    checksum: str


@dataclass(frozen=True)
class File:
    """A file, where its answers go, and where their parts lie until then."""

    source: Place
    target: Place
    folder: Place
    parquet: bool

    def place(self, part: Part) -> Place:
        return self.folder / f"{part.number:06}"

    def answers(self, part: Part) -> bytes:
        """What was written of a part, if it is whole."""
        place = self.place(part)
        data = place.read()
        if (lines := data.count(b"\n")) != part.lines:
            place.remove()
            found = f"{lines} lines of {part.lines}"
            raise DataError(f"{place.name} is damaged", found=found, do="go on with --resume")
        return data

    def finish(self) -> None:
        """The parts are not needed any more; the manifest tells that the file is finished."""
        manifest = self.folder / "manifest.json"
        identity = json.loads(manifest.read()) | {"bytes": self.target.size()}
        with manifest.writing() as stream:
            stream.write(json_text(identity).encode())
        for name, place in self.folder.files():
            if name != "manifest.json":
                place.remove()


def cut_lines(place: Place, most: int | None = None) -> Cut:
    """Parts of about the same size, cut at the ends of lines."""
    parts: list[Part] = []
    checksum = sha256()
    size = place.size() or 0
    wanted = size / max(1, -(-size // (most or PART)))
    at = start = lines = 0
    first, last = 1, b"\n"
    with place.system.open_input_stream(place.path, compression=None) as stream:
        while block := stream.read(BLOCK):
            checksum.update(block)
            lines += block.count(b"\n")
            at += len(block)
            last = block[-1:]
            end = at - len(block) + block.rfind(b"\n") + 1
            if wanted <= at - start and at < size and b"\n" in block:
                parts.append(Part(len(parts), start, end - start, first, lines))
                start, first, lines = end, first + lines, 0
    if at > start:
        parts.append(Part(len(parts), start, at - start, first, lines + (last != b"\n")))
    return Cut(parts, at, checksum.hexdigest())


def lines_of(file: File, part: Part) -> Sequence[bytes]:
    return file.source.read(part.start, part.bytes).removesuffix(b"\n").split(b"\n")


def join_lines(file: File, cut: Cut) -> int:
    """Put a file together; how many lines it has."""
    with file.target.writing() as stream:
        for part in cut.parts:
            stream.write(file.answers(part))
    file.finish()
    return sum(part.lines for part in cut.parts)
