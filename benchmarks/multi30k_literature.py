"""Evaluate on Multi30k test_2016_flickr, English to German, as in the literature: lower case, Moses tokens, -tok none.

    python benchmarks/multi30k_literature.py [--model FOLDER] [--data ../shared/data/multi30k] [--to FOLDER]

Without --model, the script decompresses the tokenised training files into --to and prints the commands that train a
model on them, which must be run in order. To resume an interrupted command, run it again. With --model, the script
translates the test set with that model (by default with beam 4), and prints BLEU with its signature and confidence
interval, and the best published score for training from scratch on text alone. The model and sacreBLEU receive the
words exactly as they are in the files.
"""

import argparse
import logging
import lzma
import shlex
from dataclasses import replace
from pathlib import Path

from shared import MULTI30K
from vidrio.commands._lines import read_aligned
from vidrio.engine.engine import Engine
from vidrio.hypothesis import default_options
from vidrio.model.find import find
from vidrio.model.folder import read_config
from vidrio.score.metrics import corpus_scores, usual_metrics
from vidrio.text.tokens.tokenizer import read_tokenizers

PUBLISHED = 41.02  # BLEU of a model with 4 + 4 layers of width 128 and averaged checkpoints
FORM = "lc.norm.tok"
# Each training run starts from the model of the previous one. For our reported score, the first also used BPE dropout.
COMMON = "--average 0.9995"
RECIPES = {
    "first": f"--epochs 40 --preset tiny --vocabulary 8000 {COMMON}",
    "second": f"--epochs 88 --rate 0.002 {COMMON}",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=MULTI30K, help=f"with tok/train.{FORM}.en.xz")
    parser.add_argument("--model", type=Path, help="a model folder")
    parser.add_argument("--to", type=Path, default=Path("multi30k-literature"), help="folder to train in")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    if given.model is None:
        print(commands(given.data / "tok", given.to))
        return
    logging.getLogger("sacrebleu").setLevel(logging.ERROR)  # sacreBLEU warns about tokenised text
    files = [given.data / "tok" / f"test_2016_flickr.{FORM}.{side}" for side in ("en", "de")]
    sources, references = read_aligned(files)
    folder = find(given.model)
    config, _ = read_config(folder)
    source, target = read_tokenizers(folder, config)
    ids = [(*row, *config.source_close) for row in source.encode_batch(sources)]
    options = replace(default_options(config), beam=given.beam, length_penalty=given.length_penalty)
    found = Engine.load(folder, config, workers=given.threads).search(ids, options)
    translations = target.decode_batch([hypotheses[0].ids for hypotheses in found])
    (bleu, *_), _ = corpus_scores(translations, [references], usual_metrics(tokenize="none"))
    print(f"{given.model.name}, beam {given.beam}, length penalty {given.length_penalty:g}, {len(sources):,} sentences")
    print(f"BLEU {bleu.value:.2f} ± {bleu.half_width:.2f}   {bleu.signature}")
    print(f"published {PUBLISHED:.2f}: {'reached' if bleu.value >= PUBLISHED else 'not reached'}")


def commands(data: Path, to: Path) -> str:
    """Decompress the training files, and return the training commands."""
    to.mkdir(parents=True, exist_ok=True)
    for side in ("en", "de"):
        (to / f"train.{side}").write_bytes(lzma.decompress((data / f"train.{FORM}.{side}.xz").read_bytes()))
        (to / f"val.{side}").write_bytes((data / f"val.{FORM}.{side}").read_bytes())
        (to / f"test.{side}").write_bytes((data / f"test_2016_flickr.{FORM}.{side}").read_bytes())
    names = [to / f"train.{side}" for side in ("en", "de")]
    held = [f"--{part} {shlex.quote(str(to / name))}" for part, name in HELD_OUT]
    train = f"vidrio train {shlex.join(map(str, names))} {' '.join(held)}"
    lines, before = [], ""
    for name, recipe in RECIPES.items():
        lines.append(f"{train} --to {shlex.quote(str(to / name))} {before}{recipe}")
        before = f"--from {shlex.quote(str(to / name))} "
    return "\n".join(lines)


HELD_OUT = [("dev", "val.en"), ("dev", "val.de"), ("test", "test.en"), ("test", "test.de")]

if __name__ == "__main__":
    main()
