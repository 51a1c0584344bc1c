"""How far a text walks through the code to its translation, and a batch of pairs to a model: the ways stay short
(benchmarks/walks.py counts them)."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parent.parent / "benchmarks" / "walks.py"


def walks_of(what: str) -> dict[str, dict[str, int]]:
    command = [sys.executable, str(BENCHMARK), "--json", "--what", what]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True)
    walks: dict[str, dict[str, int]] = json.loads(done.stdout)
    return walks


def test_a_text_walks_through_few_files() -> None:
    walks = walks_of("translate")
    in_machine_code = walks["hello"]["files"] <= 14  # WebAssembly has two files more, which every call passes
    assert walks["hello"]["files"] <= 16
    assert walks["hello"]["changes"] <= (36 if in_machine_code else 70)
    # A model that loses the € of this sentence translates it again in parts, and takes about twice as many.
    assert walks["marks"]["changes"] <= (110 if in_machine_code else 250)


def test_a_batch_walks_from_phase_to_phase() -> None:
    walk = walks_of("train")["train"]
    assert walk["files"] <= 18
    assert walk["hops"] <= 39  # one of them shows the first pairs
    assert walk["returns"] <= 20  # files that serve two phases (parameters, batches, the plan, progress)
