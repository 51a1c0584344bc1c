"""The lines of many files → a line for each, on a Ray cluster, part by part.

    OUT/NAME                   appears when all of a file is done
    OUT/.vidrio/NAME/000000 …  the parts that are done, until then

A part is some lines of one file, always the same ones. It is read and written by whoever works on it, so a part that
is done twice is written twice alike, and a part that is there is done.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePath

from vidrio.data.lock import only_one
from vidrio.documents.suffixes import DOCUMENTS, OTHERS
from vidrio.errors import DataError
from vidrio.wide.cluster import Failed, cluster, results, share_out
from vidrio.wide.parts import File, Part, cut_lines, join_lines, lines_of
from vidrio.wide.places import Place, matching

THREADS = 4  # files that are looked at or put together at the same time
MOST_LISTED = 20  # failed parts
COMPRESSED = (".gz", ".zst", ".xz", ".bz2", ".parquet")  # a part cannot be read from the middle of these


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


@dataclass
class Summary:
    """What was done."""

    files: int = 0
    there: int = 0  # of them finished before
    lines: int = 0  # of the others


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
    sources = matching(bulk.inputs)
    for source in sources:
        refuse_no_lines(source.name)
        if source.path == (out / source.base).path:
            raise DataError("an output would replace its input", found=source.name, do="give another folder")
    files = [File(source, out / source.base, out / ".vidrio" / source.base) for source in sources]
    # A store of objects has no locks.
    lock = only_one(Path(out.path) / ".vidrio" / ".lock") if out.system.type_name == "local" else nullcontext()
    with lock:
        todo = [file for file in files if not (bulk.resume and file.target.size() is not None)]
        summary = Summary(files=len(files), there=len(files) - len(todo))
        if not bulk.resume:
            for file in todo:
                file.forget_parts()
        with ThreadPoolExecutor(THREADS) as threads:
            _answer(todo, bulk, bar, threads, summary)
    return summary


def _answer(files: Sequence[File], bulk: Bulk, bar: Bar, threads: ThreadPoolExecutor, summary: Summary) -> None:
    parts = [[part._replace(file=n) for part in cut] for n, cut in enumerate(threads.map(cut_lines, files))]
    summary.lines = sum(part.lines for cut in parts for part in cut)
    missing = [set(cut) - _done(file, cut) for file, cut in zip(files, parts, strict=True)]
    failed: dict[Part, str] = {}
    joining: list[Future[None]] = []

    def end_file(number: int) -> None:
        if not missing[number]:
            joining.append(threads.submit(_finish, files[number], parts[number]))

    for number in range(len(files)):
        end_file(number)
    if todo := sorted(set().union(*missing), key=lambda part: (part.file, part.number)):
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
    for future in joining:
        future.result()
    if failed:
        raise _failure(files, todo, failed)


def _done(file: File, parts: Sequence[Part]) -> set[Part]:
    there = {place.base for place in file.folder.files()}
    return {part for part in parts if file.place(part).base in there}


def _finish(file: File, parts: Sequence[Part]) -> None:
    join_lines(file, parts)
    file.forget_parts()


def refuse_no_lines(name: str) -> None:
    """Refuse what would be garbled line by line."""
    suffix = PurePath(name).suffix.lower()
    if suffix in COMPRESSED:
        raise DataError(
            f"{name} is not a file of plain lines", found=suffix, do="unpack it to text or JSON lines first"
        )
    if suffix in DOCUMENTS | OTHERS:
        raise DataError(
            f"{name} is not a file of lines", found=suffix, do="translate it without --ray, or leave it out"
        )


def _failure(files: Sequence[File], parts: Sequence[Part], failed: dict[Part, str]) -> DataError:
    which = [part for part in parts if part in failed]
    lines = [
        f"{files[part.file].source.name}, lines {part.first:,} to {part.first + part.lines - 1:,}: "
        + " ".join(failed[part].split())
        for part in which[:MOST_LISTED]
    ]
    more = [f"and {len(which) - MOST_LISTED:,} more"] if len(which) > MOST_LISTED else []
    return DataError(
        f"{len(which):,} of {len(parts):,} parts failed",
        found="\n    ".join([*lines, *more]),
        do="run the same command with --resume to try these again; the others are kept",
    )
