"""Test the rules that keep the code small, layered and safe. CONTRIBUTING.md explains the rules."""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from source import (
    PACKAGE,
    REPOSITORY,
    circle,
    count_parameters,
    functions,
    import_graph,
    imports_of,
    libraries_imported_by,
    module_name,
    nodes_of,
    source_files,
)
from vidrio import errors

# The packages, lowest first. A file may import from its own package and from those above it in this list. The rule
# includes imports inside functions and for types. The longest name that matches a file determines its package.
ROOMS = (
    "_version",
    "errors",
    "model",
    "text.fold",
    "text.tokens",
    "text",
    "hypothesis",
    "search",
    "engine",
    "glass",
    "translate",
    "documents",
    "data",
    "wide",
    "score",
    "learn",
    "interop",
    "look",
    "lessons",
    "serve",
    "site",
    "commands",
    "cli",
    "__main__",
    "__init__",  # provides `vidrio.load`; no file imports it
)
AT_THE_ROOT = {"__init__", "__main__", "_version", "cli", "errors", "hypothesis", "search"}

# Pairs of packages that check each other. Their agreement is evidence only if neither imports the other.
STRANGERS = (("glass", "learn"), ("engine", "learn"))

# The packages that may import each library.
LIBRARIES = {
    "numpy": (
        *("model", "search", "engine", "glass", "translate", "data", "wide", "score", "learn"),
        *("interop", "look", "lessons", "serve", "site", "commands"),
    ),
    "click": ("lessons", "serve", "commands", "cli"),
    "tokenizers": ("text.tokens", "site.classes"),
    "js": ("engine.browser",),  # JavaScript, from Python in the browser
    "pyodide": ("engine.browser",),
    "safetensors": ("model", "learn", "interop", "look", "serve"),
    "ctranslate2": ("interop",),
    "huggingface_hub": ("interop",),
    "sentencex": ("text",),
    "sentencepiece": ("interop",),
    "google": ("interop",),
    "wasmtime": ("engine",),
    "torch": ("learn", "interop"),
    "sacrebleu": ("score",),
    "pyarrow": ("wide",),
    "ray": ("wide",),
    "filelock": ("data", "serve"),
    "fastapi": ("serve",),
    "python_multipart": ("serve",),
    "pydantic": ("serve",),
    "starlette": ("serve",),
    "uvicorn": ("serve",),
    "py3langid": ("serve",),
    "justhtml": ("documents",),
    "markdown_it": ("documents", "lessons"),
}

MAX_LINES = 400
MAX_PARAMETERS = 6

# In the browser, these modules replace libraries.
STAND_INS = {"site.browser.tokenizers", "site.browser.safetensors.numpy"}
IN_THE_BROWSER = {"vidrio.engine.browser", "vidrio.glass.browser", "vidrio.site.answering"}

# The modules that may write JSON. All others call `model.json_text`, which handles NaN.
JSON_WRITERS = {"model.json_text", *STAND_INS}


# --- packages and imports ---------------------------------------------------------------------------------------------


def within(name: str, room: str) -> bool:
    return name == room or name.startswith(f"{room}.")


def height(name: str) -> int | None:
    """Return the index in ROOMS of the longest name that matches the file."""
    rooms = [room for room in ROOMS if within(name, room)]
    return ROOMS.index(max(rooms, key=len)) if rooms else None


def imports_upwards(graph: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Return the imports that break the order of ROOMS, as (file, imported file)."""
    heights = {name: number for name in graph if (number := height(name)) is not None}
    return {
        (name, other)
        for name, others in graph.items()
        for other in others
        if name in heights and other in heights and heights[other] > heights[name]
    }


def test_every_file_has_a_room() -> None:
    graph = import_graph()
    homeless = [name for name, imported in graph.items() if height(name) is None and imported]
    empty = [room for room in ROOMS if not any(within(name, room) for name in graph)]
    assert not homeless, "move it into a package in ROOMS, or add its package"
    assert not empty, "this package has no files"


def test_no_file_lies_at_the_root_that_belongs_to_a_room() -> None:
    assert {path.stem for path in PACKAGE.glob("*.py")} == AT_THE_ROOT


def test_the_init_of_a_room_imports_nothing() -> None:
    inits = [path for path in PACKAGE.rglob("*/__init__.py") if path.parent != PACKAGE]
    assert not [str(path.relative_to(PACKAGE)) for path in inits if list(imports_of(nodes_of(path)))]


def test_imports_go_down_only() -> None:
    wrong = imports_upwards(import_graph())
    assert not wrong, "\n".join(f"{name} imports {other}, which is further up" for name, other in sorted(wrong))


def test_no_files_import_each_other_in_a_circle() -> None:
    assert not circle(import_graph())


def test_imports_are_found_wherever_they_stand(tmp_path: Path) -> None:
    package = tmp_path / "vidrio"
    (package / "model").mkdir(parents=True)
    files = {
        "cli": "from vidrio.model import a",
        "model/a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vidrio.model.b import B",
        "model/b": "def late():\n    import vidrio.model.c",
        "model/c": "from vidrio.cli import main",
    }
    for name, code in files.items():
        (package / f"{name}.py").write_text(code, encoding="utf-8")
    graph = import_graph(package)
    assert set(circle(graph)) == set(graph) == {"cli", "model.a", "model.b", "model.c"}
    assert imports_upwards(graph) == {("model.c", "cli")}


def test_strangers_never_import_each_other() -> None:
    imports = [{name.split(".")[0], other.split(".")[0]} for name, all_ in import_graph().items() for other in all_]
    assert not [pair for pair in STRANGERS if set(pair) in imports]


def test_each_library_is_imported_only_where_it_belongs() -> None:
    assert not [
        f"{name} imports {library}"
        for name, path in ((module_name(path), path) for path in source_files())
        for library in libraries_imported_by(nodes_of(path)) - {"vidrio"} - sys.stdlib_module_names
        if not any(within(name, room) for room in LIBRARIES.get(library, ()))
    ]


def test_everything_but_learning_can_be_imported_on_a_light_install() -> None:
    names = [f"vidrio.{module_name(path)}".removesuffix(".__init__") for path in source_files()]
    light = [name for name in names if not {"learn", "__main__"} & set(name.split(".")) and name not in IN_THE_BROWSER]
    code = "import sys, importlib\n"
    code += "sys.modules.update(dict.fromkeys(['torch', 'sacrebleu']))\n"
    code += f"for name in {light!r}: importlib.import_module(name)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


# --- size -------------------------------------------------------------------------------------------------------------


def test_no_file_is_long() -> None:
    lines = {str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines()) for path in source_files()}
    assert not {name: count for name, count in lines.items() if count > MAX_LINES}, "split them"


def test_no_function_takes_many_parameters() -> None:
    many = {name for name, function in functions() if count_parameters(function) > MAX_PARAMETERS}
    assert not many, "pass what belongs together as one frozen object"


def test_json_is_written_by_one_function() -> None:
    writers = {
        module_name(path)
        for path in source_files()
        for node in nodes_of(path)
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("json.dumps", "json.dump")
    }
    assert writers <= JSON_WRITERS, "write it with model.json_text"


# --- safety -----------------------------------------------------------------------------------------------------------


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


def unsafe(nodes: Sequence[ast.AST]) -> Iterator[str]:
    """Yield imports and calls that could run foreign code when a file is read."""
    for name in imports_of(nodes):
        if name.split(".")[0] in UNSAFE_MODULES:
            yield f"import {name}"
    for node in nodes:
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        given = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        if called in ("eval", "exec", "compile", "__import__", "os.system", "os.popen"):
            yield called
        if called == "torch.load" and given.get("weights_only") != "True":
            yield "torch.load without weights_only=True"
        if given.get("allow_pickle") == "True" or given.get("shell") == "True":
            yield ast.unparse(node)


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import pickle", 1),
        ("from pickle import loads", 1),
        ("eval('1')", 1),
        ("torch.load(f)", 1),
        ("torch.load(f, weights_only=False)", 1),
        ("torch.load(f, weights_only=True); model.eval(); re.compile('x')", 0),
        ("np.load(f, allow_pickle=True)", 1),
        ("subprocess.run(line, shell=True)", 1),
    ],
)
def test_the_search_for_unsafe_code_finds_it(code: str, found: int) -> None:
    assert len(list(unsafe(list(ast.walk(ast.parse(code)))))) == found


def test_nothing_runs_code_that_came_with_data() -> None:
    assert not [f"{path.relative_to(REPOSITORY)}: {what}" for path in source_files() for what in unsafe(nodes_of(path))]


# --- errors -----------------------------------------------------------------------------------------------------------


def errors_expected_by(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the errors whose message a test reads: `pytest.raises(E, match=…)` or `pytest.raises(E) as caught`."""
    for item in (item for node in nodes if isinstance(node, ast.With) for item in node.items):
        call = item.context_expr
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "pytest.raises" and call.args:
            kinds = call.args[0].elts if isinstance(call.args[0], ast.Tuple) else [call.args[0]]
            if item.optional_vars or any(keyword.arg == "match" for keyword in call.keywords):
                yield from (ast.unparse(kind).rpartition(".")[2] for kind in kinds)


def test_every_error_is_raised_and_provoked_by_a_test_that_reads_its_message() -> None:
    calls = (node for path in source_files() for node in nodes_of(path) if isinstance(node, ast.Call))
    called = {ast.unparse(call.func).rpartition(".")[2] for call in calls}
    kinds = {kind.__name__ for kind in errors.VidrioError.__subclasses__()}
    assert kinds - called == set(), "nothing raises these"
    tests = [path for path in REPOSITORY.glob("tests/**/test_*.py") if path.name != Path(__file__).name]
    expected = {name for path in tests for name in errors_expected_by(nodes_of(path))}
    assert kinds - expected == set(), "no test provokes these and reads the message"
