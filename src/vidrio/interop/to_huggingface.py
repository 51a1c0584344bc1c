"""Export a model folder for `transformers`, so that AutoModelForSeq2SeqLM and AutoTokenizer can load it.

A post-norm model is exported as MarianMT, and a pre-norm model with a final norm as Pegasus. Both store sines in the
first half of a row and cosines in the second half. If our model alternates sines and cosines, every axis of the
model's width is permuted, which leaves all dot products unchanged.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.hypothesis import default_options
from vidrio.interop.foreign import not_exported
from vidrio.interop.names import hf_name, is_table, to_theirs
from vidrio.model.config import ModelConfig
from vidrio.model.folder import TENSORS, About, read_config, read_parameters
from vidrio.model.json_text import json_text
from vidrio.model.parameters import parameter_specs
from vidrio.text.tokens.case import CAPITAL, CAPITALS, capital_of
from vidrio.text.tokens.normalise import ESCAPE, MARKS
from vidrio.text.tokens.tokenizer import Tokenizer, read_tokenizers

EPSILON = 1e-5  # the layer-norm epsilon in both architectures


def export_huggingface(folder: Path) -> dict[str, bytes]:
    """Return the files of the exported model, with the config last."""
    config, about = read_config(folder)
    problems = list(obstacles(config))
    source, target = read_tokenizers(folder, config)
    if source is not target and source.sentence_pieces is None:
        problems.append("each language has its own tokenizer, but AutoTokenizer supports only one")
    if problems:
        raise not_exported(folder, "transformers", problems)
    from safetensors.numpy import save

    tensors = dict(foreign_parameters(config, read_parameters(folder)))
    return {
        TENSORS: save(tensors, metadata={"format": "pt"}),
        **(
            marian_tokenizer(config, about, source, target)
            if source.sentence_pieces
            else fast_tokenizer(config, source)
        ),
        "generation_config.json": object_bytes(search_of(config, target)),
        "config.json": object_bytes(config_of(config)),
    }


def obstacles(config: ModelConfig) -> Iterator[str]:
    """Yield the reasons why `transformers` cannot represent this model."""
    if config.shape != "encoder-decoder":
        yield f"its shape is {config.shape!r}"
        return
    if config.decoder_cell != "attention":
        yield "its decoder is recurrent (ssru)"
    if config.d_model != config.n_heads * config.d_head:
        yield f"{config.n_heads} heads of {config.d_head} in a width of {config.d_model}"
    if config.positions not in ("sinusoidal", "sinusoidal-halves"):
        yield f"its positions are {config.positions!r}"
    if abs(config.norm_epsilon - EPSILON) > EPSILON / 1000:
        yield f"its layer-norm ε is {config.norm_epsilon}, not {EPSILON}"
    if config.norm == "pre" and config.tying != "all":
        yield f"its norms come before the sub-layers, and its embeddings are tied {config.tying!r}, not 'all'"
    if min(config.special.pad, config.special.start, config.special.end) < 0:
        yield "it has no padding, start or end token"


def foreign_parameters(config: ModelConfig, parameters: Mapping[str, np.ndarray]) -> Iterator[tuple[str, np.ndarray]]:
    """Yield the parameters under Hugging Face's names, transposed where necessary. Missing biases become zeros."""
    width = np.arange(config.d_model)
    halves = np.concatenate([width[0::2], width[1::2]]) if config.positions == "sinusoidal" else width
    for name, spec in parameter_specs(replace(config, attention_bias=True, output_bias=True)).items():
        value = np.asarray(parameters[name] if name in parameters else np.zeros(spec.shape), dtype=np.float32)
        for axis, letter in enumerate(spec.axes):
            value = value.take(halves, axis) if letter == "D" else value
        value = to_theirs(value, spec, transposed=not is_table(spec.axes))
        yield hf_name(name), value[None] if name == "out.b" else value


def config_of(config: ModelConfig) -> dict[str, Any]:
    """Convert our config to the settings in Hugging Face's config.json."""
    before = config.norm == "pre"
    return {
        "architectures": ["PegasusForConditionalGeneration" if before else "MarianMTModel"],
        "model_type": "pegasus" if before else "marian",
        "vocab_size": config.source_vocabulary,
        **({} if before else {"decoder_vocab_size": config.target_vocabulary}),
        "d_model": config.d_model,
        **{f"{side}_attention_heads": config.n_heads for side in ("encoder", "decoder")},
        **{f"{side}_ffn_dim": config.d_ff for side in ("encoder", "decoder")},
        "encoder_layers": config.n_encoder_layers,
        "decoder_layers": config.n_decoder_layers,
        "max_position_embeddings": config.max_positions,
        "activation_function": config.activation,
        "scale_embedding": config.scale_embeddings,
        "share_encoder_decoder_embeddings": config.tying == "all",
        "tie_word_embeddings": config.tying != "none",
        "static_position_embeddings": True,
        **special_ids(config),
        "forced_eos_token_id": None,
        "is_encoder_decoder": True,
        "dtype": "float32",
    }


def special_ids(config: ModelConfig) -> dict[str, int]:
    special = config.special
    ids = {"pad_token_id": special.pad, "bos_token_id": special.start, "eos_token_id": special.end}
    return {**ids, "decoder_start_token_id": special.start}


def search_of(config: ModelConfig, target: Tokenizer) -> dict[str, Any]:
    """Convert our default decoding options to the settings in generation_config.json."""
    options = default_options(config)
    never = {*options.suppressed, *range(target.size, config.target_vocabulary)}
    return {
        **special_ids(config),
        "num_beams": options.beam,
        "length_penalty": options.length_penalty,
        "max_new_tokens": min(options.max_length, config.max_positions - 1),
        "min_new_tokens": options.min_length,
        "early_stopping": True,
        "do_sample": False,
        "renormalize_logits": True,
        "suppress_tokens": sorted(never),
    }


def fast_tokenizer(config: ModelConfig, tokenizer: Tokenizer) -> dict[str, bytes]:
    """Return our tokenizer, modified to add the end token after a source and nothing before it."""
    data = json.loads(tokenizer.file_text())
    names = {name: tokenizer.token(i) for name, i in vars(config.special).items() if i >= 0}
    end = names["end"]
    first, second = ({"Sequence": {"id": letter, "type_id": 0}} for letter in "AB")
    data["post_processor"] = {
        "type": "TemplateProcessing",
        "single": [first, *([{"SpecialToken": {"id": end, "type_id": 0}}] * config.source_end)],
        "pair": [first, second],
        "special_tokens": {end: {"id": end, "ids": [config.special.end], "tokens": [end]}},
    }
    if tokenizer.has_case_tokens:
        data["decoder"]["decoders"] += restored_capitals(tokenizer)
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        **{f"{theirs}_token": names[ours] for theirs, ours in TOKENS.items() if ours in names},
        "model_max_length": config.max_positions,
        "clean_up_tokenization_spaces": False,
        "split_special_tokens": True,
    }
    return {"tokenizer.json": json_text(data).encode(), "tokenizer_config.json": object_bytes(settings)}


def restored_capitals(tokenizer: Tokenizer) -> Iterator[dict[str, Any]]:
    """Yield decoder steps that restore upper case after ⇧ and ⇪, as `normalise.with_capitals` does in Python."""

    def replace(pattern: str, content: str) -> dict[str, Any]:
        return {"type": "Replace", "pattern": {"Regex": pattern}, "content": content}

    for letter in sorted(set("".join(tokenizer.vocabulary()))):
        if capital := capital_of(letter):
            # \K: replace only what follows. \G: match only where the last replacement ended, within the same word.
            yield replace(rf"(?:{CAPITALS} ?|\G(?!\A))(?:[^\W\d_]|['’])*?\K{letter}", capital)
            yield replace(rf"{CAPITAL} ?\K{letter}", capital)
    yield replace(f"[{CAPITAL}{CAPITALS}]", "")
    yield {"type": "Strip", "content": " ", "start": 1, "stop": 0}
    yield from (replace(f"{ESCAPE}{digit}", mark) for mark, digit in {**MARKS, ESCAPE: "0"}.items())


TOKENS = {"pad": "pad", "unk": "unk", "bos": "start", "eos": "end"}  # Hugging Face's name: ours


def marian_tokenizer(config: ModelConfig, about: About, source: Tokenizer, target: Tokenizer) -> dict[str, bytes]:
    """Return the original SentencePiece models and vocabularies."""
    separate = source.vocabulary() != target.vocabulary()
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": about.source_language,
        "target_lang": about.target_language,
        "separate_vocabs": separate,
        "model_max_length": config.max_positions,
    }
    files = {"tokenizer_config.json": object_bytes(settings)}
    for tokenizer, spm, pieces in ((source, "source.spm", "vocab.json"), (target, "target.spm", "target_vocab.json")):
        if tokenizer.sentence_pieces is not None:
            files[spm] = tokenizer.sentence_pieces.proto
        if separate or tokenizer is source:
            files[pieces] = object_bytes({token: i for i, token in enumerate(tokenizer.vocabulary())})
    return files


def object_bytes(data: Mapping[str, Any]) -> bytes:
    return f"{json_text(dict(data), indent=2)}\n".encode()
