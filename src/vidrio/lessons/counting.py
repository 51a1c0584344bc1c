"""Counting: how many parameters a model has, and how many multiplications a run of it takes.

Nothing is estimated by a formula of its own. Parameters are read from `parameter_specs`, multiplications from `stages`
and the table of operations: a matrix product that makes an L × N matrix from inner products of length K takes L · N · K
multiplications. Only matrix products are counted: softmax, norms and scaling take a few operations for each number, a
matrix product hundreds.
"""

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace

from vidrio.glass.numbers.stages import Stage, stages
from vidrio.glass.proof.cells import letters
from vidrio.glass.proof.operations import OPERATIONS
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import ParameterSpec, count, parameter_specs

# The parts of a model, by the beginning of their addresses, in the order of the way of the data.
PARTS = (
    *("embed", "src.embed", "tgt.embed", "src.pos", "tgt.pos"),
    *("enc.self", "enc.self.norm", "enc.ffn", "enc.ffn.norm", "enc.norm"),
    *("dec.self", "dec.self.norm", "dec.cross", "dec.cross.norm", "dec.ffn", "dec.ffn.norm", "dec.norm"),
    "out",
)


@dataclass(frozen=True)
class Part:
    """The parameters of one part of a model: one layer's, and how many layers have it."""

    key: str
    letters: str  # 3·HDK + ED
    numbers: str  # 3·8·512·64 + 512·512
    one: int
    times: int

    @property
    def total(self) -> int:
        return self.one * self.times

    @property
    def times_written(self) -> str:
        return f"× {self.times}" if self.times > 1 else ""


def parts(config: ModelConfig) -> list[Part]:
    """The parameters by part, in the order of the way."""
    layers: dict[str, dict[str, Counter[ParameterSpec]]] = {}
    for name, spec in parameter_specs(config).items():
        key, layer = _part_of(name)
        layers.setdefault(key, {}).setdefault(layer, Counter())[spec] += 1
    return [_part(key, next(iter(alike.values())), len(alike)) for key, alike in layers.items()]


def _part(key: str, arrays: Counter[ParameterSpec], times: int) -> Part:
    def sum_of(texts: Iterator[str]) -> str:
        return " + ".join(f"{n}·{text}" if n > 1 else text for text, n in zip(texts, arrays.values(), strict=True))

    return Part(
        key,
        sum_of("·".join(axes) for axes, _ in arrays),
        sum_of("·".join(map(str, shape)) for _, shape in arrays),
        sum(math.prod(shape) * n for (_, shape), n in arrays.items()),
        times,
    )


def _part_of(name: str) -> tuple[str, str]:
    """`enc.3.self.norm.gain` is in part `enc.self.norm`, layer 3; `enc.3.self.WO` in part `enc.self`."""
    pieces = name.split(".")
    layer = next((piece for piece in pieces if piece.isdigit()), "")
    named = [piece for piece in pieces if piece != layer]
    key = ".".join(named)
    return (key if key in PARTS else ".".join(named[:-1])), layer


# --- multiplications --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Product:
    """A kind of matrix product: the rows and columns of its result, and how long the inner products are."""

    part: str
    axes: str
    inner: str


def products(config: ModelConfig) -> Counter[Product]:
    """Every matrix product of a model, from the declared stages, and how many there are of each kind."""
    one_layer = replace(config, n_encoder_layers=1, n_decoder_layers=1)  # the layers are all alike
    layers = {"enc": config.n_encoder_layers, "dec": config.n_decoder_layers}
    table = stages(one_layer)
    kinds: Counter[Product] = Counter()
    for stage in table.values():
        if inner := _inner_axis(stage, table):
            part, layer = _part_of(stage.address.rpartition(".h")[0] or stage.address)
            kinds[Product(part, stage.axes, inner)] += layers[part[:3]] if layer else 1
    return kinds


def _inner_axis(stage: Stage, table: dict[str, Stage]) -> str:
    """The axis that a matrix product sums over; nothing for a stage that is none."""
    inputs, made = letters(OPERATIONS[stage.operation].indices or "->", len(stage.axes))
    summed = [axis for axis in inputs[0] if axis not in made and axis in "".join(inputs[1:])]
    return table[stage.inputs[1]].axes[inputs[1].index(summed[0])] if summed else ""


def encoding(config: ModelConfig, n_source: int) -> dict[str, int]:
    """Multiplications to encode `n_source` tokens, by part; with a classifier on top, its too."""
    return _sum(config, products(config), "enc" if config.has_decoder else "enc out", Rows(n_source))


def forced(config: ModelConfig, n_source: int, n_target: int) -> dict[str, int]:
    """Multiplications of one decoder pass over all target tokens at once, as in training, by part."""
    return _sum(config, products(config), "dec out", Rows(n_source, n_target, visible=n_target))


def decoding(config: ModelConfig, n_source: int, n_target: int, *, cached: bool) -> dict[str, int]:
    """Multiplications to decode `n_target` tokens one by one, by part.

    With kept keys and values each step makes one new row, and the memory's keys and values are made once. Without, each
    step makes every row anew. Either way only the last row goes through the output projection.
    """
    total: Counter[str] = Counter()
    kinds = products(config)
    for t in range(1, n_target + 1):
        new = 1 if cached else t
        total.update(_sum(config, kinds, "dec", Rows(n_source, new, visible=t, memory=not cached or t == 1)))
        total.update(_sum(config, kinds, "out", Rows(n_source, 1, visible=1)))
    return dict(total)


@dataclass(frozen=True)
class Rows:
    """The rows of a pass: of the source, new ones of the target, and all that those can see."""

    source: int
    target: int = 0
    visible: int = 0
    memory: bool = True  # whether the memory's keys and values are made in it


def _sum(config: ModelConfig, kinds: Counter[Product], sides: str, n_rows: Rows) -> dict[str, int]:
    """Multiplications of one pass, by part."""
    c = config
    sizes = {"D": c.d_model, "K": c.d_head, "F": c.d_ff, "E": c.n_heads * c.d_head, "V": c.target_vocabulary}
    sizes |= {"C": c.n_classes, "S": n_rows.source, "T": n_rows.target}
    visible_sizes = sizes | {"T": n_rows.visible}
    total: Counter[str] = Counter()
    for product, times in kinds.items():
        side, rows, columns = product.part[:3], product.axes[0], product.axes[1:]
        if side not in sides or (side == "dec" and rows == "S" and not n_rows.memory):
            continue
        # Rows are new ones; what is summed over, and what a new row looks at, are all the rows that can be seen.
        length = sizes[rows] * math.prod(visible_sizes[axis] for axis in columns) * visible_sizes[product.inner]
        total[product.part] += length * times
    return dict(total)


# --- memory -----------------------------------------------------------------------------------------------------------


def bytes_of(config: ModelConfig) -> dict[str, int]:
    """Bytes that the parameters take, by how a number is stored.

    int8: one byte for each number of a matrix, and a float32 scale for each of its outputs (in an embedding table, for
    each token); vectors stay float32.
    """
    int8 = 0
    for axes, shape in parameter_specs(config).values():
        length = math.prod(shape)
        scales = shape[0] if axes in ("VD", "PD") else length // shape[-2] if len(shape) > 1 else 0
        int8 += length + 4 * scales if scales else 4 * length
    return {"float32": 4 * count(config), "bfloat16": 2 * count(config), "int8": int8}


def kept_numbers(config: ModelConfig, n_source: int, n_target: int) -> int:
    """How many numbers the kept keys and values are: of the memory, and of every target token so far."""
    if not config.has_decoder:
        return 0
    rows = n_target + (n_source if config.has_encoder else 0)
    return 2 * config.n_decoder_layers * config.n_heads * config.d_head * rows
