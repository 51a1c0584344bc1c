"""Write a random model in Marian's format (tests/golden/marian), and record what Marian computes with it.

    python tests/marian_golden.py tests/golden/marian --bergamot _bergamot.cpython-310-x86_64-linux-gnu.so

This script shares no code with Vidrio: it only follows the description of Marian's format. The committed model has int8
matrices. Marian runs the same values in float32, and expected.json records its translations and log-probabilities. The
script needs NumPy, sentencepiece and, with Python 3.10, the compiled module of `bergamot` 0.4.5 from PyPI.
"""

import argparse
import html
import importlib.util
import io
import json
import re
import struct
import tempfile
from pathlib import Path

import numpy as np
import sentencepiece

D, F, HEADS, ENCODER, DECODER, PIECES = 64, 64, 8, 1, 1, 96
PAIR = "enes"
WORDS = """
the old young tall quiet green teacher river house window garden finds follows leaves city mountain letter train and
people saw it never often walking walked talks talked where station under bridge because evening morning light 3 17 240
""".split()  # noqa: SIM905
CONFIG = f"""\
dec-cell: ssru
dec-depth: {DECODER}
dim-emb: {D}
dim-vocabs:
  - ROWS
  - ROWS
enc-depth: {ENCODER}
enc-type: bidirectional
input-types: []
layer-normalization: false
lemma-dim-emb: 0
output-omit-bias: false
right-left: false
skip: false
tied-embeddings: false
tied-embeddings-all: true
tied-embeddings-src: false
transformer-aan-activation: swish
transformer-decoder-autoreg: rnn
transformer-dim-ffn: {F}
transformer-ffn-activation: relu
transformer-ffn-depth: 2
transformer-guided-alignment-layer: last
transformer-heads: {HEADS}
transformer-no-projection: false
transformer-postprocess: dan
transformer-postprocess-emb: d
transformer-postprocess-top: ""
transformer-preprocess: ""
transformer-tied-layers:
  []
transformer-train-position-embeddings: false
type: transformer
ulr: false
version: random
"""


def sentences(count: int, seed: int) -> list[str]:
    draw = np.random.default_rng(seed)
    return [" ".join(draw.choice(WORDS, draw.integers(2, 12))).capitalize() + "." for _ in range(count)]


def vocabulary() -> bytes:
    """Train a unigram SentencePiece model with `</s>` as 0 and `<unk>` as 1, as Mozilla's pipeline does."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(sentences(2000, 1)),
        model_writer=model,
        vocab_size=PIECES,  # a multiple of 8, as Marian's kernels require
        normalization_rule_name="identity",
        bos_id=-1,
        eos_id=0,
        unk_id=1,
        minloglevel=2,
    )
    return model.getvalue()


def parameters(rows: int) -> dict[str, np.ndarray]:
    """Return random parameters, larger than those of a fresh model, so that translations differ."""
    draw = np.random.default_rng(7)
    found: dict[str, np.ndarray] = {"Wemb": draw.normal(0, D**-0.5, (rows, D))}

    def matrix(name: str, rows: int, columns: int, spread: float = 1.0) -> None:
        found[name] = draw.normal(0, spread * rows**-0.5, (rows, columns))

    def vector(name: str, size: int, mean: float = 0.0, spread: float = 0.2) -> None:
        found[name] = draw.normal(mean, spread, (1, size))

    def attention(name: str, spread: float) -> None:
        for letter in "qkv":
            matrix(f"{name}_W{letter}", D, D, 2.0 if letter != "v" else 1.0)
            vector(f"{name}_b{letter}", D)
        matrix(f"{name}_Wo", D, D, spread)
        vector(f"{name}_bo", D)
        vector(f"{name}_Wo_ln_scale", D, 1.0)
        vector(f"{name}_Wo_ln_bias", D)

    def feed_forward(name: str, spread: float, gain: float) -> None:
        matrix(f"{name}_W1", D, F, 2.0)
        vector(f"{name}_b1", F)
        matrix(f"{name}_W2", F, D, spread)
        vector(f"{name}_b2", D)
        vector(f"{name}_ffn_ln_scale", D, gain)
        vector(f"{name}_ffn_ln_bias", D)

    for layer in range(1, ENCODER + 1):
        attention(f"encoder_l{layer}_self", 0.5)
        feed_forward(f"encoder_l{layer}_ffn", 0.5, 1.0)
    for layer in range(1, DECODER + 1):
        matrix(f"decoder_l{layer}_rnn_W", D, D, 6.0)
        matrix(f"decoder_l{layer}_rnn_Wf", D, D)
        vector(f"decoder_l{layer}_rnn_bf", D)
        vector(f"decoder_l{layer}_rnn_ffn_ln_scale", D, 1.0)
        vector(f"decoder_l{layer}_rnn_ffn_ln_bias", D)
        attention(f"decoder_l{layer}_context", 6.0)
        feed_forward(f"decoder_l{layer}_ffn", 6.0, 2.5)
    vector("decoder_ff_logit_out_b", rows, 0.0, 0.5)
    found["decoder_ff_logit_out_b"][0, 0] = 4.5  # the end token
    return {name: value.astype(np.float32) for name, value in sorted(found.items())}


def quantised(value: np.ndarray) -> tuple[np.ndarray, np.float32]:
    scale = np.float32(127) / np.abs(value).max()
    return np.rint(value * scale).astype(np.int8), scale


def is_matrix(name: str) -> bool:
    return re.search(r"_W[a-z0-9]?$|Wemb$", name) is not None


def int8_items(numbers: dict[str, np.ndarray]) -> list[tuple[str, int, tuple[int, ...], bytes]]:
    """Return the items with int8 matrices, transposed except for the embedding. Each has a scale and an alpha."""
    items = []
    for name, value in numbers.items():
        if not is_matrix(name):
            items.append((name, 0x0404, value.shape, value.tobytes()))
            continue
        integers, scale = quantised(value)
        stored = integers if name == "Wemb" else np.ascontiguousarray(integers.T)
        items.append((name, 0x4101, value.shape, stored.tobytes() + scale.tobytes()))
        alpha = np.float32(127 / 6)
        if name == "Wemb":  # also int8, because its name contains Wemb
            items.append((f"{name}_QuantMultA", 0x4101, (1, 1), b"\x7f" + (np.float32(127) / alpha).tobytes()))
            items.append(("none_QuantMultA", 0x0404, (1, 1), alpha.tobytes()))
        else:
            items.append((f"{name}_QuantMultA", 0x0404, (1, 1), alpha.tobytes()))
    return sorted(items)


def float_items(numbers: dict[str, np.ndarray]) -> list[tuple[str, int, tuple[int, ...], bytes]]:
    """Return the items in float32, with matrices dequantised from int8."""
    items = []
    for name, value in numbers.items():
        if is_matrix(name):
            integers, scale = quantised(value)
            value = integers.astype(np.float32) * (np.float32(1) / scale)
        items.append((name, 0x0404, value.shape, value.tobytes()))
    return items


def container(items: list[tuple[str, int, tuple[int, ...], bytes]], config: str) -> bytes:
    """Return a file in Marian's format. Items are padded to multiples of 256 bytes by what looks like stale memory."""
    padded = [(name, kind, shape, data + b"\xa5" * (-len(data) % 256)) for name, kind, shape, data in items]
    text = config.encode() + b"\0"
    padded.append(("special:model.yml", 0x0101, (len(text),), text))
    out = struct.pack("<2Q", 1, len(padded))
    out += b"".join(struct.pack("<4Q", len(n.encode()) + 1, k, len(s), len(d)) for n, k, s, d in padded)
    out += b"".join(name.encode() + b"\0" for name, *_ in padded)
    out += b"".join(struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in padded)
    at = len(out)
    gap = ((at + 8) // 256 + 1) * 256 - at - 8
    return out + struct.pack("<Q", gap) + bytes(gap) + b"".join(data for *_, data in padded)


def shortlist(rows: int) -> bytes:
    """Return a shortlist with a few tokens for each source token. The recorded results don't use it."""
    draw = np.random.default_rng(3)
    lists = [sorted(draw.choice(rows, 4, replace=False)) for _ in range(rows)]
    offsets = np.cumsum([0, *map(len, lists)]).astype("<u8")
    body = struct.pack("<4Q", 50, 4, len(offsets), offsets[-1]) + offsets.tobytes()
    body += np.array(lists).astype("<u4").tobytes()
    checksum = 0
    for word in np.frombuffer(body[: len(body) // 8 * 8], "<u8").tolist():
        checksum ^= (word + 0x9E3779B9 + (checksum << 6) + (checksum >> 2)) & 0xFFFFFFFFFFFFFFFF
        checksum &= 0xFFFFFFFFFFFFFFFF
    return struct.pack("<2Q", 0xF11A48D5013417F5, checksum) + body


def search(model: Path, vocabularies: list[Path], precision: str, factor: int = 9) -> str:
    """Return a bergamot configuration for greedy search, with each text as one sentence."""
    lists = "".join(f"- {path}\n" for path in vocabularies)
    return (
        f"models:\n- {model}\nvocabs:\n{lists}beam-size: 1\nnormalize: 1.0\nword-penalty: 0\nskip-cost: false\n"
        f"mini-batch-words: 4096\nworkspace: 128\nmax-length-factor: {factor}\nmax-length-break: 128\n"
        f"ssplit-mode: sentence\ngemm-precision: {precision}\nalignment: soft\n"
    )


def by_marian(module: Path, config: str, texts: list[str]) -> list[dict]:
    """Return Marian's translations and the mean log-probability of each word's pieces, read from its HTML output."""
    spec = importlib.util.spec_from_file_location("_bergamot", module)
    bergamot = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(bergamot)
    service = bergamot.Service(bergamot.ServiceConfig(numWorkers=1, cacheSize=0, logLevel="off"))
    model = service.modelFromConfig(config)
    options = bergamot.ResponseOptions(qualityScores=True, alignment=True, HTML=True)
    found = []
    for text in texts:
        given = bergamot.VectorString()
        given.append(html.escape(text, quote=False))
        marked = service.translate(model, given, options)[0].target.text
        scores = [float(score) for score in re.findall(r'word-score="([^"]*)"', marked)]
        found.append({"source": text, "target": html.unescape(re.sub("<[^>]*>", "", marked)), "words": scores})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--bergamot", type=Path, help="the compiled module; without it nothing is recorded")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    spm = vocabulary()
    numbers, config = parameters(PIECES), CONFIG.replace("ROWS", str(PIECES))
    (given.folder / f"vocab.{PAIR}.spm").write_bytes(spm)
    (given.folder / f"model.{PAIR}.intgemm.alphas.bin").write_bytes(container(int8_items(numbers), config))
    (given.folder / f"lex.50.50.{PAIR}.s2t.bin").write_bytes(shortlist(PIECES))
    if given.bergamot:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / f"vocab.{PAIR}.spm").write_bytes(spm)
            (folder / "float.bin").write_bytes(container(float_items(numbers), config))
            config = search(folder / "float.bin", [folder / f"vocab.{PAIR}.spm"] * 2, "float32")
            found = by_marian(given.bergamot, config, sentences(40, 2))
        lines = ",\n".join(json.dumps(one) for one in found if one["words"] and len(one["target"]) < 100)  # finished
        (given.folder / "expected.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    main()
