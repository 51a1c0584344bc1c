"""Store all parameters of a model in one flat vector, and optimise them: learning rate, clipping, Adam and Muon.

With a single vector, an optimiser step, clipping, averaging, casting and saving each take one operation. The layout
follows `parameter_specs`, except that the H matrices of an attention projection are stored as one D × (H·K) matrix.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from vidrio.model.config import ModelConfig
from vidrio.model.parameters import check_parameters, parameter_specs

LOOKUPS = ("embed", "src.embed", "tgt.embed", "src.pos", "tgt.pos")  # lookup tables, kept in full precision
LONGEST_WARMUP = 0.1  # maximum length of the warm-up, as a fraction of the training


@dataclass(frozen=True)
class Parameters:
    """The parameters of a model in full precision."""

    config: ModelConfig
    flat: Tensor

    @staticmethod
    def from_arrays(
        config: ModelConfig, arrays: Mapping[str, np.ndarray], dtype: torch.dtype = torch.float32
    ) -> "Parameters":
        """Convert from the arrays described in `model/parameters.py`."""
        check_parameters(arrays, config)
        parts = []
        for name, (axes, _) in parameter_specs(config).items():
            part = np.asarray(arrays[name], dtype=np.float64)
            parts.append((part.transpose(1, 0, 2) if axes == "HDK" else part).ravel())
        return Parameters(config, torch.from_numpy(np.concatenate(parts)).to(dtype))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Convert to the arrays described in `model/parameters.py`."""
        views, arrays = self.views(self.flat.detach().cpu()), {}
        for name, (axes, shape) in parameter_specs(self.config).items():
            part = views[name].numpy()
            if axes == "HDK":
                part = part.reshape(shape[1], shape[0], shape[2]).transpose(1, 0, 2)
            arrays[name] = np.ascontiguousarray(part.reshape(shape))
        return arrays

    def views(self, flat: Tensor) -> dict[str, Tensor]:
        """Return named views of a vector with this layout: parameters, gradients or Adam's running means."""
        specs = parameter_specs(self.config)
        parts = flat.split([math.prod(shape) for _, shape in specs.values()])
        side_by_side = {"HDK": (self.config.d_model, -1), "HK": (-1,)}
        return {
            name: part.view(side_by_side.get(axes, shape))
            for (name, (axes, shape)), part in zip(specs.items(), parts, strict=True)
        }

    def leaves(self, dtype: torch.dtype) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
        """Return the parameters cast to `dtype` for one step, and the lookup tables in full precision.

        The gradient of a frequent token's embedding sums hundreds of small terms, which would be lost in bfloat16.
        """
        cast = {name: part.detach().requires_grad_() for name, part in self.views(self.flat.detach().to(dtype)).items()}
        if dtype == self.flat.dtype:
            return cast, {name: cast[name] for name in LOOKUPS if name in cast}
        full = self.views(self.flat.detach())
        return cast, {name: full[name].detach().requires_grad_() for name in LOOKUPS if name in full}

    def matrices(self, flat: Tensor) -> list[Tensor]:
        """Return the matrices of all layers, as views of a vector with this layout."""
        views = self.views(flat).items()
        return [part for name, part in views if part.dim() == 2 and name.startswith(("enc.", "dec."))]

    def gradient(self, leaves: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]) -> Tensor:
        """Return the gradients of the leaves after a backward pass, as a flat vector in full precision."""
        cast, tables = leaves
        parts = [torch.zeros_like(leaf) if leaf.grad is None else leaf.grad for leaf in cast.values()]
        flat = torch.cat([part.reshape(-1) for part in parts]).to(self.flat.dtype)
        for name, leaf in tables.items():
            if leaf is not cast[name] and leaf.grad is not None:
                self.views(flat)[name].add_(leaf.grad)
        return flat


# --- optimisers -------------------------------------------------------------------------------------------------------


def learning_rate(kind: str, peak: float, warmup: int, step: int, share: float) -> float:
    """Return the learning rate for a step (§5.3). Steps are counted from 1.

    `share` is the fraction of the training that is complete, measured in steps, epochs or time. The warm-up takes at
    most a tenth of the training.
    """
    warmth = min(1.0, max(step / max(1, warmup), share / LONGEST_WARMUP))
    decay = {
        "inverse-sqrt": math.sqrt(max(1, warmup) / max(step, warmup, 1)),  # Eq. 3
        "linear": 1 - share,
        "cosine": (1 + math.cos(math.pi * share)) / 2,
        "constant": 1.0,
    }[kind]
    return peak * warmth * decay


@dataclass
class Adam:
    """The Adam optimiser, with the running means of the gradient and of its square. §5.3."""

    mean: Tensor
    square: Tensor
    step: int = 0
    beta1: float = 0.9
    beta2: float = 0.98
    epsilon: float = 1e-9

    @staticmethod
    def start(flat: Tensor) -> "Adam":
        return Adam(torch.zeros_like(flat), torch.zeros_like(flat))

    def update(self, flat: Tensor, gradient: Tensor, rate: float, decay: Tensor | None = None) -> None:
        """Take one step, in place."""
        self.step += 1
        mean_grown, square_grown = 1 - self.beta1**self.step, 1 - self.beta2**self.step  # bias correction
        self.mean.lerp_(gradient, 1 - self.beta1)
        self.square.mul_(self.beta2).addcmul_(gradient, gradient, value=1 - self.beta2)
        if decay is not None:  # decoupled weight decay, as in AdamW
            flat.addcmul_(flat, decay, value=-rate)
        root = (self.square / square_grown).sqrt_().add_(self.epsilon)
        flat.addcdiv_(self.mean, root, value=-rate / mean_grown)


def update_by_muon(
    adam: Adam, parameters: Parameters, gradient: Tensor, rate: float, dtype: torch.dtype = torch.float32
) -> None:
    """Take one step, in place, with Muon (Jordan et al. 2024) for the layers' matrices and Adam for everything else.

    Muon and Adam use the same learning rate. A few directions dominate the gradient of a matrix, but Muon's update is
    equally large in all directions. Muon's momentum is Adam's running mean. `dtype` is the data type of Muon's matrix
    products; `torch.optim.Muon` supports only bfloat16, which is slow on CPUs without AMX.
    """
    weights, means, gradients = (parameters.matrices(flat) for flat in (parameters.flat, adam.mean, gradient))
    before = [weight.clone() for weight in weights]
    adam.update(parameters.flat, gradient, rate)
    for weight, old, mean, of_weight in zip(weights, before, means, gradients, strict=True):
        ahead = of_weight.lerp(mean, adam.beta1)  # Nesterov momentum
        length = 0.2 * math.sqrt(max(weight.shape))  # matches Adam's step size (Liu et al. 2025, §2.2)
        weight.copy_(old).add_(orthogonal(ahead.to(dtype)).to(weight.dtype), alpha=-rate * length)


def orthogonal(matrix: Tensor) -> Tensor:
    """Approximate U Vᵀ for a matrix U S Vᵀ, with five Newton–Schulz steps that bring the singular values close to 1."""
    rows, columns = matrix.shape
    x = matrix.T if rows > columns else matrix  # so that the Gram matrix is as small as possible
    x = x / x.norm().clamp(min=1e-7)
    for _ in range(5):
        gram = x @ x.T
        x = torch.addmm(x, torch.addmm(gram, gram, gram, beta=-4.7750, alpha=2.0315), x, beta=3.4445)
    return x.T if rows > columns else x


def clip(gradient: Tensor, most: float) -> float:
    """Clip the norm of the gradient to `most`, in place (0 means no limit). Returns the norm before clipping."""
    length = float(torch.linalg.vector_norm(gradient, dtype=torch.float64))
    if most and length > most:
        gradient.mul_(most / length)
    return length
