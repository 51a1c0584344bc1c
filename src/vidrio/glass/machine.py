"""A model ready to run: its parameters and its operations.

walk.py calls a `Machine` for each quantity. The machine looks up the operation in a table, computes the value and
passes it to the tap. A what-if replaces operations in the table, without changing walk.py.
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
    """The results of earlier decoding steps, by address: keys and values, or the last row of a recurrent cell."""

    length: int = 0  # number of target tokens so far
    rows: dict[str, Array] = field(default_factory=dict)

    def branch(self) -> "KeyValueCache":
        """Return a copy to extend independently. It shares the arrays, which are never modified in place."""
        return KeyValueCache(self.length, dict(self.rows))


@dataclass(frozen=True, eq=False)
class Machine:
    """A model ready to run, including the changes made by a what-if."""

    config: ModelConfig
    parameters: Mapping[str, Array]
    arithmetic: Arithmetic = FLOAT
    whole_parameters: Mapping[str, Int8] = field(default_factory=dict)  # quantised matrices, for INT8 arithmetic only
    changes: Mapping[str, Operation] = field(default_factory=dict)  # operations that replace others, by name
    without: frozenset[str] = frozenset()  # the parts to leave out: layer-norm, residual
    tap: Tap = no_tap  # called with each quantity, e.g. to store or edit it
    edits_rows: bool = False  # whether the effect of the tap depends on the row
    cache: KeyValueCache | None = None  # used in step-by-step decoding

    @cached_property
    def operations(self) -> Mapping[str, Operation]:
        """The operations, by the name that walk.py uses and also by their own name."""
        own = {row.name: row for row in self.changes.values()}
        return {**own, **OPERATIONS, **self.arithmetic.operations, **self.changes}

    @property
    def dtype(self) -> np.dtype[Any]:
        return next(iter(self.parameters.values())).dtype

    @property
    def whole(self) -> bool:
        """Whether products with parameters are computed in int8."""
        return self.arithmetic is INT8

    @property
    def can_cache(self) -> bool:
        """Whether decoding can cache earlier rows. It cannot if a row sees later rows or is edited individually."""
        return "mask" not in self.changes and not self.edits_rows

    def tapped(self, tap: Tap) -> "Machine":
        return replace(self, tap=tap)

    # --- called by walk.py --------------------------------------------------------------------------------------------

    def __call__(self, address: str, operation: str, *inputs: Any, axes: str = "") -> Array:
        return self.tap(address, self.operations[operation].run(*inputs))

    def row_by_row(self, address: str, operation: str, *inputs: Array) -> Array:
        """Compute a recurrence, in which each row depends on the same row of the inputs and on the previous row."""
        run, made = self.operations[operation].run, np.zeros_like(inputs[0])
        earlier = {} if self.cache is None else self.cache.rows
        before = earlier.get(address, np.zeros_like(made[0]))
        for t in range(len(made)):
            before = made[t] = run(*(x[t] for x in inputs), before)
        tapped = self.tap(address, made)
        for t in range(1, 0 if tapped is made else len(made)):  # if the tap changed a row, recompute the rows after it
            made[t] = run(*(x[t] for x in inputs), tapped[t - 1])
            tapped = self.tap(address, made)
        earlier[address] = tapped[-1]
        return tapped

    def given(self, address: str, operation: str, ids: Sequence[int], *inputs: Any, axes: str = "") -> Array:
        """Record token ids, which come from the input text or from the search."""
        return self.tap(address, np.asarray(ids, dtype=np.int64))

    def count(self, ids: Array) -> int:
        return len(ids)

    def parameter(self, address: str) -> Array:
        """Return the parameter at an address, or only one head of it if the address ends in .h0, .h1, …"""
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
        """Return the keys or values of all rows.

        In step-by-step decoding, the rows are cached. If `grow` is True, the rows of the current step are added to the
        cache. `grow` is False for the memory, whose rows do not change.
        """
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
    """Build a machine from stored parameters, which may be quantised."""
    parameters = dequantise(stored)
    check_parameters(parameters, config)
    return Machine(
        config=config,
        parameters={name: np.ascontiguousarray(value, dtype=dtype) for name, value in parameters.items()},
        arithmetic=arithmetic,
        whole_parameters=int8_matrices(stored, config) if arithmetic is INT8 else {},
    )
