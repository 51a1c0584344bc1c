"""Import damaged models, which must never cause a traceback or leave anything behind.

    python benchmarks/damaged_imports.py --each 100 --seed 2

The models are a MarianMT folder in each of its three weight formats, and a folder with native Marian files. Each of the
`--each` attempts per format truncates a file, flips a bit, writes an absurd number, or inserts or removes bytes. The
import must end with an error message or a model folder. The script stops at the first failure.
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
    """Yield a MarianMT folder in each of the weight formats."""
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
    parser.add_argument("--each", type=int, default=100, help="number of damaged files per format")
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
