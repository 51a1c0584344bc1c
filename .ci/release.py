"""make release: build a wheel and a source archive in dist/ reproducibly, test them and write their checksums.

The wheel is built from the unpacked source archive, with engine and page rebuilt, and must equal one built from this
folder byte by byte. Then every Python named in PYTHONS (or found as python3.11 … python3.14) installs the wheel into a
fresh environment, without a compiler, and translates, looks, checks and serves; the first one also trains, if TRAIN is
set. Vidrio runs there as a user who may write to a cache only. KEY names an SSH key that signs the checksums.
"""

import hashlib
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DIST = ROOT / "dist"
NOBODY = {"user": 65534, "group": 65534, "extra_groups": []} if hasattr(os, "geteuid") and os.geteuid() == 0 else {}


def run(*command: str | Path, **more: object) -> str:
    """The output of a command, which must succeed."""
    try:
        done = subprocess.run(list(map(str, command)), text=True, stdout=subprocess.PIPE, check=False, **more)  # type: ignore[call-overload]
    except PermissionError:
        sys.exit(f"{command[0]}: the user nobody, who tries it, may not run this; name another Python in PYTHONS")
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\nended with status {done.returncode}")
    return str(done.stdout)


def build(source: Path, to: Path, kind: str) -> Path:
    """A wheel or an sdist of a source folder, with the time of the last commit."""
    when = os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct", cwd=ROOT).strip()
    environment = {**os.environ, "SOURCE_DATE_EPOCH": when}
    run(sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", to, cwd=source, env=environment)
    [made] = to.glob("*.whl" if kind == "wheel" else "*.tar.gz")
    return made


def build_all(scratch: Path) -> list[Path]:
    """The source archive, and the wheel built from it with engine and page rebuilt."""
    if (ROOT / ".git").exists() and (changed := run("git", "status", "--porcelain", cwd=ROOT)):
        sys.exit(f"a release is made of what is committed; this is not:\n{changed}")
    run(sys.executable, "-m", "vidrio.engine.build", "--all")
    if (ROOT / ".git").exists() and (changed := run("git", "status", "--porcelain", cwd=ROOT)):
        sys.exit(f"these builds of the engine are not made from its source; commit what make engine writes:\n{changed}")
    sdist = build(ROOT, scratch / "sdist", "sdist")
    with tarfile.open(sdist) as archive:
        archive.extractall(scratch / "source", filter="data")
    [source] = (scratch / "source").iterdir()
    shutil.rmtree(source / "src/vidrio/engine/built")
    its_own = {**os.environ, "PYTHONPATH": str(source / "src")}
    run(sys.executable, "-m", "vidrio.engine.build", "--all", env=its_own)
    if (modules := ROOT / "page/node_modules").exists():
        shutil.rmtree(source / "src/vidrio/serve/page")
        (source / "page/node_modules").symlink_to(modules)
        run("npm", "run", "--silent", "build", cwd=source / "page", stderr=subprocess.DEVNULL)
    else:
        print("the page was NOT built anew: npm install in page/, with Node, brings what that needs")
    wheel, own = build(source, scratch / "wheel", "wheel"), build(ROOT, scratch / "own", "wheel")
    if wheel.read_bytes() != own.read_bytes():
        sys.exit("the source archive builds another wheel than this folder")
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    return [Path(shutil.copy(made, DIST)) for made in (sdist, wheel)]


def pythons() -> list[str]:
    """The requested Pythons, all of which must run; by default those of the supported versions that run."""
    asked = os.environ.get("PYTHONS", "").split()
    found, missing = [], []
    for name in asked or ["python3.11", "python3.12", "python3.13", "python3.14"]:
        try:
            subprocess.run([name, "-c", "import ensurepip, venv"], cwd="/", check=True, capture_output=True, **NOBODY)  # type: ignore[call-overload]
            found.append(name)
        except (OSError, subprocess.CalledProcessError):
            missing.append(name)
    if missing:
        print(f"not tried, for the user who tries them cannot run them here: {' '.join(missing)}", flush=True)
    if not found or (asked and missing):
        sys.exit("name Pythons with venv that every user may run: PYTHONS=/usr/bin/python3.11 make release")
    return found


def verify(python: str, wheel: Path, scratch: Path, *, train: bool) -> None:
    """Install only the wheel, and do what a newcomer does."""
    home, cache = scratch / "home", scratch / "cache"
    run(python, "-m", "venv", scratch / "env")
    extra = "[train]" if train else ""
    pip = (scratch / "env/bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    run(*pip, "--only-binary", ":all:", "-c", ROOT / "constraints.txt", f"vidrio{extra} @ file://{wheel}")
    home.mkdir(mode=0o555)
    cache.mkdir()
    cache.chmod(0o777)
    environment = {"PATH": "/nowhere", "HOME": str(home), "XDG_CACHE_HOME": str(cache), "TMPDIR": str(cache)}
    as_user = {"cwd": home, "env": environment, **NOBODY}
    vidrio = scratch / "env/bin/vidrio"
    seconds = time.monotonic()
    found = run(vidrio, "translate", "Hello world", **as_user)
    print(f"  {python}: {found.strip()!r} in {time.monotonic() - seconds:.2f} s, the first time")
    if found != "Hola mundo\n" or "mundo" not in run(vidrio, "look", "Hello world", **as_user):
        sys.exit(f"{python}: translate or look shows something else")
    run(vidrio, "check", "Hello world", **as_user)
    serve(vidrio, as_user)
    if train:
        pairs = "".join(f"the {a} {b}\tel {a} {b}\n" for a in "abcdefghij" for b in "klmnopqrst")
        (cache / "pairs.tsv").write_text(pairs, encoding="utf-8")
        small = ("--preset", "tiny", "--steps", "20", "--threads", "1", "--device", "cpu")
        run(vidrio, "train", cache / "pairs.tsv", "--to", cache / "model", *small, **as_user)
        run(vidrio, "translate", "--model", cache / "model", "the a k", **as_user)


def serve(vidrio: Path, as_user: dict[str, object]) -> None:
    """The page loads, and translates."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([vidrio, "serve", "--port", str(port)], stderr=subprocess.DEVNULL, **as_user)  # type: ignore[call-overload]
    try:
        for _ in range(300):
            try:
                page = urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=10).read()
                break
            except OSError:
                time.sleep(0.2)
        else:
            sys.exit("vidrio serve does not answer")
        asked = urllib.request.Request(f"http://127.0.0.1:{port}/translate", b"q=Hello+world&source=en&target=es")
        answer = urllib.request.urlopen(asked, timeout=60).read()
        if b"<!doctype html" not in page.lower() or b"Hola mundo" not in answer:
            sys.exit("vidrio serve shows something else")
    finally:
        server.terminate()
        server.wait(30)


def checksums(files: list[Path], key: str) -> None:
    sums = DIST / "SHA256SUMS"
    lines = (f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    sums.write_text("".join(lines), encoding="utf-8")
    if key:
        run("ssh-keygen", "-q", "-Y", "sign", "-n", "vidrio", "-f", key, sums)
    print(sums.read_text(encoding="utf-8"), end="")
    print("signed: SHA256SUMS.sig" if key else "UNSIGNED: make release KEY=~/.ssh/id_ed25519 signs the checksums")


if __name__ == "__main__":
    key = os.path.expanduser(os.environ.get("KEY", ""))
    if key and not os.path.exists(key):
        sys.exit(f"there is no key {key}")
    names = pythons()
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        scratch.chmod(0o755)
        files = build_all(scratch)
        for number, python in enumerate(names):
            own = scratch / str(number)
            own.mkdir()
            verify(python, files[1], own, train=not number and bool(os.environ.get("TRAIN")))
    checksums(files, key)
