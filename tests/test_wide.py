"""Bulk work part by part, with a loop in place of the cluster: the parts, their order, resume, what cannot be done.
tests/test_wide_cluster.py has the cluster, and kills what is in it."""

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
from vidrio.wide import bulk, cluster, parts
from vidrio.wide.bulk import Bulk, answer_files
from vidrio.wide.cluster import Pool
from vidrio.wide.parts import File, Place, cut_lines, lines_of, matching

SMALL = 64  # bytes of a part


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART", SMALL)
    monkeypatch.setattr(parts, "BLOCK", 16)


def in_turn(make, pieces, pool):
    """A loop in place of the cluster, which ends with the latest piece first."""
    do = make()
    for piece in reversed(pieces):
        try:
            yield piece, do(piece)
        except Exception as error:
            yield piece, cluster.Failed(f"{type(error).__name__}: {error}")


@pytest.fixture
def loop(monkeypatch, small_parts):
    monkeypatch.setattr(bulk, "results", in_turn)
    monkeypatch.setattr(bulk, "cluster", lambda address: nullcontext())
    monkeypatch.setattr(bulk, "share_out", lambda cores: Pool(1, 1))


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", ends=True)
    return tmp_path / "model"


def file_of(path: Path) -> File:
    place = Place.of(str(path))
    return File(place, Place.of(f"{path}.out"), Place.of(f"{path}.parts"))


@contextmanager
def no_bar(title, total):
    yield lambda done: None


def asked(tmp_path: Path, begin, **changes) -> Bulk:
    request = {"inputs": [str(tmp_path / "in")], "output": str(tmp_path / "out"), "address": None, "resume": False}
    return Bulk(**{**request, "cores": None, "begin": begin, **changes})


def upper(cores):
    """What a worker does where no model is needed."""
    return lambda name, raw, first: [line.decode().upper() for line in raw]


LINES = st.lists(st.binary(max_size=90).map(lambda line: line.replace(b"\n", b"")), max_size=30)


@settings(deadline=None)
@example(lines=[], ends=False)
@example(lines=[b"x" * 200, b"", b"\r"], ends=True)
@given(lines=LINES, ends=st.booleans())
def test_parts_are_the_file(tmp_path_factory, lines, ends):
    """Whatever its bytes: every line in one part, none twice, in order; numbers and lengths are right."""
    path = tmp_path_factory.mktemp("cut") / "file"
    path.write_bytes(b"\n".join(lines) + b"\n" * ends)
    whole = list(io.BytesIO(path.read_bytes()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parts, "PART", SMALL)
        patch.setattr(parts, "BLOCK", 16)
        file = file_of(path)
        cut = cut_lines(file, 0)
    assert [line for part in cut for line in lines_of(file, part)] == [line.removesuffix(b"\n") for line in whole]
    assert [part.first for part in cut] == [1 + sum(p.lines for p in cut[:n]) for n in range(len(cut))]
    assert sum(part.bytes for part in cut) == path.stat().st_size
    assert len(cut) <= 1 or path.stat().st_size >= SMALL


def test_patterns_folders_and_files_name_inputs(tmp_path):
    for name in ("in/a.txt", "in/b.txt", "in/c.jsonl", "in/deep/a.txt", "in/.hidden", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")

    def names(*patterns: str) -> list[str]:
        return [place.base for place in matching([str(tmp_path / pattern) for pattern in patterns])]

    assert names("in/*.txt") == ["a.txt", "b.txt"]
    assert names("in", "other.txt") == ["a.txt", "b.txt", "c.jsonl", "other.txt"]
    assert [place.base for place in matching([f"file://{tmp_path}/in/?.jsonl"])] == ["c.jsonl"]
    for wrong, message in ((["in/*.gz"], "names no file"), (["in/a.txt", "in/deep/a.txt"], "one output")):
        with pytest.raises(DataError, match=message):
            names(*wrong)
    with pytest.raises(DataError, match="cannot be opened"):
        matching(["nonsense://x/y"])


def random_lines(count: int) -> list[str]:
    chosen = random.Random(1)
    return [" ".join(chosen.choices(WORDS, k=chosen.randrange(5))) for _ in range(count)]


@pytest.mark.parametrize("options", [[], ["--jsonl"], ["--json", "--n-best", "2"]])
def test_the_bytes_are_those_of_the_plain_command(call_vidrio, loop, model, tmp_path, options):
    """Byte-order marks, an unknown word, lines without an end and with \\r, several files and an empty one."""
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
    """One where files are written in place, as in a store of objects."""
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


def test_what_cannot_be_done_is_told_with_its_lines_and_the_rest_is_done(loop, tmp_path):
    """Resume does what was left, and only that."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good").write_text("one\ntwo\n")
    (tmp_path / "in" / "bad").write_text("".join(f"line {n}\n" for n in range(100)))
    tried, broken = [], {"line 50": OSError("no space left"), "line 90": DataError("not a line", found="this")}

    def begin(cores):
        def answer(name, raw, first):
            tried.append((name, first))
            for line in raw:
                if error := broken.get(line.decode()):
                    raise error
            return upper(cores)(name, raw, first)

        return answer

    with pytest.raises(DataError, match="2 of 14 parts failed") as caught:
        answer_files(asked(tmp_path, begin), no_bar)
    assert "bad, lines 50 to 57: OSError: no space left" in caught.value.found
    assert "bad, lines 90 to 97: DataError: not a line found: this" in caught.value.found
    assert (tmp_path / "out" / "good").read_text() == "ONE\nTWO\n"
    assert not (tmp_path / "out" / "bad").exists()
    tried.clear()
    broken.clear()
    summary = answer_files(asked(tmp_path, begin, resume=True), no_bar)
    assert (summary.there, summary.lines) == (1, 100)
    assert sorted(first for _, first in tried) == [50, 90]
    assert (tmp_path / "out" / "bad").read_text() == "".join(f"LINE {n}\n" for n in range(100))
    assert not list((tmp_path / "out" / ".vidrio" / "bad").iterdir())


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
    with pytest.raises(DataError, match="would replace its input"):
        answer_files(asked(tmp_path, upper, output=str(tmp_path)), no_bar)


@pytest.mark.parametrize("name", ["b.txt.gz", "b.PARQUET", "b.docx"])
def test_what_has_no_lines_is_refused_before_anything_is_written(call_vidrio, loop, model, tmp_path, name):
    """Also where a pattern or a folder found it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("bala\n")
    (tmp_path / "in" / name).write_bytes(gzip.compress(b"bala\n"))
    where = ["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    done = call_vidrio("translate", "-m", str(model), *where, "--ray")
    assert (done.returncode, f"{name} is not a file of plain lines" in done.stderr) == (1, True), done.stderr
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
