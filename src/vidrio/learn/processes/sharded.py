"""A model shared out: of all its numbers, each of N processes keeps one N-th, and gets a layer whole while it needs it.

The parameters are cut into units: one for each layer of the encoder and the decoder, one for all the rest (tables,
last norms, output). Each unit is a flat vector like that of weights.py, filled up to a multiple of N; a process keeps
one N-th of each. Those parts, one after the other, are a flat vector again: Adam, clipping and the means work as ever.

A unit is gathered when the forward pass comes to it, let go when the pass goes on, and gathered again on the way back.
Gathering is a differentiable function: its derivative adds the processes' gradients up and gives to each its part.
(Rajbhandari et al. 2020, "ZeRO", stage 3; Zhang et al. 2024, "SimpleFSDP", gather in the same way.)
"""

import math
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from vidrio.learn.net.parameters import LOOKUPS, Weights, layout
from vidrio.learn.processes.processes import Together
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import count

Shapes = dict[str, tuple[int, ...]]
REST = ""  # the unit of all that belongs to no layer; it stays from the beginning of a pass to the end


def unit_of(name: str) -> str:
    """The layer that a parameter belongs to, as enc.0 or dec.3."""
    side, _, rest = name.partition(".")
    number = rest.partition(".")[0]
    return f"{side}.{number}" if number.isdigit() else REST


@lru_cache(maxsize=8)
def units(config: ModelConfig) -> dict[str, Shapes]:
    """Names and shapes of what each unit holds."""
    found: dict[str, Shapes] = {REST: {}}
    for name, shape in layout(config):
        found.setdefault(unit_of(name), {})[name] = shape
    return found


def lengths(config: ModelConfig, size: int) -> list[int]:
    """How many numbers of each unit one of `size` processes keeps."""
    return [-(-sum(map(math.prod, shapes.values())) // size) for shapes in units(config).values()]


def views(unit: Tensor, shapes: Shapes) -> dict[str, Tensor]:
    """The named parts of a gathered unit; what fills it up has no name."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    parts = unit.split([*sizes, len(unit) - sum(sizes)])
    return {name: part.view(shape) for (name, shape), part in zip(shapes.items(), parts, strict=False)}


def share(config: ModelConfig, whole: Tensor, together: Together) -> Tensor:
    """This process's part of a flat vector that the leading one has (on the CPU; others may give an empty one)."""
    named = Weights(config, whole).views(whole) if together.leads else {}
    parts = []
    for shapes, length in zip(units(config).values(), lengths(config, together.size), strict=True):
        unit = torch.zeros(together.size * length, dtype=whole.dtype)
        if together.leads:
            for name, view in views(unit, shapes).items():
                view.copy_(named[name])
        parts.append(together.spread(unit)[together.rank * length : (together.rank + 1) * length].clone())
    return torch.cat(parts)


@dataclass(frozen=True)
class Shards:
    """What one process keeps of a model; it stands where `Weights` stand in a model that is not shared out."""

    config: ModelConfig
    flat: Tensor
    together: Together

    def parts(self, flat: Tensor) -> list[Tensor]:
        """The part of each unit in a vector laid out like this one."""
        return list(flat.split(lengths(self.config, self.together.size)))

    def whole(self, flat: Tensor) -> Tensor:
        """The vector of which each process has such a part, laid out as in `Weights`: on the CPU of the leading one."""
        whole = torch.empty(count(self.config) if self.together.leads else 0, dtype=flat.dtype)
        named = Weights(self.config, whole).views(whole) if self.together.leads else {}
        for shapes, part in zip(units(self.config).values(), self.parts(flat), strict=True):
            unit = self.together.gather(part)
            if self.together.leads:
                for name, view in views(unit, shapes).items():
                    named[name].copy_(view)
        return whole

    @cached_property
    def decays(self) -> Tensor:
        """1 where weight decay works (matrices, tables), 0 where it does not (gains, biases)."""
        mask = torch.ones_like(self.flat)
        for shapes, part in zip(units(self.config).values(), self.parts(mask), strict=True):
            place = -self.together.rank * len(part)  # where the unit begins, seen from this part of it
            for shape in shapes.values():
                if len(shape) == 1:
                    part[max(0, place) : max(0, place + shape[0])] = 0
                place += math.prod(shape)
        return mask

    def leaves(self, dtype: torch.dtype) -> "tuple[Gathered, dict[str, Tensor]]":
        """What one step computes with: (matrices and vectors, cast to `dtype`; tables to look rows up in)."""
        gathered = Gathered(self, dtype)
        return gathered, gathered.tables

    def let_go(self, leaves: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]) -> AbstractContextManager[None]:
        """While the forward pass runs: what it keeps of a layer's weights for the way back is their place alone."""
        gathered = leaves[0]
        assert isinstance(gathered, Gathered)
        return saved_tensors_hooks(gathered.put_down, gathered.take_up)

    def gradient(self, leaves: tuple[Mapping[str, Tensor], Mapping[str, Tensor]]) -> Tensor:
        """This process's part of the gradient that a backward pass has left, summed over all processes."""
        gathered = leaves[0]
        assert isinstance(gathered, Gathered)
        return torch.cat([torch.zeros_like(p) if p.grad is None else p.grad for p in gathered.own.values()])


class Gathered(Mapping[str, Tensor]):
    """The weights of one pass, forward and back, by name; a layer's are there while they are used."""

    def __init__(self, shards: Shards, dtype: torch.dtype) -> None:
        self.shards, self.dtype, self.units = shards, dtype, units(shards.config)
        parts = (part.detach().requires_grad_() for part in shards.parts(shards.flat))
        self.own = dict(zip(self.units, parts, strict=True))
        # Rows are looked up in full precision: see Weights.leaves.
        whole = self.gather(REST, shards.flat.dtype)
        rest = views(whole, self.units[REST])
        self.tables = {name: rest[name] for name in LOOKUPS if name in rest}
        self.rest = rest if dtype == whole.dtype else views(whole.to(dtype), self.units[REST])
        self.here: tuple[str, Tensor, dict[str, Tensor]] | None = None  # the last layer on the way forward
        self.back: tuple[str, Tensor] | None = None  # the last layer on the way back

    def gather(self, unit: str, dtype: torch.dtype) -> Tensor:
        whole: Tensor = _Gather.apply(self.own[unit], dtype, self.shards.together)  # type: ignore[no-untyped-call]
        return whole

    def __getitem__(self, name: str) -> Tensor:
        unit = unit_of(name)
        if unit == REST:
            return self.rest[name]
        if self.here is None or self.here[0] != unit:
            self.here = None
            whole = self.gather(unit, self.dtype)
            self.here = unit, whole, views(whole, self.units[unit])
        return self.here[2][name]

    def __iter__(self) -> Iterator[str]:
        return (name for shapes in self.units.values() for name in shapes)

    def __len__(self) -> int:
        return sum(map(len, self.units.values()))

    def put_down(self, tensor: Tensor) -> Any:
        """What the graph keeps of a tensor: of a layer's weights, where they lie; all else as it is."""
        if self.here is not None and tensor.untyped_storage().data_ptr() == self.here[1].untyped_storage().data_ptr():
            return self.here[0], tensor.size(), tensor.stride(), tensor.storage_offset()
        return tensor

    def take_up(self, kept: Any) -> Tensor:
        """The tensor again, on the way back; the layer is gathered once more."""
        if isinstance(kept, Tensor):
            return kept
        unit, *place = kept
        if self.back is None or self.back[0] != unit:
            self.here = self.back = None
            with torch.no_grad():
                self.back = unit, self.gather(unit, self.dtype)
        return self.back[1].as_strided(*place)


class _Gather(torch.autograd.Function):
    """All processes' parts in a row; its derivative: the sum of all processes' gradients, to each its part."""

    @staticmethod
    def forward(ctx: Any, part: Tensor, dtype: torch.dtype, together: Together) -> Tensor:
        ctx.together, ctx.dtype = together, part.dtype
        return together.gather(part.to(dtype))

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None, None]:
        return ctx.together.scatter(grads[0].to(ctx.dtype)), None, None
