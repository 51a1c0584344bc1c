"""What a run leaves behind while it learns: its state, its metrics, its best models, and a few of its ages."""

import json
import time
from pathlib import Path
from typing import Any

from vidrio.learn.net.parameters import Weights
from vidrio.learn.run.best import keep, let_go
from vidrio.learn.run.checkpoint import save_state
from vidrio.learn.run.snapshots import keep_snapshot
from vidrio.learn.run.state import State
from vidrio.model.folder import write_atomically

SAVE = 300  # seconds between two saved states, besides those at validations


class Keeper:
    """Writes what a run leaves behind; nothing, if there is nowhere to write."""

    def __init__(self, run: Path | None, state: State) -> None:
        self.run, self.state = run, state
        self.saved = time.monotonic()
        self.kept = {step for step, _, _ in state.kept}  # by the state on disk
        if run is not None:
            run.mkdir(parents=True, exist_ok=True)
            forget_after(run / "metrics.jsonl", state.step)

    def tell(self, record: dict[str, Any]) -> dict[str, Any]:
        if self.run is not None:
            write_down(self.run, record)
        return record

    def is_due(self) -> bool:
        return time.monotonic() - self.saved > SAVE

    def save(self) -> None:
        tensors = self.state.tensors()
        if self.run is not None:
            save_state(self.run, tensors, self.state.numbers())
            kept = {step for step, _, _ in self.state.kept}
            let_go(self.run, kept | self.kept)
            self.kept = kept
        self.saved = time.monotonic()

    def keep_best(self) -> None:
        """Write the model that was just judged, if it is one of the best."""
        if any(step == self.state.step for step, _, _ in self.state.kept):
            weights = self.state.weights
            whole = weights.whole(self.state.average)
            if self.run is not None:
                keep(self.run, self.state.step, Weights(weights.config, whole).to_arrays())

    def snapshot(self) -> None:
        weights = self.state.weights
        whole = weights.whole(weights.flat)
        if self.run is not None:
            keep_snapshot(self.run, self.state.step, Weights(weights.config, whole).to_arrays())


def write_down(run: Path, record: dict[str, Any]) -> None:
    """One more line of metrics."""
    with (run / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(record) + "\n")


def forget_after(path: Path, step: int) -> None:
    """Drop the metrics after the saved state, and of the end, which will be told again, and a half-written line."""
    if not path.exists():
        return
    kept = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
            if record["step"] <= step and record.get("kind") != "mean":
                kept.append(line + "\n")
        except (ValueError, KeyError):
            break
    write_atomically(path, "".join(kept).encode())
