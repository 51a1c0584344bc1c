"""How a run survives a kill at any moment: everything that it needs to go on exactly, in one file.

    run/state.safetensors            the tensors, and the rest as JSON in the file's metadata
    run/state.previous.safetensors   the one before, should the last be damaged

A new state is written beside its place and moved there when it is whole, so there is always a good one. No pickle.
"""

import json
import os
import zlib
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from vidrio.errors import RunError

LATEST, PREVIOUS = "state.safetensors", "state.previous.safetensors"


def save_state(run: Path, tensors: dict[str, Tensor], state: dict[str, Any]) -> None:
    """Write tensors and state; the state that was there becomes the previous one."""
    run.mkdir(parents=True, exist_ok=True)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = {"state": json.dumps(state), "checksums": json.dumps(_checksums(tensors))}
    temporary, latest = run / f".{LATEST}.part", run / LATEST
    try:
        save_file(tensors, temporary, metadata)
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        if latest.exists():
            os.replace(latest, run / PREVIOUS)
        os.replace(temporary, latest)
    except (OSError, SafetensorError) as error:
        temporary.unlink(missing_ok=True)
        raise RunError(
            "the run's state cannot be written",
            found=str(error),
            do="make room (or choose another --to) and start the same command again; it goes on from the last state",
        ) from None


def load_state(run: Path, device: torch.device) -> tuple[dict[str, Tensor], dict[str, Any], str] | None:
    """The latest good state: tensors, the rest, and what was wrong with a later one; None if there is none at all."""
    damaged = ""
    for name in (LATEST, PREVIOUS):
        path = run / name
        if not path.exists():
            continue
        try:
            with safe_open(path, framework="pt") as file:
                metadata = file.metadata() or {}
                tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
            if _checksums(tensors) != json.loads(metadata["checksums"]):
                raise ValueError("its checksums differ")
            state = json.loads(metadata["state"])
        except (OSError, SafetensorError, KeyError, ValueError) as error:
            damaged += f"{path} is damaged ({error}). "
            continue
        return {key: tensor.to(device) for key, tensor in tensors.items()}, state, damaged.strip()
    if damaged:
        raise RunError("the run cannot go on", found=damaged, do=f"remove {run} to begin again")
    return None


def _checksums(tensors: dict[str, Tensor]) -> dict[str, int]:
    return {name: zlib.crc32(tensor.numpy().data) for name, tensor in tensors.items()}
