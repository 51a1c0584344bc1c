"""All trained numbers of a model as one flat vector, and the names under which the batched model uses them.

One vector makes every step of the optimiser, clipping, averaging, casting and saving a single operation. The names are
those of `parameters.py`; only attention's projections are stored fused, WQ, WK and WV side by side as one matrix, since
one product is faster than three.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import check_parameters, parameter_specs

LOOKUPS = ("embed", "src.embed", "tgt.embed", "src.pos", "tgt.pos")  # read by row, always in the master precision


@dataclass(frozen=True)
class Parameters:
    """The parameters of one model, in full precision: the flat vector and what lies where in it."""

    config: ModelConfig
    flat: Tensor

    @staticmethod
    def from_arrays(
        config: ModelConfig, arrays: Mapping[str, np.ndarray], dtype: torch.dtype = torch.float32, device: str = "cpu"
    ) -> "Parameters":
        """From the parameters as `parameters.py` names and turns them."""
        check_parameters(arrays, config)
        parts = [np.asarray(part, dtype=np.float64).ravel() for part in _fuse(config, arrays)]
        return Parameters(config, torch.from_numpy(np.concatenate(parts)).to(device=device, dtype=dtype))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The parameters as `parameters.py` names and turns them."""
        parts = {name: part.detach().cpu().numpy() for name, part in self.views(self.flat).items()}
        return {name: np.ascontiguousarray(_unfuse(self.config, parts, name)) for name in parameter_specs(self.config)}

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The named parts of a vector laid out like this one (the parameters, their gradients, Adam's moments)."""
        shapes = dict(layout(self.config))
        parts = flat.split([int(np.prod(shape)) for shape in shapes.values()])
        return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=True)}

    def leaves(self, dtype: torch.dtype) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """What one step computes with: (matrices and vectors, cast once to `dtype`; tables to look rows up in).

        Rows are looked up in full precision, since the gradient of a frequent word is a sum of hundreds of small terms,
        which bfloat16 would lose.
        """
        cast = {name: part.detach().requires_grad_() for name, part in self.views(self.flat.detach().to(dtype)).items()}
        if dtype == self.flat.dtype:
            return cast, {name: cast[name] for name in LOOKUPS if name in cast}
        full = self.views(self.flat.detach())
        return cast, {name: full[name].detach().requires_grad_() for name in LOOKUPS if name in full}

    def matrices(self, flat: Tensor) -> list[Tensor]:
        """The matrices of the layers in a vector laid out like this one: Q, K and V each by itself. The tables of words
        and places are none of them.
        """
        found: list[Tensor] = []
        for name, part in self.views(flat).items():
            if part.dim() == 2 and name.startswith(("enc.", "dec.")):
                fused = re.search(r"\.W([QKV]+)$", name)
                found += part.chunk(len(fused[1]), dim=1) if fused else [part]
        return found

    def gradient(self, leaves: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]) -> Tensor:
        """The gradient that a backward pass left in the leaves, as one flat vector in full precision."""
        cast, tables = leaves
        parts = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in cast.values()]
        flat = torch.cat([part.reshape(-1) for part in parts]).to(self.flat.dtype)
        for name, leaf in tables.items():
            if leaf is not cast[name] and leaf.grad is not None:
                self.views(flat)[name].add_(leaf.grad)
        return flat


def layout(config: ModelConfig) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Name and shape of every part of the flat vector, in its order."""
    specs = parameter_specs(config)
    E = config.n_heads * config.d_head
    for name, (_, shape) in specs.items():
        stem, last = name.rsplit(".", 1) if "." in name else ("", name)
        if last in ("WQ", "bQ"):
            rows = (config.d_model,) if last == "WQ" else ()
            for fused in _groups(stem):
                yield f"{stem}.{last[0]}{fused}", (*rows, len(fused) * E)
        elif last not in ("WK", "WV", "bK", "bV"):
            yield name, shape


def _groups(stem: str) -> tuple[str, ...]:
    """Which projections share a matrix, because they read the same rows."""
    return ("Q", "KV") if stem.endswith(".cross") else ("QKV",)


def _fuse(config: ModelConfig, arrays: Mapping[str, np.ndarray]) -> Iterator[np.ndarray]:
    for name, shape in layout(config):
        if name in arrays and not name.endswith(("WQ", "bQ")):
            yield arrays[name]
        else:
            stem, last = name.rsplit(".", 1)
            # W: H matrices D·K → one D·(H K), the heads side by side; b: H·K already lies so.
            parts = [arrays[f"{stem}.{last[0]}{letter}"] for letter in last[1:]]
            parts = [part.transpose(1, 0, 2) if last[0] == "W" else part for part in parts]
            yield np.concatenate([part.reshape(*shape[:-1], -1) for part in parts], axis=-1)


def _unfuse(config: ModelConfig, parts: Mapping[str, np.ndarray], name: str) -> np.ndarray:
    stem, last = name.rsplit(".", 1) if "." in name else ("", name)
    if last[1:] not in ("Q", "K", "V"):
        return parts[name]
    group = next(group for group in _groups(stem) if last[1] in group)
    fused = np.split(parts[f"{stem}.{last[0]}{group}"], len(group), axis=-1)[group.index(last[1])]
    if last[0] == "b":
        return fused.reshape(config.n_heads, config.d_head)
    return fused.reshape(config.d_model, config.n_heads, config.d_head).transpose(1, 0, 2)
