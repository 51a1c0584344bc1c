"""The lines of many files → a line for each, on a Ray cluster, part by part.

    OUT/NAME                   appears when all of a file is done
    OUT/.vidrio/NAME/000000 …  the parts that are done, until then

A part is some lines of one file, always the same ones. It is read and written by whoever works on it, so a part that
is done twice is written twice alike, and a part that is there is done.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from vidrio.data.lock import only_one
from vidrio.documents import DOCUMENTS, OTHERS
from vidrio.errors import DataError
from vidrio.wide.cluster import Failed, cluster, results, share_out
from vidrio.wide.parts import File, Part, Place, cut_lines, join_lines, lines_of, matching

MOST_LISTED = 20  # failed parts
NO_LINES = {".gz", ".zst", ".xz", ".bz2", ".parquet"} | DOCUMENTS | OTHERS  # would be garbled line by line

# The file's name, its lines, the number of the first → their answers.
Answer = Callable[[str, Sequence[bytes], int], list[str]]
# A title and a total → what is called with how much of it is done.
Bar = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]


@dataclass(frozen=True)
class Bulk:
    """A piece of bulk work."""

    inputs: Sequence[str]  # files, folders, patterns
    output: str  # a folder
    address: str | None  # of the cluster
    resume: bool
    cores: int | None  # of a worker
    begin: Callable[[int], Answer]  # opens the model on a worker with so many cores


@dataclass(frozen=True)
class Summary:
    """What was done."""

    files: int
    there: int  # of them complete before
    lines: int  # of the others


def worker(files: Sequence[File], begin: Callable[[int], Answer], cores: int) -> Callable[[Part], None]:
    """On a worker: open the model."""
    answer = begin(cores)

    def work(part: Part) -> None:
        file = files[part.file]
        lines = answer(file.source.name, lines_of(file, part), part.first)
        if len(lines) != part.lines:
            raise RuntimeError(f"{len(lines)} lines for {part.lines}")
        with file.place(part).writing() as stream:
            stream.write("".join(f"{line}\n" for line in lines).encode())

    return work


def answer_files(bulk: Bulk, bar: Bar) -> Summary:
    """Answer all lines of all files. The bar is called with how many bytes are done."""
    out = Place.of(bulk.output)
    files = [File(source, out / source.base, out / ".vidrio" / source.base) for source in matching(bulk.inputs)]
    for file in files:
        if (suffix := PurePath(file.source.name).suffix.lower()) in NO_LINES:
            do = "unpack it to plain or JSON lines first, or leave it out"
            raise DataError(f"{file.source.name} is not a file of plain lines", found=suffix, do=do)
        if file.source.path == file.target.path:
            raise DataError("an output would replace its input", found=file.source.name, do="give another folder")
    # A store of objects has no locks.
    lock = only_one(Path(out.path) / ".vidrio" / ".lock") if out.system.type_name == "local" else nullcontext()
    with lock:
        todo = [file for file in files if not (bulk.resume and file.target.size() is not None)]
        if not bulk.resume:
            for file in todo:
                file.forget_parts()
        parts = [cut_lines(file, number) for number, file in enumerate(todo)]
        _answer(todo, parts, bulk, bar)
    lines = sum(part.lines for cut in parts for part in cut)
    return Summary(len(files), len(files) - len(todo), lines)


def _answer(files: Sequence[File], parts: Sequence[Sequence[Part]], bulk: Bulk, bar: Bar) -> None:
    """Do the parts that are not there, and put each file together when it has all of its parts."""
    missing = [set(cut) - file.parts_there(cut) for file, cut in zip(files, parts, strict=True)]
    failed: dict[Part, str] = {}

    def end_file(number: int) -> None:
        if not missing[number]:
            join_lines(files[number], parts[number])
            files[number].forget_parts()

    for number in range(len(files)):
        end_file(number)
    todo = sorted(set().union(*missing), key=lambda part: (part.file, part.number))
    if not todo:
        return
    total = sum(part.bytes for cut in parts for part in cut)
    done = total - sum(part.bytes for part in todo)
    with cluster(bulk.address), bar("translating", total) as show:
        pool = share_out(bulk.cores)
        for part, outcome in results(partial(worker, files, bulk.begin, pool.cores), todo, pool):
            if isinstance(outcome, Failed):
                failed[part] = outcome.why
                continue
            missing[part.file].remove(part)
            done += part.bytes
            show(done)
            end_file(part.file)
    if failed:
        lines = [
            f"{files[part.file].source.name}, lines {part.first:,} to {part.first + part.lines - 1:,}: "
            + " ".join(failed[part].split())
            for part in todo
            if part in failed
        ]
        raise DataError(
            f"{len(lines):,} of {len(todo):,} parts failed",
            found="\n    ".join([*lines[:MOST_LISTED], *["…"] * (len(lines) > MOST_LISTED)]),
            do="run the same command with --resume to try these again; the others are kept",
        )
