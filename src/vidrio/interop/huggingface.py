"""Import a MarianMT folder in Hugging Face's format.

config.json sizes and choices model.safetensors or pytorch_model.bin source.spm target.spm tokenizers vocab.json the
pieces' ids (target_vocab.json, if the target has its own) generation_config.json search options
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.glass.positions import TABLES
from vidrio.interop.foreign import Foreign, Side, damaged, fitting, need, read_pieces, read_tensors, unsupported
from vidrio.interop.names import by_heads, flat_shape, hf_name, is_turned
from vidrio.model.config import LARGEST_BEAM, DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.files import read_json
from vidrio.model.parameters import ParameterSpec

WEIGHTS = ("model.safetensors", "pytorch_model.bin")
ACTIVATIONS = {"relu": "relu", "gelu": "gelu", "swish": "swish", "silu": "swish"}
# What the format can express, but no published MarianMT model uses.
NEVER = ("normalize_before", "normalize_embedding", "add_final_layer_norm", "add_bias_logits")
# Possible names of an embedding; a shared one is in the file once.
EMBEDDINGS = tuple(map(hf_name, ("embed", "src.embed", "tgt.embed", "out.W")))


def read_folder(folder: Path) -> Foreign:
    """Everything of such a folder that a model needs; parameters are not read yet."""
    settings = read_json(folder / "config.json", what=f"the MarianMT folder {folder}")
    if settings.get("model_type") != "marian":
        raise unsupported(folder, [f"model_type {settings.get('model_type')!r:.60} is not a MarianMT model's"])
    search, languages = (
        read_json(path, what=path.name) if path.is_file() else {}
        for path in (folder / "generation_config.json", folder / "tokenizer_config.json")
    )
    config = config_of(settings, {**settings, **search}, folder)
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


def config_of(settings: Mapping[str, Any], search: Mapping[str, Any], folder: Path) -> ModelConfig:
    """Sizes and choices as our config. Unsupported settings are refused by name."""
    where = str(folder / "config.json")

    def size(name: str, default: int | None = None) -> int:
        return need(settings, name, int, where, default)

    problems = [name for name in NEVER if settings.get(name)]
    problems += [
        f"encoder_{name} {encoder!r:.20}, decoder_{name} {decoder!r:.20}"
        for name in ("attention_heads", "ffn_dim")
        if (encoder := settings.get(f"encoder_{name}")) != (decoder := settings.get(f"decoder_{name}"))
    ]
    activation = str(settings.get("activation_function"))
    if activation not in ACTIVATIONS:
        problems.append(f"activation_function {activation!r:.40}")
    heads, width = size("encoder_attention_heads"), size("d_model")
    if heads < 1 or width % heads:
        problems.append(f"{heads} heads in a width of {width}")
    if problems:
        raise unsupported(folder, problems)
    shared = need(settings, "share_encoder_decoder_embeddings", bool, where, True)
    tied = need(settings, "tie_word_embeddings", bool, where, True)
    rows, pad, longest = size("vocab_size"), size("pad_token_id"), size("max_position_embeddings", 512)
    start = size("decoder_start_token_id", pad)  # the padding row precedes a target
    return ModelConfig(
        source_vocabulary=rows,
        target_vocabulary=rows if shared else size("decoder_vocab_size", rows),
        d_model=width,
        n_heads=heads,
        d_head=width // heads,
        d_ff=size("encoder_ffn_dim"),
        n_encoder_layers=size("encoder_layers"),
        n_decoder_layers=size("decoder_layers"),
        max_positions=longest,
        norm="post",
        norm_epsilon=1e-5,
        activation=ACTIVATIONS[activation],
        positions="sinusoidal-halves",
        tying="none" if not tied else "all" if shared else "output",
        scale_embeddings=need(settings, "scale_embedding", bool, where, False),
        attention_bias=True,
        output_bias=True,
        special=SpecialIds(pad=pad, unk=-1, start=start, end=size("eos_token_id", 0)),
        decoding=DecodingDefaults(
            beam=min(max(1, need(search, "num_beams", int, where, DecodingDefaults.beam)), LARGEST_BEAM),
            length_penalty=float(need(search, "length_penalty", float, where, 1.0)),
            max_length=min(max(1, need(search, "max_length", int, where, 512)), max(1, longest - 1)),
        ),
    )


def positions_of(tensors: Mapping[str, np.ndarray], config: ModelConfig, path: Path) -> str:
    """The kind of position table, which old files contain; `transformers` computes a missing one.

    Computed in float32, an angle of up to P, and so its sine, has an error of up to P · 2⁻²³."""
    shape = (config.max_positions, config.d_model)
    tables = [tensors[name] for name in (hf_name("src.pos"), hf_name("tgt.pos")) if name in tensors]
    if wrong := [table.shape for table in tables if table.shape != shape]:
        raise damaged(f"{path} does not fit its config.json", f"positions of the shape {wrong[0]}, not {shape}")
    for kind in ("sinusoidal-halves", "sinusoidal-marian")[: 1 + (len(tables) == 2)]:
        expected_PD = TABLES[kind](*shape)
        if all(np.abs(table_PD - expected_PD).max() <= shape[0] * 2.0**-23 for table_PD in tables):
            return kind
    return "learned"


def parameter(tensors: Mapping[str, np.ndarray], where: str, name: str, spec: ParameterSpec) -> np.ndarray:
    """One parameter of the file, in our layout. `where` names it in errors."""
    names = [hf_name(name), *(EMBEDDINGS if name.endswith("embed") else ())]
    value = next((tensors[other] for other in names if other in tensors), None)
    if name == "out.b" and value is None:
        return np.zeros(spec.shape, np.float32)
    turned = is_turned(spec.axes)
    shape = flat_shape(spec)[::-1] if turned else flat_shape(spec)
    value = fitting(value, shape, where, names[0]).reshape(shape)
    return by_heads(value.T if turned else value, spec).astype(np.float32)
