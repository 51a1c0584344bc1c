"""`select` of data/prepare.py on a Ray cluster: the same pairs, found part by part and hash by hash.

reading     a part of a corpus → its pairs that pass the rules for single pairs, and checksums in so many buckets
finding     a bucket of all parts → which of its pairs stood before; equal pairs have equal checksums, so one bucket
holding out on this machine, which needs 16 bytes a pair for it and some more to sort them
judging     a part again, now that it is known which pairs are new and which are held out; what repeats a held-out
            sentence is found by hash as well (held_out.py)
"""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidrio.data.clean import Limits, Tally
from vidrio.data.lines import plain_name
from vidrio.data.misalignment import parting
from vidrio.data.pairs import Corpus
from vidrio.data.prepare import (
    Flags,
    Judge,
    Passed,
    Wishes,
    all_or_none,
    near_sample,
    pair_keys,
    pairs_apart,
    passing,
    refuse_few,
    suited_to,
    too_many_near,
    within,
    write_pairs,
)  # fmt: skip
from vidrio.data.progress import Progress, Work
from vidrio.data.split import TRAIN, Apart, first_of_each, held_out
from vidrio.errors import DataError
from vidrio.wide.cluster import Failed, Pool, cluster, results, share_out
from vidrio.wide.held_out import CHOSEN, EXACT, NEAR, REASONS, repeated, saved, write_held_out
from vidrio.wide.parts import cut_lines
from vidrio.wide.places import Place

PART = 1 << 26  # bytes: half a million pairs
BUCKET = 1 << 29  # bytes of a corpus for each bucket
BOM = b"\xef\xbb\xbf"


class Slice(NamedTuple):
    """A part of a corpus: of each of its files where it begins and how long it is; no places: all of it."""

    corpus: int
    first: int  # line
    places: Sequence[tuple[int, int]] = ()
    lines: int = 0


def slices(corpora: Sequence[Corpus]) -> list[Slice]:
    """Parts of the corpora, in order. What is compressed, or has records over several lines, stays whole."""
    found: list[Slice] = []
    for number, corpus in enumerate(corpora):
        plain = all(plain_name(path) == path for path in corpus.paths)
        if corpus.form not in ("aligned", "tsv", "jsonl") or not plain:
            found.append(Slice(number, 1))
            continue
        cut = cut_lines(Place.of(str(corpus.paths[0])), PART)
        places = [[(part.start, part.bytes)] for part in cut.parts]
        for path in corpus.paths[1:]:  # cut after as many lines
            with path.open("rb") as file:
                at = 0
                for mine, part in zip(places, cut.parts, strict=True):
                    lengths = [len(line) for line in islice(file, part.lines)]
                    if len(lengths) < part.lines:
                        raise parting(*corpus.paths)
                    mine.append((at, sum(lengths)))
                    at += sum(lengths)
                if file.read(1):
                    raise parting(*corpus.paths)
        found += [Slice(number, part.first, mine, part.lines) for mine, part in zip(places, cut.parts, strict=True)]
    return found


def name_of(part: Slice, corpora: Sequence[Corpus]) -> str:
    name = corpora[part.corpus].name
    return f"{name}, lines {part.first:,} to {part.first + part.lines - 1:,}" if part.places else name


@dataclass(frozen=True)
class Cleaning:
    """What every machine knows of the work, and what it does."""

    corpora: Sequence[Corpus]  # as every machine finds them
    given: Sequence[Corpus]  # as the user calls them
    limits: Sequence[Limits]
    slices: Sequence[Slice]
    folder: Path
    buckets: int
    near: bool

    def read(self, number: int) -> tuple[int, Tally]:
        """First pass over a part."""
        part, tally = self.slices[number], Tally()
        corpus, given = self.corpora[part.corpus], self.given[part.corpus]
        with TemporaryDirectory() as temporary, (self.folder / f"{number}.pairs").open("wb") as file:
            mine = as_corpus(corpus, part, Path(temporary)) if part.places else corpus
            offsets, keys = [0], []
            for passed in passing(mine, part.corpus, self.limits[part.corpus], tally):
                line = passed._replace(line=passed.line + part.first - 1).written.encode()
                offsets.append(offsets[-1] + file.write(line))
                keys.append(passed.keys)
        names = {mine.name: given.name} | {str(a): str(b) for a, b in zip(mine.paths, given.paths, strict=True)}
        for samples in tally.samples.values():
            for at, sample in enumerate(samples):
                name, _, place = sample.place.rpartition(":")
                samples[at] = replace(sample, place=f"{names[name]}:{int(place) + part.first - 1}")
        exact, sources, targets = np.array(keys, dtype=np.uint64).reshape(-1, 3).T
        pairs = pair_keys(sources, targets)
        bucket = (pairs % np.uint64(self.buckets)).astype(np.int64)
        order = np.argsort(bucket, kind="stable")
        ends = np.cumsum([0, *np.bincount(bucket, minlength=self.buckets)])
        there = {"exact": exact[order], "pairs": pairs[order], "order": order, "ends": ends}
        for name, values in {**there, "sources": sources, "targets": targets, "offsets": np.array(offsets)}.items():
            np.save(self.folder / f"{number}.{name}.npy", values)
        return len(keys), tally

    def find(self, bucket: int) -> int:
        """Which pairs of a bucket stood before: the number of the part, the number in it, whether they are the same."""
        parts = range(len(self.slices))
        places = [saved(self.folder, f"{part}.ends")[bucket : bucket + 2].tolist() for part in parts]
        pairs, exact, order = (
            np.concatenate([saved(self.folder, f"{part}.{name}")[slice(*places[part])] for part in parts])
            for name in ("pairs", "exact", "order")
        )
        old = ~first_of_each(pairs)
        ends = np.concatenate([[0], np.cumsum(old)])[np.cumsum([0, *(end - begin for begin, end in places)])]
        np.save(self.folder / f"old-{bucket}.ends.npy", ends)
        np.save(self.folder / f"old-{bucket}.npy", np.stack([order[old], ~first_of_each(exact)[old]]))
        return int(old.sum())

    def flags(self, part: int, pairs: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of a part's pairs, which are new, and which were there as they are."""
        new, same = np.ones(pairs, dtype=bool), np.zeros(pairs, dtype=bool)
        for bucket in range(self.buckets):
            begin, end = saved(self.folder, f"old-{bucket}.ends")[part : part + 2]
            which, is_same = saved(self.folder, f"old-{bucket}")[:, begin:end]
            new[which], same[which] = False, is_same
        return new, same

    def judge(self, before: Sequence[int], many_are_near: bool, held: int, number: int) -> tuple[list[int], Tally]:
        """Second pass over a part. Before each part there are so many pairs; so many parts are held out."""
        begin, end = before[number : number + 2]
        new, same = self.flags(number, end - begin)
        part = saved(self.folder, "part")[begin:end] if held else np.zeros_like(new, np.int8)
        with (self.folder / f"{number}.pairs").open(encoding="utf-8", newline="\n") as lines:
            repeats = repeated(self.folder, (Passed.of(line)[2:] for line in lines), self.near)
        judge = Judge(
            [corpus.name for corpus in self.given],
            lambda n, _: REASONS[repeats[n] & (EXACT | NEAR)],
            lambda n, _: REASONS[repeats[n] >> CHOSEN],
            many_are_near,
        )
        tally = Tally()
        paths = [self.folder / f"{number}.kept-{n}" for n in range(held + 1)]
        with (self.folder / f"{number}.pairs").open(encoding="utf-8", newline="\n") as lines:
            return write_pairs(paths, judge.kept(map(Passed.of, lines), Flags(new, same, part), tally)), tally


def as_corpus(corpus: Corpus, part: Slice, folder: Path) -> Corpus:
    """The part as a corpus of its own. It begins as the file does, or with a mark that is removed from it again."""
    paths = tuple(folder / f"{n}{path.suffix}" for n, path in enumerate(corpus.paths))
    for path, own, (start, length) in zip(corpus.paths, paths, part.places, strict=True):
        own.write_bytes((b"" if part.first == 1 else BOM) + Place.of(str(path)).read(start, length))
    layout = corpus.layout if part.first == 1 else corpus.layout._replace(header=False)
    return replace(corpus, paths=paths, layout=layout)


def clean_on_cluster(
    corpora: Sequence[Corpus],
    wishes: Wishes,
    tally: Tally,
    paths: Sequence[Path],
    address: str | None,
    progress: Progress,
) -> list[int]:
    """Write the pairs worth having, and those held out, to these files; how many there are of each."""
    folder = paths[0].with_name(f"{paths[0].name}.parts")  # which all machines can read
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with cluster(address):
            return _cleaned(corpora, wishes, tally, paths, folder.absolute(), progress)
    finally:
        progress.work = None
        shutil.rmtree(folder, ignore_errors=True)


def _cleaned(
    corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, paths: Sequence[Path], folder: Path, progress: Progress
) -> list[int]:
    pool = share_out(1)._replace(at_once=1)
    found = [replace(corpus, paths=tuple(path.absolute() for path in corpus.paths)) for corpus in corpora]
    parts = slices(corpora)
    buckets = max(pool.workers, -(-sum(corpus.bytes for corpus in corpora) // BUCKET))
    limits = [suited_to(corpus, wishes) for corpus in corpora]
    names = [name_of(part, corpora) for part in parts]
    work = Cleaning(found, corpora, limits, parts, folder, buckets, wishes.near)
    read = _step("reading pairs", work.read, names, pool, progress)
    before = np.cumsum([0, *(pairs for pairs, _ in read)]).tolist()
    for _, of_part in read:
        tally.add(of_part)
    old = 0
    if wishes.duplicates:
        work = replace(work, buckets=0)
    else:
        shares = [f"share {n} of {buckets} of all pairs" for n in range(1, buckets + 1)]
        old = sum(_step("comparing", work.find, shares, pool, progress))
    refuse_few(before[-1] - old, wishes, tally)
    judging = partial(work.judge, before, _hold_out(work, before, wishes), len(paths) - 1)
    judged = _step("comparing pairs", judging, names, pool, progress)
    for _, of_part in judged:
        tally.add(of_part)
    with all_or_none(paths) as files:
        for number in range(len(parts)):
            for n, file in enumerate(files):
                with (folder / f"{number}.kept-{n}").open(encoding="utf-8", newline="\n") as kept:
                    shutil.copyfileobj(kept, file, 1 << 20)
    return [sum(counts) for counts in zip(*(counts for counts, _ in judged), strict=True)]


def _hold_out(work: Cleaning, before: Sequence[int], wishes: Wishes) -> bool:
    """Choose what is held out, and write down what must not repeat it; whether too much nearly does."""
    folder = work.folder
    if not sum(wishes.held_out):
        write_held_out(folder, pairs_apart(wishes), (), wishes.near)
        return False
    count = range(len(before) - 1)
    new = np.concatenate([work.flags(n, before[n + 1] - before[n])[0] for n in count])
    sides = [np.concatenate([saved(folder, f"{n}.{side}") for n in count]) for side in ("sources", "targets")]
    part = np.full(len(new), TRAIN, dtype=np.int8)
    part[new] = held_out(sides[0][new], sides[1][new], within(wishes.held_out, int(new.sum())))
    np.save(folder / "part.npy", part)

    def pairs(numbers: NDArray[np.int64]) -> list[Passed]:
        found = []
        for number in numbers.tolist():
            n = int(np.searchsorted(before, number, side="right")) - 1
            start, end = saved(folder, f"{n}.offsets")[number - before[n] :][:2].tolist()
            found.append(Passed.of(Place.of(str(folder / f"{n}.pairs")).read(start, end - start).decode()))
        return found

    chosen, apart = [pair[2:] for pair in pairs(np.flatnonzero(part > TRAIN))], Apart(near=wishes.near)
    for pair in chosen:
        apart.add(*pair)
    write_held_out(folder, pairs_apart(wishes), chosen, wishes.near)
    return too_many_near(pairs(near_sample(new & (part == TRAIN))), apart)


def _step(title: str, do: Callable[[int], Any], names: Sequence[str], pool: Pool, progress: Progress) -> list[Any]:
    """What each piece of a step says, in their order."""
    work = progress.work = Work(title, len(names))
    outcomes: list[Any] = [None] * len(names)
    for number, outcome, _ in results(lambda: do, range(len(names)), pool):
        if isinstance(outcome, Failed):
            found = f"{names[number]}: {outcome.why}"
            raise DataError(f"{title} failed", found=found, do="mend it and begin again")
        outcomes[number] = outcome
        work.done += 1
    return outcomes
