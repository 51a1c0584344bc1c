"""Test bulk translation file by file, with a loop instead of a cluster: the files, --resume and errors.

test_wide_cluster.py uses a real cluster and kills parts of it.
"""

import gzip
import io
import json
import random
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from small_models import WORDS, write_model
from vidrio.errors import DataError
from vidrio.wide import bulk, cluster
from vidrio.wide.bulk import Bulk, answer_files
from vidrio.wide.files import Place, matching


def in_turn(make, pieces, cores):
    """Replace the cluster with a loop that does the last piece first."""
    do = make()
    for piece in reversed(pieces):
        try:
            yield piece, do(piece)
        except Exception as error:
            yield piece, cluster.Failed(f"{type(error).__name__}: {error}")


@contextmanager
def looping():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bulk, "results", in_turn)
        patch.setattr(bulk, "cluster", lambda address: nullcontext())
        patch.setattr(bulk, "cores_of_a_worker", lambda cores: 1)
        yield


@pytest.fixture
def loop():
    with looping():
        yield


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", ends=True)
    return tmp_path / "model"


@contextmanager
def no_bar(title, total):
    yield lambda done: None


def asked(tmp_path: Path, begin, **changes) -> Bulk:
    request = {"inputs": [str(tmp_path / "in")], "output": str(tmp_path / "out"), "address": None, "resume": False}
    return Bulk(**{**request, "cores": None, "begin": begin, **changes})


def upper(cores):
    """Return a worker's function for tests that need no model."""
    return lambda name, lines: [line.decode().upper() for line in lines]


LINES = st.lists(st.binary(max_size=90).map(lambda line: line.replace(b"\n", b"")), max_size=30)


@settings(deadline=None)
@example(lines=[], ends=False)
@example(lines=[b"x" * 20_000, b"", b"\r"], ends=True)
@given(lines=LINES, ends=st.booleans())
def test_a_worker_reads_the_lines_of_a_file(tmp_path_factory, lines, ends):
    """Check that every line is read once and in order, whatever its bytes."""
    folder = tmp_path_factory.mktemp("lines")
    (folder / "in").write_bytes(b"\n".join(lines) + b"\n" * ends)
    read = []

    def empty(name, lines):
        for line in lines:
            read.append(line)
            yield ""

    with looping():
        answer_files(asked(folder, lambda cores: empty), no_bar)
    assert read == [line.removesuffix(b"\n") for line in io.BytesIO((folder / "in").read_bytes())]
    assert (folder / "out" / "in").read_bytes() == b"\n" * len(read)


def test_patterns_folders_and_files_name_inputs(tmp_path):
    for name in ("in/a.txt", "in/b.txt", "in/c.jsonl", "in/deep/a.txt", "in/.hidden", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")

    def names(*patterns: str) -> list[str]:
        return [place.base for place in matching([str(tmp_path / pattern) for pattern in patterns])]

    assert names("in/*.txt") == ["a.txt", "b.txt"]
    assert names("in", "other.txt") == ["a.txt", "b.txt", "c.jsonl", "other.txt"]
    assert [place.base for place in matching([f"file://{tmp_path}/in/?.jsonl"])] == ["c.jsonl"]
    for wrong, message in ((["in/*.gz"], "matches no file"), (["in/a.txt", "in/deep/a.txt"], "same output")):
        with pytest.raises(DataError, match=message):
            names(*wrong)
    with pytest.raises(DataError, match="cannot be opened"):
        matching(["nonsense://x/y"])


def random_lines(count: int) -> list[str]:
    chosen = random.Random(1)
    return [" ".join(chosen.choices(WORDS, k=chosen.randrange(5))) for _ in range(count)]


@pytest.mark.parametrize("options", [[], ["--jsonl"], ["--json", "--n-best", "2"]])
def test_the_bytes_are_those_of_the_plain_command(call_vidrio, loop, model, tmp_path, options):
    """Test byte-order marks, an unknown word, a missing line ending, \\r, several files and an empty one."""
    texts = ["\ufeffbala core", *random_lines(16), "\ufeffbala \u00e9t\u00e9", "", "core\r"]
    lines = [json.dumps({"n": 2.50, "text": text}) for text in texts] if "--jsonl" in options else texts
    (tmp_path / "in").mkdir()
    for name, some in (("a", lines), ("b", lines[5:15]), ("empty", [])):
        (tmp_path / "in" / name).write_text("\n".join(some), encoding="utf-8", newline="\n")
    for name in ("a", "b", "empty"):
        where = ["-i", str(tmp_path / "in" / name), "-o", str(tmp_path / f"{name}.plain")]
        assert call_vidrio("translate", "-m", str(model), *options, *where).returncode == 0
    where = ["-i", str(tmp_path / "in" / "*"), "-o", str(tmp_path / "out")]
    done = call_vidrio("translate", "-m", str(model), *options, *where, "--ray")
    assert done.returncode == 0
    assert "files: 3; lines: 30\n" in done.stderr
    for name in ("a", "b", "empty"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / f"{name}.plain").read_bytes()
    again = call_vidrio("translate", "-m", str(model), *options, *where, "--ray", "--resume")
    assert "files: 3 (3 complete before); lines: 0" in again.stderr


def test_addresses_of_file_systems(call_vidrio, loop, model, tmp_path):
    """Include a file system that writes in place, like an object store."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"{line}\n" for line in random_lines(20)))
    asked = ["translate", "-m", str(model)]
    plain = ["-i", str(tmp_path / "in" / "a.txt"), "-o", str(tmp_path / "plain")]
    assert call_vidrio(*asked, *plain).returncode == 0
    where = ["-i", f"fsspec+file://{tmp_path}/in/*.txt", "-o", f"fsspec+file://{tmp_path}/out", "--ray"]
    done = call_vidrio(*asked, *where)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "a.txt").read_bytes() == (tmp_path / "plain").read_bytes()
    assert "files: 1 (1 complete before); lines: 0" in call_vidrio(*asked, *where, "--resume").stderr
    left = [path.name for path in tmp_path.joinpath("out").rglob("*") if path.is_file()]
    assert left == ["a.txt"]


def test_what_cannot_be_done_is_told_and_the_rest_is_done(loop, tmp_path):
    """Check that --resume translates the files that failed, and only those."""
    (tmp_path / "in").mkdir()
    for name in ("bad", "good", "worse"):
        (tmp_path / "in" / name).write_text(f"one\n{name}\n")
    tried, broken = [], {"bad": OSError("no space left"), "worse": DataError("not a line", found="this")}

    def begin(cores):
        def answer(name, lines):
            tried.append(Path(name).name)
            for line in lines:
                if error := broken.get(line.decode()):
                    raise error
                yield line.decode().upper()

        return answer

    with pytest.raises(DataError, match="2 of 3 files failed") as caught:
        answer_files(asked(tmp_path, begin), no_bar)
    assert "bad: OSError: no space left" in caught.value.found
    assert "worse: DataError: not a line found: this" in caught.value.found
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["good"]
    assert (tmp_path / "out" / "good").read_text() == "ONE\nGOOD\n"
    tried.clear()
    broken.clear()
    assert answer_files(asked(tmp_path, begin, resume=True), no_bar) == (3, 1, 4)
    assert sorted(tried) == ["bad", "worse"]
    assert (tmp_path / "out" / "bad").read_text() == "ONE\nBAD\n"


@pytest.mark.parametrize("scheme", ["", "file://", "fsspec+file://"])
def test_a_file_has_its_name_only_when_it_is_complete(tmp_path, scheme):
    """Otherwise, --resume would take the output of a killed worker for complete."""
    place = Place.of(f"{scheme}{tmp_path}/out/file")
    for text in (b"one\n" * 100_000, b"two\n"):
        before = place.size()
        with place.writing() as stream:
            stream.write(text)
            stream.flush()
            assert place.size() == before
        assert place.size() == len(text)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["file"]


def test_half_a_file_is_none(tmp_path):
    def write_half():
        with Place.of(str(tmp_path / "deep" / "file")).writing() as stream:
            stream.write(b"half")
            raise OSError("enough")

    with pytest.raises(OSError, match="enough"):
        write_half()
    assert list((tmp_path / "deep").iterdir()) == []


def test_an_output_never_replaces_its_input(tmp_path):
    (tmp_path / "in").write_text("bala\n")
    (tmp_path / "link").symlink_to(tmp_path)
    for folder in (tmp_path, tmp_path / "link", tmp_path / "link" / ".." / tmp_path.name, f"file://{tmp_path}/link"):
        with pytest.raises(DataError, match="would replace its input"):
            answer_files(asked(tmp_path, upper, output=str(folder)), no_bar)
    assert (tmp_path / "in").read_text() == "bala\n"


@pytest.mark.parametrize("name", ["b.txt.gz", "b.PARQUET", "b.docx"])
def test_what_has_no_lines_is_refused_before_anything_is_written(call_vidrio, loop, model, tmp_path, name):
    """Check that this also holds for files found by a pattern or in a folder."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("bala\n")
    (tmp_path / "in" / name).write_bytes(gzip.compress(b"bala\n"))
    where = ["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    done = call_vidrio("translate", "-m", str(model), *where, "--ray")
    assert (done.returncode, f"{name} is not a plain text file" in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "out").exists()


def test_line_numbers_count_from_the_beginning_of_the_file(call_vidrio, loop, model, tmp_path):
    lines = [*(["bala core di"] * 40), '{"text": 1}']
    (tmp_path / "in").write_bytes("\n".join(lines).encode() + b"\n\xff\n")
    where = ["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--ray"]
    done = call_vidrio("translate", "-m", str(model), *where)
    assert done.returncode == 1
    assert "line 42 of" in done.stderr
    (tmp_path / "in").write_text("".join(f'{{"text": "{line}"}}\n' for line in lines[:40]) + lines[-1])
    assert 'line 41 has no "text"' in call_vidrio("translate", "-m", str(model), *where, "--jsonl").stderr
