"""A Marian release, as OPUS-MT distributes it, → a model folder.

decoder.yml              names the files below, and how it searches
*.npz                    the parameters, with Marian's settings among them (special:model.yml)
source.spm  target.spm   what texts are split by
*.vocab.yml              the pieces' ids; where a vocabulary is a SentencePiece model itself, its own ids
"""

from collections.abc import Mapping
from functools import partial
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.interop.foreign import (
    Foreign,
    Side,
    array_of,
    check_pieces,
    damaged,
    need,
    read_tensors,
    sentence_piece_proto,
    unsupported,
)
from vidrio.interop.names import by_heads, flat_shape, marian_name
from vidrio.model.config import LARGEST_BEAM, DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.parameters import ParameterSpec, parameter_specs

SETTINGS = "special:model.yml"
POSITIONS = 512  # Marian makes as many as a text needs
EPSILON = 1e-6  # of Marian's layer norms
# Settings that must have one of these values, where they are given. What they leave out shows in the arrays.
SUPPORTED: dict[str, tuple[object, ...]] = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-preprocess": ("", "d"),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("", "d"),
    "transformer-postprocess-top": ("",),
    "transformer-ffn-activation": ("swish", "relu"),  # its gelu is x σ(1.702 x), ours is the exact one
    "transformer-tied-layers": ([], None),
}
PADDING = "<pad>"  # a row of zeros stands before every target; Marian has no token for it


def read_folder(folder: Path, path: Path) -> Foreign:
    """Everything of a release that makes a model; `path` is the file that names the others."""
    decoder = yaml_object(path.read_bytes(), path)
    names = [need(decoder, setting, list[str], str(path)) for setting in ("models", "vocabs")]
    if list(map(len, names)) != [1, 2]:
        found = f"{len(names[0])} models and {len(names[1])} vocabularies"
        raise unsupported(path, [found])
    [weights], vocabularies = ([inside(folder, name) for name in some] for some in names)
    tensors = read_tensors(weights)
    if SETTINGS not in tensors:
        raise damaged(f"{weights} has no settings", f"no {SETTINGS}")
    settings = yaml_object(tensors[SETTINGS].tobytes().rstrip(b"\0"), weights)
    lists = [pieces_of(vocabulary) for vocabulary in vocabularies]
    config = config_of(settings, decoder, tensors, lists[1].get("</s>", 0), weights)
    sides = []
    for vocabulary, pieces, side in zip(vocabularies, lists, ("source", "target"), strict=True):
        spm = vocabulary if vocabulary.suffix == ".spm" else folder / f"{side}.spm"
        sides.append(Side(spm, {**pieces, PADDING: config.special.pad}))
    return Foreign(
        config=config,
        source=sides[0],
        target=sides[1],
        parameter=partial(parameter, tensors, f"{weights} does not fit its settings"),
        files=[weights, path, *dict.fromkeys([*vocabularies, *(side.spm for side in sides)])],
    )


def config_of(
    settings: Mapping[str, Any], decoder: Mapping[str, Any], tensors: Mapping[str, np.ndarray], end: int, weights: Path
) -> ModelConfig:
    """Sizes and choices in our words."""

    def size(name: str, default: int) -> int:
        return need(settings, name, int, f"{SETTINGS} of {weights}", default)

    shared = "Wemb" in tensors
    tables = [tensors.get(name, np.zeros(())) for name in (("Wemb",) if shared else ("encoder_Wemb", "decoder_Wemb"))]
    heads = size("transformer-heads", 8)
    width = tables[0].shape[-1] if tables[0].ndim else 0
    # What we have no word for, by its name.
    told = {name: settings.get(name, values[0]) for name, values in SUPPORTED.items()}
    problems = [f"{name} {value!r:.60}" for name, value in told.items() if value not in SUPPORTED[name]]
    if {table.ndim for table in tables} != {2} or len({table.shape for table in tables}) > 1:
        problems.append(f"embeddings of the shapes {[table.shape for table in tables]}")
    elif heads < 1 or width % heads:
        problems.append(f"{heads} heads in a width of {width}")
    if problems:
        raise unsupported(weights, problems)
    pieces = len(tables[0])
    config = ModelConfig(
        source_vocabulary=pieces + 1,
        target_vocabulary=pieces + 1,
        d_model=width,
        n_heads=heads,
        d_head=width // heads,
        d_ff=size("transformer-dim-ffn", 2048),
        n_encoder_layers=size("enc-depth", 6),
        n_decoder_layers=size("dec-depth", 6),
        max_positions=POSITIONS,
        norm="post",
        norm_epsilon=EPSILON,
        activation=str(settings.get("transformer-ffn-activation", "swish")),
        positions="sinusoidal-marian",
        tying="none" if "decoder_ff_logit_out_W" in tensors else "all" if shared else "output",
        scale_embeddings=True,
        attention_bias=True,
        output_bias=True,
        special=SpecialIds(pad=pieces, unk=-1, start=pieces, end=end),  # the row of zeros stands after the pieces'
        decoding=DecodingDefaults(
            beam=min(max(1, need(decoder, "beam-size", int, "decoder.yml", 4)), LARGEST_BEAM),
            length_penalty=need(decoder, "normalize", float, "decoder.yml", 0.0),
            max_length=256,
        ),
    )
    known = {SETTINGS, "Wemb", *map(marian_name, parameter_specs(config))}
    if unknown := [name for name in tensors if name not in known]:
        raise unsupported(weights, [f"parameters that it does not know: {', '.join(unknown[:4])}"])
    return config


def parameter(tensors: Mapping[str, np.ndarray], misfit: str, name: str, spec: ParameterSpec) -> np.ndarray:
    """One parameter, out of the file and turned as ours stand; the tables get their row of zeros."""
    names = [marian_name(name), *(["Wemb"] if name.endswith("embed") else [])]
    shape = flat_shape(spec)
    more = [int(axis == "V") for axis in spec.axes[: len(shape)]]
    value = array_of(tensors, names, tuple(map(sub, shape, more)), misfit)
    return by_heads(np.pad(value.astype(np.float32), [(0, n) for n in more]), spec)


def pieces_of(path: Path) -> dict[str, int]:
    """The ids of pieces: of a list in YAML, or a SentencePiece model's own."""
    if path.suffix == ".spm":
        return {piece.piece: i for i, piece in enumerate(sentence_piece_proto(path.read_bytes(), path).pieces)}
    return check_pieces(yaml_object(path.read_bytes(), path), path)


def yaml_object(data: bytes, path: Path) -> dict[str, Any]:
    """An object in YAML, without anything that YAML could make but texts, numbers and lists."""
    import yaml

    try:
        settings = yaml.load(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        return {str(name): value for name, value in settings.items()}
    except (yaml.YAMLError, ValueError, RecursionError, AttributeError) as error:
        raise damaged(f"{path} has no settings in YAML", error) from None


def inside(folder: Path, name: str) -> Path:
    """A file of the release, and of nowhere else: some give the path on the machine of those who trained it."""
    path = folder / Path(name).name
    if not path.is_file():
        raise damaged(f"{path} is missing", f"decoder.yml names {name!r:.80}")
    return path
