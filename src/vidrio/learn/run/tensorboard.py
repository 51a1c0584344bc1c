"""A run's figures for TensorBoard, where that is installed: the lines of metrics.jsonl, as curves in RUN/tensorboard.

They are written at every line, so that a kill loses none that the saved state has passed. A run that goes on begins a
new file in the same folder, and tells TensorBoard to forget what an earlier one has told of the steps to come.
"""

import importlib.util
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from vidrio.learn.run.state import State

Watch = Callable[[dict[str, Any]], None]

FOLDER = "tensorboard"
STEP = {"loss": "loss/training", "rate": "rate", "tokens_per_second": "tokens per second"}
VALIDATION = {"loss": "loss/held out", "bleu": "scores/BLEU", "chrf": "scores/chrF", "accuracy": "scores/accuracy"}


@contextmanager
def drawing(run: Path | None, state: State, watch: Watch) -> Iterator[Watch]:
    """`watch`, and where there is a folder to draw into and TensorBoard to draw with, curves of what it is told."""
    if run is None or importlib.util.find_spec("tensorboard") is None:
        yield watch
        return
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(run / FOLDER), purge_step=state.step + 1) as writer:

        def draw(record: dict[str, Any]) -> None:
            watch(record)
            for name, tag in (VALIDATION if record["kind"] == "validation" else STEP).items():
                if name in record:
                    writer.add_scalar(tag, record[name], record["step"])
            writer.flush()

        yield draw
