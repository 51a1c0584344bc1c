"""An imported model of the usual size: 6 + 6 layers, width 512, 32,000 pieces and more, random numbers. How long every
command takes on it, whole processes: by the clock, of the processor (which other work hardly changes), and memory.

    python benchmarks/imported_size.py
"""

import argparse
import itertools
import string
import sys
import tempfile
from pathlib import Path

from shared import TESTS, cost_of

sys.path.insert(0, str(TESTS))

SENTENCE = (
    "The old teacher finds the quiet city by the green river, and the young people follow the train to the tall house."
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        make(home / "hf", layers=6, width=512, pieces=32_000)
        ours, bounded = str(home / "ours"), ["-m", str(home / "ours"), "--max-length", "25"]
        lines, references = home / "lines.txt", home / "references.txt"
        lines.write_text(f"{SENTENCE}\n" * 20)
        references.write_text(f"{SENTENCE}\n" * 20)
        for name, command in {
            "import": ["import", str(home / "hf"), "--to", ours],
            "translate, the first time": ["translate", *bounded, SENTENCE],
            "translate": ["translate", *bounded, SENTENCE],
            "look": ["look", *bounded, SENTENCE],
            "look --without positions": ["look", *bounded, "--without", "positions", SENTENCE],
            "look --html": ["look", *bounded, "--html", str(home / "look.html"), SENTENCE],
            "why": ["why", *bounded, "dec.0.cross.scores.h1[1,0]", SENTENCE],
            "check": ["check", *bounded, SENTENCE],
            "evaluate, 20 lines": ["evaluate", ours, *bounded[2:], "--src", str(lines), "--ref", str(references)],
            "export --to hf": ["export", ours, "--to", "hf", str(home / "back")],
            "export --to ctranslate2": ["export", ours, "--to", "ctranslate2", str(home / "ct2")],
        }.items():
            cost = cost_of([sys.executable, "-m", "vidrio", *command])
            took = f"{cost.seconds:7.2f} s, {cost.processor:7.2f} s of the processor"
            print(f"{name:32} {took}, {cost.megabytes:7.0f} MB at most", flush=True)
        for path in ("hf", "ours", "back", "ct2", "look.html"):
            size = sum(file.stat().st_size for file in [home / path, *(home / path).rglob("*")] if file.is_file())
            print(f"{path:32} {size / 1e6:9.1f} MB")


def make(folder: Path, layers: int, width: int, pieces: int) -> None:
    """A MarianMT folder with made-up pieces: all words of three letters and of four, as many as are wanted."""
    from marian_models import write_marian

    words = ("".join(letters) for n in (3, 4) for letters in itertools.product(string.ascii_lowercase, repeat=n))
    sizes = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (
        ("layers", layers), ("attention_heads", width // 64), ("ffn_dim", 4 * width))}  # fmt: skip
    more = [f"▁{word}" for word in itertools.islice(words, pieces)]
    write_marian(folder, more=more, bias=8, d_model=width, max_position_embeddings=512, **sizes)


if __name__ == "__main__":
    main()
