"""Train a tiny model with the command itself, on a hundred made-up sentence pairs. This takes a few seconds."""

import atexit
import contextlib
import io
import shutil
import sys
import tempfile
from functools import cache
from itertools import product
from pathlib import Path

from vidrio.cli import main

WHO = {"the cat": "el gato", "the dog": "el perro", "a child": "un niño", "the sun": "el sol", "my friend": "mi amigo"}
DOES = {"sees": "ve", "wants": "quiere", "finds": "encuentra", "has": "tiene"}
WHAT = {"a house": "una casa", "the bread": "el pan", "two books": "dos libros", "the world": "el mundo", "it": "eso"}
PAIRS = [
    (f"{who} {does} {what}", f"{WHO[who]} {DOES[does]} {WHAT[what]}") for who, does, what in product(WHO, DOES, WHAT)
]
SIZES = {"d-model": 24, "heads": 2, "d-ff": 48, "encoder-layers": 1, "decoder-layers": 1}
TAUGHT = {"vocabulary": 400, "languages": "en,es", "rate": 0.01, "dropout": 0, "precision": "float32", "threads": 1}


def vidrio_train(folder: Path, *arguments: str) -> tuple[int, str]:
    """Run `vidrio train …` in this process, which imports PyTorch only once. Return the exit code and the output."""
    command, said = ["train", *map(str, arguments)], io.StringIO()
    before, sys.argv = sys.argv, ["vidrio", *command]  # the model card contains the command
    try:
        with contextlib.chdir(folder), contextlib.redirect_stderr(said):
            return main(command), said.getvalue()
    finally:
        sys.argv = before


def train_small(folder: Path, *options: str) -> Path:
    """Train in `folder`/model, and return the model's folder. An earlier run with the same options is copied."""
    shutil.copytree(_trained(options), folder, dirs_exist_ok=True)
    return folder / "model"


@cache
def _trained(options: tuple[str, ...]) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="vidrio-small-run-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    rows = [*PAIRS, PAIRS[0], ("the cat", ""), ("seven 7 dogs", "siete perros")]  # a duplicate and two faulty pairs
    text = "".join(f"{source}\t{target}\n" for source, target in rows)
    (folder / "pairs.tsv").write_text(text, encoding="utf-8")
    usual = (part for name, value in {**SIZES, **TAUGHT}.items() for part in (f"--{name}", str(value)))
    code, said = vidrio_train(folder, "pairs.tsv", "--to", "model", *usual, *(options or ("--steps", "150")))
    assert code == 0, said
    return folder
