"""Import a folder in Marian's format, as used by Firefox, Bergamot and translateLocally.

*.bin, *.npz   the parameters, in 8-bit integers or float32, and the configuration
*.spm          SentencePiece models: one for both languages, or two, with the source's first in alphabetical order
lex*.bin       the shortlist, if any

Files are identified by their content. Only the languages are inferred from file names, such as model.enpt.bin.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import numpy as np

from vidrio.interop import marian_files
from vidrio.interop.foreign import UNKNOWN, Foreign, Scaled, Side, damaged, fitting, read_spm, unsupported
from vidrio.interop.marian_files import Item
from vidrio.interop.names import from_theirs, is_table, marian_name, their_shape
from vidrio.model.config import DecodingDefaults, ModelConfig, SpecialIds
from vidrio.model.files import read_text
from vidrio.model.parameters import ParameterSpec
from vidrio.model.shortlist import read_shortlist
from vidrio.text.tokens.unigram import DAMAGED, Unigram

END = "</s>"
MAX_POSITIONS = 512
SIZE, SIZES = r"[1-9][0-9]{0,7}", ("dim-emb", "enc-depth", "dec-depth", "transformer-heads", "transformer-dim-ffn")
OFF = ("", "false", "0", "none", "[]")
# The supported values of each setting, default first.
COMPUTED = {
    "type": ("transformer",),
    "transformer-preprocess": ("",),
    "transformer-postprocess": ("dan", "an"),
    "transformer-postprocess-emb": ("d", ""),
    "transformer-postprocess-top": ("", "d"),
    "transformer-ffn-activation": ("relu", "swish"),
    "transformer-ffn-depth": ("2",),
    "transformer-decoder-ffn-depth": ("0", "2"),
    "transformer-decoder-autoreg": ("self-attention", "rnn"),
    "tied-embeddings-src": ("false",),
    **dict.fromkeys(("ulr", "skip", "right-left", "lemma-dim-emb", "factors-combine"), OFF),
}
# Ignored settings: they affect only training, or layers that these models never contain.
WITHOUT_MEANING = r"transformer-(aan-|dim-aan|dropout|guided-alignment|depth-scaling|dim-ffn|heads|model)"


def is_folder(folder: Path) -> bool:
    """Return whether a folder contains a model in Marian's format, as opposed to Hugging Face's."""
    return not (folder / "config.json").is_file() and any(folder.glob("*.spm"))


def read_folder(folder: Path) -> Foreign:
    """Read the model in the folder. Its parameters are converted later, one by one."""
    files = {path: marian_files.kind_of(path) for path in sorted(folder.iterdir()) if path.suffix in (".bin", ".npz")}
    models = [path for path, kind in files.items() if kind in ("bin", "npz")]
    spms = sorted(folder.glob("*.spm"))
    if len(models) != 1 or len(spms) > 2:
        found = f"{len(models)} parameter files (expected 1) and {len(spms)} SentencePiece models (expected 1 or 2)"
        raise damaged(f"{folder} is not a Marian model", found)
    [path], shortlist = models, next((path for path, kind in files.items() if kind == "shortlist"), None)
    with undamaged(path):
        items = (marian_files.read_npz if path.suffix == ".npz" else marian_files.read_bin)(path)
        settings = marian_files.settings_of(configuration(items, path))
    sides = [Side(spm, pieces_of(spm)) for spm in spms]
    config = config_of(settings, path, sides)
    if shortlist:
        with undamaged(shortlist):
            read_shortlist(shortlist, config, copies=len(spms) == 1)
    named = re.search(r"\.([a-z]{2})([a-z]{2})\.", f"{path.name}.{spms[0].name}.")
    return Foreign(
        config=config,
        source=sides[0],
        target=sides[-1],
        parameter=partial(parameter, items, path),
        files=[path, *spms, *([shortlist] if shortlist else [])],
        languages=(named[1], named[2]) if named else ("", ""),
        shortlist=shortlist,
    )


@contextmanager
def undamaged(path: Path) -> Iterator[None]:
    """Convert exceptions caused by a damaged file to a ModelError that names the file."""
    try:
        yield
    except marian_files.BROKEN as error:
        raise damaged(f"{path} is damaged or was not written by Marian", error) from None


def pieces_of(spm: Path) -> dict[str, int]:
    """Return the pieces of a SentencePiece model and their ids, in order."""
    proto = read_spm(spm)
    try:
        return {piece: i for i, piece in enumerate(Unigram(proto).names)}
    except DAMAGED as error:
        raise damaged(f"{spm} cannot be read", error) from None


def configuration(items: Mapping[str, Item], path: Path) -> str:
    """Return the YAML configuration from the parameter file or from a .yml file next to it."""
    config, beside = items.get(marian_files.CONFIG), path.with_name(f"{path.name}.yml")
    if config and config.flat.nbytes <= marian_files.LARGEST_CONFIG:
        return config.flat.tobytes().rstrip(b"\0").decode()
    if config or not beside.is_file():
        raise ValueError(f"{marian_files.CONFIG} is missing or too long")
    return read_text(beside, marian_files.LARGEST_CONFIG)


def config_of(text: Mapping[str, str], path: Path, sides: Sequence[Side]) -> ModelConfig:
    """Convert the settings to our config. Raises an error that lists all unsupported settings."""
    value = {key: text.get(key, known[0]) for key, known in COMPUTED.items()}
    wrong = [key for key, known in COMPUTED.items() if value[key] not in known]
    wrong += [
        key
        for key, given in text.items()
        if key.startswith("transformer-") and not (key in COMPUTED or given in OFF or re.match(WITHOUT_MEANING, key))
    ]
    recurrent = value["transformer-decoder-autoreg"] == "rnn"
    wrong += ["dec-cell"] if recurrent and text.get("dec-cell") != "ssru" else []
    sizes = {key: int(text[key]) for key in SIZES if re.fullmatch(SIZE, text.get(key, ""))}
    wrong += [key for key in SIZES if key not in sizes]
    if text.get("transformer-decoder-dim-ffn", "0") not in ("0", text.get("transformer-dim-ffn")):
        wrong.append("transformer-decoder-dim-ffn")
    rows = [int(row) for row in text.get("dim-vocabs", "").split() if re.fullmatch(SIZE, row)]
    wrong += ["dim-vocabs"] if len(rows) != 2 else []
    problems = [f"{key}: {text.get(key)!r:.40}" for key in wrong]
    width, heads = sizes.get("dim-emb", 0), sizes.get("transformer-heads", 1)
    if width % heads:
        problems.append(f"{heads} heads, which do not divide the width {width}")
    problems += [
        f"{side.spm.name} without {END} and {UNKNOWN}" for side in sides if not {END, UNKNOWN} <= {*side.pieces}
    ]
    if problems:
        raise unsupported(path, problems)
    tied_all, tied = (text.get(key, "false") == "true" for key in ("tied-embeddings-all", "tied-embeddings"))
    unknown, end = (sides[0].pieces[piece] for piece in (UNKNOWN, END))
    return ModelConfig(
        source_vocabulary=rows[0],
        target_vocabulary=rows[1],
        d_model=width,
        n_heads=heads,
        d_head=width // heads,
        d_ff=sizes["transformer-dim-ffn"],
        n_encoder_layers=sizes["enc-depth"],
        n_decoder_layers=sizes["dec-depth"],
        max_positions=MAX_POSITIONS,
        norm="post",
        norm_epsilon=1e-6,
        activation=value["transformer-ffn-activation"],
        decoder_cell="ssru" if recurrent else "attention",
        positions="sinusoidal-marian",
        tying="all" if tied_all else "output" if tied else "none",
        scale_embeddings=True,
        attention_bias=True,
        output_bias=text.get("output-omit-bias", "false") != "true",
        # The unknown token can double as the padding token, because Marian never generates it.
        special=SpecialIds(pad=unknown, unk=unknown, start=-1, end=end),
        decoding=DecodingDefaults(beam=1, length_penalty=1.0, max_length=MAX_POSITIONS // 2),
    )


def parameter(items: Mapping[str, Item], path: Path, name: str, spec: ParameterSpec) -> np.ndarray | Scaled:
    """Return one parameter in our layout."""
    theirs = marian_name(name)
    item: Item = fitting(items.get(theirs), their_shape(spec), f"{path} does not fit its configuration", theirs)
    # Integer matrices, except for embeddings, are stored transposed, whatever the shape in the file.
    value = from_theirs(item.flat, spec, transposed=item.quantisation is not None and not is_table(spec.axes))
    if item.quantisation is None:
        return value.astype(np.float32)
    with np.errstate(all="ignore"):  # infinite values are rejected later
        scale = np.float32(1) / item.quantisation
    return Scaled(value, scale) if value.dtype == np.int8 else value.astype(np.float32) * scale
