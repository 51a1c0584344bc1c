"""Import a MarianMT folder in Hugging Face's format.

config.json                              sizes and architecture
model.safetensors or pytorch_model.bin   parameters
source.spm, target.spm                   tokenizers
vocab.json                               piece ids (and target_vocab.json, if the target has its own)
generation_config.json                   decoding options
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.glass.positions import TABLES
from vidrio.interop.foreign import Foreign, Side, damaged, fitting, read_pieces, read_tensors, unsupported
from vidrio.interop.names import from_theirs, hf_name, is_table, their_shape
from vidrio.model.config import LARGEST_BEAM, DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.files import read_json
from vidrio.model.json_record import record
from vidrio.model.parameters import ParameterSpec

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
# Settings that the format allows but no published MarianMT model uses.
NEVER = ("normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits")
# Possible names of an embedding. A shared embedding is stored once, under one of these names.
EMBEDDINGS = tuple(map(hf_name, ("embed", "src.embed", "tgt.embed", "out.W")))
POSITIONS = "sinusoidal-halves"  # the position table that `transformers` computes


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The settings in config.json and generation_config.json that affect translation."""

    d_model: int
    encoder_attention_heads: int
    decoder_attention_heads: int
    encoder_ffn_dim: int
    decoder_ffn_dim: int
    encoder_layers: int
    decoder_layers: int
    activation_function: str
    vocab_size: int
    decoder_vocab_size: int = 0  # 0 means the same as vocab_size
    max_position_embeddings: int = 512
    pad_token_id: int
    eos_token_id: int = 0
    decoder_start_token_id: int = -1  # -1 means the padding token
    share_encoder_decoder_embeddings: bool = True
    tie_word_embeddings: bool = True
    scale_embedding: bool = False
    num_beams: int = DecodingDefaults.beam
    length_penalty: float = 1.0
    max_length: int = 512


def read_folder(folder: Path) -> Foreign:
    """Read the model in the folder. Its parameters are converted later, one by one."""
    settings = read_json(folder / "config.json", what=f"the MarianMT folder {folder}")
    if settings.get("model_type") != "marian":
        raise unsupported(folder, [f"model_type {settings.get('model_type')!r:.60} is not a MarianMT model type"])
    search, languages = (
        read_json(path, what=path.name) if path.is_file() else {}
        for path in (folder / "generation_config.json", folder / "tokenizer_config.json")
    )
    config = config_of({**settings, **search}, folder)
    path = next((folder / name for name in WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise damaged(f"{folder} has no parameters", f"neither {' nor '.join(WEIGHTS)}")
    tensors = read_tensors(path)
    vocabulary, own = read_pieces(folder / "vocab.json"), folder / "target_vocab.json"
    separate = config.source_vocabulary != config.target_vocabulary or own.is_file()
    return Foreign(
        config=replace(config, positions=positions_of(tensors, config, path)),
        source=Side(folder / "source.spm", vocabulary),
        target=Side(folder / "target.spm", read_pieces(own) if separate else vocabulary),
        parameter=partial(parameter, tensors, f"{path} does not fit its config.json"),
        files=[path, *folder.glob("*.spm"), *folder.glob("*vocab.json"), folder / "config.json"],
        languages=(str(languages.get("source_lang") or ""), str(languages.get("target_lang") or "")),
    )


def config_of(given: Mapping[str, Any], folder: Path) -> ModelConfig:
    """Convert the settings to our config. Raises an error that lists all unsupported settings."""
    names = {field.name for field in fields(Settings)}
    try:
        s = record(Settings, {name: value for name, value in given.items() if name in names and value is not None})
    except TypeError as error:
        raise damaged(f"{folder / 'config.json'} cannot be read", error) from None
    problems = [name for name in NEVER if given.get(name)]
    problems += [
        f"encoder_{name} {encoder}, decoder_{name} {decoder}"
        for name in ("attention_heads", "ffn_dim")
        if (encoder := vars(s)[f"encoder_{name}"]) != (decoder := vars(s)[f"decoder_{name}"])
    ]
    if s.activation_function not in ACTIVATIONS:
        problems.append(f"activation_function {s.activation_function!r:.40}")
    heads, width = s.encoder_attention_heads, s.d_model
    if heads < 1 or width % heads:
        problems.append(f"{heads} heads, which do not divide the width {width}")
    if problems:
        raise unsupported(folder, problems)
    shared, tied = s.share_encoder_decoder_embeddings, s.tie_word_embeddings
    start = s.decoder_start_token_id if s.decoder_start_token_id >= 0 else s.pad_token_id
    return ModelConfig(
        source_vocabulary=s.vocab_size,
        target_vocabulary=(s.decoder_vocab_size if not shared else 0) or s.vocab_size,
        d_model=width,
        n_heads=heads,
        d_head=width // heads,
        d_ff=s.encoder_ffn_dim,
        n_encoder_layers=s.encoder_layers,
        n_decoder_layers=s.decoder_layers,
        max_positions=s.max_position_embeddings,
        norm="post",
        norm_epsilon=1e-5,
        activation=ACTIVATIONS[s.activation_function],
        positions=POSITIONS,
        tying="none" if not tied else "all" if shared else "output",
        scale_embeddings=s.scale_embedding,
        attention_bias=True,
        output_bias=True,
        special=SpecialIds(pad=s.pad_token_id, unk=-1, start=start, end=s.eos_token_id),
        decoding=DecodingDefaults(
            beam=min(max(1, s.num_beams), LARGEST_BEAM),
            length_penalty=s.length_penalty,
            max_length=min(max(1, s.max_length), max(1, s.max_position_embeddings - 1)),
        ),
    )


def positions_of(tensors: Mapping[str, np.ndarray], config: ModelConfig, path: Path) -> str:
    """Return the type of the position tables. Old files contain the tables; otherwise, `transformers` computes them."""
    shape = (config.max_positions, config.d_model)
    tables = [tensors[name] for name in (hf_name("src.pos"), hf_name("tgt.pos")) if name in tensors]
    if wrong := [table.shape for table in tables if table.shape != shape]:
        raise damaged(f"{path} does not fit its config.json", f"positions of shape {wrong[0]}, not {shape}")
    if not tables:
        return POSITIONS  # without computing a table, whose size only the config declares
    # In float32, an angle of up to P, and thus its sine, has an error of up to P · 2⁻²³.
    expected_PD, error = TABLES[POSITIONS](*shape), shape[0] * 2.0**-23
    return POSITIONS if all(np.abs(table_PD - expected_PD).max() <= error for table_PD in tables) else "learned"


def parameter(tensors: Mapping[str, np.ndarray], where: str, name: str, spec: ParameterSpec) -> np.ndarray:
    """Return one parameter in our layout. `where` describes the file in error messages."""
    names = [hf_name(name), *(EMBEDDINGS if name.endswith("embed") else ())]
    value = next((tensors[other] for other in names if other in tensors), None)
    if name == "out.b" and value is None:
        return np.zeros(spec.shape, np.float32)
    transposed = not is_table(spec.axes)
    value = fitting(value, their_shape(spec, transposed=transposed), where, names[0])
    return from_theirs(value, spec, transposed=transposed).astype(np.float32)
