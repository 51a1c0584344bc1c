"""Parts of a file of lines: where they begin and end, their lines, and how they become one file again."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from vidrio.wide.places import Place

PART = 1 << 18  # bytes, hardly more: some seconds of a worker's time
BLOCK = 1 << 16  # bytes


class Part(NamedTuple):
    """Some lines of a file, always the same ones."""

    number: int
    start: int  # the byte where it begins
    bytes: int
    first: int  # the number of its first line, from 1
    lines: int
    file: int  # its number


@dataclass(frozen=True)
class File:
    """A file, where its answers go, and where the parts of those lie until then."""

    source: Place
    target: Place
    folder: Place

    def place(self, part: Part) -> Place:
        return self.folder / f"{part.number:06}"

    def parts_there(self, parts: Sequence[Part]) -> set[Part]:
        there = {place.base for place in self.folder.files()}
        return {part for part in parts if self.place(part).base in there}

    def forget_parts(self) -> None:
        for place in self.folder.files():
            place.remove()


def cut_lines(file: File, number: int) -> list[Part]:
    """Parts of about the same size, cut at the ends of lines; `number` is the file's."""
    parts: list[Part] = []
    size = file.source.size() or 0
    wanted = size / max(1, -(-size // PART))
    at = start = lines = 0
    first, last = 1, b"\n"
    with file.source.system.open_input_stream(file.source.path, compression=None) as stream:
        while block := stream.read(BLOCK):
            lines += block.count(b"\n")
            at += len(block)
            last = block[-1:]
            end = at - len(block) + block.rfind(b"\n") + 1
            if wanted <= at - start and at < size and b"\n" in block:
                parts.append(Part(len(parts), start, end - start, first, lines, number))
                start, first, lines = end, first + lines, 0
    if at > start:
        parts.append(Part(len(parts), start, at - start, first, lines + (last != b"\n"), number))
    return parts


def lines_of(file: File, part: Part) -> Sequence[bytes]:
    return file.source.read(part.start, part.bytes).removesuffix(b"\n").split(b"\n")


def join_lines(file: File, parts: Sequence[Part]) -> None:
    """Put a file together."""
    with file.target.writing() as stream:
        for part in parts:
            stream.write(file.place(part).read())
