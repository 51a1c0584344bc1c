"""Corpora → pairs worth learning from: cleaned, each once, some held out; as a stream, or as files in a folder.

The corpora are read once: each pair is tested by itself and written to a work file, and 64-bit checksums of its sides
stay in memory (160 MB for ten million pairs). They decide which pairs are copies and which are held out, without random
numbers: the same pairs, in any order, give the same held-out sentences.
"""

import json
import os
import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TextIO

import numpy as np
from numpy.typing import NDArray

from vidrio.data.clean import Limits, Tally, fault, suited, tidy
from vidrio.data.progress import Progress, Work
from vidrio.data.read import Corpus, read
from vidrio.errors import DataError, about_file
from vidrio.model.files import is_plain_file, real_place, write_atomically
from vidrio.model.json_text import json_text
from vidrio.text.fold import fold

Keys = NDArray[np.uint64]
PARTS = ("train", "dev", "test")
TRAIN, COPY = 0, -1
_VERSION = 2  # of the rules: raise it when the same files would give other pairs
_SAMPLE = 2000  # pairs of each corpus from which scripts and the usual ratio of lengths are taken
_COUNTED = 100_000  # training pairs in which words are counted


class CleanPair(NamedTuple):
    """A pair worth having: in part 0 to learn from, in part 1, 2 … held out."""

    source: str
    target: str
    part: int
    corpus: int


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What to leave out and what to hold out."""

    limits: Limits = field(default_factory=Limits)
    languages: tuple[str, str] = ("", "")
    duplicates: bool = False  # keep them
    held_out: tuple[int, ...] = ()  # pairs of each held-out part; at most a tenth of all pairs together
    apart: tuple[Corpus, ...] = ()  # sets whose sentences training must never see
    least: int = 1  # pairs; fewer are an error
    one_sided: bool = False  # texts, perhaps with a class, and no translations: only the text is tested and compared


def select(
    corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, work: Path, progress: Progress
) -> Iterator[CleanPair]:
    """The pairs worth having, in the order of the files. `work` is a file to use in between; it is removed."""
    try:
        sources, targets = _first_pass(corpora, wishes, tally, work, progress)
        new = np.ones(len(sources), dtype=bool) if wishes.duplicates else first_of_each(pair_keys(sources, targets))
        pairs = int(new.sum())
        if pairs < wishes.least:
            raise DataError(
                f"too few sentence pairs, {wishes.least:,} are needed",
                found=tally.summary(pairs),
                do="give more pairs, or relax the rule",
            )
        wanted = wishes.held_out
        if (total := sum(wanted)) * 10 > pairs:
            wanted = tuple(pairs * one // (10 * total) for one in wanted)
        part = np.zeros(len(sources), dtype=np.int8)
        part[new] = hold_out(sources[new], targets[new], wanted, _sides_apart(wishes))
        comparing = progress.work = Work("comparing pairs", len(sources))
        with work.open(encoding="utf-8", newline="\n") as file:
            for number, line in enumerate(file):
                comparing.done = number + 1
                corpus, place, source, target = line[:-1].split("\t")
                if not new[number] or part[number] == COPY:
                    reason = "stands in a held-out set" if new[number] else "duplicate"
                    tally.skip(reason, f"{corpora[int(corpus)].name}:{place}", source, target)
                else:
                    tally.kept += 1
                    yield CleanPair(source, target, int(part[number]), int(corpus))
        progress.work = None
    finally:
        work.unlink(missing_ok=True)


def _first_pass(
    corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, work: Path, progress: Progress
) -> tuple[Keys, Keys]:
    """Write the pairs that pass the rules for single pairs; the checksums of their sides."""
    sources, targets = array("Q"), array("Q")
    reading = progress.work = Work("reading pairs", sum(corpus.bytes for corpus in corpora))
    with about_file(work), work.open("w", encoding="utf-8", newline="\n") as file:
        for number, corpus in enumerate(corpora):
            pairs = read(corpus, tally, reading)
            sample = list(islice(pairs, _SAMPLE))
            limits = suited(wishes.limits, [pair[:2] for pair in sample], wishes.languages)
            for pair in chain(sample, pairs):
                source, target = tidy(pair.source), tidy(pair.target)
                reason = fault(source, target, limits) if not wishes.one_sided else "" if source and target else "empty"
                if reason:
                    tally.skip(reason, f"{corpus.name}:{pair.line}", pair.source, pair.target)
                else:
                    file.write(f"{number}\t{pair.line}\t{source}\t{target}\n")
                    sources.append(key(fold(source)))
                    targets.append(key(fold(source if wishes.one_sided else target)))
    progress.work = None
    return np.frombuffer(sources, dtype=np.uint64), np.frombuffer(targets, dtype=np.uint64)


def _sides_apart(wishes: Wishes) -> tuple[Keys, Keys]:
    """Checksums of the sentences in sets that are kept apart; an empty one is no sentence."""
    pairs = list(_tidy_pairs(wishes.apart))
    sources, targets = ({key(fold(pair[side])) for pair in pairs if fold(pair[side])} for side in (0, 1))
    if wishes.one_sided:
        targets = sources
    return np.array([*sources], dtype=np.uint64), np.array([*targets], dtype=np.uint64)


def _tidy_pairs(corpora: Sequence[Corpus]) -> Iterator[tuple[str, str]]:
    return ((tidy(pair.source), tidy(pair.target)) for corpus in corpora for pair in read(corpus, Tally()))


# --- copies, and what is held out -------------------------------------------------------------------------------------


def key(text: str) -> int:
    """A checksum of 64 bits: two of ten million different texts share one with a chance of 3 in a million."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def pair_keys(sources: Keys, targets: Keys) -> Keys:
    return sources * np.uint64(0x9E3779B97F4A7C15) ^ targets


def first_of_each(keys: Keys) -> NDArray[np.bool_]:
    """True where a key stands for the first time."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def hold_out(sources: Keys, targets: Keys, wanted: Sequence[int], given: tuple[Keys, Keys]) -> NDArray[np.int8]:
    """The part of each pair: 1, 2 … held out, as many as wanted; COPY where a side stands in a held-out pair or in the
    `given` sets; else TRAIN.

    The pairs whose sides stand nowhere else are held out first, so that usually no copy has to be left out for them.
    """
    part = np.where(np.isin(sources, given[0]) | np.isin(targets, given[1]), COPY, TRAIN).astype(np.int8)
    free = np.flatnonzero(part == TRAIN)
    if not len(free) or not sum(wanted):
        return part
    sharing = _times(sources)[free] + _times(targets)[free]
    order = free[np.lexsort((_mixed(pair_keys(sources[free], targets[free])), sharing))]
    ends = np.cumsum([0, *wanted])
    held = order[: ends[-1]]
    part[np.isin(sources, sources[held]) | np.isin(targets, targets[held])] = COPY
    for number, (begin, end) in enumerate(pairwise(ends), 1):
        part[order[begin:end]] = number
    return part


def _times(keys: Keys) -> NDArray[np.int64]:
    """How often each key stands in all of them."""
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[which]


def _mixed(keys: Keys) -> Keys:
    """Well mixed bits (the end of splitmix64), so that the lowest is nobody's choice."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


# --- on disk ----------------------------------------------------------------------------------------------------------


class Share(NamedTuple):
    """One corpus's part of the training pairs: stored together, in the order of the corpora."""

    name: str
    layout: str  # what was recognised
    weight: float
    pairs: int


@dataclass(frozen=True)
class Prepared:
    """Pairs on disk, ready to learn from."""

    folder: Path
    tally: Tally
    pairs: dict[str, int]  # of each part
    shares: tuple[Share, ...]
    repeats: float  # how often each word occurs in the training pairs, on average

    @staticmethod
    def load(folder: Path) -> "Prepared":
        data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        shares = tuple(Share(**share) for share in data["corpora"])
        return Prepared(folder, Tally.from_json(data["report"]), data["pairs"], shares, data["repeats"])

    def path(self, part: str) -> Path:
        """The file of a part: train, dev or test."""
        return self.folder / f"{part}.tsv"

    def read(self, part: str) -> list[tuple[str, str]]:
        """The pairs of a part that fits into memory: dev or test."""
        return list(both_sides(self.path(part)))


def both_sides(part: Path) -> Iterator[tuple[str, str]]:
    """The pairs of a file of prepared ones, one after the other."""
    with part.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            source, _, target = line[:-1].partition("\t")
            yield source, target


Given = tuple[Sequence[Corpus], Sequence[Corpus]]  # sets to validate with and to judge with; none: some are held out


def prepare(
    folder: Path, corpora: Sequence[Corpus], wishes: Wishes, progress: Progress, given: Given = ((), ())
) -> Prepared:
    """The pairs of these corpora in this folder, made now, or found there."""
    made_from = key_of(corpora, wishes, given)
    return Prepared.load(once(folder, made_from, lambda to: _prepare(to, corpora, wishes, progress, given)))


def _prepare(folder: Path, corpora: Sequence[Corpus], wishes: Wishes, progress: Progress, given: Given) -> None:
    tally, of_corpus = Tally(), [0] * len(corpora)
    words, count = set[str](), 0

    def every_pair() -> Iterator[CleanPair]:
        nonlocal count
        for pair in select(corpora, wishes, tally, folder / "pairs.part", progress):
            if not pair.part:
                of_corpus[pair.corpus] += 1
                if sum(of_corpus) <= _COUNTED:
                    here = f"{pair.source} {pair.target}".split()
                    words.update(here)
                    count += len(here)
            yield pair
        for part, sets in enumerate(given, 1):
            yield from (CleanPair(*sides, part, 0) for sides in _tidy_pairs(sets) if all(sides))

    counts = write_pairs([folder / f"{part}.tsv" for part in PARTS], every_pair())
    shares = [Share(c.name, c.layout.words, c.weight, n) for c, n in zip(corpora, of_corpus, strict=True)]
    described = {"pairs": dict(zip(PARTS, counts, strict=True)), "repeats": count / max(1, len(words))}
    described |= {"corpora": [share._asdict() for share in shares], "report": tally.to_json()}
    (folder / "data.json").write_text(json_text(described, indent=2) + "\n", encoding="utf-8")


def write_pairs(paths: Sequence[Path], pairs: Iterable[CleanPair]) -> list[int]:
    """Write the pairs of part 0, 1 … to these files, all whole or none there; how many there are of each."""
    counts = [0] * len(paths)
    try:
        with ExitStack() as stack:
            files = [stack.enter_context(_whole_file(path)) for path in paths]
            for source, target, part, _ in pairs:
                files[part].write(f"{source}\t{target}\n")
                counts[part] += 1
    except OSError as error:
        where = f"the pairs cannot be written to {', '.join(map(str, paths))}"
        raise DataError(where, found=str(error.strerror), do="make room, or write elsewhere") from None
    return counts


@contextmanager
def _whole_file(path: Path) -> Iterator[TextIO]:
    """A text file that takes its place when it is complete. A device or a pipe gets lines as they come."""
    place = real_place(path)
    part = place.with_name(f"{place.name}.part") if is_plain_file(place) else place
    try:
        with part.open("w", encoding="utf-8", newline="\n") as file:
            yield file
            if part != place:
                file.flush()
                os.fsync(file.fileno())
        if part != place:
            part.replace(place)
    finally:
        if part != place:
            part.unlink(missing_ok=True)


def key_of(corpora: Sequence[Corpus], wishes: Wishes, given: Given = ((), ())) -> str:
    """A checksum of all that decides what the pairs are: files by name, size and time, layouts, weights, wishes."""
    every = (*corpora, *wishes.apart, *given[0], *given[1])
    files = [(str(p.resolve()), p.stat().st_size, p.stat().st_mtime_ns) for c in every for p in c.paths]
    return checksum([_VERSION, files, repr((list(corpora), wishes, list(map(list, given))))])


# --- once -------------------------------------------------------------------------------------------------------------


def checksum(key: Any) -> str:
    """A checksum of anything that can be written as JSON."""
    return sha256(json_text(key).encode()).hexdigest()


def is_made(folder: Path, key: str) -> bool:
    stamp = folder / "key"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == key


def once(folder: Path, key: str, make: Callable[[Path], object]) -> Path:
    """The folder as `make` fills it for this key: whole, whatever ends the work halfway; made once."""
    if is_made(folder, key):
        return folder
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        make(part)
        write_atomically(part / "key", key.encode())
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written", found=str(error.strerror), do="make room") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return folder
