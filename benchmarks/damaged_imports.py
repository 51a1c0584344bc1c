"""Import damaged models: each attempt must give a message or a model folder, never a traceback, and leave nothing
behind.

    python benchmarks/damaged_imports.py --each 100 --seed 2

A MarianMT folder with each of its three formats of weights, and Marian's own files. `--each` times, one file is
truncated, or gets a flipped bit, an absurd number, or a piece inserted or removed. It stops at the first failure.
"""

import argparse
import contextlib
import io
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from shared import TESTS, memory

sys.path.insert(0, str(TESTS))
from marian_models import import_damaged, write_marian
from test_import_firefox import try_damage


def forms(place: Path) -> Iterator[tuple[str, Path]]:
    """A folder with each format of weights, one at a time."""
    import torch
    from safetensors.torch import load_file
    from transformers.utils.logging import disable_progress_bar

    disable_progress_bar()
    write_marian(place / "safetensors")
    yield "safetensors", place / "safetensors"
    weights = place / "safetensors/model.safetensors"
    state = load_file(weights)
    weights.unlink()
    for form, is_zip in (("a PyTorch zip", True), ("a pickle as before PyTorch 1.6", False)):
        torch.save(state, weights.with_name("pytorch_model.bin"), _use_new_zipfile_serialization=is_zip)
        yield form, place / "safetensors"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--each", type=int, default=100, help="damaged files of each form")
    parser.add_argument("--seed", type=int, default=2)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        for form, folder in forms(Path(temporary)):
            said = io.StringIO()

            def say(said: io.StringIO = said) -> str:
                text = said.getvalue()
                said.seek(said.truncate(0))
                return text

            start = time.perf_counter()
            with contextlib.redirect_stderr(said), contextlib.redirect_stdout(io.StringIO()):
                refused = import_damaged(folder, Path(temporary) / "ours", given.each, say, given.seed)
            print(f"{form}: {given.each} damaged, {refused} refused, {time.perf_counter() - start:.0f} s", flush=True)
        start, place = time.perf_counter(), Path(temporary) / "own"
        place.mkdir()
        refused = try_damage(place, given.each, given.seed)
        seconds = time.perf_counter() - start
        print(
            f"Marian's own files: {given.each} damaged, {refused} refused, {seconds:.0f} s, {memory('VmHWM') >> 20} MB"
        )


if __name__ == "__main__":
    main()
