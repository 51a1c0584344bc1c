"""The pairs of a training run, on disk: cleaned, the held-out ones apart, with a report of what was left out.

    FOLDER/
      train.tsv   dev.tsv   test.tsv     source<TAB>target, one pair a line
      data.json                          where they come from, what was left out and why; written last

Nothing is done again while the files that the pairs come from and the wishes are the same.
"""

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from vidrio.data.pairs import Corpus
from vidrio.data.progress import Progress, silent
from vidrio.data.select import Kept, Wishes, sift
from vidrio.data.skipped import Tally
from vidrio.errors import DataError
from vidrio.model.files import write_atomically
from vidrio.model.json_text import json_text

PARTS = ("train", "dev", "test")
_VERSION = 1  # of the rules: raise it when the same files would give other pairs


@dataclass(frozen=True)
class Share:
    """One corpus's part of the training pairs: they lie together, in the order of the corpora."""

    name: str
    layout: str  # what was recognised
    weight: float
    pairs: int


@dataclass(frozen=True)
class Prepared:
    """Pairs on disk, ready to learn from."""

    folder: Path
    key: str  # of everything that decides what the pairs are
    tally: Tally
    pairs: dict[str, int]  # of each part
    shares: tuple[Share, ...]

    def path(self, part: str) -> Path:
        """The file of a part: train, dev or test."""
        return self.folder / f"{part}.tsv"

    def read(self, part: str) -> list[tuple[str, str]]:
        """The pairs of a part that fits into memory: dev or test."""
        with self.path(part).open(encoding="utf-8", newline="\n") as file:
            return [(source, target) for source, _, target in (line[:-1].partition("\t") for line in file)]

    def to_json(self) -> dict[str, Any]:
        shares = [asdict(share) for share in self.shares]
        return {"key": self.key, "pairs": self.pairs, "corpora": shares, "report": self.tally.to_json()}


def prepare(
    folder: Path, corpora: Sequence[Corpus], wishes: Wishes, progress: Progress = silent, *, made: bool = False
) -> Prepared:
    """The pairs of these corpora in this folder, as they lie there already or made now; `made`: they must lie there."""
    key = key_of(corpora, wishes)
    there = _there(folder, key)
    if there:
        return there
    if made:
        raise made_of_others(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "data.json").unlink(missing_ok=True)
    tally, of_corpus = Tally(), [0] * len(corpora)

    def kept() -> Iterator[Kept]:
        for pair in sift(corpora, wishes, tally, folder / "pairs.part", progress):
            of_corpus[pair.corpus] += not pair.part
            yield pair

    counts = write_pairs([folder / f"{part}.tsv" for part in PARTS], kept())
    shares = (Share(c.name, c.layout.words, c.weight, n) for c, n in zip(corpora, of_corpus, strict=True))
    prepared = Prepared(folder, key, tally, dict(zip(PARTS, counts, strict=True)), tuple(shares))
    text = json_text(prepared.to_json(), indent=2) + "\n"
    write_atomically(folder / "data.json", text.encode())
    return prepared


def made_of_others(where: Path) -> DataError:
    """What the process that makes the data has made is not what this one would make."""
    return DataError(
        f"what lies in {where} was made from other files",
        found="files that differ in path, size or time from those of the leading process",
        do="give all processes the same files, or on each machine a folder of its own with --to",
    )


def write_pairs(paths: Sequence[Path], pairs: Iterable[Kept]) -> list[int]:
    """Write the pairs of part 0, 1 … to these files, all of them whole or none; how many there are of each."""
    counts = [0] * len(paths)
    halves = [path.with_name(f"{path.name}.part") for path in paths]
    try:
        with ExitStack() as stack:
            files = [half.open("w", encoding="utf-8", newline="\n") for half in halves]
            for file in files:
                stack.callback(_closed, file)
            for source, target, part, _ in pairs:
                files[part].write(f"{source}\t{target}\n")
                counts[part] += 1
            for file in files:
                file.flush()
                os.fsync(file.fileno())
        for half, path in zip(halves, paths, strict=True):
            half.replace(path)
    except OSError as error:
        where = f"the pairs cannot be written to {paths[0].parent}"
        raise DataError(where, found=str(error.strerror), do="make room, or write elsewhere") from None
    finally:
        for half in halves:
            half.unlink(missing_ok=True)
    return counts


def _closed(file: IO[str]) -> None:
    with suppress(OSError):  # what could not be written cannot be written at the end either
        file.close()


def key_of(corpora: Sequence[Corpus], wishes: Wishes) -> str:
    """A checksum of all that decides what the pairs are: files by name, size and time, layouts, weights, wishes."""
    files = [
        (str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for c in (*corpora, *wishes.apart) for p in c.paths
    ]
    limits = {name: sorted(v) if isinstance(v, frozenset) else v for name, v in asdict(wishes.limits).items()}
    parts = [_VERSION, files, list(map(repr, corpora)), list(map(repr, wishes.apart)), limits]
    parts += [wishes.languages, wishes.duplicates, wishes.held_out, wishes.near, wishes.least]
    return sha256(json.dumps(parts).encode()).hexdigest()


def _there(folder: Path, key: str) -> Prepared | None:
    """What lies in the folder, if it is whole and of this key."""
    try:
        data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        shares = tuple(Share(**share) for share in data["corpora"])
        there = Prepared(folder, data["key"], Tally.from_json(data["report"]), data["pairs"], shares)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    whole = there.key == key and all(there.path(part).is_file() for part in PARTS)
    return there if whole else None
