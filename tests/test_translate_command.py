"""Test that `vidrio translate`, in a separate process, writes one line for each line of input, whatever happens."""

import json
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import time

import pytest

from forked import run_vidrio
from small_models import WORDS, write_model
from vidrio.model import find as models
from vidrio.translate.translator import Translator


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "nonsense"
    write_model(folder, seed=3, norm="pre", ends=True)
    return folder


@pytest.fixture(scope="module")
def lines():
    return [f"{a} {b} {c}.".capitalize() for a in WORDS for b in WORDS for c in WORDS[:2]]


@pytest.fixture(scope="module")
def expected(model, lines):
    return [translation.text for translation in Translator.load(model).stream(lines)]


def command(model, *arguments):
    return [sys.executable, "-m", "vidrio", "translate", "--model", str(model), *map(str, arguments)]


def run(model, *arguments, stdin=b""):
    return run_vidrio(*command(model, *arguments)[3:], stdin=stdin, text=False)


def run_limited(limit, model, *arguments, stdin=b""):
    return subprocess.run(command(model, *arguments), input=stdin, capture_output=True, timeout=120, preexec_fn=limit)


def text_of(lines):
    return "".join(f"{line}\n" for line in lines).encode()


# --- text and standard input ------------------------------------------------------------------------------------------


def test_a_text_is_translated(model, lines, expected):
    done = run(model, lines[0])
    assert (done.returncode, done.stdout.decode(), done.stderr) == (0, expected[0] + "\n", b"")
    assert run(model, *lines[0].split()).stdout == done.stdout  # a text needs no quotation marks
    assert run(model, "").stdout == b"\n"
    assert run(model, "-", stdin=text_of(lines[:2])).stdout == text_of(expected[:2])


def test_every_line_of_standard_input_gives_one_line(model, lines, expected):
    done = run(model, stdin=text_of(lines))
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout == text_of(expected)


def test_odd_lines_stay_in_their_places(model, lines, expected):
    a, b = lines[:2]
    x, y = (line.encode() for line in expected[:2])
    stdin = f"\ufeff{a}\n\n   \n{b}\r\n {a}\t\n{b}".encode()
    assert run(model, stdin=stdin).stdout == b"\n".join([x, b"", b"   ", y + b"\r", b" " + x + b"\t", y, b""])
    assert run(model, stdin=b"").stdout == b""
    assert run(model, stdin=b"\n").stdout == b"\n"
    # Other characters that Unicode or old terminals treat as line ends do not end a line here.
    odd = f"{a}\u2028{b}\x0b\x0c\x85\x1c\n\x00\n".encode()
    assert run(model, stdin=odd).stdout.count(b"\n") == 2


def test_a_line_is_answered_before_the_next_one_is_there(model, lines, expected):
    with subprocess.Popen(command(model), stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for line, translation in zip(lines[:5], expected[:5], strict=True):
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            assert process.stdout.readline().decode() == f"{translation}\n"
        process.stdin.close()
        assert process.wait(timeout=60) == 0


# --- files ------------------------------------------------------------------------------------------------------------


def test_from_file_to_file(model, lines, expected, tmp_path):
    (tmp_path / "in").write_bytes(text_of(lines))
    done = run(model, "-i", tmp_path / "in", "-o", tmp_path / "out")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "out").read_bytes() == text_of(expected)
    assert sorted(os.listdir(tmp_path)) == ["in", "out"]
    assert run(model, "--input", tmp_path / "in").stdout == text_of(expected)


def test_resume_continues_after_the_last_whole_line(model, lines, expected, tmp_path):
    (tmp_path / "in").write_bytes(text_of(lines))
    (tmp_path / "out.vidrio-part").write_bytes(text_of(expected[:700]) + "\u00e1".encode()[:1])
    done = run(model, "-i", tmp_path / "in", "-o", tmp_path / "out", "--resume")
    assert done.returncode == 0
    assert (tmp_path / "out").read_bytes() == text_of(expected)
    again = run(model, "-i", tmp_path / "in", "-o", tmp_path / "out", "--resume")
    assert (again.returncode, again.stderr) == (0, f"vidrio: {tmp_path / 'out'} is complete\n".encode())


def test_resume_with_standard_input_and_from_nothing(model, lines, expected, tmp_path):
    assert run(model, "-o", tmp_path / "out", "--resume", stdin=text_of(lines[:600])).returncode == 0
    assert (tmp_path / "out").read_bytes() == text_of(expected[:600])
    (tmp_path / "out").rename(tmp_path / "out.vidrio-part")
    done = run(model, "-o", tmp_path / "out", "--resume", stdin=text_of(lines[:5]))
    assert done.returncode == 1
    assert b"600 lines are already translated, but the input has 5" in done.stderr
    assert run(model, "-o", tmp_path / "out", "--resume", stdin=text_of(lines)).returncode == 0
    assert (tmp_path / "out").read_bytes() == text_of(expected)


def test_an_output_keeps_the_mode_of_the_file_that_it_replaces(model, lines, tmp_path):
    (tmp_path / "out").write_bytes(b"before\n")
    (tmp_path / "out").chmod(0o640)
    assert run(model, "-o", tmp_path / "out", stdin=text_of(lines[:3])).returncode == 0
    assert stat.S_IMODE((tmp_path / "out").stat().st_mode) == 0o640


def test_a_device_and_a_pipe_stay_what_they_are(model, lines, expected, tmp_path):
    assert run(model, "-o", os.devnull, stdin=text_of(lines[:3])).returncode == 0
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)
    os.mkfifo(tmp_path / "pipe")
    read = []
    reader = threading.Thread(target=lambda: read.append((tmp_path / "pipe").read_bytes()), daemon=True)
    reader.start()
    assert run(model, "-o", tmp_path / "pipe", stdin=text_of(lines[:3])).returncode == 0
    reader.join(60)
    assert read == [text_of(expected[:3])]
    assert os.listdir(tmp_path) == ["pipe"]
    assert run(model, "-o", tmp_path / "pipe", "--resume", stdin=b"").returncode == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_a_full_device_is_told_by_name(model, lines, tmp_path):
    (tmp_path / "in").write_bytes(text_of(lines[:3]))
    done = run(model, "-i", tmp_path / "in", "-o", "/dev/full")
    assert (done.returncode, done.stderr) == (1, b"vidrio: [Errno 28] No space left on device: '/dev/full'\n")


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_json_tells_everything(model, lines, expected):
    done = run(model, "--json", "--n-best", "3", stdin=text_of([f"{lines[0]}  {lines[1]}", ""]))
    one, empty = map(json.loads, done.stdout.decode().splitlines())
    assert one["text"] == f"{lines[0]}  {lines[1]}"
    assert one["translation"] == one["alternatives"][0]
    assert len(one["alternatives"]) == 3
    assert [len(sentence["alternatives"]) for sentence in one["sentences"]] == [3, 3]
    assert all(token["log_prob"] <= 0 for sentence in one["sentences"] for token in sentence["tokens"])
    assert (empty["translation"], empty["sentences"]) == ("", [])


def test_json_lines_pass_unknown_fields_through(model, lines, expected):
    records = [{"id": n, "text": line, "tags": ["ñ", None]} for n, line in enumerate(lines[:600])]
    stdin = text_of(json.dumps(record) for record in records)
    found = [json.loads(line) for line in run(model, "--jsonl", stdin=stdin).stdout.splitlines()]
    assert all(0 < record.pop("confidence") <= 1 for record in found)
    assert all(record.pop("warnings", None) != [] for record in found)
    assert found == [{**record, "translation": text} for record, text in zip(records, expected, strict=False)]
    full = json.loads(run(model, "--jsonl", "--json", "--n-best", "3", stdin=stdin.partition(b"\n")[0]).stdout)
    assert (full["id"], full["tags"], full["translation"]) == (0, ["ñ", None], full["alternatives"][0])
    assert len(set(full["alternatives"])) == len(full["alternatives"]) > 1


def test_what_was_lost_is_reported(tmp_path):
    """Use the lesson's model, which knows no numbers."""
    text, reason = tmp_path / "text.txt", "the translation lacks twelve"
    text.write_text("hello world\ntwelve\n" * 30, encoding="utf-8")
    told = run(models.LESSON, "-i", text).stderr.decode()
    assert "vidrio: 30 of 60 lines should be checked: 2, 4, 6, 8, " in told
    assert told.splitlines()[-1].endswith(", 40, …")
    assert reason in run(models.LESSON, "--confidence", "twelve").stderr.decode()
    assert json.loads(run(models.LESSON, "--jsonl", stdin=b'{"text": "twelve"}').stdout)["warnings"] == [reason]
    [warning] = json.loads(run(models.LESSON, "--json", "hello twelve").stdout)["sentences"][0]["warnings"]
    assert warning == {"kind": "number", "reason": reason, "source": [6, 12], "target": None}
    assert run(models.LESSON, "hello world").stderr == b""


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("nonsense", "line 2 is not JSON"),
        (r'{"text": "a\ud83d"}', "line 2 is not JSON"),
        ('{"a": 1}', 'line 2 has no "text"'),
    ],
)
def test_json_lines_that_are_not_are_told_by_number(model, line, told):
    done = run(model, "--jsonl", stdin=f'{{"text": "bala"}}\n{line}\n'.encode())
    assert done.returncode == 1
    assert told in done.stderr.decode()
    assert json.loads(done.stdout).keys() == {"text", "translation", "confidence"}  # the line before is translated


def test_a_text_that_is_no_text_is_told(model):
    done = subprocess.run([*command(model), b"bala \xff"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert b"the text is not valid Unicode" in done.stderr


def test_repetition_and_length_can_be_controlled(model, lines):
    words = run(model, "--no-repeat", "1", "--max-length", "12", lines[0]).stdout.split()
    assert len(words) == len(set(words))
    short, long = (run(model, "--min-length", n, lines[0]).stdout.split() for n in ("1", "20"))
    assert len(long) > len(short)


# --- errors and interruptions -----------------------------------------------------------------------------------------


def test_bytes_that_are_not_utf8_are_told_by_line(model, lines, expected, tmp_path):
    stdin = text_of(lines[:2]) + b"bala \xff\xfe core\n" + text_of(lines[2:3])
    done = run(model, stdin=stdin)
    assert done.returncode == 1
    assert b"line 3 of standard input is not UTF-8\n  found: byte 0xFF at position 6 of the line" in done.stderr
    assert done.stdout == text_of(expected[:2])
    (tmp_path / "in").write_bytes(stdin)
    assert run(model, "-i", tmp_path / "in").stdout == done.stdout


def test_a_reader_who_leaves_ends_it_quietly(model, lines, tmp_path):
    (tmp_path / "in").write_bytes(text_of(lines))
    with subprocess.Popen(
        command(model, "-i", tmp_path / "in"), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert (process.wait(timeout=60), process.stderr.read()) == (0, b"")


def test_a_disk_that_fills_leaves_lines_to_continue(model, lines, expected, tmp_path):
    size = len(text_of(expected)) // 2

    def small_disk():
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    arguments = ("-i", tmp_path / "in", "-o", tmp_path / "out")
    (tmp_path / "in").write_bytes(text_of(lines))
    done = run_limited(small_disk, model, *arguments)
    assert done.returncode == 1
    assert b"File too large" in done.stderr
    assert b"--resume to continue" in done.stderr
    part = (tmp_path / "out.vidrio-part").read_bytes()
    assert 0 < len(part) <= size
    assert text_of(expected).startswith(part)
    assert run(model, *arguments, "--resume").returncode == 0
    assert (tmp_path / "out").read_bytes() == text_of(expected)


def test_ctrl_c_leaves_lines_and_resume_goes_on(model, lines, tmp_path):
    (tmp_path / "in").write_bytes(text_of([*lines, *(f"{line} {line}" for line in lines)]))
    slowly = ("-i", tmp_path / "in", "--beam", "8", "--workers", "1")
    whole = run(model, *slowly).stdout
    part = tmp_path / "out.vidrio-part"
    with subprocess.Popen(command(model, *slowly, "-o", tmp_path / "out"), stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + 60
        while not (part.exists() and part.stat().st_size) and time.monotonic() < deadline:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 130
        told = process.stderr.read().decode()
    assert "interrupted" in told
    assert "--resume to continue" in told
    assert "Traceback" not in told
    done = part.read_bytes()
    assert whole.startswith(done)
    assert 0 < len(done) < len(whole)
    assert run(model, *slowly, "-o", tmp_path / "out", "--resume").returncode == 0
    assert (tmp_path / "out").read_bytes() == whole


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--resume",), "--resume requires the --output"),
        (("--n-best", "2"), "add --json"),
        (("--confidence", "--json"), "include it"),
        (("-i", "in.txt", "-o", "out", "--ray", "--confidence"), "without --ray"),
        (("bala", "-i", "in.txt"), "not both"),
        (("bala", "-o", "out"), "the translation of TEXT goes to standard output"),
        (("-i", "in.txt", "--ray"), "needs an --input and an --output"),
        (("-i", "in.txt", "-o", "out", "--ray", "--temperature", "1"), "cannot sample"),
        (("-i", "x.html", "-o", "out", "--ray"), "Documents cannot be combined"),
        (("-i", "in.txt", "-i", "in.txt", "-o", "out"), "Several inputs need --ray"),
    ],
)
def test_contradictions_are_mistyped_commands(model, arguments, told):
    done = run(model, *arguments)
    assert done.returncode == 2
    assert told in done.stderr.decode()


def test_an_input_that_is_not_there_is_told(model):
    done = run(model, "-i", "not-there")
    assert (done.returncode, b"No such file or directory: 'not-there'" in done.stderr) == (1, True)


def test_a_model_that_is_not_there_is_told_with_those_that_are(tmp_path):
    done = run(tmp_path / "nowhere", "bala")
    assert done.returncode == 1
    assert b"is not a model\n  found: no such folder\n  do: use a model folder, or one of:" in done.stderr


# --- cost -------------------------------------------------------------------------------------------------------------


def peak_memory(model, source):
    """Return the peak memory of translating this file, in MB."""
    code = (
        "import re, sys; from pathlib import Path; from vidrio.cli import main; main(sys.argv[1:])\n"
        "print(re.search(r'VmHWM:\\s+(\\d+) kB', Path('/proc/self/status').read_text())[1], file=sys.stderr)"
    )
    arguments = [sys.executable, "-c", code, "translate", "--model", str(model), "-i", str(source), "--beam", "1"]
    done = subprocess.run(arguments, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=300, check=True)
    return int(done.stderr) / 1024


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="only Linux tells a process's peak memory so")
def test_memory_does_not_grow_with_the_number_of_lines(model, tmp_path):
    words = [f"{a} {b} {c} {d}" for a in WORDS for b in WORDS for c in WORDS for d in WORDS[:3]]
    for count in (5_000, 35_000):
        (tmp_path / str(count)).write_bytes(text_of(words[:count]))
    few, many = (peak_memory(model, tmp_path / str(count)) for count in (5_000, 35_000))
    assert many < few + 25  # at 1 kB or more per line, 30,000 lines would exceed this
