"""Represent another program's model, and write it as a model folder."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from vidrio.errors import ModelError, TokenizerError, nearest
from vidrio.model import shortlist
from vidrio.model.config import ModelConfig
from vidrio.model.files import read_json, sha256, write_atomically
from vidrio.model.folder import TOKENIZERS, About, write_config, write_parameters
from vidrio.model.json_record import fitted, shown
from vidrio.model.parameters import ParameterSpec, check_parameters, parameter_specs
from vidrio.model.quantised import SCALE, SUMMED, dequantise
from vidrio.text.tokens.sentence_pieces import SentencePieces
from vidrio.text.tokens.tokenizer import LARGEST_FILE, Tokenizer

UNKNOWN = "<unk>"
CARD = "README.md"
NO_LANGUAGES = "no valid source_language or target_language; add them to its config.json, under about"


@dataclass(frozen=True)
class Side:
    """The SentencePiece model of one language, and the ids of the pieces."""

    spm: Path
    pieces: Mapping[str, int]


class Scaled(NamedTuple):
    """An integer matrix, and the scale of all its values."""

    integers: np.ndarray
    scale: np.float32


@dataclass(frozen=True)
class Foreign:
    """Another program's model: its config, tokenizers and files, and a function that returns its parameters."""

    config: ModelConfig
    source: Side
    target: Side
    parameter: Callable[[str, ParameterSpec], np.ndarray | Scaled]  # returns a parameter in our layout
    files: Sequence[Path]  # the files that make up the model
    languages: tuple[str, str] = ("", "")  # the other program's language codes
    scores: Sequence[dict[str, Any]] = ()  # the scores that the model's authors report
    shortlist: Path | None = None  # Marian's list of likely translations, copied into the model folder


def damaged(what: object, found: object) -> ModelError:
    """Return the error for a file that is not in the expected format."""
    return ModelError(str(what), found=f"{found!s:.300}", do="copy it again")


def unsupported(what: object, problems: Sequence[str]) -> ModelError:
    return ModelError(
        f"{what} is not supported", found="; ".join(problems), do="see docs/interop.md for what is supported"
    )


def has_languages(about: About) -> bool:
    """Return whether both language codes exist and can be part of a file name. A model's config may contain anything,
    such as ../."""
    return all(re.fullmatch(r"[\w-]+", code) for code in (about.source_language, about.target_language))


def not_exported(folder: Path, program: str, problems: Sequence[str]) -> ModelError:
    do = "export for another program; docs/interop.md lists what each one can load"
    return ModelError(f"{folder} cannot be exported for {program}", found="; ".join(problems), do=do)


def fitting(value: Any, shape: tuple[int, ...], what: str, name: str) -> Any:
    """Return the array if it has this shape, ignoring axes of length 1. `what` describes the file in error messages."""
    if value is not None and [n for n in value.shape if n != 1] == [n for n in shape if n != 1]:
        return value
    raise damaged(what, f"{name} is missing" if value is None else f"{name} has shape {value.shape}, not {shape}")


def read_pieces(path: Path) -> dict[str, int]:
    """Read the pieces and their ids from a JSON file."""
    try:
        return fitted(dict[str, int], read_json(path, what="the list of pieces"))
    except TypeError as error:
        raise damaged(f"{path} is not a list of pieces with their ids", error) from None


def read_tensors(path: Path) -> Mapping[str, np.ndarray]:
    """Return the arrays in a file by name, without executing any code in the file."""
    from safetensors.numpy import load_file

    try:
        return read_torch(path) if path.suffix == ".bin" else load_file(path)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # the libraries raise many kinds of exceptions for damaged files
        reason = "it contains more than tensors" if "weights_only" in str(error) else str(error).partition("\n")[0]
        what = f"{path} is damaged or is not a {path.suffix} file"
        raise ModelError(what, found=f"{reason:.200}", do="copy it again") from None


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """Read the tensors in a PyTorch file. Files that contain other objects are rejected."""
    import torch

    state = torch.load(path, map_location="cpu", weights_only=True)
    return {str(name): tensor.float().numpy() for name, tensor in state.items() if torch.is_tensor(tensor)}


def make_folder(foreign: Foreign, to: Path, origin: str, *, opening: str, languages: tuple[str, str]) -> About:
    """Write a model folder, with the config last. The tokenizer adds the token `opening` before every source text."""
    config, name = foreign.config, Path(origin).resolve().name
    splits = [
        tokenizer(foreign.source, config.source_vocabulary, opening),
        tokenizer(foreign.target, config.target_vocabulary, ""),
    ]
    config = replace(config, special=replace(config.special, unk=foreign.source.pieces[UNKNOWN]))
    problems = list(config.problems_of_file())
    if foreign.target.pieces.get(UNKNOWN) != config.special.unk:
        problems.append(f"{UNKNOWN} has two ids")
    if problems:
        raise damaged(f"{name} cannot be imported", "; ".join(problems))
    arrays: dict[str, np.ndarray] = {}
    for parameter, spec in parameter_specs(config).items():
        arrays |= as_stored(parameter, spec, foreign.parameter(parameter, spec))
    check_parameters(dequantise(arrays), config, where=name)
    write_parameters(to, arrays)
    if foreign.shortlist:
        write_atomically(to / shortlist.FILE, foreign.shortlist.read_bytes())
    tokenizers = [Tokenizer(pieces, config.special) for pieces in splits]
    different = {of.fingerprint(): of for of in tokenizers}
    for file, of in zip(TOKENIZERS, different.values(), strict=False):
        of.save(to / file)
    card, licence = card_of(foreign, name, origin)
    files = {path.name: sha256(path) for path in foreign.files}
    about = About(
        name=to.resolve().name,
        source_language=languages[0],
        target_language=languages[1],
        provenance={"imported": origin, "files": files, "licence": licence},
        scores=list(foreign.scores),
    )
    write_atomically(to / CARD, card.encode())
    write_config(to, config, about)
    return about


def as_stored(name: str, spec: ParameterSpec, value: np.ndarray | Scaled) -> dict[str, np.ndarray]:
    """Return the arrays that store a parameter: its values, or integers and their scales (model/quantised.py)."""
    if not isinstance(value, Scaled):
        return {name: value}
    shape = list(spec.shape)
    shape[SUMMED[spec.axes]] = 1
    return {name: value.integers, name + SCALE: np.full(shape, value.scale, np.float32)}


def opening_of(foreign: Foreign, target: str) -> str:
    """Return the token that selects the target language of a multilingual model, or an empty string."""
    languages = [piece[2:-2] for piece in foreign.source.pieces if piece.startswith(">>") and piece.endswith("<<")]
    if not languages:
        if target:
            do = "omit --target; --languages names the languages of a model"
            raise ModelError("this model has only one target language", found=f"--target {shown(target)}", do=do)
        return ""
    if not target and len(languages) == 1:
        [target] = languages
    if target not in languages:
        raise ModelError(
            f"the target language {shown(target)} is unknown" if target else "this model has several target languages",
            found=f"{len(languages)} languages, such as {nearest(target, languages, count=20)}",
            do="choose one with --target",
        )
    return f">>{target}<<"


def tokenizer(side: Side, rows: int, opening: str) -> SentencePieces:
    """Build the tokenizer of one language, whose embedding has `rows` rows."""
    ids = sorted(side.pieces.values())
    if ids != list(range(len(ids))) or len(ids) > rows or UNKNOWN not in side.pieces:
        unknown = "with" if UNKNOWN in side.pieces else "without"
        found = f"{len(ids):,} ids, {unknown} {UNKNOWN}, for {rows:,} rows"
        raise damaged(f"the vocabulary of {side.spm} does not fit the model", found)
    vocabulary = sorted(side.pieces, key=side.pieces.__getitem__)
    try:
        return SentencePieces(read_spm(side.spm), vocabulary, side.pieces[UNKNOWN], opening)
    except TokenizerError as error:
        raise damaged(f"{side.spm} cannot be used", error.found) from None


def read_spm(path: Path) -> bytes:
    """Read a SentencePiece model."""
    if not path.is_file():
        raise unsupported(path.parent, [f"it has no {path.name}, a SentencePiece model"])
    if path.stat().st_size > LARGEST_FILE:
        raise damaged(f"{path} is not a SentencePiece model", f"{path.stat().st_size:,} bytes")
    return path.read_bytes()


def card_of(foreign: Foreign, name: str, origin: str) -> tuple[str, str]:
    """Return the model's card, or a new card if the model has none, and the licence that the card or LICENSE states."""
    folder = foreign.files[0].parent
    card, licence = (
        (folder / file).read_text(encoding="utf-8", errors="replace") if (folder / file).is_file() else ""
        for file in (CARD, "LICENSE")
    )
    named = re.search(r"^license: *(.+)$", card, re.MULTILINE)
    first = licence.strip().partition("\n")[0]
    called = named[1].strip() if named else first or "not stated; ask the author of the model"
    return f"{card or f'# {name}'}\n\nImported by vidrio from {origin}. Licence: {called}\n\n{licence}", called
