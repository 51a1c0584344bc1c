"""Test that the engine limits and frees its memory and threads, and that it copes when none are left."""

import gc
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from engine_cases import bits
from small_models import random_sources, write_model
from vidrio.engine import slots
from vidrio.engine.engine import Engine
from vidrio.engine.library import BUILT, MODULES, Wasm
from vidrio.engine.slots import Model, load_model
from vidrio.engine.turns import Turns
from vidrio.engine.wasm import Wasmtime, instances
from vidrio.errors import InputError, VidrioError
from vidrio.hypothesis import Options
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import read_config
from waiting import wait_for

USUAL = Options(beam=3, n_best=2, max_length=20)
LONG = Options(beam=4, max_length=47, min_length=47)
WORKERS = 2


@pytest.fixture(scope="module")
def new_instance() -> Callable[[], Wasmtime]:
    return instances(BUILT / MODULES["wasm"])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    write_model(folder, ends=True, max_positions=48)
    return folder


@pytest.fixture(scope="module")
def config(folder: Path) -> ModelConfig:
    return read_config(folder)[0]


class Opened:
    """A WebAssembly engine that records its instances."""

    def __init__(self, folder: Path, new_instance: Callable[[], Wasmtime], workers: int = WORKERS) -> None:
        self.instances: list[weakref.ref[Wasmtime]] = []
        self.config = read_config(folder)[0]

        def load() -> Model:
            instance = new_instance()
            self.instances.append(weakref.ref(instance))
            return load_model(folder, self.config, Wasm(instance))

        self.engine = Engine(load, workers)

    @property
    def alive(self) -> list[Wasmtime]:
        return [instance for each in self.instances if (instance := each())]


@pytest.fixture
def opened(folder: Path, new_instance: Callable[[], Wasmtime]) -> Opened:
    return Opened(folder, new_instance)


# --- WebAssembly instances --------------------------------------------------------------------------------------------


def test_there_are_no_more_instances_than_workers(opened: Opened, config: ModelConfig) -> None:
    sources = random_sources(config, 40)
    expected = [bits(opened.engine.search([source], USUAL)) for source in sources]
    with ThreadPoolExecutor(16) as pool:
        found = pool.map(lambda source: bits(opened.engine.search([source] * 3, USUAL)), sources)
        assert [some[:2] for some in found] == expected
    assert 1 < len(opened.instances) <= WORKERS


def test_a_call_that_ends_early_costs_no_instance(opened: Opened, config: ModelConfig) -> None:
    [source] = random_sources(config, 1)
    asked = iter(range(1000))
    for _ in range(5):
        with pytest.raises(CancelledError):
            opened.engine.search([source], LONG, lambda: next(asked) % 3 == 2)
        with pytest.raises(InputError):
            opened.engine.search([[5, 1000, 3]], USUAL)
        with pytest.raises(InputError):
            opened.engine.forced([([5, 3], [1000])])
    assert len(opened.instances) == 1


def test_a_call_that_ends_early_is_freed_at_once(opened: Opened, config: ModelConfig) -> None:
    class Left:
        def __call__(self) -> bool:
            return True

    left = Left()
    freed = weakref.ref(left)
    gc.disable()  # it must be freed without the cycle collector, which may run late
    try:
        with suppress(CancelledError):
            opened.engine.search(random_sources(config, 1), LONG, left)
        del left
        assert freed() is None
    finally:
        gc.enable()


def test_what_a_call_allocates_is_freed_with_it(
    folder: Path, config: ModelConfig, new_instance: Callable[[], Wasmtime]
) -> None:
    """Check that memory stops growing after a few calls, whether they finish, are cancelled or are refused."""
    opened, sources, sizes = Opened(folder, new_instance, workers=1), random_sources(config, 4), list[int]()
    for n in range(300):
        asked = iter(range(100))
        with pytest.raises(CancelledError):
            opened.engine.search(sources, LONG, lambda asked=asked: next(asked) > 3)  # type: ignore[misc]
        with pytest.raises(InputError):
            opened.engine.search([*sources, [1000]], LONG)
        opened.engine.quantities(sources[0], sources[1])
        if n in (10, 299):
            sizes += [instance.size() for instance in opened.alive]
    assert len(opened.instances) == 1
    assert sizes[0] == sizes[1]


def test_an_instance_that_has_grown_is_dropped_at_once_and_others_go_on(
    opened: Opened, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    [source] = random_sources(config, 1)
    expected = bits(opened.engine.search([source], USUAL))
    assert len(opened.alive) == 1
    monkeypatch.setattr(slots, "GROWN", -1)
    gc.disable()  # it must be freed without the cycle collector, which may run late
    try:
        opened.engine.search([source], USUAL)
        assert opened.alive == []
    finally:
        gc.enable()
    monkeypatch.undo()
    assert bits(opened.engine.search([source], USUAL)) == expected
    assert len(opened.alive) == 1


def test_where_no_second_instance_can_be_opened_one_serves_all(folder: Path, config: ModelConfig) -> None:
    new, opened = instances(BUILT / MODULES["wasm"]), []

    def load() -> Model:
        opened.append(1)
        if len(opened) > 1:
            raise MemoryError("mmap failed")
        return load_model(folder, config, Wasm(new()))

    engine, sources = Engine(load, 3), random_sources(config, 12)
    assert bits(engine.search(sources, USUAL)) == bits([engine.search([source], USUAL)[0] for source in sources])
    assert len(opened) > 1


# --- out of memory ----------------------------------------------------------------------------------------------------


def test_webassembly_without_memory_ends_the_call_and_not_the_engine(
    folder: Path, config: ModelConfig, new_instance: Callable[[], Wasmtime]
) -> None:
    def load() -> Model:
        instance = new_instance()
        model = load_model(folder, config, Wasm(instance))
        instance.store.set_limits(memory_size=instance.size() + (2 << 20))
        return model

    engine, sources = Engine(load, 1), random_sources(config, 200, longest=40)
    expected = bits(engine.search(sources[:1], USUAL))
    for _ in range(20):
        with pytest.raises(VidrioError, match="no memory is left for this call"):
            engine.search(sources, Options(beam=32, n_best=32, max_length=47, min_length=47))
        assert bits(engine.search(sources[:1], USUAL)) == expected


HOST = """
import os, resource, sys
from pathlib import Path
from vidrio.engine.engine import Engine
from vidrio.errors import VidrioError
from vidrio.hypothesis import Options
from vidrio.model.folder import read_config
folder = Path(sys.argv[1])
engine = Engine.load(folder, read_config(folder)[0])
source = [*range(40, 70), 3]
usual = engine.search([source], Options())
def in_use():
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (in_use() + (8 << 20), resource.RLIM_INFINITY))
errors = 0
for work in (
    lambda: engine.search([source] * 32, Options(beam=32, n_best=32, max_length=500, min_length=500)),
    lambda: engine.forced([(source * 16, source * 16)]),
    lambda: engine.quantities(source * 16, source * 16),
) * 2:
    try:
        work()
    except VidrioError as error:
        assert "no memory is left for this call" in str(error), error
        errors += 1
assert engine.search([source], Options()) [0][0].ids == usual[0][0].ids
print(errors)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_machine_code_without_memory_ends_the_call_and_not_the_process() -> None:
    done = subprocess.run([sys.executable, "-c", HOST, find("en-es")], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "6\n"), done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are Linux's")
def test_webassembly_runs_where_little_address_space_is_allowed() -> None:
    command = "ulimit -v 4000000; VIDRIO_ENGINE=wasm exec $0 -m vidrio translate 'Where is the station?'"
    done = subprocess.run(["bash", "-c", command, sys.executable], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "¿Dónde está la estación?\n", "")


# --- threads ----------------------------------------------------------------------------------------------------------


def test_a_thread_that_cannot_be_started_is_done_without(
    folder: Path, config: ModelConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine, sources = Engine.load(folder, config, workers=3), random_sources(config, 12)
    expected = bits(engine.search(sources, USUAL))

    def fails(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    for _ in range(5):
        with monkeypatch.context() as patch:
            patch.setattr(threading.Thread, "start", fails)
            assert bits(engine.search(sources, USUAL)) == expected
    together, came = threading.Barrier(3, timeout=60), set[int]()  # it breaks unless three threads arrive, as before

    def meet() -> bool:
        if threading.get_ident() not in came:
            came.add(threading.get_ident())
            together.wait()
        return False

    engine.search(sources[:3], USUAL, meet)


def test_turns_are_taken_in_the_order_of_asking() -> None:
    turns, order = Turns(), list[int]()

    def take(n: int) -> None:
        with turns:
            order.append(n)

    threads = [threading.Thread(target=take, args=(n,)) for n in range(20)]
    with turns:
        for n, thread in enumerate(threads, start=1):
            thread.start()
            wait_for(lambda n=n: len(turns._line) > n)
    for thread in threads:
        thread.join(60)
    assert order == list(range(20))
    with turns:
        assert len(turns._line) == 1  # it is free again
