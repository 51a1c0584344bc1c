"""Test that prepared pairs and ids are stored completely or not at all, and prepared again only after a change."""

import json
import os
import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from vidrio.data.clean import Limits
from vidrio.data.prepare import PARTS, CleaningOptions, Prepared, clean, is_made, key_of, making
from vidrio.data.progress import Progress, Work
from vidrio.data.read import Corpus, corpora
from vidrio.errors import DataError
from vidrio.learn.batches import Examples, read, write
from vidrio.text.tokens.tokenizer import Tokenizer

OPTIONS = CleaningOptions(held_out=(10, 10))


def write_pairs(path: Path, count: int = 300, seed: int = 1) -> Path:
    draw = random.Random(seed)
    letters = "abcdefghijklmnñopqrstuvwxyzáé"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 8))) for _ in range(200)]
    lines = (" ".join(draw.choices(words, k=draw.randint(4, 8))) for _ in range(2 * count))
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(lines, lines, strict=True)), encoding="utf-8")
    return path


def prepare(folder: Path, found: list[Corpus], options: CleaningOptions, progress: Progress) -> Prepared:
    key = key_of(found, options)
    if not is_made(folder, key):
        with making(folder, key) as part:
            clean(part, found, options, progress)
    return Prepared.load(folder)


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    one, two = write_pairs(tmp_path / "one.tsv"), write_pairs(tmp_path / "two.tsv", 50, seed=2)
    return prepare(tmp_path / "data", corpora([str(one), f"{two}@3"]), OPTIONS, Progress())


@pytest.fixture
def bpe(prepared: Prepared) -> Tokenizer:
    text = prepared.path("train").read_text(encoding="utf-8")
    return Tokenizer.learn(text.replace("\t", "\n").splitlines(), 500)


def texts(prepared: Prepared, part: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in prepared.path(part).read_text(encoding="utf-8").splitlines()]


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


# --- prepared pairs ---------------------------------------------------------------------------------------------------


def test_prepared_pairs_lie_in_three_files_with_a_report(prepared: Prepared) -> None:
    names = ["data.json", "dev.tsv", "key", "test.tsv", "train.tsv"]
    assert sorted(p.name for p in prepared.folder.iterdir()) == names
    assert prepared.pairs == {part: len(texts(prepared, part)) for part in PARTS}
    assert (prepared.pairs["dev"], prepared.pairs["test"]) == (10, 10)
    assert list(prepared.read("dev")) == texts(prepared, "dev")
    assert sum(corpus["pairs"] for corpus in prepared.corpora) == prepared.pairs["train"]
    assert [corpus["weight"] for corpus in prepared.corpora] == [1, 3]
    data = json.loads((prepared.folder / "data.json").read_text(encoding="utf-8"))
    assert data["pairs"] == prepared.pairs
    assert data["report"]["read"] == 350


def test_pairs_are_prepared_again_only_where_something_changed(prepared: Prepared, tmp_path: Path) -> None:
    names, before = [str(tmp_path / "one.tsv"), f"{tmp_path / 'two.tsv'}@3"], stamps(prepared.folder)
    assert prepare(prepared.folder, corpora(names), OPTIONS, Progress()) == prepared
    assert stamps(prepared.folder) == before
    other = prepare(tmp_path / "other", corpora(names), OPTIONS, Progress())
    assert all(other.path(part).read_bytes() == prepared.path(part).read_bytes() for part in PARTS)
    reweighted = [names[0], f"{tmp_path / 'two.tsv'}@2"]
    for changed, options in (
        (reweighted, OPTIONS),
        (names, CleaningOptions(held_out=(10, 10), limits=Limits(longest=30))),
    ):
        prepare(prepared.folder, corpora(changed), options, Progress())
        assert stamps(prepared.folder) != before
        before = stamps(prepared.folder)
    write_pairs(tmp_path / "one.tsv", seed=5)
    prepare(prepared.folder, corpora(names), options, Progress())
    assert stamps(prepared.folder) != before


def test_files_count_by_their_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Check that copies, other spellings of a path, new timestamps and explicitly named columns keep the key."""
    path, dev = write_pairs(tmp_path / "one.tsv"), write_pairs(tmp_path / "dev.tsv", 20, seed=3)

    def key(name: Path | str, columns: tuple[str, str] | None = None, dev: Path | str = dev) -> str:
        options = CleaningOptions(dev=tuple(corpora([str(dev)])))
        return key_of(corpora([str(name)], columns=columns), options)

    before = key(path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "copies").mkdir()
    (tmp_path / "copies" / "other.tsv").write_bytes(path.read_bytes())
    path.touch()
    os.utime(dev, (1, 1))
    same = [key("one.tsv"), key("./copies/../one.tsv"), key("copies/other.tsv"), key(path, ("1", "2"))]
    assert {*same, key(path, dev="./dev.tsv")} == {before}
    different = [key(path, ("2", "1")), key(dev), key(path, dev=path), key("one.tsv@2")]
    dev.write_text(dev.read_text("utf-8")[:-2], "utf-8")
    assert len({before, *different, key(path)}) == 6


@contextmanager
def disk_full_after(bytes_: int) -> Iterator[None]:
    """Limit the size of every file, so that writing fails as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("room", [0, 1000, 20_000])
def test_a_full_disk_is_told(tmp_path: Path, room: int) -> None:
    path = write_pairs(tmp_path / "p.tsv", 1000)
    found = corpora([str(path)])
    with disk_full_after(room), pytest.raises(DataError, match=r"written(.|\n)*File too large"):
        prepare(tmp_path / "data", found, OPTIONS, Progress())
    assert sorted(tmp_path.iterdir()) == [path]
    assert prepare(tmp_path / "data", found, OPTIONS, Progress()).pairs["dev"] == 10


# --- token ids --------------------------------------------------------------------------------------------------------


def stored(prepared: Prepared, folder: Path, source: Tokenizer, target: Tokenizer) -> Examples:
    vocabulary = max(source.size, target.size)
    encode = source.encode_batch, target.encode_batch
    folder.mkdir()
    write(folder, prepared.read("train"), encode, vocabulary, Work("encoding pairs"))
    return read(folder, vocabulary, repeats(prepared))


def repeats(prepared: Prepared) -> list[tuple[int, float]]:
    return [(corpus["pairs"], corpus["weight"]) for corpus in prepared.corpora]


def pair(ids: Examples, i: int) -> tuple[list[int], list[int]]:
    source, target = (side.gather(np.array([i]))[0].tolist() for side in (ids.source, ids.target))
    return source, target


def test_the_store_holds_every_pair(prepared: Prepared, bpe: Tokenizer, tmp_path: Path) -> None:
    ids = stored(prepared, tmp_path / "tokens", bpe, bpe)
    assert len(ids) == prepared.pairs["train"]
    for i, (source, target) in enumerate(texts(prepared, "train")):
        assert pair(ids, i) == (bpe.encode(source), bpe.encode(target))
        assert (ids.source.lengths[i], ids.target.lengths[i]) == tuple(map(len, pair(ids, i)))
    assert ids.source.ids.dtype == np.uint16
    assert isinstance(ids.source.ids.base, np.memmap)
    assert not ids.source.ids.flags.writeable
    which = np.array([5, 0, 200, 5])
    flat, lengths = ids.target.gather(which)
    assert flat.tolist() == [i for w in which for i in pair(ids, w)[1]]
    assert lengths.tolist() == [len(pair(ids, w)[1]) for w in which]
    assert ids.target.gather(np.array([], dtype=np.int64))[0].tolist() == []


@pytest.mark.parametrize("name", ["source.ids", "target.starts"])
def test_a_damaged_store_is_refused(prepared: Prepared, bpe: Tokenizer, name: str, tmp_path: Path) -> None:
    stored(prepared, tmp_path / "tokens", bpe, bpe)
    path = tmp_path / "tokens" / name
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"no readable tokens(.|\n)*remove "):
        read(tmp_path / "tokens", bpe.size, repeats(prepared))


# --- interrupted work -------------------------------------------------------------------------------------------------


def test_work_that_is_stopped_halfway_is_not_found_again(tmp_path: Path) -> None:
    def stopped() -> None:
        with making(tmp_path / "made", "1") as part:
            (part / "half").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stopped()
    assert not is_made(tmp_path / "made", "1")
    (tmp_path / "made.part").mkdir(exist_ok=True)  # left by SIGKILL
    (tmp_path / "made.part" / "half").touch()
    with making(tmp_path / "made", "1") as part:
        (part / "whole").touch()
    assert is_made(tmp_path / "made", "1")
    assert not is_made(tmp_path / "made", "2")
    assert sorted(path.name for path in (tmp_path / "made").iterdir()) == ["key", "whole"]
