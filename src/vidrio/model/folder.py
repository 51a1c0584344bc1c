"""A model is a folder: read it, write it, and never leave half of one behind.

    MODEL/
      config.json         format number, architecture, languages, special tokens, provenance, scores
      model.safetensors   the parameters, under the names of `parameters.py`
      tokenizer.json      one Hugging Face `tokenizers` file (target-tokenizer.json, if separate)
      README.md           the model card
      confidence.json     what its probabilities are worth, if that was measured (confidence.py)
      fast/               the CTranslate2 files, made from the above; may be rebuilt at any time

Nothing here runs code from the folder, and no pickle is ever read. Every file is written beside its place, then moved
there, `config.json` last: a kill at any moment leaves the last good model or none.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vidrio.errors import ModelError
from vidrio.model.config import FORMAT, ModelConfig
from vidrio.model.files import LARGEST_JSON as LARGEST_JSON
from vidrio.model.files import read_json as read_json
from vidrio.model.files import sha256 as sha256
from vidrio.model.files import write_atomically as write_atomically
from vidrio.model.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class About:
    """What a model says of itself besides its architecture; everything here is for people and for reports."""

    name: str = ""
    source_language: str = ""
    target_language: str = ""
    labels: list[str] = field(default_factory=list)  # a classifier's classes
    symbols: str = ""  # that the model has learned to copy, each for anything (text/reading/prepared.py)
    translated: str = ""  # words with a capital letter, with blanks between: names that it translates (text/reader.py)
    provenance: dict[str, Any] = field(default_factory=dict)  # data, licences, command, time, machine
    scores: list[dict[str, Any]] = field(default_factory=list)  # each with its signature


def read_config(folder: Path) -> tuple[ModelConfig, About]:
    """The config of a model folder, refused with a reason if it is not one."""
    path = folder / "config.json"
    data = read_json(path, what=f"the model folder {folder}")
    if data.get("format") != FORMAT:
        raise ModelError(
            f"{folder} is a model of another format",
            found=f"format {data.get('format')!r}, this version reads format {FORMAT}",
            do=f"use the version of vidrio that wrote it ({data.get('written_by', 'not told')}), or train again",
        )
    if not isinstance(data.get("model"), dict):
        raise ModelError(f"{path} has no part 'model'", found=f"parts: {', '.join(data)}", do="use an undamaged folder")
    try:
        about = About(**data.get("about", {}))
    except TypeError as error:
        raise ModelError(f"{path} has an unknown entry in its part 'about'", found=str(error)) from None
    return ModelConfig.from_json(data["model"]), about


def write_config(folder: Path, config: ModelConfig, about: About) -> None:
    """Write `config.json`; it is what makes a folder a model, so it is written last."""
    from dataclasses import asdict

    from vidrio._version import __version__

    data = {"format": FORMAT, "written_by": f"vidrio {__version__}", "model": config.to_json(), "about": asdict(about)}
    write_atomically(folder / "config.json", f"{json_text(data, indent=2)}\n".encode())


def read_parameters(folder: Path) -> dict[str, Any]:
    """The parameters as NumPy arrays; those stored in eight bits are worked out (quantised.py)."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    from vidrio.model.quantised import dequantise

    path = folder / "model.safetensors"
    try:
        return dequantise(load_file(path))
    except FileNotFoundError:
        raise ModelError(f"{path} is missing", do="use a complete model folder") from None
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:
        raise ModelError(
            f"{path} is damaged", found=f"{error}; sha256 {sha256(path)}", do="copy the model again, or train it again"
        ) from None


def write_parameters(folder: Path, parameters: Mapping[str, Any], metadata: Mapping[str, str] | None = None) -> None:
    """Write the parameters."""
    import numpy as np
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(value) for name, value in parameters.items()}
    write_atomically(folder / "model.safetensors", save(arrays, metadata=dict(metadata or {})))
