"""From files of pairs to pairs worth learning from and held-out ones, in two passes over the data and bounded memory.

First pass: every pair is read, tidied and tested by itself; what passes is written to a file, with checksums of its
sides in memory. Between: duplicates and held-out pairs are found from the checksums. Second pass: the file is read
again, what repeats a held-out sentence is left out, the rest is handed on. Nothing is shuffled.
"""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vidrio.data.clean import Limits, fault, suited, tidy
from vidrio.data.pairs import Corpus, Pair, read
from vidrio.data.progress import Advance, Progress, silent
from vidrio.data.skipped import Tally
from vidrio.data.split import NEAR_COPY, TRAIN, Apart, Keys, first_of_each, held_out, key
from vidrio.errors import DataError, about_file
from vidrio.text.fold import fold

_SAMPLE = 2000  # pairs of each corpus that tell scripts and the usual ratio of lengths; of all, that tell near-copies
_ROUND = 4096  # pairs between two reports of progress
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


def sift(
    corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, work: Path, progress: Progress = silent
) -> Iterator[Kept]:
    """The pairs worth having, in the order of the files. `work` is a file to use in between; it is removed."""
    given, chosen = Apart(near=wishes.near), Apart(near=wishes.near)
    for corpus in wishes.apart:
        for pair in read(corpus, Tally()):
            given.add(pair.source, pair.target)
    try:
        exact, sources, targets = _first_pass(corpora, wishes, tally, work, progress)
        new = _new(sources, targets) if not wishes.duplicates else np.ones(len(exact), dtype=bool)
        if new.sum() < wishes.least:
            raise DataError(
                f"too few sentence pairs, {wishes.least:,} are needed",
                found=tally.summary(int(new.sum())),
                do="give more pairs, or relax the rule",
            )
        part = np.full(len(exact), TRAIN, dtype=np.int8)
        part[new] = held_out(sources[new], targets[new], within(wishes.held_out, int(new.sum())))
        for number, written in enumerate(_written(work, len(exact))):
            if part[number] > TRAIN:
                chosen.add(written.source, written.target)
        many_are_near = _many_are_near(work, new & (part == TRAIN), chosen)
        same = ~first_of_each(exact)
        with progress("comparing pairs", len(exact)) as advance:
            for number, written in enumerate(_written(work, len(exact), advance)):
                if not new[number]:
                    reason = "duplicate" if same[number] else "duplicate up to case and punctuation"
                elif part[number] < TRAIN:
                    reason = "shares a side with a held-out pair"
                else:
                    reason = given.fault(written.source, written.target)
                    if not reason and part[number] == TRAIN:
                        reason = chosen.fault(written.source, written.target)
                        if reason == NEAR_COPY and many_are_near:
                            tally.near_copies, reason = tally.near_copies + 1, ""
                if reason:
                    place = f"{corpora[written.corpus].name}:{written.line}"
                    tally.skip(reason, place, written.source, written.target)
                else:
                    tally.kept += 1
                    yield Kept(written.source, written.target, int(part[number]), written.corpus)
    finally:
        work.unlink(missing_ok=True)


class _Written(NamedTuple):
    """A pair that passed the rules for single pairs, and where it came from."""

    corpus: int
    line: int
    source: str
    target: str


def _first_pass(
    corpora: Sequence[Corpus], wishes: Wishes, tally: Tally, work: Path, progress: Progress
) -> tuple[Keys, Keys, Keys]:
    """Write the pairs that pass the rules for single pairs; their checksums: as they are, source and target folded."""
    keys = array("Q"), array("Q"), array("Q")
    total = sum(corpus.bytes for corpus in corpora)
    with (
        about_file(work),
        work.open("w", encoding="utf-8", newline="\n") as file,
        progress("reading pairs", total) as advance,
    ):
        for number, corpus in enumerate(corpora):
            limits = suited_to(corpus, wishes)
            for pair in read(corpus, tally, advance):
                source, target = tidy(pair.source), tidy(pair.target)
                reason = fault(source, target, limits)
                if reason:
                    tally.skip(reason, f"{corpus.name}:{pair.line}", pair.source, pair.target)
                    continue
                file.write(f"{number}\t{pair.line}\t{source}\t{target}\n")
                for side, value in zip(keys, (f"{source}\t{target}", fold(source), fold(target)), strict=True):
                    side.append(key(value))
    exact, sources, targets = (np.frombuffer(side, dtype=np.uint64) for side in keys)
    return exact, sources, targets


def suited_to(corpus: Corpus, wishes: Wishes) -> Limits:
    """The limits for one corpus, from its languages and its first pairs."""
    sample: list[Pair] = list(islice(read(corpus, Tally()), _SAMPLE))
    return suited(wishes.limits, ((pair.source, pair.target) for pair in sample), wishes.languages)


def _written(work: Path, count: int, advance: Advance | None = None) -> Iterator[_Written]:
    with work.open(encoding="utf-8", newline="\n") as file:
        for number, line in enumerate(file, 1):
            corpus, place, source, target = line[:-1].split("\t")
            yield _Written(int(corpus), int(place), source, target)
            if advance and (number % _ROUND == 0 or number == count):
                advance((number - 1) % _ROUND + 1)


def _many_are_near(work: Path, candidates: NDArray[np.bool_], chosen: Apart) -> bool:
    """Whether so many pairs are near-copies of held-out ones that little would be left: judged by some of them.

    Sentences made from a few templates are near-copies of each other: without them there would be nothing to learn.
    """
    numbers = np.flatnonzero(candidates)
    sample = set(numbers[:: max(1, len(numbers) // _SAMPLE)].tolist())
    pairs = (pair for number, pair in enumerate(_written(work, len(candidates))) if number in sample)
    near = sum(chosen.fault(pair.source, pair.target) == NEAR_COPY for pair in pairs)
    return near > _MANY * len(sample)


def _new(sources: Keys, targets: Keys) -> NDArray[np.bool_]:
    """True where a pair, both sides folded, stands for the first time."""
    return first_of_each(sources * np.uint64(0x9E3779B97F4A7C15) ^ targets)


def within(wanted: tuple[int, ...], pairs: int) -> tuple[int, ...]:
    """No more than a tenth of the pairs is held out."""
    total = sum(wanted)
    return wanted if total * 10 <= pairs else tuple(pairs * one // (10 * total) for one in wanted)
