"""Prepare corpora for training: clean, deduplicate and split the sentence pairs, and write them to a folder.

The corpora are read once and copied to a temporary file. 64-bit hashes of all sources and targets are kept in memory
(160 MB for ten million pairs), to find duplicates and select the held-out pairs. The selection does not depend on the
order of the pairs.
"""

import json
import shutil
from array import array
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from hashlib import blake2b, sha256
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vidrio.data.clean import Limits, Tally, fault, fault_of_text, suited, tidy
from vidrio.data.progress import Progress, Work
from vidrio.data.read import Corpus, read
from vidrio.errors import DataError, about_file
from vidrio.model.files import sha256 as file_sha256
from vidrio.model.files import write_atomically
from vidrio.model.json_text import json_text
from vidrio.text.fold import fold

Keys = NDArray[np.uint64]
PARTS = ("train", "dev", "test")
TRAIN, COPY, DUPLICATE = 0, -1, -2
LEFT_OUT = {COPY: "repeats a held-out sentence", DUPLICATE: "duplicate"}
_VERSION = 4  # version of the cleaning rules; increment it if a change selects different pairs from the same files
_SAMPLE = 2000  # number of pairs used to estimate a corpus's scripts and usual length ratio
_COUNTED = 100_000  # maximum number of training pairs in which to count words


@dataclass(frozen=True, kw_only=True)
class CleaningOptions:
    """Options that determine which pairs are excluded and which are held out."""

    limits: Limits = field(default_factory=Limits)
    duplicates: bool = False  # whether to keep duplicates
    held_out: tuple[int, int] = (0, 0)  # number of pairs for validation and for testing; together, at most a tenth
    apart: tuple[Corpus, ...] = ()  # corpora whose sentences must not occur in the training data
    dev: tuple[Corpus, ...] = ()  # the user's validation and test sets, whose sentences are also kept out of training
    test: tuple[Corpus, ...] = ()
    least: int = 1  # minimum number of usable pairs
    one_sided: bool = False  # whether to check and compare only the sources, e.g. if the targets are classes


def clean(folder: Path, corpora: Sequence[Corpus], options: CleaningOptions, progress: Progress) -> "Prepared":
    """Write the usable pairs to a folder, in their original order. Held-out pairs go to separate files."""
    tally, work = Tally(), folder / "pairs.part"
    sources, targets = _first_pass(corpora, options, tally, work, progress)
    new = np.ones(len(sources), dtype=bool) if options.duplicates else first_of_each(pair_keys(sources, targets))
    pairs = int(new.sum())
    if pairs < options.least:
        raise DataError(
            f"too few sentence pairs: at least {options.least:,} are needed",
            found=tally.summary(pairs),
            do="provide more pairs, or relax the cleaning rules",
        )
    wanted: tuple[int, ...] = options.held_out
    if (total := sum(wanted)) * 10 > pairs:
        wanted = tuple(pairs * one // (10 * total) for one in wanted)
    part = np.full(len(sources), DUPLICATE, dtype=np.int8)
    part[new] = hold_out(sources[new], targets[new], wanted, _sides_apart(options))
    counts, of_corpus, words = Counter[int](), [0] * len(corpora), Counter[str]()
    progress.work = Work("comparing pairs", len(sources))
    with about_file(folder), ExitStack() as stack:
        pass_two = stack.enter_context(work.open(encoding="utf-8", newline="\n"))
        files = [
            stack.enter_context((folder / f"{name}.tsv").open("w", encoding="utf-8", newline="\n")) for name in PARTS
        ]

        def write(which: int, source: str, target: str) -> None:
            files[which].write(f"{source}\t{target}\n")
            counts[which] += 1

        for line, which in zip(pass_two, part.tolist(), strict=True):
            progress.work.done += 1
            number, place, source, target = line[:-1].split("\t")
            corpus = int(number)
            if which in LEFT_OUT:
                tally.skip(LEFT_OUT[which], f"{corpora[corpus].name}:{place}", source, target)
                continue
            write(which, source, target)
            tally.kept += 1
            if which == TRAIN:
                of_corpus[corpus] += 1
                if counts[TRAIN] <= _COUNTED:
                    words.update(f"{source} {target}".split())
        for which, sets in enumerate((options.dev, options.test), 1):
            for source, target in _tidy_pairs(sets):
                if source and target:
                    write(which, source, target)
    work.unlink()
    progress.work = None
    about = [
        {"name": corpus.name, "layout": corpus.layout.words, "weight": corpus.weight, "pairs": count}
        for corpus, count in zip(corpora, of_corpus, strict=True)
    ]
    in_parts = {name: counts[which] for which, name in enumerate(PARTS)}
    prepared = Prepared(folder, tally, in_parts, about, words.total() / max(1, len(words)))
    data = {"pairs": in_parts, "repeats": prepared.repeats, "corpora": about, "report": asdict(tally)}
    (folder / "data.json").write_text(json_text(data, indent=2) + "\n", encoding="utf-8")
    return prepared


def _first_pass(
    corpora: Sequence[Corpus], options: CleaningOptions, tally: Tally, work: Path, progress: Progress
) -> tuple[Keys, Keys]:
    """Write the pairs that pass all per-pair checks. Returns hashes of their sources and targets."""
    sources, targets = array("Q"), array("Q")
    reading = progress.work = Work("reading pairs", sum(corpus.bytes for corpus in corpora))
    with about_file(work), work.open("w", encoding="utf-8", newline="\n") as file:
        for number, corpus in enumerate(corpora):
            pairs = read(corpus, tally, reading)
            sample = list(islice(pairs, _SAMPLE))
            limits = suited(options.limits, [pair[:2] for pair in sample])
            for pair in chain(sample, pairs):
                source, target = tidy(pair.source), tidy(pair.target)
                if options.one_sided:
                    reason = fault_of_text(source) if target else "empty"
                else:
                    reason = fault(source, target, limits)
                if reason:
                    tally.skip(reason, f"{corpus.name}:{pair.line}", pair.source, pair.target)
                else:
                    file.write(f"{number}\t{pair.line}\t{source}\t{target}\n")
                    sources.append(key(fold(source)))
                    targets.append(key(fold(source if options.one_sided else target)))
    progress.work = None
    return np.frombuffer(sources, dtype=np.uint64), np.frombuffer(targets, dtype=np.uint64)


def _sides_apart(options: CleaningOptions) -> tuple[Keys, Keys]:
    """Return hashes of the sources and targets that must not occur in the training data."""
    pairs = list(_tidy_pairs((*options.apart, *options.dev, *options.test)))
    sources, targets = ({key(fold(pair[side])) for pair in pairs if fold(pair[side])} for side in (0, 1))
    if options.one_sided:
        targets = sources
    return np.array([*sources], dtype=np.uint64), np.array([*targets], dtype=np.uint64)


def _tidy_pairs(corpora: Sequence[Corpus]) -> Iterator[tuple[str, str]]:
    return ((tidy(pair.source), tidy(pair.target)) for corpus in corpora for pair in read(corpus, Tally()))


# --- duplicates and held-out pairs ------------------------------------------------------------------------------------


def key(text: str) -> int:
    """Return a 64-bit hash. Among ten million texts, the probability of a collision is 3 in a million."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), "little")


def pair_keys(sources: Keys, targets: Keys) -> Keys:
    return sources * np.uint64(0x9E3779B97F4A7C15) ^ targets


def first_of_each(keys: Keys) -> NDArray[np.bool_]:
    """Return a mask that is True where a key occurs for the first time."""
    first = np.zeros(len(keys), dtype=bool)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def hold_out(sources: Keys, targets: Keys, wanted: Sequence[int], given: tuple[Keys, Keys]) -> NDArray[np.int8]:
    """Assign each pair to a part.

    The held-out parts 1, 2, … contain the `wanted` numbers of pairs. Other pairs are marked COPY if they share a source
    or target with a held-out pair or with `given`, and TRAIN otherwise. Pairs whose source and target are unique are
    held out first, so that few pairs are marked COPY.
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
    """Return the number of occurrences of each key."""
    _, which, counts = np.unique(keys, return_inverse=True, return_counts=True)
    return counts[which]


def _mixed(keys: Keys) -> Keys:
    """Mix the bits, as in the final step of splitmix64, to give the pairs a pseudo-random order."""
    keys = (keys ^ (keys >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    keys = (keys ^ (keys >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return keys ^ (keys >> np.uint64(31))


# --- on disk ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Prepared:
    """A folder of prepared pairs."""

    folder: Path
    tally: Tally
    pairs: dict[str, int]  # number of pairs in each part
    corpora: list[dict[str, Any]]  # the name, format, weight and number of training pairs of each corpus, in order
    repeats: float  # mean number of occurrences of a word in the training pairs

    @staticmethod
    def load(folder: Path) -> "Prepared":
        data = json.loads((folder / "data.json").read_text(encoding="utf-8"))
        return Prepared(folder, Tally(**data["report"]), data["pairs"], data["corpora"], data["repeats"])

    def path(self, part: str) -> Path:
        """Return the file of a part: train, dev or test."""
        return self.folder / f"{part}.tsv"

    def read(self, part: str) -> Iterator[tuple[str, str]]:
        """Yield the pairs of a part, in order."""
        with self.path(part).open(encoding="utf-8", newline="\n") as file:
            for line in file:
                source, _, target = line[:-1].partition("\t")
                yield source, target


def key_of(corpora: Sequence[Corpus], options: CleaningOptions, *others: Any) -> str:
    """Return a hash of everything that affects the result. Files are identified by content, not by name."""

    def content(sets: Sequence[Corpus]) -> list[Any]:
        return [(c.form, c.layout[:3], c.weight, [file_sha256(path) for path in c.paths]) for c in sets]

    files = [content(sets) for sets in (corpora, options.apart, options.dev, options.test)]
    rules = replace(options, apart=(), dev=(), test=())
    return sha256(repr((_VERSION, files, rules, others)).encode()).hexdigest()


def is_made(folder: Path, key: str) -> bool:
    stamp = folder / "key"
    return stamp.is_file() and stamp.read_text(encoding="utf-8") == key


@contextmanager
def making(folder: Path, key: str) -> Iterator[Path]:
    """Create a temporary folder that is renamed to `folder` on success and removed on failure."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        yield part
        write_atomically(part / "key", key.encode())
        shutil.rmtree(folder, ignore_errors=True)
        part.rename(folder)
    except OSError as error:
        raise DataError(f"{folder} cannot be written", found=str(error.strerror), do="free some disk space") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)
