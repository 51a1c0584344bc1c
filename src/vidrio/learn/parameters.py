"""All trained numbers of a model as one flat vector, and the names under which the batched model uses them.

One vector makes every step of the optimiser, clipping, averaging, casting and saving a single operation. Names and
order are those of `parameter_specs`; the H matrices of a projection of attention stand side by side, as one D × (H·K).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import check_parameters, parameter_specs

LOOKUPS = ("embed", "src.embed", "tgt.embed", "src.pos", "tgt.pos")  # read by row, always in the master precision


@dataclass(frozen=True)
class Parameters:
    """The parameters of one model, in full precision: the flat vector and its layout."""

    config: ModelConfig
    flat: Tensor

    @staticmethod
    def from_arrays(
        config: ModelConfig, arrays: Mapping[str, np.ndarray], dtype: torch.dtype = torch.float32, device: str = "cpu"
    ) -> "Parameters":
        """From the parameters as `model/parameters.py` names and turns them."""
        check_parameters(arrays, config)
        parts = []
        for name, (axes, _) in parameter_specs(config).items():
            part = np.asarray(arrays[name], dtype=np.float64)
            parts.append((part.transpose(1, 0, 2) if axes == "HDK" else part).ravel())
        return Parameters(config, torch.from_numpy(np.concatenate(parts)).to(device=device, dtype=dtype))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The parameters as `model/parameters.py` names and turns them."""
        views, arrays = self.views(self.flat.detach().cpu()), {}
        for name, (axes, shape) in parameter_specs(self.config).items():
            part = views[name].numpy()
            if axes == "HDK":
                part = part.reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2)
            arrays[name] = np.ascontiguousarray(part.reshape(shape))
        return arrays

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """The named parts of a vector laid out like this one (the parameters, their gradients, Adam's moments)."""
        specs = parameter_specs(self.config)
        parts = flat.split([math.prod(shape) for _, shape in specs.values()])
        side_by_side = {"HDK": (self.config.d_model, -1), "HK": (-1,)}
        return {
            name: part.view(side_by_side.get(axes, shape))
            for (name, (axes, shape)), part in zip(specs.items(), parts, strict=True)
        }

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
        """The matrices of the layers in a vector laid out like this one, without the tables of words and places."""
        views = self.views(flat).items()
        return [part for name, part in views if part.dim() == 2 and name.startswith(("enc.", "dec."))]

    def gradient(self, leaves: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]) -> Tensor:
        """The gradient that a backward pass left in the leaves, as one flat vector in full precision."""
        cast, tables = leaves
        parts = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in cast.values()]
        flat = torch.cat([part.reshape(-1) for part in parts]).to(self.flat.dtype)
        for name, leaf in tables.items():
            if leaf is not cast[name] and leaf.grad is not None:
                self.views(flat)[name].add_(leaf.grad)
        return flat
