"""The lines of many files → a line for each, on a Ray cluster, part by part.

    OUT/NAME                          appears when all of a file is done
    OUT/.vidrio/NAME/000000 …         the parts that are done, until then
    OUT/.vidrio/NAME/manifest.json    what they belong to; stays, so that a finished file is known again

A part is some lines of one file, always the same ones. It is read and written by whoever works on it, so a part that
is done twice is written twice alike, and a part that is there is done.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePath
from typing import NamedTuple

from vidrio.data.lock import only_one
from vidrio.documents.suffixes import DOCUMENTS, OTHERS
from vidrio.errors import DataError
from vidrio.model.files import refuse_other
from vidrio.model.json_text import json_text
from vidrio.translate.stream import waited_for
from vidrio.wide.cluster import Failed, Pool, cluster, results, share_out
from vidrio.wide.parquet import cut_rows, join_rows, texts_of
from vidrio.wide.parts import Cut, File, Part, cut_lines, join_lines, lines_of
from vidrio.wide.places import Place, matching

THREADS = 4  # files that are looked at or put together at the same time
TOLD = 20  # failed parts, unknown words: about so many are listed
COMPRESSED = (".gz", ".zst", ".xz", ".bz2")  # cannot be begun in the middle, as a part must be


class Answered(NamedTuple):
    """What became of some lines."""

    lines: list[str]
    unknown: list[str]  # words that the vocabulary does not hold
    replaced: int  # lines that were not UTF-8


# The file's name, its lines, the number of the first, whether they are JSON → their answers.
Answer = Callable[[str, Sequence[bytes], int, bool], Answered]
# A title and a total → what is told how much of it is done.
Bar = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]


@dataclass(frozen=True)
class Asked:
    """A piece of bulk work."""

    inputs: Sequence[str]  # files, folders, patterns
    output: str  # a folder
    address: str | None  # of the cluster
    resume: bool
    cores: int | None  # of a worker
    belongs: Mapping[str, str]  # to which model and options
    begin: Callable[[int], Answer]  # opens the model on a worker with so many cores
    columns: Sequence[str] = ()  # that a table gets: fields of the answers


@dataclass
class Summary:
    """What was done."""

    files: int = 0
    there: int = 0  # of them finished before
    lines: int = 0
    again: int = 0  # parts that were tried again
    replaced: int = 0
    failed: dict[Part, str] = field(default_factory=dict)  # and why
    pool: Pool | None = None
    unknown: dict[str, None] = field(default_factory=dict)


def worker(files: Sequence[File], begin: Callable[[int], Answer], cores: int) -> Callable[[Part], Answered]:
    """On a worker: open the model. It may be at several parts at the same time."""
    answer = begin(cores)

    def work(part: Part) -> Answered:
        file = files[part.file]
        lines = (texts_of if file.parquet else lines_of)(file, part)
        answered = answer(file.source.name, lines, part.first, file.parquet)
        if len(answered.lines) != part.lines:
            raise RuntimeError(f"{len(answered.lines)} lines for {part.lines}")
        with file.place(part).writing() as stream:
            stream.write("".join(f"{line}\n" for line in answered.lines).encode())
        return answered._replace(lines=[])

    return work


def answer_files(asked: Asked, bar: Bar) -> Summary:
    """Answer all lines of all files. The bar is told how many bytes are done."""
    out = Place.of(asked.output)
    files = [
        File(source, out / name, out / ".vidrio" / name, name.lower().endswith(".parquet"))
        for name, source in matching(asked.inputs).items()
    ]
    if own := next((file for file in files if file.source.path == file.target.path), None):
        raise DataError("an output would replace its input", found=own.source.name, do="give another folder")
    for file in files:
        refuse_no_lines(file.source.name)
    # A store of objects has no locks.
    lock = only_one(Path(out.path) / ".vidrio" / ".lock") if out.system.type_name == "local" else nullcontext()
    with lock:
        return _answered(files, asked, bar)


def _answered(files: Sequence[File], asked: Asked, bar: Bar) -> Summary:
    summary = Summary(files=len(files))
    threads = ThreadPoolExecutor(THREADS)
    try:
        cuts = list(map(waited_for, [threads.submit(_cut, file) for file in files]))
        left = [_left(file, cut, asked) for file, cut in zip(files, cuts, strict=True)]
        summary.there = left.count(None)
        todo = [part._replace(file=number) for number, parts in enumerate(left) for part in parts or ()]
        waiting = {number: len(parts) for number, parts in enumerate(left) if parts is not None}
        joining: list[Future[int]] = []

        def end_file(number: int) -> None:
            join = partial(join_rows, columns=asked.columns) if files[number].parquet else join_lines
            joining.append(threads.submit(join, files[number], cuts[number]))

        for number, parts in waiting.items():
            if not parts:
                end_file(number)
        total = sum(cut.bytes for cut in cuts)
        done = total - sum(part.bytes for part in todo)
        if todo:
            with cluster(asked.address), bar("translating", total) as show:
                summary.pool = pool = share_out(asked.cores)
                for part in _tried(todo, files, asked, pool, summary):
                    waiting[part.file] -= 1
                    done += part.bytes
                    show(done)
                    if not waiting[part.file]:
                        end_file(part.file)
        summary.lines = sum(map(waited_for, joining))
    finally:
        threads.shutdown(wait=False, cancel_futures=True)
    if summary.failed:
        raise _failure(files, todo, summary.failed)
    return summary


def refuse_no_lines(name: str) -> None:
    """Refuse what is garbled line by line."""
    suffix = PurePath(name).suffix.lower()
    if suffix in COMPRESSED:
        raise DataError(f"{name} is compressed", found="--ray reads files from the middle", do="unpack it first")
    if suffix in DOCUMENTS | OTHERS:
        raise DataError(f"{name} is no file of lines", found=suffix, do="translate it without --ray, or leave it out")


def _cut(file: File) -> Cut:
    return cut_rows(file) if file.parquet else cut_lines(file.source)


def _tried(todo: Sequence[Part], files: Sequence[File], asked: Asked, pool: Pool, summary: Summary) -> Iterator[Part]:
    """The parts, as they are done. Those that could not be done are left in the summary."""
    for part, outcome, tries in results(partial(worker, files, asked.begin, pool.cores), todo, pool):
        summary.again += tries - 1
        if isinstance(outcome, Failed):
            summary.failed[part] = outcome.why
            continue
        summary.replaced += outcome.replaced
        if len(summary.unknown) < TOLD:
            summary.unknown |= dict.fromkeys(outcome.unknown)
        yield part


def _left(file: File, cut: Cut, asked: Asked) -> Sequence[Part] | None:
    """The parts of a file that are not done yet; None if the file is finished."""
    identity = {"input": f"{cut.bytes} bytes, {cut.checksum}", **asked.belongs}
    manifest = file.folder / "manifest.json"
    if asked.resume and manifest.size() is not None:
        before = json.loads(manifest.read())
        refuse_other(file.target.name, before, identity)
        if before.get("bytes") is not None and before["bytes"] == file.target.size():
            return None
        there = dict(file.folder.files())
        for name, place in there.items():
            if name.endswith(".part"):
                place.remove()
        return [part for part in cut.parts if f"{part.number:06}" not in there]
    for _, old in file.folder.files():
        old.remove()
    with manifest.writing() as stream:
        stream.write(json_text(identity).encode())
    return cut.parts


def _failure(files: Sequence[File], parts: Sequence[Part], failed: Mapping[Part, str]) -> DataError:
    which = [part for part in parts if part in failed]
    lines = [
        f"{files[part.file].source.name}, lines {part.first:,} to {part.first + part.lines - 1:,}: "
        + " ".join(failed[part].split())
        for part in which[:TOLD]
    ]
    more = [f"and {len(which) - TOLD:,} more"] if len(which) > TOLD else []
    return DataError(
        f"{len(which):,} of {len(parts):,} parts could not be done",
        found="\n    ".join([*lines, *more]),
        do="the same command with --resume tries these again; what is done stays",
    )
