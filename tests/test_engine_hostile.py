"""Test that the engine never accesses memory out of bounds, even with damaged models and invalid requests."""

import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from engine_cases import case, damaged, random_asked, random_model
from vidrio.engine import build
from vidrio.engine.weights import read_weights

DRIVER = Path(__file__).with_name("engine_driver.c")
LIMITS = {"ASAN_OPTIONS": "allocator_may_return_null=1:max_allocation_size_mb=4000"}
MANY = int(os.environ.get("VIDRIO_ENGINE_DAMAGED", "100000"))
FIRST = int(os.environ.get("VIDRIO_ENGINE_DAMAGED_FROM", "0"))
AT_ONCE = 250


@pytest.fixture(scope="module", params=["", "-march=native"])  # plain C, and this processor's instructions
def driver(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile the driver with an installed compiler's sanitizers. The engine's own compiler has only one of the two."""
    path = tmp_path_factory.mktemp("driver") / "driver"
    flags = ["-std=gnu11", "-w", "-O1", "-g", "-ffp-contract=off", "-fno-math-errno", f"-I{build.SOURCE}", build.LIMIT]
    flags += request.param.split()
    both, own = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"], [sys.executable, "-m", "ziglang", "cc"]
    candidates = [([name], both) for name in ("clang", "gcc", "cc") if shutil.which(name)]
    for compiler, sanitizers in [*candidates, (own, ["-fsanitize=undefined", "-fsanitize-trap=undefined"])]:
        command = [*compiler, *flags, *sanitizers, str(DRIVER), "-o", str(path), "-lm"]
        if subprocess.run(command, capture_output=True, check=False, timeout=300).returncode == 0:
            return path
    pytest.fail("no compiler compiles the driver")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Return undamaged cases of all kinds."""
    cases = []
    for seed in range(60):
        folder = tmp_path_factory.mktemp("model")
        config = random_model(folder, seed)
        asked = random_asked(config, seed, 2)
        cases.append(case(read_weights(folder, config), asked, rows=seed % 9, steps=30))
    return cases


def run(driver: Path, cases: list[bytes]) -> bytes:
    """Run the driver on cases. If it fails, the case that made it fail is saved next to it."""
    done = subprocess.run(
        [driver], input=b"".join(cases) + bytes(4), capture_output=True, check=False, timeout=600, env=LIMITS
    )
    if done.returncode and len(cases) > 1:
        for each in cases:
            run(driver, [each])
    if done.returncode:
        driver.with_name("case").write_bytes(cases[0] + bytes(4))
    assert done.returncode == 0, f"{driver.with_name('case')}\n{done.stderr.decode()[-3000:]}"
    return done.stdout


def test_what_is_whole_runs_under_the_sanitizers(driver: Path, whole: list[bytes]) -> None:
    assert len(run(driver, whole)) > 1_000_000


def test_some_damaged_models_and_questions(driver: Path, whole: list[bytes]) -> None:
    rng = np.random.default_rng(7)
    answers = [run(driver, [damaged(whole[n % len(whole)], rng)]) for n in range(40)]
    loaded = [struct.unpack("<i", answer[:4])[0] for answer in answers]
    assert {0, 1} == set(loaded), "all were refused, or none"
    run(driver, [damaged(whole[n % len(whole)], rng) for n in range(300)])


@pytest.mark.slow
def test_many_damaged_models_and_questions(driver: Path, whole: list[bytes]) -> None:
    for first in range(FIRST, FIRST + MANY, AT_ONCE):
        rng = np.random.default_rng(first)
        run(driver, [damaged(whole[int(rng.integers(len(whole)))], rng) for _ in range(AT_ONCE)])
    print(f"{MANY:,} damaged cases from {FIRST:,}")


def test_an_allocation_that_fails_ends_the_call_and_nothing_else(driver: Path, whole: list[bytes]) -> None:
    """Check that every entry point returns an error and frees what it has allocated."""
    for seed in range(10):
        command, cases = [driver, str(seed)], b"".join(whole) + bytes(4)
        done = subprocess.run(command, input=cases, capture_output=True, check=False, timeout=600, env=LIMITS)
        assert done.returncode == 0, f"seed {seed}: {done.returncode}\n{done.stderr.decode()[-3000:]}"
        failed, cases_run = (int(word) for word in done.stderr.decode().split() if word.isdigit())
        assert cases_run == len(whole)
        assert failed > cases_run / 4
