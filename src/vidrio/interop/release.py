"""A Marian release, as OPUS-MT distributes it, → a model folder.

decoder.yml              names the files below, and how it searches
*.npz                    the parameters, with Marian's settings among them (special:model.yml)
source.spm  target.spm   what texts are split by
*.vocab.yml              the pieces' ids; where a vocabulary is a SentencePiece model itself, its own ids
"""

import shutil
import zipfile
from collections.abc import Iterator, Mapping
from functools import partial
from operator import sub
from pathlib import Path
from typing import Any

import numpy as np

from vidrio.errors import ModelError
from vidrio.interop.foreign import Foreign, Side, array_of, check_pieces, need, read_limited, sentence_piece_proto
from vidrio.interop.names import by_heads, flat_shape, marian_name
from vidrio.interop.tensors import read_tensors
from vidrio.model.config import LARGEST_BEAM, DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.parameters import ParameterSpec, parameter_specs

SETTINGS = "special:model.yml"
LARGEST_SETTINGS = 8 * 1024 * 1024  # bytes of YAML
LARGEST_RELEASE = 8 << 30  # bytes, unpacked
MOST_FILES = 1000
POSITIONS = 512  # Marian makes as many as a text needs
EPSILON = 1e-6  # of Marian's layer norms
ACTIVATIONS = ("swish", "relu")  # its gelu is x σ(1.702 x), ours is the exact one
# Settings that must have one of these values, where they are given. What they leave out shows in the arrays.
SUPPORTED: dict[str, tuple[object, ...]] = {
    "type": ("transformer",),
    "transformer-decoder-autoreg": ("self-attention",),
    "transformer-preprocess": ("", "d"),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("", "d"),
    "transformer-postprocess-top": ("",),
    "transformer-ffn-activation": ACTIVATIONS,
    "transformer-tied-layers": ([], None),
}
IN_WORDS = {"rnn": "an SSRU decoder", "average-attention": "a decoder of average attention"}
PADDING = "<pad>"  # a row of zeros stands before every target; Marian has no token for it


def settings_file(folder: Path) -> Path | None:
    """The file that names the others of a release."""
    return next((path for path in (folder / "decoder.yml", folder / "config.yml") if path.is_file()), None)


def read_folder(folder: Path, path: Path) -> Foreign:
    """Everything of a release that makes a model; of the numbers only the settings are read."""
    decoder = yaml_object(read_limited(path, LARGEST_SETTINGS), path)
    models = need(decoder, "models", list[str], str(path))
    if len(models) != 1:
        raise ModelError(f"{path} names {len(models)} models", found="an ensemble", do="give a release of one model")
    weights = inside(folder, models[0])
    tensors = read_tensors(weights)
    stored = tensors.get(SETTINGS)
    if stored is None or stored.size > LARGEST_SETTINGS:
        raise ModelError(f"{weights} has no settings", found=f"no {SETTINGS}", do="copy it again")
    settings = yaml_object(stored.tobytes().rstrip(b"\0"), weights)
    if problems := list(obstacles(settings)):
        raise ModelError(f"{weights} is not supported", found="; ".join(problems), do="docs/interop.md lists what is")
    vocabularies = [inside(folder, name) for name in need(decoder, "vocabs", list[str], str(path))]
    if len(vocabularies) != 2:
        raise ModelError(f"{path} does not name two vocabularies", found=str(len(vocabularies)), do="copy it again")
    lists = [pieces_of(vocabulary) for vocabulary in vocabularies]
    config = config_of(settings, decoder, tensors, lists[1].get("</s>", 0), weights)
    known = {SETTINGS, "Wemb", *map(marian_name, parameter_specs(config))}
    if unknown := [name for name in tensors if name not in known]:
        found = f"parameters that it does not know: {', '.join(unknown[:4])}"
        raise ModelError(f"{weights} is not supported", found=found, do="docs/interop.md lists what is")
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


def obstacles(settings: Mapping[str, Any]) -> Iterator[str]:
    """What we have no word for, by its name."""
    for name, values in SUPPORTED.items():
        value = settings.get(name, values[0])
        if value not in values:
            yield IN_WORDS.get(str(value), f"{name} {value!r:.60}")


def config_of(
    settings: Mapping[str, Any], decoder: Mapping[str, Any], tensors: Mapping[str, np.ndarray], end: int, weights: Path
) -> ModelConfig:
    """Sizes and choices in our words."""

    def size(name: str, default: int) -> int:
        return need(settings, name, int, f"{SETTINGS} of {weights}", default)

    shared = "Wemb" in tensors
    tables = ["Wemb"] if shared else ["encoder_Wemb", "decoder_Wemb"]
    missing = [name for name in tables if name not in tensors or len(tensors[name].shape) != 2]
    if missing:
        raise ModelError(f"{weights} has no {missing[0]}", found=", ".join(list(tensors)[:8])[:200], do="copy it again")
    (pieces, width), (others, _) = tensors[tables[0]].shape, tensors[tables[-1]].shape
    heads = size("transformer-heads", 8)
    problems = [f"vocabularies of {pieces} and {others} pieces"] if pieces != others else []
    problems += [f"{heads} heads in a width of {width}"] if heads < 1 or width % heads else []
    if problems:
        raise ModelError(f"{weights} is not supported", found="; ".join(problems), do="docs/interop.md lists what is")
    return ModelConfig(
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


def parameter(tensors: Mapping[str, np.ndarray], misfit: str, name: str, spec: ParameterSpec) -> np.ndarray:
    """One parameter, out of the file and turned as ours stand; the tables get their row of zeros."""
    names = [marian_name(name), *(["Wemb"] if name.endswith("embed") else [])]
    shape = flat_shape(spec)
    more = [int(axis == "V") for axis in spec.axes[: len(shape)]]
    value = array_of(tensors, names, tuple(map(sub, shape, more)), misfit)
    return by_heads(np.pad(value.astype(np.float32), [(0, n) for n in more]), spec)


# --- files ------------------------------------------------------------------------------------------------------------


def pieces_of(path: Path) -> dict[str, int]:
    """The ids of pieces: of a list in YAML, or a SentencePiece model's own."""
    data = read_limited(path, 2 * LARGEST_SETTINGS)
    if path.suffix == ".spm":
        return {piece.piece: i for i, piece in enumerate(sentence_piece_proto(data, path).pieces)}
    return check_pieces(yaml_object(data, path), path)


def yaml_object(data: bytes, path: Path) -> dict[str, Any]:
    """An object in YAML, without anything that YAML could make but texts, numbers and lists."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        settings = yaml.load(data, Loader=loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ModelError(f"{path} is not YAML", found=f"{error!s:.200}", do="copy it again") from None
    if not isinstance(settings, dict):
        raise ModelError(f"{path} has no settings", found=f"a {type(settings).__name__}", do="copy it again")
    return {str(name): value for name, value in settings.items()}


def inside(folder: Path, name: str) -> Path:
    """A file of the release, and of nowhere else."""
    path = folder / Path(name).name  # some give the path on the machine of those who trained it
    if not path.is_file():
        raise ModelError(f"{path} is missing", found=f"decoder.yml names {name!r:.80}", do="copy all of the release")
    return path


def unpacked(path: Path, to: Path) -> Path:
    """The files of a zip, in the folder `to`; none of them lies elsewhere, and all together are of a bearable size."""
    try:
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_FILES or sum(entry.file_size for entry in entries) > LARGEST_RELEASE:
                raise ModelError(
                    f"{path} is too large", found=f"{len(entries):,} files", do="unpack it, and import the folder"
                )
            to.mkdir()
            for entry in entries:
                with archive.open(entry) as source, (to / Path(entry.filename).name).open("wb") as file:
                    shutil.copyfileobj(source, file)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise ModelError(f"{path} cannot be unpacked", found=f"{error!s:.200}", do="copy it again") from None
    return to
