"""How far a text walks through the code to its translation: the ways stay short (benchmarks/walks.py counts them)."""

import json
import subprocess
import sys
from pathlib import Path

BENCHMARK = Path(__file__).resolve().parent.parent / "benchmarks" / "walks.py"


def test_a_text_walks_through_few_files() -> None:
    command = [sys.executable, str(BENCHMARK), "--json", "--what", "translate"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    walks = json.loads(done.stdout)
    assert walks["hello"]["files"] <= 9
    assert walks["hello"]["changes"] <= 12
    assert walks["marks"]["changes"] <= 60
