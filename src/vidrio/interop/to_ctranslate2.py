"""Export a model folder for `ctranslate2.Translator`, with int8 weights. The tokenizers are exported too, because
CTranslate2 accepts only tokens.

Every option is set explicitly, because CTranslate2's defaults do not suit all of our models: sinusoids start at
position 1, there is a final norm, embeddings are multiplied by √D, and ε depends on the kind of norm.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import about_file
from vidrio.glass.positions import TABLES
from vidrio.interop.foreign import not_exported
from vidrio.interop.to_huggingface import marian_tokenizer
from vidrio.model.config import ModelConfig
from vidrio.model.folder import TOKENIZERS, read_config, read_parameters
from vidrio.model.parameters import check_parameters, output_is_tied, source_table, target_table
from vidrio.model.quantised import LARGEST
from vidrio.text.tokens.tokenizer import read_tokenizers

POSITIONS = 1024  # default maximum number of source tokens in CTranslate2, and therefore in Argos


def export_ctranslate2(folder: Path) -> dict[str, bytes]:
    """Return the files of the exported model."""
    config, about = read_config(folder)
    files = engine_files(folder)
    source, target = read_tokenizers(folder, config)
    if source.sentence_pieces:
        return files | marian_tokenizer(config, about, source, target)
    return files | {name: (folder / name).read_bytes() for name in TOKENIZERS if (folder / name).is_file()}


def engine_files(folder: Path) -> dict[str, bytes]:
    """Return the files that CTranslate2 itself loads, with int8 weights."""
    with tempfile.TemporaryDirectory() as temporary:
        engine = Path(temporary) / "model"
        write_engine(folder, engine)
        return {file.name: file.read_bytes() for file in sorted(engine.iterdir())}


def write_engine(folder: Path, to: Path, quantisation: str = "int8") -> None:
    """Write the files that CTranslate2 itself loads to the new folder `to`."""
    config, _ = read_config(folder)
    special = config.special
    problems = [f"its shape is {config.shape!r}"] if config.shape != "encoder-decoder" else []
    problems += ["its decoder is recurrent (ssru)"] if config.decoder_cell != "attention" else []
    problems += [f"it has no {name} token" for name in ("start", "end") if getattr(special, name) < 0]
    if problems:
        raise not_exported(folder, "CTranslate2", problems)
    parameters = read_parameters(folder)
    check_parameters(parameters, config, where=str(folder))
    source, target = read_tokenizers(folder, config)
    source_tokens = filled(source.vocabulary(), config.source_vocabulary)
    target_tokens = filled(target.vocabulary(), config.target_vocabulary)
    spec = specify(config, parameters)
    spec.register_source_vocabulary(source_tokens)
    spec.register_target_vocabulary(target_tokens)
    spec.config.decoder_start_token = spec.config.bos_token = target_tokens[special.start]
    spec.config.eos_token = target_tokens[special.end]
    spec.config.unk_token = target_tokens[special.unk if special.unk >= 0 else special.end]
    spec.config.add_source_bos = False
    spec.config.add_source_eos = config.source_end
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize(quantization=quantisation)  # detects tied matrices, then quantises copies of our parameters in place
    fit_into_seven_bits(spec)
    to.mkdir()
    with about_file(to):
        spec.save(str(to))


def fit_into_seven_bits(spec: Any) -> None:
    """Scale the integer weights to ±63, as our engine does. With AVX2 alone, CTranslate2 adds pairs of products in
    16 bits, and the sums would overflow if the weights were larger."""
    variables, smaller = spec.variables(), np.float32(LARGEST / 127)
    for name, scale in variables.items():
        if name.endswith("_scale"):
            weights = variables[name.removesuffix("_scale")]
            weights.array = np.rint(weights.array * smaller).astype(np.int8)
            scale.array = scale.array * smaller


def filled(tokens: list[str], rows: int) -> list[str]:
    """Add placeholder tokens up to the number of embedding rows, which can exceed the size of the vocabulary."""
    return tokens + [f"<unused {row}>" for row in range(len(tokens), rows)]


def specify(config: ModelConfig, parameters: Mapping[str, np.ndarray]) -> Any:
    """Return a CTranslate2 specification that contains our parameters."""
    from ctranslate2.specs.common_spec import Activation
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec, TransformerEncoderSpec, TransformerSpec

    p = {name: np.array(value, dtype=np.float32) for name, value in parameters.items()}
    choices: dict[str, Any] = {
        "pre_norm": config.norm == "pre",
        "no_final_norm": config.norm != "pre",
        "activation": {"relu": Activation.RELU, "gelu": Activation.GELU, "swish": Activation.SWISH}[config.activation],
        "head_dim": None if config.d_head * config.n_heads == config.d_model else config.d_head,
    }
    encoder = TransformerEncoderSpec(config.n_encoder_layers, config.n_heads, **choices)
    # The alignment options let CTranslate2 return the attention of the last layer, averaged over its heads.
    decoder = TransformerDecoderSpec(
        config.n_decoder_layers, config.n_heads, alignment_layer=-1, alignment_heads=config.n_heads, **choices
    )
    encoder.embeddings[0].weight = p[source_table(config)]
    decoder.embeddings.weight = p[target_table(config)].copy()
    encoder.scale_embeddings = decoder.scale_embeddings = config.scale_embeddings
    encoder.position_encodings.encodings = position_table(config, p, "src.pos")
    decoder.position_encodings.encodings = position_table(config, p, "tgt.pos")
    for n, layer in enumerate(encoder.layer):
        fill_attention(layer.self_attention, p, f"enc.{n}.self", ["QKV"])
        fill_feed_forward(layer.ffn, p, f"enc.{n}.ffn")
    for n, layer in enumerate(decoder.layer):
        fill_attention(layer.self_attention, p, f"dec.{n}.self", ["QKV"])
        fill_attention(layer.attention, p, f"dec.{n}.cross", ["Q", "KV"])
        fill_feed_forward(layer.ffn, p, f"dec.{n}.ffn")
    if config.norm == "pre":
        fill_norm(encoder.layer_norm, p, "enc.norm")
        fill_norm(decoder.layer_norm, p, "dec.norm")
    decoder.projection.weight = p[target_table(config)].copy() if output_is_tied(config) else transposed(p["out.W"])
    if "out.b" in p:
        decoder.projection.bias = p["out.b"]
    return TransformerSpec(encoder, decoder)


def position_table(config: ModelConfig, p: Mapping[str, np.ndarray], learned: str) -> np.ndarray:
    """Return our own position table, because CTranslate2's sinusoids differ from §3.5. A sinusoidal table is
    extended to the number of positions that CTranslate2 accepts."""
    if config.positions == "learned":
        return p[learned].copy()
    return TABLES[config.positions](max(POSITIONS, config.max_positions), config.d_model).astype(np.float32)


def fill_attention(spec: Any, p: Mapping[str, np.ndarray], name: str, matrices: Sequence[str]) -> None:
    """Fill the linear layers: the input projections, fused as listed in `matrices`, then the output projection."""
    for linear, letters in zip(spec.linear, matrices, strict=False):
        fill_fused(linear, p, name, letters)
    output = spec.linear[-1]
    output.weight = transposed(p[f"{name}.WO"])
    if f"{name}.bO" in p:
        output.bias = p[f"{name}.bO"]
    fill_norm(spec.layer_norm, p, f"{name}.norm")


def fill_fused(spec: Any, p: Mapping[str, np.ndarray], name: str, letters: str) -> None:
    """Concatenate projections and, within each, its heads: H × D × K → (H·K) × D, with one row per output."""
    parts = [p[f"{name}.W{letter}"].transpose(0, 2, 1) for letter in letters]
    spec.weight = np.concatenate([part.reshape(-1, part.shape[-1]) for part in parts])
    if f"{name}.bQ" in p:
        spec.bias = np.concatenate([p[f"{name}.b{letter}"].ravel() for letter in letters])


def fill_feed_forward(spec: Any, p: Mapping[str, np.ndarray], name: str) -> None:
    spec.linear_0.weight, spec.linear_0.bias = transposed(p[f"{name}.W1"]), p[f"{name}.b1"]
    spec.linear_1.weight, spec.linear_1.bias = transposed(p[f"{name}.W2"]), p[f"{name}.b2"]
    fill_norm(spec.layer_norm, p, f"{name}.norm")


def fill_norm(spec: Any, p: Mapping[str, np.ndarray], name: str) -> None:
    spec.gamma, spec.beta = p[f"{name}.gain"], p[f"{name}.bias"]


def transposed(W: np.ndarray) -> np.ndarray:
    """Return Wᵀ, the form in which CTranslate2 stores W for the product x W."""
    return np.ascontiguousarray(W.T)
