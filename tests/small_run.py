"""A really trained run: a hundred made-up sentence pairs, a minute model, a few seconds, by the command itself."""

import subprocess
import sys
from itertools import product
from pathlib import Path

WHO = {"the cat": "el gato", "the dog": "el perro", "a child": "un niño", "the sun": "el sol", "my friend": "mi amigo"}
DOES = {"sees": "ve", "wants": "quiere", "finds": "encuentra", "has": "tiene"}
WHAT = {"a house": "una casa", "the bread": "el pan", "two books": "dos libros", "the world": "el mundo", "it": "eso"}
PAIRS = [
    (f"{who} {does} {what}", f"{WHO[who]} {DOES[does]} {WHAT[what]}") for who, does, what in product(WHO, DOES, WHAT)
]
SIZES = {"d-model": 24, "heads": 2, "d-ff": 48, "encoder-layers": 1, "decoder-layers": 1}
TAUGHT = {"tokenizer": "word", "languages": "en,es", "rate": 0.01, "dropout": 0, "precision": "float32", "threads": 1}


def train_small(folder: Path, *options: str) -> Path:
    """Train in `folder`/model, and give the model's folder."""
    rows = [*PAIRS, PAIRS[0], ("the cat", ""), ("seven 7 dogs", "siete perros")]  # a duplicate, and two that are wrong
    text = "".join(f"{source}\t{target}\n" for source, target in rows)
    (folder / "pairs.tsv").write_text(text, encoding="utf-8")
    usual = (part for name, value in {**SIZES, **TAUGHT}.items() for part in (f"--{name}", str(value)))
    command = [sys.executable, "-m", "vidrio", "train", "pairs.tsv", "--to", "model", *usual]
    command += options or ("--steps", "150")
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return folder / "model"
