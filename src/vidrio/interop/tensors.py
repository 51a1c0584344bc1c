"""The arrays of a file by name: safetensors, PyTorch's pytorch_model.bin, NumPy's npz. No code of a file is run.

Their sizes are held to that of the file before memory is taken.
"""

import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from tokenize import TokenError

import numpy as np

from vidrio.errors import ModelError
from vidrio.model.header import BYTES, read_header

# What NumPy and Python's own readers raise on damaged files; of a zip: a checksum, encryption, unknown compression.
DAMAGE = (
    *(ValueError, KeyError, TypeError, SyntaxError, TokenError, EOFError, MemoryError),
    *(zipfile.BadZipFile, OSError, RuntimeError, NotImplementedError),
)
BFLOAT16 = "<u2"  # NumPy has no such type: it is the upper half of a float32
SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": BFLOAT16}
OTHER_TYPES = {"BF16": 2, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1}  # bytes of a number
MOST_ARRAYS = 100_000


def read_tensors(path: Path) -> Mapping[str, np.ndarray]:
    """The arrays of a file; ModelError if it is damaged."""
    readers = {".safetensors": read_safetensors, ".bin": read_torch, ".npz": read_npz}
    if path.suffix not in readers:
        raise ModelError(f"{path} is not a file of parameters", do=f"give one of {', '.join(readers)}")
    try:
        return readers[path.suffix](path)
    except DAMAGE as error:
        what = f"{path} is damaged, or not a {path.suffix} file"
        raise ModelError(what, found=f"{error!s:.300}", do="copy it again") from None


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    """The numbers stay in the file until they are used."""
    header = read_header(path, {**BYTES, **OTHER_TYPES})
    with path.open("rb") as file:
        begin = 8 + int.from_bytes(file.read(8), "little")
    body = np.memmap(path, np.uint8, "r", offset=begin)

    def array(dtype: str, offsets: Sequence[int], shape: Sequence[int]) -> np.ndarray:
        numbers = body[slice(*offsets)].view(SAFETENSORS[dtype]).reshape(shape)
        return (numbers.astype(np.uint32) << 16).view(np.float32) if dtype == "BF16" else numbers

    return {name: array(at.dtype, at.data_offsets, at.shape) for name, at in header.items() if at.dtype in SAFETENSORS}


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """By PyTorch, which makes tensors of the pickle and nothing else."""
    import torch

    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
        return {str(name): tensor.float().numpy() for name, tensor in state.items() if torch.is_tensor(tensor)}
    except Exception as error:  # its unpickler raises whatever a damaged pickle leads to
        reason = "it holds more than tensors" if "weights_only" in str(error) else str(error).partition("\n")[0]
        raise ValueError(f"PyTorch cannot read tensors from it: {reason:.120}") from None


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Marian's files: arrays in a zip, not compressed."""
    with zipfile.ZipFile(path) as archive:
        entries = archive.infolist()
        if len(entries) > MOST_ARRAYS or sum(entry.file_size for entry in entries) > path.stat().st_size:
            raise ValueError(f"{len(entries):,} arrays, compressed; Marian stores them as they are")
    with np.load(path, allow_pickle=False) as arrays:
        return {name: arrays[name] for name in arrays.files}
