"""Test the engine's Python interface: concurrent calls, cancellation, forks, damaged models, invalid requests."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from engine_cases import bits, random_asked, random_model
from parity_models import make_parameters
from small_models import random_sources, rewrite_config, write_model
from vidrio.engine.engine import ROWS, Engine, load_model
from vidrio.engine.library import BUILT, CHOICES, MODULES, NATIVE, WISH, Wasm, native_path, opener
from vidrio.engine.wasm import instances
from vidrio.engine.weights import read_weights
from vidrio.errors import ConfigError, InputError, ModelError
from vidrio.hypothesis import Options
from vidrio.model.config import ModelConfig
from vidrio.model.find import find
from vidrio.model.folder import TENSORS, read_config, write_parameters
from vidrio.model.quantised import quantise


@pytest.fixture(scope="module", params=["auto", "wasm"])
def wish(request: pytest.FixtureRequest) -> Iterator[str]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(WISH, request.param)
        yield request.param


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model") / "model"
    write_model(folder, ends=True, max_positions=48)
    return folder


@pytest.fixture(scope="module")
def config(folder: Path) -> ModelConfig:
    return read_config(folder)[0]


@pytest.fixture(scope="module")
def engine(wish: str, folder: Path, config: ModelConfig) -> Engine:
    return Engine.load(folder, config, workers=2)


@pytest.fixture(scope="module")
def large(wish: str) -> Engine:
    """Load a packaged model, which takes longer to translate."""
    folder = find("en-es")
    return Engine.load(folder, read_config(folder)[0], workers=2)


USUAL = Options(beam=3, n_best=2, max_length=20)
LONG = Options(beam=4, max_length=400, min_length=400)  # ends only at its maximum length


# --- results ----------------------------------------------------------------------------------------------------------


def test_a_search_agrees_with_its_score_its_attention_and_its_quantities(engine: Engine, config: ModelConfig) -> None:
    sources = random_sources(config, 12)
    usual = replace(USUAL, min_length=0)
    found = [*engine.search(sources, usual), *engine.search(sources, replace(usual, length_penalty=0))]
    sources += sources
    pairs = [(source, best.ids) for source, [best, _] in zip(sources, found, strict=True)]
    assert {best.ended for best, _ in found} == {True, False}
    for (source, ids), (best, second), scores in zip(pairs, found, engine.forced(pairs), strict=True):
        assert best.score >= second.score
        assert best.log_prob == sum(best.token_log_probs)
        assert best.score in (best.log_prob, best.log_prob / len(best.token_log_probs))
        assert tuple(scores[: len(best.token_log_probs)]) == best.token_log_probs
        assert len(scores) == len(ids) + 1
        seen = engine.quantities(source, ids)
        last = f"dec.{config.n_decoder_layers - 1}.cross.weights"
        heads = np.stack([np.asarray(seen[f"{last}.h{h}"]) for h in range(config.n_heads)])
        if ids:
            np.testing.assert_allclose(heads.mean(axis=0)[: len(ids)], best.attention, rtol=1e-6)
        probs = np.asarray(seen["out.prob"])
        chosen = probs[np.arange(len(ids) + 1), [*ids, config.special.end]]
        np.testing.assert_allclose(np.log(chosen), scores, atol=1e-4)


def test_no_result_depends_on_its_neighbours(engine: Engine, config: ModelConfig) -> None:
    asked = [random_asked(config, seed, 8) for seed in range(6)]
    sources = [[(*a.source, config.special.end) for a in some] for some in asked]
    alone = [
        [engine.search([s], a.options, shortlists=[a.shortlist])[0] for s, a in zip(*pair, strict=True)]
        for pair in zip(sources, asked, strict=True)
    ]
    with ThreadPoolExecutor(8) as pool:  # all in the same batches, with mixed options
        waiting = [
            [
                pool.submit(engine.search, [s] * n, a.options, shortlists=[a.shortlist] * n)
                for n, (s, a) in enumerate(zip(*pair, strict=True), 1)
            ]
            for pair in zip(sources, asked, strict=True)
        ]
        for some, expected in zip(waiting, alone, strict=True):
            for future, one in zip(some, expected, strict=True):
                assert all(bits([found]) == bits([one]) for found in future.result(60))


@pytest.mark.parametrize("seed", range(6))
def test_classifiers_and_models_that_write_on(wish: str, tmp_path: Path, seed: int) -> None:
    config = random_model(tmp_path, seed + 5)
    engine = Engine.load(tmp_path, config)
    if config.shape == "encoder":
        [probabilities] = engine.classify([(5, 6, 7)])
        assert len(probabilities) == config.n_classes
        assert sum(probabilities) == pytest.approx(1)
        assert list(engine.quantities((5, 6, 7))["out.prob"].tolist()[0]) == probabilities
    else:
        [[best]] = engine.search([()], Options(beam=2, max_length=9, prefix=(5, 6)))
        assert best.ids[:2] == (5, 6)
        assert best.attention is None


# --- concurrency ------------------------------------------------------------------------------------------------------


def test_a_sentence_alone_takes_no_thread(engine: Engine, config: ModelConfig) -> None:
    before, seen = set(threading.enumerate()), list[set[threading.Thread]]()
    engine.search(random_sources(config, 1), USUAL, lambda: bool(seen.append(set(threading.enumerate()) - before)))
    assert seen
    assert not any(seen)


def test_threads_end_with_their_work(engine: Engine, config: ModelConfig) -> None:
    before = threading.active_count()
    with ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda source: engine.search([source] * 5, USUAL), random_sources(config, 60)))
    end = time.monotonic() + 60
    while threading.active_count() > before and time.monotonic() < end:
        time.sleep(0.01)
    assert threading.active_count() <= before


def test_an_interrupt_leaves_the_engine_usable(large: Engine) -> None:
    source = (50, 60, 70, 80, 3)
    expected = bits(large.search([source], USUAL))
    calls = iter(range(1000))

    def interrupted() -> bool:
        if next(calls) == 2:
            raise KeyboardInterrupt
        return False

    with pytest.raises(KeyboardInterrupt):
        large.search([source] * 3, LONG, interrupted)
    assert bits(large.search([source], USUAL)) == expected


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks here")
@pytest.mark.filterwarnings("ignore:This process.*multi-threaded:DeprecationWarning")  # from Python 3.12 on
def test_the_child_of_a_fork_translates(large: Engine) -> None:
    source = (50, 60, 70, 80, 3)
    expected = bits(large.search([source] * 3, USUAL))
    done = threading.Event()

    def work() -> None:
        with pytest.raises(CancelledError):
            large.search([source] * 60, LONG, done.is_set)

    busy = threading.Thread(target=work)
    busy.start()  # both batches are in use by threads, which a fork does not copy
    time.sleep(0.1)
    try:
        child = os.fork()
        if child == 0:
            try:
                os._exit(0 if bits(large.search([source] * 3, USUAL)) == expected else 1)
            finally:
                os._exit(2)
        end, status = time.monotonic() + 60, 0
        while time.monotonic() < end:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            time.sleep(0.02)
        else:
            os.kill(child, 9)
            pytest.fail("the child waits for ever")
    finally:
        done.set()
        busy.join(60)
    assert os.waitstatus_to_exitcode(status) == 0
    assert bits(large.search([source] * 3, USUAL)) == expected


# --- loading ----------------------------------------------------------------------------------------------------------


def test_numbers_of_other_types_and_at_odd_addresses_are_read(tmp_path: Path) -> None:
    config = write_model(tmp_path, tying="none")
    parameters = make_parameters(config, 0)

    def found() -> list[object]:
        rewrite_config(tmp_path)
        engine = Engine.load(tmp_path, read_config(tmp_path)[0])
        return bits(engine.search(random_sources(config, 5), USUAL))

    for dtype in (np.float16, np.float64):
        written = []
        for kind in (dtype, np.float32):
            write_parameters(tmp_path, {k: v.astype(dtype).astype(kind) for k, v in parameters.items()})
            written.append(found())
        assert written[0] == written[1]
    raw = (tmp_path / TENSORS).read_bytes()
    length = int.from_bytes(raw[:8], "little")
    for more in (1, 2, 3):
        moved = (length + more).to_bytes(8, "little") + raw[8 : 8 + length] + b" " * more + raw[8 + length :]
        (tmp_path / TENSORS).write_bytes(moved)
        assert found() == written[1]


def test_which_models_multiply_in_whole_numbers(folder: Path, config: ModelConfig, tmp_path: Path) -> None:
    assert read_weights(folder, config).sizes[-4:] == bytes(4)
    write_model(tmp_path / "int_array")
    parameters = quantise(
        make_parameters(read_config(tmp_path / "int_array")[0]), read_config(tmp_path / "int_array")[0]
    )
    write_parameters(tmp_path / "int_array", parameters)
    rewrite_config(tmp_path / "int_array")
    assert read_weights(tmp_path / "int_array", read_config(tmp_path / "int_array")[0]).sizes[-4] == 1
    large = write_model(tmp_path / "large", d_ff=8000)
    assert read_weights(tmp_path / "large", large).sizes[-4] == 1


def test_a_damaged_model_is_refused_with_a_reason(wish: str, tmp_path: Path) -> None:
    config = write_model(tmp_path, tying="none")
    parameters = {name: value.astype(np.float32) for name, value in make_parameters(config).items()}
    parameters["enc.1.ffn.W2"][3, 4] = np.nan
    write_parameters(tmp_path, parameters)
    rewrite_config(tmp_path)
    with pytest.raises(ModelError, match="not a finite number"):
        Engine.load(tmp_path, config)
    (tmp_path / TENSORS).write_bytes((tmp_path / TENSORS).read_bytes()[:-1])
    with pytest.raises(ModelError, match="damaged"):
        Engine.load(tmp_path, config)
    (tmp_path / TENSORS).unlink()
    with pytest.raises(ModelError, match="is missing"):
        Engine.load(tmp_path, config)


def test_a_model_that_is_too_large_for_webassembly_is_refused() -> None:
    new = instances(BUILT / MODULES["wasm"])

    def small() -> Wasm:
        instance = new()
        instance.store.set_limits(memory_size=12 << 20)
        return Wasm(instance)

    with pytest.raises(ModelError, match=r"no memory is left\n +do: give the process more memory"):
        load_model(find("en-es"), read_config(find("en-es"))[0], small())


@pytest.mark.parametrize("rows", [1, 5, ROWS])
def test_no_result_depends_on_how_many_rows_share_a_step(
    engine: Engine, folder: Path, config: ModelConfig, monkeypatch: pytest.MonkeyPatch, rows: int
) -> None:
    sources = random_sources(config, 5 * ROWS)
    expected = bits([engine.search([source], USUAL)[0] for source in sources[::17]])
    monkeypatch.setattr("vidrio.engine.engine.ROWS", rows)
    few = Engine.load(folder, config)
    assert bits(few.search(sources, USUAL)[::17]) == expected
    assert few.search([], USUAL) == []


def test_impossible_questions_are_refused_with_a_reason(engine: Engine, config: ModelConfig) -> None:
    with pytest.raises(InputError, match="too long for the model"):
        engine.search([[5] * 49], USUAL)
    with pytest.raises(InputError, match="do not fit this model"):
        engine.search([[5, 1000, 3]], USUAL)
    with pytest.raises(InputError, match="do not fit this model"):
        engine.forced([([5, 3], [1000])])
    assert len(engine.search([[5, 3]], USUAL)[0]) == 2


# --- builds -----------------------------------------------------------------------------------------------------------


def test_a_build_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="VIDRIO_ENGINE is 'fast'"):
        opener("fast")
    monkeypatch.setattr("vidrio.engine.library.BUILT", tmp_path)
    for name in NATIVE:
        with pytest.raises(ConfigError, match="no build of the engine runs here"):
            opener(name)
    assert set(CHOICES) == {"auto", *NATIVE, *MODULES}
    (tmp_path / MODULES["wasm"]).write_bytes((BUILT / MODULES["wasm"]).read_bytes())
    assert not opener("auto")().shares_models  # WebAssembly, because nothing else is available
    assert native_path("plain").parent == tmp_path


IMPORTED = """
import sys
from pathlib import Path
from vidrio.engine.engine import Engine
from vidrio.hypothesis import Options
from vidrio.model.find import find
from vidrio.model.folder import read_config
folder = find("en-es")
print(Engine.load(folder, read_config(folder)[0]).search([[50, 60, 3]], Options())[0][0].ids)
heavy = {"numpy", "concurrent", "asyncio", "subprocess", "multiprocessing", "safetensors", "ziglang"} & set(sys.modules)
assert not heavy, heavy
"""


@pytest.mark.parametrize("build", ["auto", "wasm"])
def test_translating_imports_little_and_writes_nothing(build: str, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o500)
    environment = {**os.environ, WISH: build, "HOME": str(home), "XDG_CACHE_HOME": str(home), "TMPDIR": str(home)}
    done = subprocess.run([sys.executable, "-c", IMPORTED], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert not list(home.iterdir())


def test_callers_may_come_from_anywhere_while_others_leave(large: Engine) -> None:
    """Make calls of all kinds from eight threads, some of them cancelled."""
    expected: dict[int, list[object]] = {}
    sources = [(*range(40 + n, 50 + 3 * n), 3) for n in range(4)]
    options = Options(beam=2, max_length=8)
    for n, source in enumerate(sources):
        expected[n] = bits(large.search([source], options))

    def call(n: int) -> bool:
        kind, source = n % 4, sources[n % 4]
        if kind == 0:
            try:
                large.search([source] * 3, LONG, lambda: True)
            except CancelledError:
                return True
            return False
        if kind == 1:
            return len(large.forced([(source, source[:3])])[0]) == 4
        return bits(large.search([source], options)) == expected[n % 4]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(call, range(200)))
