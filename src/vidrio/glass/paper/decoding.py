"""Step by step: what the decoder keeps from one step to the next, and the `step` function that search calls."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.glass.paper.attention import Make
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.glass.paper.transformer import Machine, decode, encode, logits


@dataclass
class Kept:
    """The keys and values of the steps so far. `reused` says how many rows of each were reused at the latest step."""

    length: int = 0  # target tokens so far
    rows: dict[str, Array] = field(default_factory=dict)
    reused: dict[str, int] = field(default_factory=dict)

    def grow(self, name: str, make: Make) -> Array:
        old_rows, new_rows = self.rows.get(name), make()
        self.reused[name] = 0 if old_rows is None else len(old_rows)
        self.rows[name] = new_rows if old_rows is None else np.concatenate([old_rows, new_rows])
        return self.rows[name]

    def once(self, name: str, make: Make) -> Array:
        self.reused[name] = len(self.rows.get(name, ()))
        if name not in self.rows:
            self.rows[name] = make()
        return self.rows[name]

    def branch(self) -> "Kept":
        """A copy to go on from; the arrays are shared, since nobody writes into them."""
        return Kept(self.length, dict(self.rows), dict(self.reused))


def decode_step(
    machine: Machine, new_ids: Sequence[int], memory_SD: Array | None, kept: Kept, tap: Tap = no_tap
) -> Array:
    """Logits after the last of `new_ids`, which follow the tokens that `kept` has seen."""
    x_LD = decode(machine, new_ids, memory_SD, tap, kept)
    kept.length += len(new_ids)
    return logits(machine, x_LD[-1:], tap)[0]


def stepper(
    machine: Machine, source_ids: Sequence[int] | None, tap: Tap = no_tap
) -> Callable[[Sequence[tuple[int, ...]]], Array]:
    """`step(prefixes) → logits of the next token`, with the keys and values of every live prefix kept."""
    memory_SD = encode(machine, source_ids, tap) if machine.config.has_encoder and source_ids is not None else None
    kept_by_prefix: dict[tuple[int, ...], Kept] = {}

    def step(prefixes: Sequence[tuple[int, ...]]) -> Array:
        rows, live = [], {}
        for prefix in prefixes:
            parent = kept_by_prefix.get(prefix[:-1])
            kept = parent.branch() if parent is not None else Kept()
            rows.append(decode_step(machine, prefix[kept.length :], memory_SD, kept, tap))
            live[prefix] = kept
        kept_by_prefix.clear()
        kept_by_prefix.update(live)
        return np.stack(rows)

    return step
