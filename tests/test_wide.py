"""Bulk work part by part, with a loop in place of the cluster: the parts, their order, resume, what cannot be done.
tests/test_wide_cluster.py has the cluster, and kills what is in it."""

import gzip
import io
import json
import random
import signal
import threading
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from small_models import WORDS, write_model
from vidrio.data.pairs import corpora
from vidrio.data.split import Apart
from vidrio.errors import DataError, RunError
from vidrio.wide import bulk, cleaning, cluster, held_out, parquet, parts
from vidrio.wide.bulk import Answered, Asked, answer_files
from vidrio.wide.cluster import TRIES, Pool, results
from vidrio.wide.parts import File, cut_lines, join_lines, lines_of
from vidrio.wide.places import Place, matching

SMALL = 64  # bytes of a part


@pytest.fixture
def small_parts(monkeypatch):
    monkeypatch.setattr(parts, "PART", SMALL)
    monkeypatch.setattr(parts, "BLOCK", 16)
    monkeypatch.setattr(parquet, "ROWS", 3)


class Death(BaseException):
    """What no worker outlives."""


class Loop:
    """Workers in this process instead of on a cluster. Each tells of its latest piece of work first."""

    def __init__(self, make, pool):
        self.make, self.made, self.waiting = make, [], []

    def begin(self):
        worker = cluster.Worker(self.make)
        worker.begin()
        self.made.append(worker)
        self.waiting.append((len(self.made) - 1, None))

    def give(self, worker, piece):
        self.waiting.append((worker, piece))

    def next(self):
        worker, piece = self.waiting.pop()
        if piece is None:
            return worker, None, None
        try:
            if self.made[worker] is None:
                raise Death
            return worker, piece, self.made[worker].work(piece)
        except Death:
            self.made[worker] = None  # and what it was at beside this is lost with it
            return worker, piece, cluster.DIED

    def end(self):
        pass


@pytest.fixture
def loop(monkeypatch, small_parts):
    monkeypatch.setattr(cluster, "Workers", Loop)
    for user in (bulk, cleaning):
        monkeypatch.setattr(user, "cluster", lambda address: nullcontext())
        monkeypatch.setattr(user, "share_out", lambda cores: Pool(1, 1))


@pytest.fixture
def model(tmp_path):
    write_model(tmp_path / "model", ends=True)
    return tmp_path / "model"


def file_of(path: Path) -> File:
    place = Place.of(str(path))
    return File(place, Place.of(f"{path}.out"), Place.of(f"{path}.parts"), False)


@contextmanager
def no_bar(title, total):
    yield lambda done: None


def asked(tmp_path: Path, begin, **changes) -> Asked:
    request = {"inputs": [str(tmp_path / "in")], "output": str(tmp_path / "out"), "address": None, "resume": False}
    return Asked(**{**request, "cores": None, "belongs": {"model": "m"}, "begin": begin, **changes})


def upper(cores):
    """What a worker does where no model is needed."""
    return lambda name, raw, first, objects: Answered([line.decode().upper() for line in raw], [], 0)


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
        cut = cut_lines(file.source)
    assert [line for part in cut.parts for line in lines_of(file, part)] == [line.removesuffix(b"\n") for line in whole]
    assert [part.first for part in cut.parts] == [
        1 + sum(p.lines for p in cut.parts[:n]) for n in range(len(cut.parts))
    ]
    assert sum(part.bytes for part in cut.parts) == cut.bytes == path.stat().st_size
    assert len(cut.parts) <= 1 or cut.bytes >= SMALL


def test_patterns_folders_and_files_name_inputs(tmp_path):
    for name in ("in/a.txt", "in/b.txt", "in/c.jsonl", "in/deep/a.txt", "in/.hidden", "other.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x\n")

    def names(*patterns: str) -> list[str]:
        return list(matching([str(tmp_path / pattern) for pattern in patterns]))

    assert names("in/*.txt") == ["a.txt", "b.txt"]
    assert names("in", "other.txt") == ["a.txt", "b.txt", "c.jsonl", "other.txt"]
    assert names("in/*/*.txt") == ["deep/a.txt"]
    assert list(matching([f"file://{tmp_path}/in/?.jsonl"])) == ["c.jsonl"]
    for wrong, message in ((["in/*.gz"], "names no file"), (["in/a.txt", "in/deep/a.txt"], "one output")):
        with pytest.raises(DataError, match=message):
            names(*wrong)
    with pytest.raises(DataError, match="cannot be opened"):
        matching(["nonsense://x/y"])


def random_lines(count: int) -> list[str]:
    chosen = random.Random(1)
    return [" ".join(chosen.choices(WORDS, k=chosen.randrange(5))) for _ in range(count)]


@pytest.mark.parametrize("options", [[], ["--jsonl"], ["--jsonl", "--n-best", "2"], ["--json"]])
def test_the_bytes_are_those_of_the_plain_command(call_vidrio, loop, model, tmp_path, options):
    """Byte-order marks, an unknown word, lines without an end and with \\r, several files and an empty one."""
    texts = ["\ufeffbala core", *random_lines(16), "\ufeffbala \u00e9t\u00e9", "", "core\r"]
    lines = [json.dumps({"n": 2.50, "text": text}) for text in texts] if "--jsonl" in options else texts
    (tmp_path / "in").mkdir()
    for name, some in (("a", lines), ("b", lines[5:15]), ("empty", [])):
        (tmp_path / "in" / name).write_text("\n".join(some), encoding="utf-8", newline="\n")
    for name in ("a", "b", "empty"):
        where = ["-i", str(tmp_path / "in" / name), "-o", str(tmp_path / f"{name}.plain")]
        assert call_vidrio("translate", "-m", str(model), "--engine", "fast", *options, *where).returncode == 0
    where = ["-i", str(tmp_path / "in" / "*"), "-o", str(tmp_path / "out")]
    done = call_vidrio("translate", "-m", str(model), "--engine", "fast", *options, *where, "--ray")
    assert done.returncode == 0
    assert "3 files, 30 lines, 1 worker of 1 core\n" in done.stderr
    assert "not in the model's vocabulary" in done.stderr
    for name in ("a", "b", "empty"):
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / f"{name}.plain").read_bytes()
    again = call_vidrio("translate", "-m", str(model), "--engine", "fast", *options, *where, "--ray", "--resume")
    assert "3 files (3 there before), 0 lines" in again.stderr
    other = call_vidrio(
        "translate",
        "-m",
        str(model),
        "--engine",
        "fast",
        *options,
        *where,
        "--ray",
        "--resume",
        "--length-penalty",
        "3",
    )
    assert (other.returncode, "not the same: options" in other.stderr) == (1, True)


@pytest.mark.parametrize("system", ["file", "fsspec+file"])
def test_addresses_of_file_systems(call_vidrio, loop, model, tmp_path, system):
    """Also one where files are written in place, as in a store of objects."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("".join(f"{line}\n" for line in random_lines(20)))
    asked = ["translate", "-m", str(model), "--engine", "fast"]
    plain = ["-i", str(tmp_path / "in" / "a.txt"), "-o", str(tmp_path / "plain")]
    assert call_vidrio(*asked, *plain).returncode == 0
    where = ["-i", f"{system}://{tmp_path}/in/*.txt", "-o", f"{system}://{tmp_path}/out", "--ray"]
    done = call_vidrio(*asked, *where)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "a.txt").read_bytes() == (tmp_path / "plain").read_bytes()
    assert "1 file (1 there before), 0 lines" in call_vidrio(*asked, *where, "--resume").stderr
    left = [path.name for path in tmp_path.joinpath("out").rglob("*") if path.is_file()]
    assert sorted(left) == ["a.txt", "manifest.json"]


def test_a_column_more_in_parquet(call_vidrio, loop, model, tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    texts = [*random_lines(20), "bala\ncore"]
    table = pa.table({"text": texts, "id": pa.array(range(21), pa.int16()), "translation": ["old"] * 21})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=8)
    where = ["-i", str(tmp_path / "*.parquet"), "-o", str(tmp_path / "out")]
    done = call_vidrio("translate", "-m", str(model), "--engine", "fast", *where, "--ray", "--n-best", "2", "--jsonl")
    assert done.returncode == 0, done.stderr
    written = pq.ParquetFile(tmp_path / "out" / "a.parquet")
    assert [written.metadata.row_group(n).num_rows for n in range(3)] == [8, 8, 5]
    assert written.schema_arrow.names == ["text", "id", "translation", "alternatives"]
    result = written.read()
    assert result.select(["text", "id"]).equals(table.select(["text", "id"]))
    plain = [
        json.loads(
            call_vidrio(
                "translate", "-m", str(model), "--engine", "fast", "--json", "--n-best", "2", text or " "
            ).stdout
        )
        for text in texts
    ]
    assert result["translation"].to_pylist()[-1] == plain[-1]["translation"]
    assert [t.strip() for t in result["translation"].to_pylist()] == [line["translation"].strip() for line in plain]
    pq.write_table(pa.table({"words": texts}), tmp_path / "a.parquet")
    done = call_vidrio("translate", "-m", str(model), "--engine", "fast", *where, "--ray")
    assert (done.returncode, "has no column 'text'" in done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("shape", "columns"),
    [
        ({"shape": "encoder", "n_classes": 3}, ["class", "probability", "classes"]),
        ({"shape": "decoder", "source_vocabulary": 0}, ["written", "alternatives"]),
    ],
)
def test_a_classifier_and_a_writer_fill_columns_too(call_vidrio, loop, tmp_path, shape, columns):
    """As the fields of a line of JSON; an empty text has no class, and a row group may be empty."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    write_model(tmp_path / "model", **{"target_vocabulary": 0} if "n_classes" in shape else {}, tying="none", **shape)
    texts = ["", *random_lines(7)]
    (tmp_path / "a.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    with pq.ParquetWriter(tmp_path / "a.parquet", pa.schema({"text": pa.string()})) as writer:
        for some in ([], texts):
            writer.write_table(pa.table({"text": pa.array(some, pa.string())}), 4)
    command = ["translate", "-m", str(tmp_path / "model"), "-o", str(tmp_path / "out"), "--jsonl", "--ray"]
    done = call_vidrio(*command, "-i", str(tmp_path / "a.*"))
    assert done.returncode == 0, done.stderr
    table = pq.read_table(tmp_path / "out" / "a.parquet")
    assert table.schema.names == ["text", *columns]
    lines = [json.loads(line) for line in (tmp_path / "out" / "a.jsonl").read_text().splitlines()]
    assert table.to_pylist(maps_as_pydicts="strict") == [{**dict.fromkeys(columns), **line} for line in lines]


def test_what_cannot_be_done_is_told_with_its_lines_and_the_rest_is_done(loop, tmp_path):
    """A mistake of the data once, a failure of the machine three times; resume does what was left, and only that."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "good").write_text("one\ntwo\n")
    (tmp_path / "in" / "bad").write_text("".join(f"line {n}\n" for n in range(100)))
    tried, broken = [], {"line 50": OSError("no space left"), "line 90": DataError("not a line", found="this")}

    def begin(cores):
        def answer(name, raw, first, objects):
            tried.append((name, first))
            for line in raw:
                if error := broken.get(line.decode()):
                    raise error
            return upper(cores)(name, raw, first, objects)

        return answer

    with pytest.raises(DataError, match="2 of 14 parts could not be done") as caught:
        answer_files(asked(tmp_path, begin), no_bar)
    assert "bad, lines 50 to 57: OSError: no space left" in caught.value.found
    assert "bad, lines 90 to 97: not a line found: this" in caught.value.found
    assert (tmp_path / "out" / "good").read_text() == "ONE\nTWO\n"
    assert not (tmp_path / "out" / "bad").exists()
    assert sorted(tried.count((name, first)) for name, first in set(tried))[-2:] == [1, TRIES]
    tried.clear()
    broken.clear()
    summary = answer_files(asked(tmp_path, begin, resume=True), no_bar)
    assert (summary.there, summary.lines) == (1, 100)
    assert sorted(first for _, first in tried) == [50, 90]
    assert (tmp_path / "out" / "bad").read_text() == "".join(f"LINE {n}\n" for n in range(100))
    assert [path.name for path in (tmp_path / "out" / ".vidrio" / "bad").iterdir()] == ["manifest.json"]


@settings(deadline=None)
@given(
    workers=st.integers(1, 4),
    at_once=st.integers(1, 3),
    pieces=st.lists(st.sampled_from(["good", "bad", "hopeless", "deadly", "shy"]), max_size=12),
)
def test_every_piece_of_work_has_one_answer_whoever_fails_beside_it(workers, at_once, pieces):
    """What fails or kills is tried so often and no more; what only fails beside others is done in the end; who worked
    beside a killer is done as well."""
    beside, together = [], []

    class Counted(Loop):
        def give(self, worker, piece):
            super().give(worker, piece)
            beside.append(sum(other is not None and who == worker for who, other in self.waiting))

        def next(self):
            together.append(sum(who == self.waiting[-1][0] for who, _ in self.waiting))
            return super().next()

    def make():
        def do(piece):
            _, what = piece
            if what == "deadly":
                raise Death
            if what == "hopeless":
                raise DataError("so it is")
            if what == "bad" or (what == "shy" and together[-1] > 1):
                raise OSError("no")
            return what.upper()

        return do

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster, "Workers", Counted)
        told = list(results(make, list(enumerate(pieces)), Pool(workers, 1, at_once)))
    assert sorted(piece for piece, _, _ in told) == list(enumerate(pieces))
    assert max(beside, default=0) <= at_once
    for (_, what), outcome, tries in told:
        if what in ("good", "shy"):
            assert outcome == what.upper()
        else:
            assert isinstance(outcome, cluster.Failed)
            assert outcome.hopeless or tries == TRIES
    assert "deadly" in pieces or all(tries == 1 for (_, what), _, tries in told if what in ("good", "hopeless"))


def test_who_loses_a_line_is_found_out(loop, tmp_path):
    (tmp_path / "in").write_text("one\ntwo\n")
    with pytest.raises(DataError, match="could not be done") as caught:
        answer_files(asked(tmp_path, lambda cores: lambda *given: Answered(["ONE"], [], 0)), no_bar)
    assert "lines 1 to 2: RuntimeError: 1 lines for 2" in caught.value.found


def test_a_damaged_part_is_found_when_parts_are_put_together(small_parts, tmp_path):
    path = tmp_path / "in"
    path.write_text("line\n" * 50)
    file = file_of(path)
    cut = cut_lines(file.source)
    for part in cut.parts:
        with file.place(part).writing() as stream:
            stream.write(b"line\n" * part.lines)
    (tmp_path / "in.parts" / "000001").write_bytes(b"line\nli")
    with pytest.raises(DataError, match="000001 is damaged"):
        join_lines(file, cut)
    assert not (tmp_path / "in.out").exists()
    assert not (tmp_path / "in.parts" / "000001").exists()


def test_half_a_file_is_none(tmp_path):
    def write_half():
        with Place.of(str(tmp_path / "deep" / "file")).writing() as stream:
            stream.write(b"half")
            raise OSError("enough")

    with pytest.raises(OSError, match="enough"):
        write_half()
    assert list((tmp_path / "deep").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-i", "IN", "--ray"], "needs an --input and an --output"),
        (["-i", "IN", "-o", "OUT", "--ray", "--temperature", "1"], "cannot draw tokens"),
        (["-i", "IN", "-o", "OUT", "--ray", "--confidence"], "has no table"),
        (["-i", "x.html", "-o", "OUT", "--ray"], "is for lines"),
        (["-i", "IN", "-i", "IN", "-o", "OUT"], "Several inputs need --ray"),
        (["-i", "nowhere", "-o", "OUT"], "'nowhere' does not exist"),
    ],
)
def test_what_contradicts_itself_is_refused(call_vidrio, model, tmp_path, arguments, message):
    (tmp_path / "in").write_text("bala\n")
    places = {"IN": str(tmp_path / "in"), "OUT": str(tmp_path / "out")}
    done = call_vidrio("translate", "-m", str(model), *(places.get(word, word) for word in arguments))
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr


def test_one_command_at_a_time_writes_into_a_folder(loop, tmp_path):
    (tmp_path / "in").write_text("one\n")

    def begin(cores):
        with pytest.raises(RunError, match=r"another command is at work in .*out"):
            answer_files(asked(tmp_path, upper), no_bar)
        return upper(cores)

    assert answer_files(asked(tmp_path, begin), no_bar).lines == 1
    assert [path.name for path in (tmp_path / "out" / ".vidrio").iterdir()] == ["in"]


def test_an_output_never_replaces_its_input(tmp_path):
    (tmp_path / "in").write_text("bala\n")
    with pytest.raises(DataError, match="would replace its input"):
        answer_files(asked(tmp_path, upper, output=str(tmp_path)), no_bar)


@pytest.mark.parametrize(
    ("name", "message"), [("b.txt.gz", "is compressed"), ("b.ZST", "is compressed"), ("b.docx", "is no file of lines")]
)
def test_what_has_no_lines_is_refused_before_anything_is_written(call_vidrio, loop, model, tmp_path, name, message):
    """Also where a pattern or a folder found it."""
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("bala\n")
    (tmp_path / "in" / name).write_bytes(gzip.compress(b"bala\n"))
    where = ["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out")]
    done = call_vidrio("translate", "-m", str(model), "--engine", "fast", *where, "--ray")
    assert (done.returncode, f"{name} {message}" in done.stderr) == (1, True), done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("step", ["cut_lines", "join_lines"])
def test_ctrl_c_that_reaches_another_thread_ends_bulk_work(monkeypatch, tmp_path, step):
    """While a file of terabytes is looked at or put together, the main thread may not wait without looking up."""

    def slowly(*arguments):
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)
        left.wait(120)
        ended.set()

    left, ended = threading.Event(), threading.Event()
    monkeypatch.setattr(bulk, step, slowly)
    (tmp_path / "in").touch()
    with pytest.raises(KeyboardInterrupt):
        answer_files(asked(tmp_path, upper), no_bar)
    assert not ended.is_set(), "it was waited for"
    left.set()


def test_line_numbers_count_from_the_beginning_of_the_file(call_vidrio, loop, model, tmp_path):
    lines = [*(["bala core di"] * 40), '{"text": 1}']
    (tmp_path / "in").write_bytes("\n".join(lines).encode() + b"\n\xff\n")
    where = ["-i", str(tmp_path / "in"), "-o", str(tmp_path / "out"), "--ray"]
    done = call_vidrio("translate", "-m", str(model), "--engine", "fast", *where)
    assert done.returncode == 1
    assert "line 42 of" in done.stderr
    (tmp_path / "in").write_text("".join(f'{{"text": "{line}"}}\n' for line in lines[:40]) + lines[-1])
    assert (
        'line 41 has no "text"'
        in call_vidrio("translate", "-m", str(model), "--engine", "fast", *where, "--jsonl").stderr
    )


# --- cleaning ---------------------------------------------------------------------------------------------------------


def write_corpora(folder: Path) -> list[str]:
    """Pairs in many forms: with copies, near-copies, other cases, faults, and lines that no reader takes."""
    chosen = random.Random(5)
    words = [f"{a}{b}" for a in ("ka", "lo", "mi", "ne", "pu") for b in ("rt", "sa", "vo", "zin")]
    pairs = [tuple(" ".join(chosen.choices(words, k=chosen.randrange(5, 9))) for _ in "st") for _ in range(160)]
    pairs += (
        [(s.upper() + "!", t) for s, t in pairs[:9]]
        + pairs[20:40]
        + [(f"{s} {words[n]}", t) for n, (s, t) in enumerate(pairs[40:60])]
    )
    pairs += [("", "nada"), ("one 1234 two", "uno dos"), ("\ufeffmark", "marca\ufeff"), (" x ", "y\u2028z")]
    chosen.shuffle(pairs)
    rows = [f"{s}\t{t}" for s, t in [*pairs, *pairs]]
    rows[30:30] = ["\xff\tno"]
    rows[350:] = ["", "no tab", *rows[350:]]
    texts = {
        "a.tsv": "source\ttarget\n" + "\n".join(rows),
        "b.en": "".join(f"{s}\n" for s, _ in pairs[::2]),
        "b.es": "".join(f"{t}\n" for _, t in pairs[::2]),
        "c.jsonl": "".join(json.dumps({"en": s, "es": t}) + "\n\n" for s, t in pairs[::3]) + "{half",
        "d.csv": "en,es\n" + "".join(f'"{s}","{t}\n"\n' for s, t in pairs[::5]),
        "apart.tsv": "".join(f"{s}\t{t}\n" for s, t in pairs[7:12]),
    }
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode("utf-8", "replace").replace(b"\xc3\xbf", b"\xff"))
    (folder / "e.tsv.gz").write_bytes(gzip.compress("\n".join(rows[40:50]).encode()))
    return ["a.tsv", "b.en", "b.es", "c.jsonl", "d.csv", "e.tsv.gz"]


CLEANING = {
    "as usual": ["--languages", "en,es"],
    "held out": ["--held-out", "12", "--held-out-to", "held.tsv"],
    "apart": ["--apart", "apart.tsv", "--held-out", "5", "--held-out-to", "held.tsv"],
    "all": ["--keep-duplicates", "--keep-numbers", "--ratio", "0"],
}


@pytest.mark.parametrize("wishes", CLEANING)
def test_the_pairs_are_those_of_the_plain_command(call_vidrio, loop, monkeypatch, tmp_path, wishes):
    """The files byte for byte, and what is told of what was left out: counts, samples and their lines."""
    monkeypatch.setattr(cleaning, "PART", 700)
    monkeypatch.setattr(cleaning, "BUCKET", 5_000)
    files = write_corpora(tmp_path)
    command = ["data", "clean", *files, "--to", "kept.tsv", *CLEANING[wishes], "--json"]
    plain = call_vidrio(*command)
    assert plain.returncode == 0, plain.stderr

    def bytes_of() -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in tmp_path.glob("*.tsv")}

    before = bytes_of()
    for name in ("kept.tsv", "held.tsv"):
        (tmp_path / name).unlink(missing_ok=True)
    wide = call_vidrio(*command, "--ray")
    assert (wide.returncode, wide.stderr) == (0, "")
    assert json.loads(wide.stdout) == json.loads(plain.stdout)
    assert bytes_of() == before
    assert not list(tmp_path.glob("*.parts"))
    reasons = json.loads(plain.stdout)["skipped"]
    assert wishes == "all" or reasons["duplicate"] > 30
    assert (
        wishes != "held out"
        or reasons["shares a side with a held-out pair"]
        or reasons["near-copy of a held-out sentence"]
    )
    assert len(cleaning.slices(corpora([str(tmp_path / "a.tsv")]))) > 5


SENTENCE = st.lists(st.sampled_from(["the", "cat", "sees", "a", "dog", "now", "!", ""]), max_size=8).map(" ".join)
PAIRS = st.lists(st.tuples(SENTENCE, SENTENCE), max_size=8)


@pytest.mark.parametrize("near", [True, False])
@settings(deadline=None)
@given(given=PAIRS, chosen=PAIRS, pairs=PAIRS)
def test_what_repeats_a_held_out_pair_is_found_by_hash_too(tmp_path_factory, near, given, chosen, pairs):
    folder = tmp_path_factory.mktemp("held")
    held_out.write_held_out(folder, given, chosen, near)
    kinds = held_out.repeated(folder, iter(pairs), near)
    for place, some in ((0, given), (held_out.CHOSEN, chosen)):
        apart = Apart(near=near)
        for sides in some:
            apart.add(*sides)
        assert [held_out.REASONS[kind >> place & 3] for kind in kinds] == [apart.fault(*sides) for sides in pairs]


def test_a_part_that_kills_its_workers_is_given_up(call_vidrio, loop, monkeypatch, tmp_path):
    began = []

    def pairs_or_death(corpus, *given):
        began.append(corpus)
        for passed in passing(corpus, *given):
            if passed.source == "death":
                raise Death
            yield passed

    passing = cleaning.passing
    monkeypatch.setattr(cleaning, "PART", 30)
    monkeypatch.setattr(cleaning, "passing", pairs_or_death)
    (tmp_path / "a.tsv").write_text("one\tuno\n" * 12 + "death\tmuerte\n" + "one\tuno\n" * 12)
    done = call_vidrio("data", "clean", str(tmp_path / "a.tsv"), "--to", str(tmp_path / "kept.tsv"), "--ray")
    assert done.returncode == 1
    assert "a.tsv, lines 13 to 15: its worker died" in done.stderr, done.stderr
    assert len(began) == len(cleaning.slices(corpora([str(tmp_path / "a.tsv")]))) + TRIES - 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tsv"]


def test_what_cannot_be_cleaned_is_told(call_vidrio, loop, monkeypatch, tmp_path):
    monkeypatch.setattr(cleaning, "PART", 30)
    monkeypatch.chdir(tmp_path)
    Path("a.en").write_text("one more\n" * 20)
    Path("a.es").write_text("uno más\n" * 21)
    Path("b.tsv").write_text("one\tuno\n" * 20)
    done = call_vidrio("data", "clean", "a.en", "a.es", "--to", "kept.tsv", "--ray")
    assert (done.returncode, "do not have the same number of lines" in done.stderr) == (1, True)
    monkeypatch.setattr(cleaning, "fold", None, raising=False)
    monkeypatch.setattr(cleaning, "pair_keys", lambda *keys: 1 / 0)
    done = call_vidrio("data", "clean", "b.tsv", "--to", "kept.tsv", "--ray")
    assert (done.returncode, "reading pairs failed" in done.stderr, "ZeroDivisionError" in done.stderr) == (
        1,
        True,
        True,
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.en", "a.es", "b.tsv"]
