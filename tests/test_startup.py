"""Test that start-up stays fast. The tests count imports, because times mean little on a shared machine."""

import subprocess
import sys

import pytest

from vidrio import cli

# Libraries that must not be imported before they are needed.
HEAVY = {*("numpy", "torch", "ctranslate2", "tokenizers", "safetensors", "sacrebleu", "huggingface_hub")}
# Modules of the standard library that each take hundredths of a second to import and that no help page needs.
SLOW = {
    *("asyncio", "concurrent", "multiprocessing", "subprocess", "socket", "ssl", "http", "urllib", "email", "html"),
    *("json", "tomllib", "logging", "tempfile", "hashlib", "random", "zipfile", "sqlite3", "unittest", "pydoc", "xml"),
}

COUNT = """
import sys
before = set(sys.modules)
try:
    {code}
finally:
    sys.stderr.write(" ".join(sorted(set(sys.modules) - before)))
"""


def modules_imported_by(code: str) -> list[str]:
    """Return the modules that a line of code imports beyond those of a bare Python."""
    command = [sys.executable, "-c", COUNT.format(code=code)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stderr.split()


def roots(modules: list[str]) -> set[str]:
    return {module.partition(".")[0] for module in modules}


# Measured: 1 module for `import vidrio` and 81 for `vidrio --help`, most of them click and its imports. The limits
# leave room for a few small modules and correspond to 0.05 and 0.15 seconds.
@pytest.mark.parametrize(
    ("code", "budget"), [("import vidrio", 25), ("import vidrio.cli; vidrio.cli.main(['--help'])", 100)]
)
def test_starting_imports_little(code: str, budget: int) -> None:
    modules = modules_imported_by(code)
    assert not roots(modules) & (HEAVY | SLOW)
    assert len(modules) <= budget, modules


def test_no_help_imports_anything_heavy() -> None:
    modules = modules_imported_by(f"import vidrio.cli; [vidrio.cli.main([verb, '--help']) for verb in {[*cli.VERBS]}]")
    assert not roots(modules) & HEAVY


def test_translating_a_text_imports_no_more_than_it_needs() -> None:
    modules = modules_imported_by("import vidrio.cli; vidrio.cli.main(['translate', 'Hello world'])")
    assert "tokenizers" in roots(modules)
    assert not roots(modules) & (HEAVY - {"tokenizers"})
    assert not {name for name in modules if name.startswith(("vidrio.glass", "vidrio.look", "vidrio.learn"))}
