"""Read and write model folders.

    MODEL/
      config.json         format version, architecture, languages, special tokens, provenance, scores, checksums
      model.safetensors   the parameters, with the names defined in `parameters.py`
      tokenizer.json      a Hugging Face `tokenizers` file (and target-tokenizer.json, if separate)
      README.md           the model card

No code in the folder is executed, and no pickles are read. Each file is written atomically, and config.json is written
last. Even if the process is killed, the folder therefore contains either a complete model or none.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from vidrio._version import __version__
from vidrio.errors import ModelError
from vidrio.model.config import FORMAT, ModelConfig
from vidrio.model.files import read_json, sha256, write_atomically
from vidrio.model.header import Stored, check_header, read_header
from vidrio.model.json_record import record, shown
from vidrio.model.json_text import json_text

CONFIG, TENSORS = "config.json", "model.safetensors"
TOKENIZERS = ("tokenizer.json", "target-tokenizer.json")


@dataclass(frozen=True, kw_only=True)
class About:
    """The metadata of a model: everything in its config except the architecture."""

    name: str = ""
    source_language: str = ""
    target_language: str = ""
    labels: list[str] = field(default_factory=list)  # a classifier's classes
    symbols: str = ""  # symbols that the model has learned to copy (text/mask.py)
    provenance: dict[str, Any] = field(default_factory=dict)  # data, licences, command, time, hardware
    scores: list[dict[str, Any]] = field(default_factory=list)  # each with its sacreBLEU signature


def read_config(folder: Path) -> tuple[ModelConfig, About]:
    """Read a model's config, and check it against the header of the parameters file without loading the parameters."""
    path = folder / CONFIG
    data = _read(folder)
    if data.get("format") != FORMAT:
        raise ModelError(
            f"{folder} is a model in an unsupported format",
            found=f"format {shown(data.get('format'))}; this version supports format {FORMAT}",
            do=f"use the version of vidrio that wrote it ({data.get('written_by', 'unknown')!s:.40}), or train again",
        )
    config = ModelConfig.from_json(data.get("model"))
    try:
        about = record(About, data.get("about", {}))
    except TypeError as error:
        raise ModelError(f"{path} cannot be read", found=f"in 'about': {error}") from None
    if about.labels and not len(about.labels) == len({*about.labels}) == config.n_classes:
        found = f"{len({*about.labels})} different labels for {config.n_classes} classes"
        raise ModelError(f"{path} cannot be read", found=found, do="use an undamaged model folder")
    if (folder / TENSORS).is_file():
        read_stored(folder, config)
    return config, about


def read_stored(folder: Path, config: ModelConfig) -> dict[str, Stored]:
    """Read the header of the parameters file, and check that it matches the config."""
    path = folder / TENSORS
    with _undamaged(path):
        stored = read_header(path)
        check_header(stored, config, str(folder))
    return stored


def read_parameters(folder: Path) -> dict[str, Any]:
    """Read the parameters as NumPy arrays. Quantised parameters are dequantised (quantised.py)."""
    from vidrio.model.quantised import dequantise

    arrays = read_arrays(folder)
    with _undamaged(folder / TENSORS):
        return dequantise(arrays)


def read_arrays(folder: Path) -> dict[str, Any]:
    """Read the arrays as they are stored, without dequantising them."""
    from safetensors import SafetensorError
    from safetensors.numpy import load_file

    path = folder / TENSORS
    with _undamaged(path):
        try:
            arrays = load_file(path)
        except SafetensorError as error:
            raise ValueError(error) from None
    check_files(folder, [TENSORS])
    return arrays


@contextmanager
def _undamaged(path: Path) -> Iterator[None]:
    """Convert errors raised while reading a parameters file into a ModelError."""
    try:
        yield
    except FileNotFoundError:
        raise ModelError(f"{path} is missing", do="use a complete model folder") from None
    except (OSError, KeyError, TypeError, ValueError) as error:
        found = f"{error!s:.300}; sha256 {sha256(path)}"
        raise ModelError(f"{path} is damaged", found=found, do="copy the model again, or train it again") from None


def check_files(folder: Path, names: Sequence[str]) -> None:
    """Reject files whose checksums do not match those in the config. A config may have no checksums."""
    written = _read(folder).get("files") if (folder / CONFIG).is_file() else None
    if not isinstance(written, dict):
        return
    for name in names:
        if not (folder / name).is_file():
            raise ModelError(f"{folder / name} is missing", do="use a complete model folder")
        if (checksum := sha256(folder / name)) != written.get(name):
            raise ModelError(
                f"{folder / name} does not match the checksum in config.json",
                found=f"sha256 {checksum}; config.json has {written.get(name, 'none')!s:.64}",
                do="copy the model again; if you changed the file yourself, rewrite the config with write_config",
            )


def write_config(folder: Path, config: ModelConfig, about: About) -> None:
    """Write `config.json`, which includes checksums of the other files."""
    files = {name: sha256(folder / name) for name in (TENSORS, *TOKENIZERS) if (folder / name).is_file()}
    data = {
        "format": FORMAT,
        "written_by": f"vidrio {__version__}",
        "model": config.to_json(),
        "about": asdict(about),
        "files": files,
    }
    write_atomically(folder / CONFIG, f"{json_text(data, indent=2)}\n".encode())


def write_parameters(folder: Path, parameters: Mapping[str, Any]) -> None:
    """Write the parameters to `model.safetensors`."""
    import numpy as np
    from safetensors.numpy import save

    arrays = {name: np.ascontiguousarray(value) for name, value in parameters.items()}
    write_atomically(folder / TENSORS, save(arrays, metadata={}))


def _read(folder: Path) -> dict[str, Any]:
    return read_json(folder / CONFIG, what=f"the model folder {folder}")
