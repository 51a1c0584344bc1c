"""Test damaged and malicious model folders. Each one translates or is rejected with a reason, within fixed limits of
memory and time, and without a traceback.

The tests run `python tests/test_hostile_folders.py COUNT FIRST_SEED FOLDER` in a separate process with limited memory.
If a library crashes, only that process ends, and the test reports the number of the case.
"""

import json
import os
import random
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FEW, MANY = 200, 40_000  # about 3 seconds and 8 minutes on one idle core
MEMORY = 1 << 30  # maximum bytes in use, including those of libraries
SECONDS = 10
BEGIN = 17  # the number and seed of the first case

# Placeholders for JSON that `json.dumps` cannot write.
PLACES = {"@digits": "9" * 10_000, "@deep": "[" * 100_000, "@half": '"\\ud800"', "@large": "1" + "0" * 400}
VALUES: list[Any] = [
    *(None, True, False, 0, 1, 2, 3, -1, -2, 7, 255, 65_536, 10**6, 10**8, 10**10, 10**12, 2**63, -(10**12)),
    *(0.0, 0.5, 256.0, -1.5, 1e-300, 1e308, float("nan"), float("inf"), -float("inf")),
    *("", "x", "none", "learned", "decoder", "</s>", "①②", "a\0b", "../../x", "é" * 5000, "[", "(?P<"),
    *([], {}, [1, 2], [[]], {"a": 1}, ["x"] * 1000, [None], *PLACES),
]


def mutated_json(data: bytes, draw: random.Random) -> bytes:
    """Change, add or delete one value."""
    try:
        tree = json.loads(data)
    except (ValueError, RecursionError):
        return mutated_bytes(data, draw)
    parent, key = (root := {"": tree}), ""
    while isinstance(node := parent[key], dict | list) and node and draw.random() < 0.85:
        parent, key = node, draw.choice(list(node) if isinstance(node, dict) else range(min(len(node), 400)))
    kind = draw.randrange(6)
    if kind == 0 and parent[key] is not tree:
        del parent[key]
    elif kind == 1 and isinstance(node, dict):
        node[draw.choice(["x", "\0", "format", "n_heads", "weights", "é" * 300])] = draw.choice(VALUES)
    elif kind == 2 and isinstance(node, int):
        parent[key] = draw.choice([node + 1, node - 1, node * 2, -node, node // 2, str(node)])
    else:
        parent[key] = draw.choice(VALUES)
    text = json.dumps(root[""])
    for name, meant in PLACES.items():
        text = text.replace(f'"{name}"', meant)
    return text.encode()


def mutated_bytes(data: bytes, draw: random.Random) -> bytes:
    """Truncate the data, flip bits, or delete or insert bytes."""
    changed, place = bytearray(data), draw.randrange(len(data) + 1)
    kind = draw.randrange(4)
    if kind == 0:
        return bytes(changed[:place])
    if kind == 1 and data:
        for _ in range(draw.choice([1, 1, 2, 30])):
            changed[draw.randrange(len(changed))] ^= 1 << draw.randrange(8)
    elif kind == 2:
        del changed[place : place + draw.choice([1, 4, 100])]
    else:
        changed[place:place] = draw.randbytes(draw.choice([1, 8, 100]))
    return bytes(changed)


def mutated_tensors(data: bytes, draw: random.Random) -> bytes:
    """Change any bytes of the file, or only the header and perhaps its declared length."""
    kind, length = draw.randrange(3), int.from_bytes(data[:8], "little")
    if kind == 0:
        return mutated_bytes(data, draw)
    header = mutated_json(data[8 : 8 + length], draw)
    told = len(header) if kind == 1 else draw.choice([0, 2**40, 2**63, len(header) + 1])
    return told.to_bytes(8, "little") + header + data[8 + length :]


def mutation(name: str) -> Callable[[bytes, random.Random], bytes]:
    if name.endswith(".safetensors"):
        return mutated_tensors
    return mutated_json if name.endswith(".json") else mutated_bytes


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def hostile(models: dict[str, dict[str, bytes]], draw: random.Random) -> dict[str, bytes | None]:
    """Return the files of a model after one to three changes. A missing file is None."""
    files: dict[str, bytes | None] = dict(models[draw.choice(list(models))])
    for _ in range(draw.choice([1, 1, 1, 2, 3])):
        name = draw.choice([*files, *["config.json"] * 3])
        before = files[name]
        if draw.random() < 0.03:
            files[name] = None
        elif draw.random() < 0.05:
            files[name] = models[draw.choice(list(models))].get(name)  # the file of another model
        elif before:
            change = mutated_bytes if draw.random() < 0.15 else mutation(name)
            files[name] = change(before, draw)
    if draw.random() < 0.8:  # no checksums: older versions wrote none, and an attacker would delete them
        config = files["config.json"]
        if config:
            try:
                data = json.loads(config)
                del data["files"]
                files["config.json"] = json.dumps(data).encode()
            except (ValueError, KeyError, TypeError, RecursionError):
                pass
    return files


def attempt(folder: Path) -> str:
    """Load the folder and translate. Return "translated", the type of the error, or "no message" if it is empty."""
    from dataclasses import replace

    from vidrio.errors import VidrioError
    from vidrio.translate.translator import Translator

    try:
        translator = Translator.load(folder, workers=1)
        options = translator.options
        # Translations are kept short: a model may be slow, and only reading it is tested here.
        options = replace(options, max_length=min(options.max_length, 4), beam=min(options.beam, 2))
        translator.translate("hello bala core, world.", options)
        return "translated"
    except (VidrioError, OSError) as error:  # the errors that the command line prints as messages
        return type(error).__name__ if str(error) else "no message"


def put(folder: Path, files: dict[str, bytes | None]) -> None:
    for name, data in files.items():
        if data is not None:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)


def try_all(count: int, begin: int, models_folder: Path) -> None:
    """Try the cases in order. Print a line of JSON for each fault and a summary at the end."""
    import warnings

    warnings.simplefilter("ignore")
    models = {folder.name: files_of(folder) for folder in sorted(models_folder.iterdir()) if folder.is_dir()}
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
    outcomes: dict[str, int] = {}
    slowest, folder = 0.0, models_folder.parent / f"tried-{begin}"
    now = os.open(models_folder.parent / f"now-{begin}", os.O_WRONLY | os.O_CREAT)
    for number in range(begin, begin + count):
        os.pwrite(now, f"{number:12}".encode(), 0)
        draw = random.Random(number)
        files = hostile(models, draw)
        shutil.rmtree(folder, ignore_errors=True)
        put(folder, files)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)  # kills the process after this CPU time
        signal.alarm(10 * SECONDS)  # and after this wall-clock time, longer because the machine may be busy
        began = time.process_time()
        try:
            outcome = attempt(folder) if folder.is_dir() else "nothing"
        except BaseException:
            outcome = "FAULT"
            print(json.dumps({"case": number, "fault": traceback.format_exc()[-1500:]}), flush=True)
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        slowest = max(slowest, time.process_time() - began)
        outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(json.dumps({"tried": count, "outcomes": outcomes, "slowest": slowest, "peak": peak()}), flush=True)


def peak() -> int:
    """Return the peak memory use in bytes. ru_maxrss is unsuitable: it starts at the value of the parent process."""
    return 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder that contains small models of several kinds."""
    from small_models import rewrite_config, write_model
    from vidrio.model.find import PACKAGE
    from vidrio.model.folder import read_parameters, write_parameters
    from vidrio.model.quantised import quantise
    from vidrio.text.tokens.tokenizer import Tokenizer

    place = tmp_path_factory.mktemp("hostile") / "models"
    small = {"d_model": 8, "d_head": 4, "d_ff": 8, "n_encoder_layers": 1, "n_decoder_layers": 1, "max_positions": 24}
    write_model(place / "plain", **small)
    config = write_model(place / "seven-bits", seed=1, ends=True, norm="pre", **small)
    write_parameters(place / "seven-bits", quantise(read_parameters(place / "seven-bits"), config))
    rewrite_config(place / "seven-bits")
    learner = Tokenizer.learn(["hello world, hola mundo"] * 9, 290)
    sizes = {"source_vocabulary": learner.size, "target_vocabulary": learner.size, "special": learner.special}
    write_model(place / "subwords", **small, **sizes)
    learner.save(place / "subwords" / "tokenizer.json")
    rewrite_config(place / "subwords")
    for name in ("config.json", "model.safetensors", "tokenizer.json"):
        (place / "lesson").mkdir(exist_ok=True)
        shutil.copy(PACKAGE / "lessons" / "trained" / name, place / "lesson")
    return place


def hold(models: Path, count: int, begin: int) -> dict[str, Any]:
    """Try the cases in another process and return the summary. Fail if there is a fault or the process crashes."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "RUST_BACKTRACE": "0"}
    command = [sys.executable, __file__, str(count), str(begin), str(models)]
    limit = 120 + 2 * count  # seconds
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=limit)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    now = (models.parent / f"now-{begin}").read_text()
    assert done.returncode == 0, f"case {now}: the process ended with {done.returncode}\n{done.stderr[-2000:]}"
    faults = [line for line in lines if "case" in line]
    assert not faults, "\n".join(f"case {fault['case']}: {fault['fault']}" for fault in faults[:5])
    assert "no message" not in lines[-1]["outcomes"]
    assert lines[-1]["peak"] <= MEMORY
    assert lines[-1]["slowest"] <= SECONDS
    return lines[-1]


def test_some_hostile_folders_are_refused_or_translate(models: Path) -> None:
    told = hold(models, FEW, BEGIN)
    assert told["tried"] == FEW
    assert told["outcomes"]["ModelError"] > FEW / 10
    assert told["outcomes"]["translated"] > FEW / 100


@pytest.mark.slow
def test_many_hostile_folders_are_refused_or_translate(models: Path) -> None:
    """Set VIDRIO_HOSTILE=100000 to try more folders, and VIDRIO_HOSTILE_FROM=1040000 to try others."""
    begin = int(os.environ.get("VIDRIO_HOSTILE_FROM", 1_000_000))
    print(begin, hold(models, int(os.environ.get("VIDRIO_HOSTILE", MANY)), begin))


if __name__ == "__main__":
    try_all(int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3]))
