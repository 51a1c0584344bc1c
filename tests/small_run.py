"""A really trained run: some hundred made-up sentence pairs, a minute model, a few seconds, by the command itself."""

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
TAUGHT = {"tokenizer": "word", "languages": "en,es", "rate": 0.01, "dropout": 0, "precision": "float32", "threads": 1}


def train_small(folder: Path, *options: str) -> Path:
    """Train in `folder`/model, and give the model's folder."""
    pairs = folder / "pairs.tsv"
    rows = [*PAIRS, PAIRS[0], ("the cat", ""), ("seven 7 dogs", "siete perros")]  # a duplicate, and two that are wrong
    pairs.write_text("".join(f"{source}\t{target}\n" for source, target in rows), encoding="utf-8")
    model = folder / "model"
    usual = (part for name, value in {**SIZES, **TAUGHT}.items() for part in (f"--{name}", str(value)))
    assert main(["train", str(pairs), "--to", str(model), *usual, *(options or ("--steps", "150"))]) == 0
    return model
