"""The arrays of a file by name: safetensors, PyTorch's pytorch_model.bin, NumPy's npz. No code of a file is run."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from vidrio.errors import ModelError

SAFETENSORS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # NumPy has no bfloat16, half of a float32


def read_tensors(path: Path) -> Mapping[str, np.ndarray]:
    """The arrays of a file; ModelError if it is damaged."""
    readers = {".safetensors": read_safetensors, ".bin": read_torch, ".npz": read_npz}
    if path.suffix not in readers:
        raise ModelError(f"{path} is not a file of parameters", do=f"give one of {', '.join(readers)}")
    try:
        return readers[path.suffix](path)
    except ModuleNotFoundError:
        raise
    except Exception as error:  # readers of other people raise whatever damaged bytes lead to
        reason = "it holds more than tensors" if "weights_only" in str(error) else str(error).partition("\n")[0]
        what = f"{path} is damaged, or not a {path.suffix} file"
        raise ModelError(what, found=f"{reason:.200}", do="copy it again") from None


def read_safetensors(path: Path) -> dict[str, np.ndarray]:
    from safetensors import deserialize

    arrays = {}
    for name, stored in deserialize(path.read_bytes()):  # type: ignore[no-untyped-call]
        if stored["dtype"] in SAFETENSORS:
            array = np.frombuffer(stored["data"], SAFETENSORS[stored["dtype"]]).reshape(stored["shape"])
            is_half = stored["dtype"] == "BF16"
            arrays[name] = (array.astype(np.uint32) << 16).view(np.float32) if is_half else array
    return arrays


def read_torch(path: Path) -> dict[str, np.ndarray]:
    """By PyTorch, which makes tensors of the pickle and nothing else."""
    import torch

    state = torch.load(path, map_location="cpu", weights_only=True)
    return {str(name): tensor.float().numpy() for name, tensor in state.items() if torch.is_tensor(tensor)}


def read_npz(path: Path) -> dict[str, np.ndarray]:
    """Marian's files: arrays in a zip."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        return dict(arrays)
