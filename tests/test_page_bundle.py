"""Test that the built page in the package matches its sources and is small."""

import hashlib
import re
import shutil
import subprocess
from pathlib import Path

import pytest

BUILT = Path("src/vidrio/serve/page")
ALONE = ("index.html", "package-lock.json", "package.json", "vite.config.ts")
LARGEST_FIRST_VIEW = 250_000  # bytes, compressed


def test_the_built_page_is_made_from_these_sources(repository: Path) -> None:
    """Compare the hash in the bundle with that of the sources. This does not require Node."""
    page = repository / "page"
    files = [path for path in (page / "src").rglob("*") if path.is_file()] + [page / name for name in ALONE]
    digest = hashlib.sha256()
    for name, path in sorted((path.relative_to(page).as_posix(), path) for path in files):
        digest.update(f"{name}\0".encode() + path.read_bytes() + b"\0")
    built = (repository / BUILT / "built-from.txt").read_text("utf-8").strip()
    assert built == digest.hexdigest(), "build it: make page"


@pytest.mark.slow
def test_its_own_tests_pass_and_building_again_gives_the_same_bytes(repository: Path, tmp_path: Path) -> None:
    """This requires Node and the page's libraries. `make page` runs these checks, too."""
    if not shutil.which("npx") or not (repository / "page" / "node_modules" / ".bin" / "vite").exists():
        pytest.skip("there is no Node, or page/node_modules is missing: make page")
    checks = [["npm", "run", "--silent", name] for name in ("test", "check", "lint")]
    build, to = ["npx", "--offline", "vite", "build"], tmp_path / "page"
    modes = [[*build, "--mode", f"alone-{name}", "--outDir", str(to / "alone")] for name in ("page", "worker")]
    for command in (*checks, [*build, "--outDir", str(to), "--emptyOutDir"], *modes):
        done = subprocess.run(command, cwd=repository / "page", capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    def contents(folder: Path) -> dict[str, bytes]:
        return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}

    assert contents(tmp_path / "page") == contents(repository / BUILT), "build it: make page"


def test_the_first_view_is_small(repository: Path) -> None:
    """The first view loads a script, a stylesheet and a font."""
    import gzip

    built = repository / BUILT
    index = (built / "index.html").read_text("utf-8")
    named = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', index)
    style = next(name for name in named if name.endswith(".css"))
    font = re.search(r"inter-latin-wght-normal[^)]*\.woff2", (built / style).read_text("utf-8"))
    assert font
    first = [built / name for name in named] + [built / "assets" / font[0]]
    size = sum(len(gzip.compress(path.read_bytes())) for path in first)
    assert size < LARGEST_FIRST_VIEW
