"""From files of pairs to pairs worth having and held-out ones, in two passes over the data and bounded memory; on disk,
with a report of what was left out.

First pass: every pair is read, tidied and tested by itself; what passes is written to a file, with checksums of its
sides in memory. Between: duplicates and held-out pairs are found from the checksums. Second pass: the file is read
again, what repeats a held-out sentence is left out, the rest is handed on. Nothing is shuffled.

    FOLDER/
      train.tsv   dev.tsv   test.tsv     source<TAB>target, one pair a line
      data.json                          where they come from, what was left out and why; written last

Nothing is done again while the files that the pairs come from and the wishes are the same.
"""

import json
import os
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidrio.data.clean import Limits, Tally, fault, suited, tidy
from vidrio.data.pairs import Corpus, read
from vidrio.data.progress import Progress, Work
from vidrio.data.split import NEAR_COPY, TRAIN, Apart, Keys, first_of_each, held_out, key
from vidrio.errors import DataError, about_file
from vidrio.model.files import is_plain_file, real_place, write_atomically
from vidrio.model.json_text import json_text
from vidrio.text.fold import fold

PARTS = ("train", "dev", "test")
_VERSION = 1  # of the rules: raise it when the same files would give other pairs
_SAMPLE = 2000  # pairs of each corpus that tell scripts and the usual ratio of lengths; of all, that tell near-copies
_ROUND = 4096  # pairs after which the progress is counted
_MANY = 1 / 3  # of the pairs: if more are near-copies of held-out ones, these stay


class Kept(NamedTuple):
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
    near: bool = True  # nor sentences that differ from a held-out one in a single word
    least: int = 1  # pairs; fewer are an error


def select(corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, work: Path, progress: Progress) -> Iterator[Kept]:
    """The pairs worth having, in the order of the files. `work` is a file to use in between; it is removed."""
    chosen, given = Apart(near=wishes.near), Apart(near=wishes.near)
    for sides in pairs_apart(wishes):
        given.add(*sides)
    try:
        exact, sources, targets = _first_pass(corpora, wishes, tally, work, progress)
        new = np.ones(len(exact), dtype=bool) if wishes.duplicates else first_of_each(pair_keys(sources, targets))
        refuse_few(int(new.sum()), wishes, tally)
        part = np.full(len(exact), TRAIN, dtype=np.int8)
        part[new] = held_out(sources[new], targets[new], within(wishes.held_out, int(new.sum())))
        for number, written in enumerate(_written(work, len(exact))):
            if part[number] > TRAIN:
                chosen.add(written.source, written.target)
        sampled = set(near_sample(new & (part == TRAIN)).tolist())
        many_are_near = too_many_near((w for n, w in enumerate(_written(work, len(exact))) if n in sampled), chosen)
        comparing = progress.work = Work("comparing pairs", len(exact))
        judge = Judge([corpus.name for corpus in corpora], _repeats(given), _repeats(chosen), many_are_near)
        flags = Flags(new, ~first_of_each(exact), part)
        yield from judge.kept(_written(work, len(exact), comparing), flags, tally)
        progress.work = None
    finally:
        work.unlink(missing_ok=True)


def pairs_apart(wishes: Wishes) -> Iterator[tuple[str, str]]:
    """The pairs that are kept apart."""
    for corpus in wishes.apart:
        for pair in read(corpus, Tally()):
            yield pair.source, pair.target


def refuse_few(pairs: int, wishes: Wishes, tally: Tally) -> None:
    if pairs < wishes.least:
        raise DataError(
            f"too few sentence pairs, {wishes.least:,} are needed",
            found=tally.summary(pairs),
            do="give more pairs, or relax the rule",
        )


class Flags(NamedTuple):
    """What all the pairs together tell of each."""

    new: NDArray[np.bool_]  # both sides, folded, stand for the first time
    same: NDArray[np.bool_]  # as they are, they stood before
    part: NDArray[np.int8]


@dataclass(frozen=True)
class Judge:
    """Decides which pairs are kept, once it is known which are held out."""

    names: Sequence[str]  # of the corpora
    given: "Repeats"
    chosen: "Repeats"
    many_are_near: bool

    def kept(self, pairs: "Iterable[Passed]", flags: Flags, tally: Tally) -> Iterator[Kept]:
        for number, pair in enumerate(pairs):
            if not flags.new[number]:
                reason = "duplicate" if flags.same[number] else "duplicate up to case and punctuation"
            elif flags.part[number] < TRAIN:
                reason = "shares a side with a held-out pair"
            else:
                reason = self.given(number, pair)
                if not reason and flags.part[number] == TRAIN:
                    reason = self.chosen(number, pair)
                    if reason == NEAR_COPY and self.many_are_near:
                        tally.near_copies, reason = tally.near_copies + 1, ""
            if reason:
                tally.skip(reason, f"{self.names[pair.corpus]}:{pair.line}", pair.source, pair.target)
            else:
                tally.kept += 1
                yield Kept(pair.source, pair.target, int(flags.part[number]), pair.corpus)


class Passed(NamedTuple):
    """A pair that passed the rules for single pairs, and where it came from."""

    corpus: int
    line: int
    source: str
    target: str

    @property
    def keys(self) -> tuple[int, int, int]:
        """Checksums: as it is, source and target folded."""
        return key(f"{self.source}\t{self.target}"), key(fold(self.source)), key(fold(self.target))

    @property
    def written(self) -> str:
        """A line of a file in between."""
        return f"{self.corpus}\t{self.line}\t{self.source}\t{self.target}\n"

    @staticmethod
    def of(written: str) -> "Passed":
        corpus, line, source, target = written[:-1].split("\t")
        return Passed(int(corpus), int(line), source, target)


# A pair and its number → why it must not be learned from, beside held-out ones; empty if it may.
Repeats = Callable[[int, Passed], str]


def _repeats(apart: Apart) -> Repeats:
    return lambda number, pair: apart.fault(pair.source, pair.target)


def _first_pass(
    corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, work: Path, progress: Progress
) -> tuple[Keys, Keys, Keys]:
    """Write the pairs that pass the rules for single pairs; their checksums: as they are, source and target folded."""
    keys = array("Q"), array("Q"), array("Q")
    total = sum(corpus.bytes for corpus in corpora)
    reading = progress.work = Work("reading pairs", total)
    with about_file(work), work.open("w", encoding="utf-8", newline="\n") as file:
        for number, corpus in enumerate(corpora):
            for passed in passing(corpus, number, suited_to(corpus, wishes), tally, reading):
                file.write(passed.written)
                for side, value in zip(keys, passed.keys, strict=True):
                    side.append(value)
    progress.work = None
    exact, sources, targets = (np.frombuffer(side, dtype=np.uint64) for side in keys)
    return exact, sources, targets


def passing(corpus: Corpus, number: int, limits: Limits, tally: Tally, work: Work | None = None) -> Iterator[Passed]:
    """The pairs of a corpus that pass the rules for single pairs."""
    for pair in read(corpus, tally, work):
        source, target = tidy(pair.source), tidy(pair.target)
        if reason := fault(source, target, limits):
            tally.skip(reason, f"{corpus.name}:{pair.line}", pair.source, pair.target)
        else:
            yield Passed(number, pair.line, source, target)


def suited_to(corpus: Corpus, wishes: Wishes) -> Limits:
    """The limits for one corpus, from its languages and its first pairs."""
    sample = islice(read(corpus, Tally()), _SAMPLE)
    return suited(wishes.limits, ((pair.source, pair.target) for pair in sample), wishes.languages)


def _written(work: Path, count: int, comparing: Work | None = None) -> Iterator[Passed]:
    with work.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            yield Passed.of(line)
            if comparing and (number % _ROUND == 0 or number == count):
                comparing.done = number


def near_sample(candidates: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The numbers of some of these pairs."""
    numbers = np.flatnonzero(candidates)
    return numbers[:: max(1, len(numbers) // _SAMPLE)]


def too_many_near(sample: Iterable[Passed], chosen: Apart) -> bool:
    """Whether so many pairs are near-copies of held-out ones that little would be left: judged by some of them.

    Sentences made from a few templates are near-copies of each other: without them there would be nothing to learn.
    """
    near = [chosen.fault(pair.source, pair.target) == NEAR_COPY for pair in sample]
    return sum(near) > _MANY * len(near)


def pair_keys(sources: Keys, targets: Keys) -> Keys:
    return sources * np.uint64(0x9E3779B97F4A7C15) ^ targets


def within(wanted: tuple[int, ...], pairs: int) -> tuple[int, ...]:
    """No more than a tenth of the pairs is held out."""
    total = sum(wanted)
    return wanted if total * 10 <= pairs else tuple(pairs * one // (10 * total) for one in wanted)


# --- on disk ----------------------------------------------------------------------------------------------------------


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
        return list(both_sides(self.path(part)))

    def to_json(self) -> dict[str, Any]:
        shares = [asdict(share) for share in self.shares]
        return {"key": self.key, "pairs": self.pairs, "corpora": shares, "report": self.tally.to_json()}


def both_sides(part: Path) -> Iterator[tuple[str, str]]:
    """The pairs of a file of prepared ones, one after the other."""
    with part.open(encoding="utf-8", newline="\n") as file:
        for line in file:
            source, _, target = line[:-1].partition("\t")
            yield source, target


def prepare(
    folder: Path, corpora: Sequence[Corpus], wishes: Wishes, progress: Progress, *, made: bool = False
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
        for pair in select(corpora, wishes, tally, folder / "pairs.part", progress):
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
    """Write the pairs of part 0, 1 … to these files; how many there are of each."""
    counts = [0] * len(paths)
    with all_or_none(paths) as files:
        for source, target, part, _ in pairs:
            files[part].write(f"{source}\t{target}\n")
            counts[part] += 1
    return counts


@contextmanager
def all_or_none(paths: Sequence[Path]) -> Iterator[Sequence[IO[str]]]:
    """Write files of which all are whole or none is there; a device or a pipe gets what is written as it comes."""
    places = [real_place(path) for path in paths]
    halves = {place: place.with_name(f"{place.name}.part") for place in places if is_plain_file(place)}
    try:
        with ExitStack() as stack:
            files = [halves.get(place, place).open("w", encoding="utf-8", newline="\n") for place in places]
            for file in files:
                stack.callback(_closed, file)
            yield files
            for place, file in zip(places, files, strict=True):
                file.flush()
                if place in halves:  # a device or a pipe has nothing to wait for
                    os.fsync(file.fileno())
        for place, half in halves.items():
            half.replace(place)
    except OSError as error:
        where = f"the pairs cannot be written to {', '.join(map(str, paths))}"
        raise DataError(where, found=str(error.strerror), do="make room, or write elsewhere") from None
    finally:
        for half in halves.values():
            half.unlink(missing_ok=True)


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
    return sha256(json_text(parts).encode()).hexdigest()


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
