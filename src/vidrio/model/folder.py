"""A model is a folder: read it, write it, and never leave half of one behind.

    MODEL/
      config.json         format number, architecture, languages, special tokens, provenance, scores, checksums
      model.safetensors   the parameters, under the names of `parameters.py`
      tokenizer.json      one Hugging Face `tokenizers` file (target-tokenizer.json, if separate)
      README.md           the model card

Nothing here runs code from the folder, and no pickle is ever read. Every file is written beside its place, then moved
there, `config.json` last: a kill at any moment leaves the last good model or none.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vidrio._version import __version__
from vidrio.errors import ModelError
from vidrio.model.config import FORMAT, ModelConfig
from vidrio.model.files import read_json, sha256, write_atomically
from vidrio.model.header import check_header
from vidrio.model.json_record import fitted, record, shown
from vidrio.model.json_text import json_text

TENSORS = "model.safetensors"
TOKENIZERS = ("tokenizer.json", "target-tokenizer.json")
LARGEST_POSITIONS = 1 << 23  # numbers in a table of sines (P × D) that is made on loading: 64 MB; P = 16,384 at D = 512


@dataclass(frozen=True, kw_only=True)
class About:
    """What a model says of itself besides its architecture; everything here is for people and for reports."""

    name: str = ""
    source_language: str = ""
    target_language: str = ""
    labels: list[str] = field(default_factory=list)  # a classifier's classes
    symbols: str = ""  # that the model has learned to copy, each for anything (text/mask.py)
    provenance: dict[str, Any] = field(default_factory=dict)  # data, licences, command, time, machine
    scores: list[dict[str, Any]] = field(default_factory=list)  # each with its signature


def read_config(folder: Path) -> tuple[ModelConfig, About]:
    """The config of a model folder, refused with a reason if it is not one."""
    path = folder / "config.json"
    data = read_json(path, what=f"the model folder {folder}")
    if data.get("format") != FORMAT:
        raise ModelError(
            f"{folder} is a model of another format",
            found=f"format {shown(data.get('format'))}, this version reads format {FORMAT}",
            do=f"use the version of vidrio that wrote it ({data.get('written_by', 'unknown')!s:.40}), or train again",
        )
    if "model" not in data:
        raise ModelError(f"{path} has no part 'model'", do="use an undamaged folder")
    try:
        entries = data.get("about", {})
        if isinstance(entries, dict):
            entries.pop("translated", None)  # a list that models of 0.1.0 had, and nothing needs any more
        about = record(About, entries)
    except TypeError as error:
        raise ModelError(f"{path} has an unknown entry in its part 'about'", found=str(error)) from None
    config = ModelConfig.from_json(data["model"])
    _check_sizes(folder, config)
    return config, about


def _check_sizes(folder: Path, config: ModelConfig) -> None:
    """Hold the config to the file's own header, before anything of those sizes is allocated."""
    if config.positions != "learned" and config.max_positions * config.d_model > LARGEST_POSITIONS:
        raise ModelError(
            f"{folder} has more positions than are made",
            found=f"max_positions {config.max_positions:,} × d_model {config.d_model:,}",
            do=f"at most {LARGEST_POSITIONS:,} numbers",
        )
    path = folder / TENSORS
    if path.is_file():  # else it is missed when it is needed
        try:
            check_header(path, config)
        except (ValueError, RecursionError) as error:
            raise _damaged(path, error) from None


def write_config(folder: Path, config: ModelConfig, about: About) -> None:
    """Write `config.json`; it is what makes a folder a model, so it is written last, with the checksums of the rest."""
    files = {name: sha256(folder / name) for name in (TENSORS, *TOKENIZERS) if (folder / name).is_file()}
    data = {
        "format": FORMAT,
        "written_by": f"vidrio {__version__}",
        "model": config.to_json(),
        "about": asdict(about),
        "files": files,
    }
    write_atomically(folder / "config.json", f"{json_text(data, indent=2)}\n".encode())


def check_files(folder: Path, names: Sequence[str]) -> None:
    """Refuse files that are not the ones with which the config was written, if it has their checksums: those of
    another model, or with a bit that has flipped. A folder of an older version has none."""
    path = folder / "config.json"
    data = read_json(path, what=f"the model folder {folder}") if path.is_file() else {}
    if "files" not in data:
        return
    try:
        written: dict[str, str] = fitted(dict[str, str], data["files"])
    except TypeError as error:
        raise ModelError(f"{path} cannot be read", found=f"files: {error}", do="use an undamaged folder") from None
    for name in names:
        checksum = sha256(folder / name) if (folder / name).is_file() else None
        if checksum != written.get(name):
            if checksum is None:
                raise ModelError(f"{folder / name} is missing", do="use a complete model folder")
            raise ModelError(
                f"{folder / name} is another file than the one that the model was written with, or damaged",
                found=f"sha256 {checksum}, the config has {written.get(name, 'none')[:64]}",
                do="copy the model again; after a change of your own, write its config again (write_config)",
            )


def read_parameters(folder: Path) -> dict[str, Any]:
    """The parameters as NumPy arrays; those stored as integers are worked out (quantised.py)."""
    from vidrio.model.quantised import dequantise

    arrays = read_arrays(folder)
    try:
        return dequantise(arrays)
    except (TypeError, ValueError) as error:
        raise _damaged(folder / TENSORS, error) from None


def read_arrays(folder: Path) -> dict[str, Any]:
    """The arrays of a model's file as they are stored: integers have their scales beside them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / TENSORS
    try:
        arrays = load_file(path)
    except FileNotFoundError:
        raise ModelError(f"{path} is missing", do="use a complete model folder") from None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise _damaged(path, error) from None
    check_files(folder, [TENSORS])
    return arrays


def _damaged(path: Path, error: Exception) -> ModelError:
    found = f"{error!s:.300}; sha256 {sha256(path)}" if path.is_file() else f"{error!s:.300}"
    return ModelError(f"{path} is damaged", found=found, do="copy the model again, or train it again")


def write_parameters(folder: Path, parameters: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write the parameters."""
    import numpy as np
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(value) for name, value in parameters.items()}
    write_atomically(folder / TENSORS, save(arrays, metadata=dict(metadata or {})))
