"""Translate many files line by line on a Ray cluster.

Each task reads a file and writes the translation atomically. Every output that exists is therefore complete, and
processing a file twice does no harm.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import PurePath
from typing import NamedTuple

from vidrio.documents import DOCUMENTS, OTHERS
from vidrio.errors import DataError
from vidrio.wide.cluster import Failed, cluster, cores_of_a_worker, results
from vidrio.wide.files import Place, matching

MAX_LISTED = 20  # maximum number of failed files to list
NO_LINES = {".gz", ".zst", ".xz", ".bz2", ".parquet"} | DOCUMENTS | OTHERS  # files that cannot be read line by line

Answer = Callable[[str, Iterable[bytes]], Iterable[str]]  # file name, input lines → output lines
Bar = Callable[[str, int], AbstractContextManager[Callable[[int], object]]]  # title, total → progress function


class Bulk(NamedTuple):
    """A bulk translation job."""

    inputs: Sequence[str]  # files, folders or patterns
    output: str  # the output folder
    address: str | None  # the address of the cluster
    resume: bool
    cores: int | None  # number of cores per worker
    begin: Callable[[int], Answer]  # opens the model on a worker with this number of cores
    jsonl: bool = False  # whether the inputs are JSON lines


class File(NamedTuple):
    """An input file and its output."""

    source: Place
    target: Place
    bytes: int


def worker(begin: Callable[[int], Answer], cores: int) -> Callable[[File], int]:
    """Open the model on a worker. Return a function that translates a file and returns the number of its lines."""
    answer = begin(cores)

    def work(file: File) -> int:
        lines = 0
        with file.source.reading() as source, file.target.writing() as target:
            for line in answer(file.source.name, (raw.removesuffix(b"\n") for raw in source)):
                target.write(f"{line}\n".encode())
                lines += 1
        return lines

    return work


def answer_files(bulk: Bulk, bar: Bar) -> tuple[int, int, int]:
    """Translate all files. Return the number of files, of files that were complete before, and of lines translated."""
    out = Place.of(bulk.output)
    no_lines = NO_LINES - ({".jsonl"} if bulk.jsonl else set())
    files = [File(source, out / source.base, source.size() or 0) for source in matching(bulk.inputs)]
    for file in files:
        if (suffix := PurePath(file.source.name).suffix.lower()) in no_lines:
            do = "unpack it, convert it to lines of text or JSON, or leave it out"
            raise DataError(f"{file.source.name} is not a plain text file", found=suffix, do=do)
        if file.source.is_same(file.target):
            raise DataError("an output would replace its input", found=file.source.name, do="choose another folder")
    todo = [file for file in files if not (bulk.resume and file.target.size() is not None)]
    lines = done = 0
    failed: list[str] = []
    if todo:
        with cluster(bulk.address), bar("translating", sum(file.bytes for file in todo)) as show:
            cores = cores_of_a_worker(bulk.cores)
            for file, outcome in results(partial(worker, bulk.begin, cores), todo, cores):
                if isinstance(outcome, Failed):
                    failed.append(f"{file.source.name}: {' '.join(outcome.why.split())}")
                    continue
                lines += outcome
                done += file.bytes
                show(done)
    if failed:
        raise DataError(
            f"{len(failed):,} of {len(todo):,} files failed",
            found="\n    ".join([*sorted(failed)[:MAX_LISTED], *["…"] * (len(failed) > MAX_LISTED)]),
            do="run the same command with --resume to retry these files; the others are kept",
        )
    return len(files), len(files) - len(todo), lines
