"""A model ready to run: its parameters, and the operations that it computes with.

walk.py runs on a `Machine`: it computes each quantity with its row of the table of operations, and passes it to the
tap. A what-if replaces rows; the walk does not change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vidrio.glass.engine import FLOAT, INT8, Arithmetic
from vidrio.glass.maths import Array, Tap, no_tap
from vidrio.glass.operations import OPERATIONS, Operation
from vidrio.glass.words import without_head
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import check_parameters
from vidrio.model.quantised import Int8, dequantise, int8_matrices


@dataclass
class KeyValueCache:
    """The results of earlier decoding steps, by address: keys and values, or a recurrent cell's last row."""

    length: int = 0  # target tokens so far
    rows: dict[str, Array] = field(default_factory=dict)

    def branch(self) -> "KeyValueCache":
        """A copy to continue from. The arrays are shared, since nothing writes into them."""
        return KeyValueCache(self.length, dict(self.rows))


@dataclass(frozen=True, eq=False)
class Machine:
    """A model ready to run, with any changes of a what-if."""

    config: ModelConfig
    parameters: Mapping[str, Array]
    arithmetic: Arithmetic = FLOAT
    whole_parameters: Mapping[str, Int8] = field(default_factory=dict)  # if it multiplies in int8
    changes: Mapping[str, Operation] = field(default_factory=dict)  # operations that replace the table's
    without: frozenset[str] = frozenset()  # layer-norm, residual: left out
    tap: Tap = no_tap  # receives every quantity: a trace stores it, a what-if edits it
    edits_rows: bool = False  # rows of a quantity are edited differently
    cache: KeyValueCache | None = None  # in step-by-step decoding

    @cached_property
    def operations(self) -> Mapping[str, Operation]:
        """The table of operations, each under the name by which the walk calls it, and under its own."""
        own = {row.name: row for row in self.changes.values()}
        return {**own, **OPERATIONS, **self.arithmetic.operations, **self.changes}

    @property
    def dtype(self) -> np.dtype[Any]:
        return next(iter(self.parameters.values())).dtype

    @property
    def whole(self) -> bool:
        """Whether parameters multiply in int8."""
        return self.arithmetic is INT8

    @property
    def can_cache(self) -> bool:
        """Whether decoding may cache earlier rows: no row reads later ones, and none is edited by its number."""
        return "mask" not in self.changes and not self.edits_rows

    def tapped(self, tap: Tap) -> "Machine":
        return replace(self, tap=tap)

    # --- what the walk calls ------------------------------------------------------------------------------------------

    def __call__(self, address: str, operation: str, *inputs: Any, axes: str = "") -> Array:
        return self.tap(address, self.operations[operation].run(*inputs))

    def row_by_row(self, address: str, operation: str, *inputs: Array) -> Array:
        """A recurrence: each row depends on its inputs' rows and on the previous row."""
        run, made = self.operations[operation].run, np.zeros_like(inputs[0])
        earlier = {} if self.cache is None else self.cache.rows
        before = earlier.get(address, np.zeros_like(made[0]))
        for t in range(len(made)):
            before = made[t] = run(*(x[t] for x in inputs), before)
        tapped = self.tap(address, made)
        for t in range(1, 0 if tapped is made else len(made)):  # what the tap changed continues into later rows
            made[t] = run(*(x[t] for x in inputs), tapped[t - 1])
            tapped = self.tap(address, made)
        earlier[address] = tapped[-1]
        return tapped

    def given(self, address: str, operation: str, ids: Sequence[int], *inputs: Any, axes: str = "") -> Array:
        """Tokens' ids, of the text or chosen by the search."""
        return self.tap(address, np.asarray(ids, dtype=np.int64))

    def count(self, ids: Array) -> int:
        return len(ids)

    def parameter(self, address: str) -> Array:
        """A parameter by its address; one head of it if the address ends in .h0, .h1, …"""
        name, head = without_head(address)
        matrix, _, last = name.rpartition(".")
        array: Array = (
            getattr(self.whole_parameters[matrix], last) if last in ("whole", "scale") else self.parameters[name]
        )
        return array[int(head.removeprefix(".h"))] if head else array

    @property
    def seen(self) -> int:
        """The number of earlier target tokens."""
        return self.cache.length if self.cache else 0

    def all_rows(self, address: str, make: Callable[[], Array], *, grow: bool) -> Array:
        """Keys or values of all rows. In step-by-step decoding, the decoder's own grow by a row; the memory's do not
        change."""
        if self.cache is None:
            return make()
        earlier = self.cache.rows.get(address)
        if earlier is None:
            self.cache.rows[address] = make()
        elif grow:
            self.cache.rows[address] = np.concatenate([earlier, make()])
        return self.cache.rows[address]


def build(
    config: ModelConfig, stored: Mapping[str, Array], dtype: type = np.float64, arithmetic: Arithmetic = FLOAT
) -> Machine:
    """Prepare a model. Parameters may be as stored: integers with their scales."""
    parameters = dequantise(stored)
    check_parameters(parameters, config)
    return Machine(
        config=config,
        parameters={name: np.ascontiguousarray(value, dtype=dtype) for name, value in parameters.items()},
        arithmetic=arithmetic,
        whole_parameters=int8_matrices(stored, config) if arithmetic is INT8 else {},
    )
