"""Prepared pairs and their ids lie on disk, whole or not at all, and are made again only when something changed."""

import json
import random
import resource
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from vidrio.data import store as storing
from vidrio.data.clean import Limits
from vidrio.data.pairs import corpora
from vidrio.data.prepare import PARTS, Prepared, Wishes, prepare
from vidrio.data.progress import Progress, Work
from vidrio.data.store import Examples, Ids, store
from vidrio.errors import DataError
from vidrio.text.tokens.tokenizer import Tokenizer

WISHES = Wishes(held_out=(10, 10), near=False)


def write_pairs(path: Path, count: int = 300, seed: int = 1) -> Path:
    draw = random.Random(seed)
    letters = "abcdefghijklmnñopqrstuvwxyzáé"
    words = ["".join(draw.choices(letters, k=draw.randint(2, 8))) for _ in range(200)]
    lines = (" ".join(draw.choices(words, k=draw.randint(4, 8))) for _ in range(2 * count))
    path.write_text("".join(f"{a}\t{b}\n" for a, b in zip(lines, lines, strict=True)), encoding="utf-8")
    return path


@pytest.fixture
def prepared(tmp_path: Path) -> Prepared:
    one, two = write_pairs(tmp_path / "one.tsv"), write_pairs(tmp_path / "two.tsv", 50, seed=2)
    return prepare(tmp_path / "data", corpora([str(one), f"{two}@3"]), WISHES, Progress())


@pytest.fixture
def bpe(prepared: Prepared) -> Tokenizer:
    text = prepared.path("train").read_text(encoding="utf-8")
    return Tokenizer.learn(text.replace("\t", "\n").splitlines(), "bpe", 500)


def texts(prepared: Prepared, part: str) -> list[tuple[str, ...]]:
    return [tuple(line.split("\t")) for line in prepared.path(part).read_text(encoding="utf-8").splitlines()]


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


# --- prepared pairs ---------------------------------------------------------------------------------------------------


def test_prepared_pairs_lie_in_three_files_with_a_report(prepared: Prepared) -> None:
    assert sorted(p.name for p in prepared.folder.iterdir()) == ["data.json", "dev.tsv", "test.tsv", "train.tsv"]
    assert prepared.pairs == {part: len(texts(prepared, part)) for part in PARTS}
    assert (prepared.pairs["dev"], prepared.pairs["test"]) == (10, 10)
    assert prepared.read("dev") == texts(prepared, "dev")
    assert sum(share.pairs for share in prepared.shares) == prepared.pairs["train"]
    assert [share.weight for share in prepared.shares] == [1, 3]
    data = json.loads((prepared.folder / "data.json").read_text(encoding="utf-8"))
    assert data == prepared.to_json()
    assert data["report"]["read"] == 350


def test_nothing_is_prepared_twice(prepared: Prepared, tmp_path: Path) -> None:
    before = stamps(prepared.folder)
    names = [str(tmp_path / "one.tsv"), f"{tmp_path / 'two.tsv'}@3"]
    again = prepare(prepared.folder, corpora(names), WISHES, Progress())
    assert again == prepared
    assert stamps(prepared.folder) == before


@pytest.mark.parametrize("change", ["file", "weight", "wishes", "missing", "damaged"])
def test_what_changed_is_prepared_again(prepared: Prepared, tmp_path: Path, change: str) -> None:
    names, wishes = [str(tmp_path / "one.tsv"), f"{tmp_path / 'two.tsv'}@3"], WISHES
    if change == "file":
        write_pairs(tmp_path / "one.tsv", seed=5)
    elif change == "weight":
        names[1] = f"{tmp_path / 'two.tsv'}@2"
    elif change == "wishes":
        wishes = Wishes(held_out=(10, 10), near=False, limits=Limits(longest=30))
    elif change == "missing":
        prepared.path("test").unlink()
    else:
        (prepared.folder / "data.json").write_text("{", encoding="utf-8")
    before = (prepared.folder / "data.json").read_bytes()
    again = prepare(prepared.folder, corpora(names), wishes, Progress())
    assert (again.key != prepared.key) == (change in ("file", "weight", "wishes"))
    assert again.path("test").is_file()
    if change == "damaged":
        assert (prepared.folder / "data.json").read_bytes() != before


def test_preparing_again_gives_the_same_pairs(prepared: Prepared, tmp_path: Path) -> None:
    names = [str(tmp_path / "one.tsv"), f"{tmp_path / 'two.tsv'}@3"]
    other = prepare(tmp_path / "other", corpora(names), WISHES, Progress())
    for part in PARTS:
        assert other.path(part).read_bytes() == prepared.path(part).read_bytes()


def test_an_error_leaves_nothing_that_looks_finished(tmp_path: Path) -> None:
    path = tmp_path / "p.tsv"
    path.write_text("a\tb\n", encoding="utf-8")
    with pytest.raises(DataError, match="too few"):
        prepare(tmp_path / "data", corpora([str(path)]), Wishes(least=100), Progress())
    assert list((tmp_path / "data").iterdir()) == []


@contextmanager
def disk_full_after(bytes_: int) -> Iterator[None]:
    """No file may grow beyond so many bytes: what the system then says is what it says of a full disk."""
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
    with disk_full_after(room), pytest.raises(DataError, match=r"written to .*train.tsv(.|\n)*File too large"):
        prepare(tmp_path / "data", found, WISHES, Progress())
    assert list((tmp_path / "data").iterdir()) == []
    assert prepare(tmp_path / "data", found, WISHES, Progress()).pairs["dev"] == 10


# --- their ids --------------------------------------------------------------------------------------------------------


def pair(ids: Examples, i: int) -> tuple[Ids, Ids]:
    source, target = (side.gather(np.array([i]))[0] for side in (ids.source, ids.target))
    return source, target


def folder_of(prepared: Prepared) -> Path:
    [folder] = prepared.folder.glob("tokens-*")
    return folder


def test_the_store_holds_every_pair(prepared: Prepared, bpe: Tokenizer) -> None:
    ids = store(prepared, bpe, bpe, Progress())
    assert len(ids) == prepared.pairs["train"]
    for i, (source, target) in enumerate(texts(prepared, "train")):
        source_ids, target_ids = pair(ids, i)
        assert (source_ids.tolist(), target_ids.tolist()) == (bpe.encode(source), bpe.encode(target))
        assert (ids.source.lengths[i], ids.target.lengths[i]) == (len(source_ids), len(target_ids))
    assert ids.source.ids.dtype == np.uint16
    assert isinstance(ids.source.ids.base, np.memmap)
    assert not ids.source.ids.flags.writeable
    assert ids.repeats == [(share.pairs, share.weight) for share in prepared.shares]


def test_some_pairs_at_once(prepared: Prepared, bpe: Tokenizer) -> None:
    ids = store(prepared, bpe, bpe, Progress())
    which = np.array([5, 0, 200, 5])
    flat, lengths = ids.target.gather(which)
    assert flat.tolist() == [i for w in which for i in pair(ids, w)[1].tolist()]
    assert lengths.tolist() == [len(pair(ids, w)[1]) for w in which]
    assert ids.target.gather(np.array([], dtype=np.int64))[0].tolist() == []


def test_two_vocabularies(prepared: Prepared, bpe: Tokenizer) -> None:
    char = Tokenizer.learn(["abc"], "char", 300)
    ids = store(prepared, char, bpe, Progress())
    source, target = texts(prepared, "train")[7]
    assert (pair(ids, 7)[0].tolist(), pair(ids, 7)[1].tolist()) == (char.encode(source), bpe.encode(target))


def test_large_vocabularies_take_more_bytes(prepared: Prepared) -> None:
    words = Tokenizer.of_words([f"w{i}" for i in range(70_000)])
    assert store(prepared, words, words, Progress()).source.ids.dtype == np.uint32


def test_the_store_is_made_once(prepared: Prepared, bpe: Tokenizer) -> None:
    store(prepared, bpe, bpe, Progress())
    first = folder_of(prepared)
    before = stamps(first)
    store(prepared, bpe, bpe, Progress())
    assert stamps(first) == before
    store(prepared, Tokenizer.learn(["abc"], "char", 300), bpe, Progress())
    assert folder_of(prepared) != first
    assert not first.exists(), "what nobody needs any more is removed"


def test_a_kill_leaves_no_half_store(prepared: Prepared, bpe: Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(file: object, data: bytes) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(storing, "write_all", killed)
        with pytest.raises(KeyboardInterrupt):
            store(prepared, bpe, bpe, Progress())
    assert len(store(prepared, bpe, bpe, Progress())) == prepared.pairs["train"]
    assert [p.name for p in prepared.folder.iterdir() if p.name.endswith(".part")] == []


@pytest.mark.parametrize("room", [0, 5000])
def test_a_full_disk_while_encoding_is_told(prepared: Prepared, bpe: Tokenizer, room: int) -> None:
    with disk_full_after(room), pytest.raises(DataError, match=r"tokens cannot be written(.|\n)*File too large"):
        store(prepared, bpe, bpe, Progress())
    assert not list(prepared.folder.glob("tokens-*"))
    assert len(store(prepared, bpe, bpe, Progress())) == prepared.pairs["train"]


@pytest.mark.parametrize("name", ["source.ids", "target.starts", "store.json"])
def test_a_damaged_store_is_refused(prepared: Prepared, bpe: Tokenizer, name: str) -> None:
    store(prepared, bpe, bpe, Progress())
    path = folder_of(prepared) / name
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(DataError, match=r"(is damaged|no readable tokens)(.|\n)*remove it"):
        store(prepared, bpe, bpe, Progress())


class Watched(Progress):
    """A progress that keeps every work there has been."""

    def __init__(self) -> None:
        self.works: list[Work] = []
        super().__init__()

    def __setattr__(self, name: str, value: object) -> None:
        super().__setattr__(name, value)
        if isinstance(value, Work):
            self.works.append(value)


def test_progress_counts_every_pair(prepared: Prepared, bpe: Tokenizer) -> None:
    progress = Watched()
    store(prepared, bpe, bpe, progress)
    prepare(prepared.folder.parent / "more", corpora([str(prepared.path("train"))]), WISHES, progress)
    assert [work.title for work in progress.works] == ["encoding pairs", "reading pairs", "comparing pairs"]
    assert all(work.done == work.total > 0 for work in progress.works)
    assert progress.work is None


def test_stores_need_no_torch() -> None:
    code = "import sys, vidrio.data.store, vidrio.text.tokens.bpe_dropout; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
