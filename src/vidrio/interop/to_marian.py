"""Export a model folder in Marian's `int8shiftAlphaAll` format, for Firefox, translateLocally and bergamot.

Each weight matrix has one scale, 127 / max |W|. The activations that are multiplied by the matrix also have one scale,
the alpha: 127 / (μ + 1.1 σ), where μ and σ are the mean and the standard deviation of max |x| over sentences that the
user provides.
"""

import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from vidrio.glass.declaration import stages_of
from vidrio.glass.machine import build
from vidrio.glass.words import without_head
from vidrio.interop.foreign import NO_LANGUAGES, has_languages, not_exported
from vidrio.interop.marian import END
from vidrio.interop.marian_files import CONFIG
from vidrio.interop.names import is_table, marian_name, to_theirs
from vidrio.model import shortlist
from vidrio.model.config import ModelConfig
from vidrio.model.folder import About, read_parameters
from vidrio.model.json_text import json_text
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import SUMMED
from vidrio.text.tokens.tokenizer import Tokenizer
from vidrio.text.tokens.unigram import Unigram
from vidrio.translate.translator import Translator

FLOAT32, INT8, INTGEMM8 = 0x0404, 0x0101, 0x4101
BLOCK = 256  # data blocks are padded to a multiple of this many bytes
MAX_SENTENCES = 500  # maximum number of sentences for calibration
Item = tuple[str, int, tuple[int, ...], bytes]


def export_marian(folder: Path, lines: Sequence[str]) -> dict[str, bytes]:
    """Return the files of the exported model. The alphas are calibrated on the model's own translations of the
    lines."""
    translator = Translator.load(folder)
    config, about = translator.config, translator.about
    pair = about.source_language + about.target_language
    tokenizers = dict.fromkeys((translator.source, translator.target))
    problems = list(obstacles(config, about, tuple(tokenizers)))
    problems += [] if any(map(str.strip, lines)) else ["there are no lines to calibrate on"]
    if problems:
        raise not_exported(folder, "Marian", problems)
    names = [f"vocab.{pair}.spm"] if len(tokenizers) == 1 else [f"srcvocab.{pair}.spm", f"trgvocab.{pair}.spm"]
    model = f"model.{pair}.intgemm.alphas.bin"
    files = {name: of.sentence_pieces.proto for name, of in zip(names, tokenizers, strict=True) if of.sentence_pieces}
    if (folder / shortlist.FILE).is_file():
        files[f"lex.50.50.{pair}.s2t.bin"] = (folder / shortlist.FILE).read_bytes()
    info = {"modelName": about.name, "shortName": about.name, "type": "tiny", "version": 1.0, "API": 1.0}
    return {
        **files,
        model: container(items(config, read_parameters(folder), alphas(translator, lines)), settings_text(config)),
        "config.intgemm8bitalpha.yml": search_text(model, (names * 2)[:2]).encode(),
        "model_info.json": json_text({**info, "src": about.source_language, "trg": about.target_language}).encode(),
    }


def obstacles(config: ModelConfig, about: About, tokenizers: Sequence[Tokenizer]) -> Iterator[str]:
    """Yield the reasons why Marian cannot represent this model."""
    if config.shape != "encoder-decoder" or config.norm != "post":
        yield f"its shape is {config.shape!r} and its norms come {config.norm!r}"
    if config.positions != "sinusoidal-marian" or not config.scale_embeddings:
        scaled = "" if config.scale_embeddings else "not "
        yield f"its positions are {config.positions!r} and its embeddings are {scaled}scaled"
    if config.activation not in ("relu", "swish") or abs(config.norm_epsilon - 1e-6) > 1e-9:
        yield f"its activation is {config.activation!r} and its layer-norm ε is {config.norm_epsilon}"
    if config.special.start >= 0 or not config.source_end:
        yield "its targets begin with a start token, or its sources have no end token"
    if config.d_model != config.n_heads * config.d_head or config.d_model % 64 or config.d_ff % 64:
        yield f"its widths {config.d_model} and {config.d_ff} are not multiples of 64, or its heads do not fill them"
    if config.source_vocabulary % 8 or config.target_vocabulary % 8:
        yield f"its vocabulary sizes {config.source_vocabulary} and {config.target_vocabulary} are not multiples of 8"
    if not has_languages(about):
        yield NO_LANGUAGES
    for tokenizer in tokenizers:
        pieces = tokenizer.sentence_pieces
        if pieces is None or Unigram(pieces.proto).names != tokenizer.vocabulary() or tokenizer.id(END) is None:
            yield "its tokenizer is not a SentencePiece model with the original ids"


def alphas(translator: Translator, lines: Sequence[str]) -> dict[str, np.float32]:
    """Calibrate the alpha (activation scale) of each matrix."""
    config = translator.config
    stages = stages_of(build(config, read_parameters(translator.folder), np.float32))
    inputs = {
        without_head(stage.inputs[1])[0]: stage.inputs[0]
        for stage in stages.values()
        if stage.operation.startswith("project")
    }
    largest: dict[str, list[float]] = {matrix: [] for matrix in inputs}
    sentences = [one for of in translator.translate([*lines][:MAX_SENTENCES]) for one in of.sentences]
    for sentence in sentences[:MAX_SENTENCES]:
        source = [*translator.source.encode(sentence.given), *config.source_close]
        found = translator.engine.quantities(source, sentence.best.ids)
        for matrix, name in inputs.items():
            largest[matrix].append(float(np.abs(np.asarray(found[name])).max()))
    return {matrix: np.float32(127 / (np.mean(of) + 1.1 * np.std(of))) for matrix, of in largest.items()}


def items(config: ModelConfig, parameters: Mapping[str, np.ndarray], alpha: Mapping[str, np.float32]) -> Iterator[Item]:
    """Yield all arrays of the .bin file. Missing biases become zeros."""
    for name, spec in parameter_specs(replace(config, attention_bias=True, output_bias=True)).items():
        theirs, value = marian_name(name), parameters.get(name, np.zeros(spec.shape))
        value = to_theirs(np.asarray(value, np.float32), spec)
        if spec.axes not in SUMMED:
            yield theirs, FLOAT32, (1, value.size), value.tobytes()
            continue
        largest = np.abs(value).max()
        scale = np.float32(127) / (largest if largest > 0 else np.float32(1))
        whole = np.rint(value * scale).astype(np.int8)
        # All matrices except embeddings are stored transposed, although the file states the original shape.
        stored = whole if is_table(spec.axes) else np.ascontiguousarray(whole.T)
        yield theirs, INTGEMM8, value.shape, stored.tobytes() + scale.tobytes()
        if name not in alpha:
            continue  # a source embedding that is only looked up, never multiplied
        if is_table(spec.axes):  # Marian stores even an alpha in integers if its name contains Wemb
            yield f"{theirs}_QuantMultA", INTGEMM8, (1, 1), b"\x7f" + np.float32(127 / alpha[name]).tobytes()
        else:
            yield f"{theirs}_QuantMultA", FLOAT32, (1, 1), alpha[name].tobytes()
        if name == "embed":
            yield "none_QuantMultA", FLOAT32, (1, 1), alpha[name].tobytes()


def container(arrays: Iterator[Item], settings: str) -> bytes:
    """Serialise the arrays as a .bin file (see marian_files.py for the layout)."""
    text = settings.encode() + b"\0"
    padded = [(name, kind, shape, data + bytes(-len(data) % BLOCK)) for name, kind, shape, data in sorted(arrays)]
    padded.append((CONFIG, INT8, (len(text),), text))
    heads = (struct.pack("<4Q", len(name) + 1, kind, len(shape), len(data)) for name, kind, shape, data in padded)
    names = (name.encode() + b"\0" for name, *_ in padded)
    shapes = (struct.pack(f"<{len(shape)}i", *shape) for _, _, shape, _ in padded)
    head = b"".join((struct.pack("<2Q", 1, len(padded)), *heads, *names, *shapes))
    gap = -(len(head) + 8) % BLOCK
    return b"".join((head, struct.pack("<Q", gap), bytes(gap), *(data for *_, data in padded)))


def settings_text(config: ModelConfig) -> str:
    """Return the configuration as Marian settings. All other settings keep Marian's defaults."""
    recurrent = config.decoder_cell == "ssru"
    return f"""\
type: transformer
dim-emb: {config.d_model}
dim-vocabs: [{config.source_vocabulary}, {config.target_vocabulary}]
enc-depth: {config.n_encoder_layers}
dec-depth: {config.n_decoder_layers}
dec-cell: {"ssru" if recurrent else "gru"}
transformer-decoder-autoreg: {"rnn" if recurrent else "self-attention"}
transformer-heads: {config.n_heads}
transformer-dim-ffn: {config.d_ff}
transformer-ffn-depth: 2
transformer-ffn-activation: {config.activation}
transformer-preprocess: ""
transformer-postprocess: dan
transformer-postprocess-emb: d
tied-embeddings: {str(config.tying == "output").lower()}
tied-embeddings-all: {str(config.tying == "all").lower()}
version: vidrio
"""


def search_text(model: str, vocabularies: Sequence[str]) -> str:
    """Return the settings for bergamot and translateLocally."""
    return f"""\
relative-paths: true
models: [{model}]
vocabs: [{", ".join(vocabularies)}]
beam-size: 1
normalize: 1.0
word-penalty: 0
max-length-break: 128
mini-batch-words: 1024
workspace: 128
max-length-factor: 2.0
skip-cost: true
gemm-precision: int8shiftAlphaAll
"""
