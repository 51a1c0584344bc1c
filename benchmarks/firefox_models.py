"""Import a Firefox model and compare its translations with Marian's, in float32, 8 bits and 7 bits.

    python benchmarks/firefox_models.py FOLDER LINES --python python3.10 --module _bergamot.….so

FOLDER contains native Marian files (.bin with int8, .spm), and LINES is a file in the source language. Marian runs in
the compiled module of `bergamot` 0.4.5 from PyPI, which requires Python 3.10 with NumPy and sentencepiece.

1. An independent reader writes a float32 copy of the model, and Marian translates with it. The engine in float32 must
   produce the same texts and the same log-probability for each word. Where they differ, the NumPy reference in float64
   shows which of the two has the larger rounding error.
2. For Marian and the engine, both in int8, the script prints how many translations are identical to those in float32,
   and chrF relative to them.
3. The model is exported with `vidrio export --to marian` and run in Marian in int8, and the same figures are printed.
"""

import argparse
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from shared import TESTS, processor

sys.path.insert(0, str(TESTS))
import marian_golden
from vidrio.glass.machine import build
from vidrio.glass.walk import translate_forced
from vidrio.hypothesis import Ids
from vidrio.interop.convert import export_model, import_model
from vidrio.model.folder import read_config, read_parameters
from vidrio.score.metrics import corpus_scores, usual_metrics
from vidrio.translate.translator import Translator, search_options

CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from marian_golden import by_marian
given = json.load(sys.stdin)
print(json.dumps(by_marian(Path(given["module"]), given["config"], given["texts"])))
"""


class Marian:
    """Runs Marian in a separate process."""

    def __init__(self, python: str, module: str) -> None:
        self.python, self.module = python, module

    def translate(self, model: Path, spms: list[Path], precision: str, texts: list[str]) -> list[dict]:
        config = marian_golden.search(model, (spms * 2)[:2], precision, factor=3)
        told = json.dumps({"module": self.module, "config": config, "texts": texts})
        done = subprocess.run(
            [self.python, "-c", CHILD, str(TESTS)], input=told, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise SystemExit(done.stderr[-2000:])
        return json.loads(done.stdout)


def write_twin(path: Path, to: Path) -> None:
    """Write a float32 copy of the model, without using Vidrio's code."""
    data = path.read_bytes()
    heads = np.frombuffer(data, "<u8", 4 * int(np.frombuffer(data, "<u8", 1, 8)[0]), 16).reshape(-1, 4).tolist()
    at, names, shapes = 16 + 32 * len(heads), [], []
    for length, *_ in heads:
        names.append(data[at : at + length - 1].decode())
        at += length
    for _, _, axes, _ in heads:
        shapes.append(tuple(np.frombuffer(data, "<i4", axes, at).tolist()))
        at += 4 * axes
    at += 8 + int.from_bytes(data[at : at + 8], "little")
    items, config = [], ""
    for name, shape, (_, kind, _, length) in zip(names, shapes, heads, strict=True):
        count = math.prod(shape)
        if name == "special:model.yml":
            config = data[at : at + length].rstrip(b"\0").decode()
        elif kind == 0x4101 and not name.endswith("QuantMultA"):
            value = np.frombuffer(data, np.int8, count, at).astype(np.float32)
            value = value * (np.float32(1) / np.frombuffer(data, np.float32, 1, at + count)[0])
            value = value.reshape(shape) if "Wemb" in name else value.reshape(shape[::-1]).T
            items.append((name, 0x0404, shape, np.ascontiguousarray(value).tobytes()))
        elif kind == 0x0404 and not name.endswith("QuantMultA"):
            items.append((name, kind, shape, data[at : at + 4 * count]))
        at += length
    to.write_bytes(marian_golden.container(items, config))


def by_engine(translator: Translator, texts: list[str]) -> list[dict]:
    """Translate with the engine as Marian does: greedily, with each text as one sentence, and without placeholders."""
    target = translator.target
    options = search_options(translator.options, translator.config, target.size, target.byte_ids)
    sources = [(*ids, *translator.config.source_close) for ids in translator.source.encode_batch(texts)]
    found = [best.ids for best, *_ in translator.engine.search(sources, options)]
    log_probs = translator.engine.forced(list(zip(sources, found, strict=True)))
    return [
        {"target": translator.target.decode(ids), "words": words_of(translator, ids, of_each), "ids": (source, ids)}
        for source, ids, of_each in zip(sources, found, log_probs, strict=True)
    ]


def in_float64(folder: Path) -> Callable[[tuple[Ids, Ids]], list[float]]:
    """Return a function that computes the log-probability of each target token with the NumPy reference in float64."""
    config, _ = read_config(folder)
    machine = build(config, {name: value.astype(np.float64) for name, value in read_parameters(folder).items()})

    def log_probs(pair: tuple[Ids, Ids]) -> list[float]:
        source, ids = pair
        rows = translate_forced(machine, source, [config.special.start, *ids])
        return list(np.log(rows[np.arange(len(ids)), list(ids)]))

    return log_probs


def words_of(translator: Translator, ids: tuple[int, ...], log_probs: list[float]) -> list[float]:
    """Return the mean log-probability of each word's tokens. Words begin with ▁."""
    words: list[list[float]] = []
    for token, log_prob in zip(ids, log_probs, strict=False):
        if translator.target.token(token).startswith("▁") or not words:
            words.append([])
        words[-1].append(log_prob)
    return [float(np.mean(word)) for word in words]


def beyond_print(ours: float, theirs: float) -> float:
    """Return a lower bound on the difference, because Marian rounds its numbers to six digits."""
    hidden = 0.5 * 10.0 ** (math.floor(math.log10(abs(theirs) or 1e-9)) - 5)
    return max(0.0, abs(ours - theirs) - hidden)


def report(name: str, found: list[dict], floats: list[str]) -> None:
    texts = [one["target"].strip() for one in found]
    [score] = corpus_scores(texts, [floats], {"chrF": usual_metrics()["chrF"]})[0]
    equal = sum(a == b for a, b in zip(texts, floats, strict=True))
    print(f"{name:<34} {equal:>4} of {len(floats)} texts as in float32   chrF against it {score.value:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("lines", type=Path)
    parser.add_argument("--python", required=True, help="Python 3.10 with NumPy and sentencepiece")
    parser.add_argument("--module", required=True, help="bergamot's compiled module")
    parser.add_argument("--exact", type=int, default=200, help="number of sentences to compare in float32")
    parser.add_argument("--bits", type=int, default=500, help="number of sentences to compare in int8")
    given = parser.parse_args()
    marian = Marian(given.python, given.module)
    texts = [line for line in given.lines.read_text("utf-8").splitlines() if line.strip()][
        : max(given.exact, given.bits)
    ]
    spms = sorted(given.folder.glob("*.spm"))
    [model] = [path for path in given.folder.glob("*.bin") if path.read_bytes()[:8] == bytes([1, *[0] * 7])]
    print(processor(), f"{len(texts)} lines", sep="\n")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        write_twin(model, place / "float.bin")
        theirs = marian.translate(place / "float.bin", spms, "float32", texts)
        for form, int8 in (("float", False), ("int8", True)):
            import_model(str(given.folder), place / form, int8=int8)
        ours = by_engine(Translator.load(place / "float"), texts)
        pairs = list(zip(ours, theirs, strict=True))[: given.exact]
        same = [(a, b) for a, b in pairs if a["target"] == b["target"].strip()]
        exactly, one = in_float64(place / "float"), Translator.load(place / "float")
        counted = [
            (a["words"], b["words"], words_of(one, a["ids"][1], exactly(a["ids"])))
            for a, b in same
            if len(a["words"]) == len(b["words"])
        ]
        print(
            f"float32: {len(same)} of {len(pairs)} texts equal; {sum(len(a) for a, *_ in counted)} words; log p differs"
        )
        for what, first, second in (("ours from Marian's", 0, 1), ("Marian's from float64", 2, 1)):
            all_of_it = [beyond_print(*pair) for of in counted for pair in zip(of[first], of[second], strict=True)]
            print(f"  {what:<22} by {max(all_of_it):.1e} at most, beyond what its six printed digits hide")
        ours_off = [abs(a - b) for of in counted for a, b in zip(of[0], of[2], strict=True)]
        print(f"  {'ours from float64':<22} by {max(ours_off):.1e} at most")
        for a, b in pairs:
            if a["target"] != b["target"].strip():
                print(f"  {a['target']!r}\n  {b['target']!r}")
        floats = [one["target"].strip() for one in theirs][: given.bits]
        texts = texts[: given.bits]
        report("Vidrio, float32", ours[: given.bits], floats)
        report("Vidrio, int8 (7-bit weights)", by_engine(Translator.load(place / "int8"), texts), floats)
        report("Marian, int8shiftAlphaAll", marian.translate(model, spms, "int8shiftAlphaAll", texts), floats)
        export_model(str(place / "int8"), "marian", place / "exported", texts)
        [exported] = (place / "exported").glob("model.*.bin")
        report("Marian, exported by Vidrio", marian.translate(exported, spms, "int8shiftAlphaAll", texts), floats)


if __name__ == "__main__":
    main()
