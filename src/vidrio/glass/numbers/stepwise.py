"""Every decoding step by itself: for machines where one pass over the whole translation would not tell the truth.

With the causal mask, row t of one pass is what the decoder computed at step t. Take the mask away and it is not: in one
pass the row sees words that did not exist yet at step t. Then each step is run, and kept, by itself.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Tap, no_tap
from vidrio.glass.paper.transformer import translate_forced


def trace_steps(
    trace: Trace, source_ids: Sequence[int], target_ids: Sequence[int], choice_ids: Sequence[int], change: Tap = no_tap
) -> None:
    """Fill a trace with what decoding step by step, all rows afresh at each step, really computes.

    `name[…]@t` then reads step t. Without `@`, decoder quantities are those of the last step, and row t of an output is
    what step t gave out.
    """
    sizes = {axis: length for axis, length in trace.sizes.items() if axis != "T"}
    steps = []
    for t in range(len(target_ids)):
        step = replace(
            trace,
            target_tokens=trace.target_tokens[: t + 1],
            chosen_tokens=trace.chosen_tokens[: t + 1],
            values={},
            computed={},
            sizes=dict(sizes),
            steps=(),
        )
        translate_forced(trace.machine, source_ids, target_ids[: t + 1], step.tap_through(change))
        steps.append(step)
    trace.sizes |= steps[-1].sizes
    trace.values |= steps[-1].values
    trace.computed |= steps[-1].computed
    for name in _per_step(steps[-1]):
        trace.values[name] = np.stack([step.values[name][-1] for step in steps])
        if name in trace.computed:
            trace.computed[name] = np.stack([step.computed[name][-1] for step in steps])
    if len(choice_ids) == len(target_ids):  # no word was chosen after a step that came to NaN
        trace.take(choice_ids)
    for t, step in enumerate(steps):
        for name in _per_step(trace):
            step.values[name] = trace.values[name][: t + 1]
    trace.steps = steps


def _per_step(trace: Trace) -> list[str]:
    """The quantities that each step gives out for itself."""
    return [name for name in trace.values if trace.stages[name].per_step]
