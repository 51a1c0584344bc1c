"""Test that every build of the engine computes the same bits, whatever the processor."""

import base64
import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import wasmtime

import chromium
from engine_cases import EngineRequest, bits, case, random_asked, random_case, random_model
from vidrio.engine import build
from vidrio.engine.engine import Engine, as_struct, load_model
from vidrio.engine.library import BUILT, NEEDED, Library, Native, Wasm, supports
from vidrio.engine.wasm import instances
from vidrio.engine.weights import read_weights
from vidrio.hypothesis import Options, default_options
from vidrio.model.find import find
from vidrio.model.folder import read_config
from vidrio.text.tokens.tokenizer import Tokenizer

REPOSITORY = Path(__file__).resolve().parent.parent
SENTENCES = [
    "Where is the station?",
    "The committee has not yet decided whether the old bridge over the river should be repaired or replaced next year.",
    "Hello world",
    "I didn't know that she had already left; nobody told me, and her phone was off all day.",
    "Yes.",
    "3 + 4 = 7, they say.",
]


@pytest.fixture(scope="session")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Callable[[], Library]]:
    """Return a function that opens it for each build that runs here. Compile those that are not shipped."""
    found = dict[str, Callable[[], Library]]()
    for name in build.WEBASSEMBLY:
        new = instances(BUILT / name)
        found[name] = lambda new=new: Wasm(new())
    for name in filter(build.here, build.NATIVE):
        kind = name.rpartition("-")[2].partition(".")[0]
        if kind == "plain" or supports(kind):
            folder = BUILT
            if name not in build.SHIPPED:
                folder = tmp_path_factory.mktemp("built")
                build.compile_to(folder, name)
            library = Native(folder / name)
            found[name] = lambda library=library: library
    assert len(found) >= 3
    return found


# The compiler's names of instruction sets that have other names in /proc/cpuinfo.
CALLED = {
    **{"BMI": "bmi1", "LZCNT": "abm", "SSE3": "pni", "AVX512VNNI": "avx512_vnni", "LAHF_SAHF": "lahf_lm"},
    **{"GCC_HAVE_SYNC_COMPARE_AND_SWAP_16": "cx16", "CRC32": "sse4_2"},
}


@pytest.mark.parametrize("kind", NEEDED)
def test_a_build_runs_only_where_the_processor_has_all_that_the_compiler_may_use(kind: str) -> None:
    def macros(kind: str) -> set[str]:
        options = build.NATIVE[f"linux-x86_64-{kind}.so"]
        command = [sys.executable, "-m", "ziglang", "cc", "-target", *options, "-E", "-dM", "-x", "c", os.devnull]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        return {line.split()[1].strip("_") for line in printed.splitlines() if line.endswith(" 1")}

    used = {CALLED.get(name, name.lower()) for name in macros(kind) - macros("plain")}
    assert len(used) > 10
    assert used == NEEDED[kind]


def results(engine: Engine, has_decoder: bool, asked: list[EngineRequest]) -> list[object]:
    """Return hypotheses, scores, attention and every quantity of a forward pass."""
    if not has_decoder:
        classes = engine.classify([a.source for a in asked])
        return [classes, *({k: v.tobytes() for k, v in engine.quantities(a.source).items()} for a in asked)]
    found: list[object] = []
    for a in asked:
        found += bits(engine.search([a.source], a.options, shortlists=[a.shortlist]))
        pair = (a.source, a.options.prefix)
        found += engine.forced([pair])
        found.append({k: v.tobytes() for k, v in engine.quantities(*pair).items()})
    return found


def test_all_builds_compute_the_same_bits_with_models_of_all_kinds(
    builds: dict[str, Callable[[], Library]], tmp_path: Path
) -> None:
    for seed in range(16):
        config = random_model(tmp_path / str(seed), seed)
        asked = random_asked(config, seed, 3)
        found = {}
        for name, open_library in builds.items():
            engine = Engine(partial(load_model, tmp_path / str(seed), config, open_library()), 1)
            found[name] = results(engine, config.has_decoder, asked)
        first, *others = found
        assert found[first], seed
        for name in others:
            assert found[name] == found[first], (seed, name, first, config)


@pytest.mark.parametrize("model", ["en-es", "es-en"])
def test_all_builds_translate_the_same_with_the_packaged_models(
    builds: dict[str, Callable[[], Library]], model: str
) -> None:
    folder = find(model)
    config, _ = read_config(folder)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    sources = [(*tokenizer.encode(sentence), config.special.end) for sentence in SENTENCES]
    found = {}
    for name, open_library in builds.items():
        engine = Engine(partial(load_model, folder, config, open_library()), 1)
        usual = default_options(config)
        found[name] = [*bits(engine.search(sources, usual)), *bits(engine.search(sources[:3], Options(beam=1)))]
    first, *others = found.values()
    assert all(other == first for other in others)


@pytest.mark.parametrize("name", [*build.WEBASSEMBLY, *build.SUMS])
def test_every_module_has_what_a_browser_reads_when_it_opens_one(name: str) -> None:
    """engine/browser.py opens all three modules in the same way."""
    module = wasmtime.Module(wasmtime.Engine(), (BUILT / name).read_bytes())
    assert {"memory", "malloc", "free", "_initialize", "__stack_pointer"} <= {each.name for each in module.exports}


def test_the_builds_that_are_shipped_are_those_recorded_with_their_source() -> None:
    """`make engine` records the checksums. A slow test and a release also compile the source and compare the bytes."""
    assert (BUILT / build.RECORD).read_text("utf-8") == build.record(), "make engine, and commit what changed"


def test_the_record_changes_with_a_build_the_source_and_the_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = build.record().splitlines()

    def different(folder: Path = BUILT) -> list[str]:
        pairs = zip(build.record(folder).splitlines(), usual, strict=True)
        return [line.split()[1] for line, before in pairs if line != before]

    shutil.copytree(BUILT, tmp_path / "built")
    assert different(tmp_path / "built") == []
    with (tmp_path / "built" / "glass.wasm").open("ab") as file:
        file.write(b"\0")
    assert different(tmp_path / "built") == ["glass.wasm"]
    shutil.copytree(build.SOURCE, tmp_path / "c")
    with monkeypatch.context() as patch:
        patch.setattr(build, "SOURCE", tmp_path / "c")
        assert different() == []
        (tmp_path / "c" / "maths.c").write_text("", "utf-8")
        assert different() == ["source"]
    monkeypatch.setattr(build, "FLAGS", [*build.FLAGS, "-DX"])
    assert different() == ["source"]


@pytest.mark.slow
@pytest.mark.parametrize("name", build.SHIPPED)
def test_the_builds_that_are_shipped_are_made_of_the_source(name: str, tmp_path: Path) -> None:
    build.compile_to(tmp_path, name)
    made, shipped = (tmp_path / name).read_bytes(), (BUILT / name).read_bytes()
    assert made == shipped, "make engine, and commit what changed"
    assert str(REPOSITORY).encode() not in made


@pytest.mark.parametrize("name", [*build.WEBASSEMBLY, *build.SUMS])
def test_the_modules_import_nothing(name: str) -> None:
    module = wasmtime.Module.from_file(wasmtime.Engine(), str(BUILT / name))
    assert not module.imports, "a page would have to supply what is imported"


@pytest.mark.slow
@pytest.mark.parametrize("name", build.NATIVE)
def test_every_native_build_can_be_made_here(name: str, tmp_path: Path) -> None:
    build.compile_to(tmp_path, name)
    made = (tmp_path / name).read_bytes()
    magic = {"so": b"\x7fELF", "dylib": b"\xcf\xfa\xed\xfe", "dll": b"MZ"}[name.rpartition(".")[2]]
    assert made.startswith(magic)
    assert b"search_run" in made
    assert str(REPOSITORY).encode() not in made
    assert str(tmp_path).encode() not in made
    assert os.listdir(tmp_path) == [name]


def driver(path: Path, *flags: str) -> Path:
    """Compile tests/engine_driver.c with the engine's own compiler."""
    command = [sys.executable, "-m", "ziglang", "cc", *flags, *build.FLAGS, f"-I{build.SOURCE}", "-o", str(path)]
    subprocess.run([*command, str(REPOSITORY / "tests" / "engine_driver.c"), "-lm"], check=True, timeout=300)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("features", ["", "+dotprod"])
def test_arm_computes_the_same_bits(tmp_path: Path, features: str) -> None:
    emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if not emulator:
        pytest.skip("there is no qemu-aarch64: apt install qemu-user")
    cases = b"".join(random_case(tmp_path / str(seed), seed) for seed in range(60))
    config, _ = read_config(find("en-es"))
    asked = [EngineRequest((10 + n, 200, 31 * n + 7, 3), Options(beam=1 + n, n_best=1)) for n in range(4)]
    cases += case(read_weights(find("en-es"), config), asked) + struct.pack("<i", 0)
    here = driver(tmp_path / "here")
    there = driver(tmp_path / "there", "-target", "aarch64-linux-musl", f"-mcpu=generic{features}")
    ran = [
        subprocess.run(command, input=cases, capture_output=True, check=True, timeout=900).stdout
        for command in ([str(here)], [emulator, str(there)])
    ]
    assert len(ran[0]) > 1_000_000
    assert ran[0] == ran[1]


@pytest.mark.slow
def test_chromium_computes_the_same_bits(builds: dict[str, Callable[[], Library]], tmp_path: Path) -> None:
    folder = find("en-es")
    config, _ = read_config(folder)
    tokenizer = Tokenizer.load(folder / "tokenizer.json")
    lines = (REPOSITORY / "docs" / "training.md").read_text("utf-8").split("\n")
    texts = [line for line in lines if 20 < len(line) < 200][: 60 - len(SENTENCES)] + SENTENCES
    sources = [(*tokenizer.encode(text), config.special.end) for text in texts]
    weights, options = read_weights(folder, config), Options(beam=4, max_length=100)
    names = list(build.WEBASSEMBLY)
    given = {
        "modules": [(BUILT / name).read_bytes() for name in names],
        **{"sizes": weights.sizes, "tensors": weights.tensors, "data": weights.data},
        **{"options": as_struct(options), "sentences": sources},
    }
    text = json.dumps(given, default=lambda data: base64.b64encode(data).decode())
    script = (REPOSITORY / "tests" / "engine_page.js").read_text("utf-8")
    page = tmp_path / "page.html"
    page.write_text(f"<body></body><script>const given = {text};\n{script}</script>", encoding="utf-8")
    opened = chromium.open_page(page)
    found = json.loads(opened.dom.partition("<body>")[2].partition("</body>")[0])
    engine = Engine(partial(load_model, folder, config, builds[names[0]]()), 1)
    for module in found:
        assert len(module) == len(sources) == 60
        for (ids, log_probs), [best] in zip(module, engine.search(sources, options), strict=True):
            assert tuple(ids[: len(best.ids)]) == best.ids
            assert struct.pack(f"<{len(log_probs)}i", *log_probs) == struct.pack(
                f"<{len(log_probs)}f", *best.token_log_probs
            )
