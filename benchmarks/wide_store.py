"""Test `vidrio translate --ray` with an object store, using a local substitute for S3.

    python -m venv ENVIRONMENT && ENVIRONMENT/bin/pip install 'moto[server]'
    python benchmarks/wide_store.py --moto ENVIRONMENT --source FILE [--lines 2000]

The script writes lines of the file to a bucket, as files of 50 lines and one JSON Lines file. A cluster on this machine
translates them into another folder of the bucket, while first a worker and then the command itself is killed. The
command is then resumed with --resume. The result must be identical to that of the plain command. Finally, the script
counts the objects in the store.
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

BUCKET = "texts"
BASE = f"s3://{BUCKET}"
PATIENCE = 300  # timeout in seconds
EACH = 50  # lines per file


@contextmanager
def store(environment: Path) -> Iterator[None]:
    """Run a store with one bucket, and pass its address to child processes in environment variables."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    process = subprocess.Popen([environment / "bin/moto_server", "-p", str(port)], stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    os.environ |= {"AWS_ENDPOINT_URL": address, "AWS_ACCESS_KEY_ID": "nobody", "AWS_SECRET_ACCESS_KEY": "nothing"}
    os.environ |= {"AWS_DEFAULT_REGION": "us-east-1", "RAY_AUTH_MODE": "disabled"}
    try:
        make = urllib.request.Request(f"{address}/{BUCKET}", method="PUT")
        wait_for(lambda: answers(make), process)
        yield
    finally:
        process.terminate()
        process.wait()


def answers(request: urllib.request.Request) -> bool:
    try:
        return bool(urllib.request.urlopen(request).status)
    except OSError:
        return False


def wait_for(what: Callable[[], bool], process: "subprocess.Popen[str] | subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + PATIENCE
    while not what():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"{process.args!r} ended, or did nothing for too long")
        time.sleep(0.1)


def write_inputs(folder: Path, lines: list[str]) -> None:
    folder.mkdir()
    for at in range(0, len(lines), EACH):
        (folder / f"{at:06}.txt").write_text("".join(f"{line}\n" for line in lines[at : at + EACH]), "utf-8")
    (folder / "b.jsonl").write_text("".join(json.dumps({"text": line}) + "\n" for line in lines[:200]), "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--moto", type=Path, required=True, help="the environment in which moto is installed")
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--lines", type=int, default=2000)
    given = parser.parse_args()
    from pyarrow.fs import FileSelector

    from vidrio.wide.files import Place

    with tempfile.TemporaryDirectory() as temporary, store(given.moto):
        home = Path(temporary)
        with given.source.open(encoding="utf-8") as file:
            write_inputs(home / "in", [line.rstrip("\n") for line in islice(file, given.lines)])
        there = Place.of(f"s3://{BUCKET}/in")
        for path in (home / "in").iterdir():
            with (there / path.name).writing() as stream:
                stream.write(path.read_bytes())

        def command(form: str, output: str, *more: str) -> "subprocess.Popen[str]":
            more = (*more, "--jsonl") if form == "jsonl" else more
            asked = ["translate", "-i", f"{BASE}/in/*.{form}", "-o", output, "--ray", *more]
            return subprocess.Popen([sys.executable, "-m", "vidrio", *asked], stderr=subprocess.PIPE, text=True)

        def ends(process: "subprocess.Popen[str]") -> str:
            told = process.communicate(timeout=PATIENCE)[1]
            if process.returncode:
                raise SystemExit(told)
            return told.strip().rpartition("\n")[2]

        def equal(name: str, options: list[str]) -> None:
            plain = ["translate", "-i", str(home / "in" / name), "-o", str(home / name), *options]
            subprocess.run([sys.executable, "-m", "vidrio", *plain], check=True)
            with Place.of(f"{BASE}/out/{name}").reading() as stream:
                if stream.read() != (home / name).read_bytes():
                    raise SystemExit(f"{name} differs")

        def done() -> int:
            out = Place.of(f"{BASE}/out")
            return len(out.system.get_file_info(FileSelector(out.path, allow_not_found=True)))

        first = command("txt", f"{BASE}/out")
        wait_for(lambda: done() >= 2, first)
        os.kill(worker_of(first.pid), signal.SIGKILL)
        before = done()
        wait_for(lambda: done() > before + 1, first)
        first.kill()
        first.communicate()
        print(f"a worker was killed after {before} files, the command after {done()}; then --resume:", flush=True)
        print(ends(command("txt", f"{BASE}/out", "--resume")))
        for path in (home / "in").glob("*.txt"):
            equal(path.name, [])
        print(ends(command("txt", f"{BASE}/out", "--resume")))
        print(ends(command("jsonl", f"{BASE}/out")))
        equal("b.jsonl", ["--jsonl"])
        print(f"the bytes of the plain command; files in the store: {done()}")


def worker_of(command: int) -> int:
    """Return the ID of a worker process in this command's Ray cluster."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    for process in parents:
        above = process
        while above not in (0, 1, command):
            above = parents.get(above, 0)
        try:
            if above == command and (Path("/proc") / str(process) / "cmdline").read_bytes().startswith(b"ray::attempt"):
                return process
        except OSError:
            continue
    raise SystemExit("no worker was found")


if __name__ == "__main__":
    main()
