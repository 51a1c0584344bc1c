"""Step by step, with kept keys and values: the `step` function that search calls."""

from collections.abc import Callable, Sequence

import numpy as np

from vidrio.glass.paper.attention import Kept
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.glass.paper.transformer import Machine, decode, encode, logits


def decode_step(
    machine: Machine, new_ids: Sequence[int], memory_SD: Array | None, kept: Kept, tap: Tap = no_tap
) -> Array:
    """Logits after the last of `new_ids`, which follow the tokens that `kept` has seen."""
    return logits(machine, last_row(machine, new_ids, memory_SD, kept, tap), tap)[0]


def last_row(machine: Machine, new_ids: Sequence[int], memory_SD: Array | None, kept: Kept, tap: Tap = no_tap) -> Array:
    """The decoder's row after the last of them, 1·D."""
    x_LD = decode(machine, new_ids, memory_SD, tap, kept)
    kept.length += len(new_ids)
    return x_LD[-1:]


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
            rows.append(last_row(machine, prefix[kept.length :], memory_SD, kept, tap))
            live[prefix] = kept
        kept_by_prefix.clear()
        kept_by_prefix.update(live)
        return logits(machine, np.concatenate(rows), tap)

    return step
