"""The rules that keep the code small, layered and safe, checked by reading it. CONTRIBUTING.md tells them in words."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from vidrio import errors

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "src" / "vidrio"

# Imports go up this table only; parts on one line may import each other.
LAYERS = (
    ("errors",),
    ("model", "text"),
    ("glass", "search"),
    ("data",),
    ("fast",),
    ("translate", "score", "look", "draw", "learn"),
    ("lessons",),
    ("commands",),
    ("cli", "__main__"),
)

# Their agreement means something only while they share nothing.
STRANGERS = (("glass", "learn"), ("fast", "learn"))

# Where each library may be imported; "*" is anywhere that is not start-up.
LIBRARIES = {
    "numpy": ("*",),
    "click": ("cli", "commands", "lessons"),
    "rich": ("commands", "learn", "data"),
    "tokenizers": ("text",),
    "safetensors": ("model", "learn"),
    "ctranslate2": ("fast",),
    "torch": ("learn",),
    "sacrebleu": ("score",),
    "zstandard": ("data",),
    "pyarrow": ("data",),
    "datasets": ("data",),
    "filelock": ("data",),
}
START_UP = ("__init__", "__main__", "cli", "errors")

MOST_LINES = 400
# A longer file needs a reason: its path under src/vidrio, and why it is one idea and not two.
LONG_FILES: dict[str, str] = {}


@cache
def syntax_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def source_files() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def part_of(path: Path) -> str:
    """The file or folder right under src/vidrio that `path` belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports_of(tree: ast.AST) -> Iterator[str]:
    """Every module that is imported anywhere in a file, inside functions too, by its full name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module == "vidrio":
            yield from (f"vidrio.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "relative import"
            yield node.module


def parts_imported_by(path: Path) -> set[str]:
    names = (name.split(".") for name in imports_of(syntax_of(path)) if name.startswith("vidrio."))
    return {name[1] for name in names if not name[1].startswith("__") or name[1] == "__main__"}


def libraries_imported_by(path: Path) -> set[str]:
    roots = {name.split(".")[0] for name in imports_of(syntax_of(path))}
    return roots - {"vidrio"} - sys.stdlib_module_names


def test_every_part_has_a_layer() -> None:
    layered = {part for layer in LAYERS for part in layer}
    found = {part_of(path) for path in source_files()} - {"__init__"}
    assert found <= layered, "give the new part a line in LAYERS"


def test_imports_go_down_only() -> None:
    height = {part: number for number, layer in enumerate(LAYERS) for part in layer}
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports vidrio.{part}"
        for path in source_files()
        if (here := part_of(path)) != "__init__"  # the package itself offers names of any layer, and imports them late
        for part in parts_imported_by(path)
        if height.get(part, 0) > height.get(here, 0) and (here, part) != ("glass", "draw")  # a trace draws itself
    ]
    assert not wrong


@pytest.mark.parametrize(("one", "other"), STRANGERS)
def test_strangers_never_import_each_other(one: str, other: str) -> None:
    wrong = [
        f"{path.relative_to(REPOSITORY)} imports vidrio.{part}"
        for path in source_files()
        for part in parts_imported_by(path)
        if {part_of(path), part} == {one, other}
    ]
    assert not wrong


def test_each_library_is_imported_only_where_it_belongs() -> None:
    wrong = []
    for path in source_files():
        here = part_of(path)
        for library in libraries_imported_by(path):
            where = LIBRARIES.get(library, ())
            if not (here in where or ("*" in where and here not in START_UP)):
                wrong.append(f"{path.relative_to(REPOSITORY)} imports {library}")
    assert not wrong


def test_everything_but_learning_can_be_imported_on_a_light_install() -> None:
    names = [".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts) for path in source_files()]
    light = [name.removesuffix(".__init__") for name in names if ".learn" not in name and "__main__" not in name]
    code = "import sys, importlib\n"
    code += "sys.modules.update(dict.fromkeys(['torch', 'sacrebleu', 'zstandard']))\n"
    code += f"for name in {light!r}: importlib.import_module(name)\n"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_no_file_is_long_without_a_reason() -> None:
    lines = {str(path.relative_to(PACKAGE)): len(path.read_text("utf-8").splitlines()) for path in source_files()}
    long = {name: count for name, count in lines.items() if count > MOST_LINES}
    assert set(long) == set(LONG_FILES), f"split {long}, or argue in LONG_FILES; remove entries that are short again"
    assert all(len(reason) > 40 for reason in LONG_FILES.values())


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve", "joblib"}


def unsafe(tree: ast.AST) -> Iterator[str]:
    """What could run somebody else's code when a file is read."""
    for name in imports_of(tree):
        if name.split(".")[0] in UNSAFE_MODULES:
            yield f"import {name}"
    for node in ast.walk(tree):
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
    assert len(list(unsafe(ast.parse(code)))) == found


def test_nothing_runs_code_that_came_with_data() -> None:
    assert not [
        f"{path.relative_to(REPOSITORY)}: {what}" for path in source_files() for what in unsafe(syntax_of(path))
    ]


def error_classes() -> list[str]:
    defined = (node for path in source_files() for node in ast.walk(syntax_of(path)) if isinstance(node, ast.ClassDef))
    known = {"VidrioError"}
    for node in defined:
        if known & {ast.unparse(base).rpartition(".")[2] for base in node.bases}:
            known.add(node.name)
    return sorted(known - {"VidrioError"})


def test_the_errors_are_found() -> None:
    assert {kind.__name__ for kind in errors.VidrioError.__subclasses__()} <= set(error_classes())


@pytest.mark.parametrize("name", error_classes())
def test_every_error_is_raised_and_tested(name: str) -> None:
    raised = [
        path
        for path in source_files()
        for node in ast.walk(syntax_of(path))
        if isinstance(node, ast.Call) and ast.unparse(node.func).rpartition(".")[2] == name
    ]
    assert raised, f"nothing raises {name}"
    tests = [path for path in REPOSITORY.glob("tests/**/*.py") if path.name != Path(__file__).name]
    assert any(re.search(rf"\b{name}\b", path.read_text("utf-8")) for path in tests), f"no test names {name}"


@cache
def text_files() -> tuple[Path, ...]:
    """What git tracks, less what is not text; in a copy without git, what a copy brings."""
    if shutil.which("git") and (REPOSITORY / ".git").exists():
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=REPOSITORY, capture_output=True, check=True)
        paths = [REPOSITORY / name for name in listed.stdout.decode().split("\0") if name]
    else:
        folders = ("src", "tests", "docs", "benchmarks", ".ci")
        paths = [path for folder in folders for path in (REPOSITORY / folder).rglob("*")] + list(REPOSITORY.glob("*"))
        paths = [path for path in paths if "__pycache__" not in path.parts]
    return tuple(path for path in paths if path.is_file() and b"\0" not in path.read_bytes()[:8000])


def is_written_by_hand(path: Path) -> bool:
    """Data have their own rules: a tab parts the columns of a .tsv, a blank may be what is tested."""
    data = "data" in path.parts or "golden" in path.parts or "behaviour" in path.parts
    return not data and path.suffix not in {".tsv", ".txt", ".jsonl", ".json"} and path.name != "LICENSE"


def machine_paths() -> re.Pattern[str]:
    """Absolute paths that mean something on one machine only: this checkout's, and anybody's home."""
    common = {
        "",
        "/",
        "tmp",
        "usr",
        "etc",
        "dev",
        "var",
        "opt",
        "mnt",
        "home",
        "Users",
        "root",
        "private",
        "srv",
        "bin",
    }
    root = REPOSITORY.parts[1] if len(REPOSITORY.parts) > 1 else ""
    own = [str(REPOSITORY), str(Path.home())] + ([f"/{root}"] if root not in common else [])
    folders = "|".join(re.escape(path) for path in own if path.count("/") and len(path) > 1)
    return re.compile(rf"(?<![\w.~)}}>-])(?:(?:{folders})(?![\w-])|/(?:home|Users)/\w|[A-Z]:\\Users)")


def test_the_search_for_machine_paths_finds_them() -> None:
    search = machine_paths().search
    assert search(f"read {REPOSITORY}/notes.txt")
    assert search("see " + "/home" + "/ana/notes.txt")
    assert not search("https://example.org/home/ana, docs/homework.md and src/vidrio/home/x")


def test_no_file_names_a_path_of_one_machine() -> None:
    pattern = machine_paths()
    found = [
        f"{path.relative_to(REPOSITORY)}:{number}: {line.strip()[:100]}"
        for path in text_files()
        if path.stat().st_size < 2_000_000
        for number, line in enumerate(path.read_text("utf-8", errors="replace").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found


def test_text_files_are_clean() -> None:
    problems = []
    for path in filter(is_written_by_hand, text_files()):
        name, raw = path.relative_to(REPOSITORY), path.read_bytes()
        text = raw.decode("utf-8")
        if b"\r" in raw or raw.startswith(b"\xef\xbb\xbf"):
            problems.append(f"{name} has Windows line ends or a byte-order mark")
        if text and (not text.endswith("\n") or text.endswith("\n\n")):
            problems.append(f"{name} does not end with one line end")
        for number, line in enumerate(text.splitlines(), 1):
            if line != line.rstrip():
                problems.append(f"{name}:{number} ends in white space")
            if "\t" in line and path.name != "Makefile":
                problems.append(f"{name}:{number} has a tab")
    assert not problems


def pins() -> dict[str, str]:
    lines = (REPOSITORY / "constraints.txt").read_text("utf-8").splitlines()
    matches = [
        re.fullmatch(r"([A-Za-z0-9._-]+)==([0-9][0-9a-z.]*)", line) for line in lines if not line.startswith("#")
    ]
    assert all(matches), "constraints.txt holds comments and name==version, no place, no local version"
    return {canonicalize_name(match[1]): match[2] for match in matches if match}


def test_every_requirement_is_pinned_with_all_that_it_requires() -> None:
    project = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]
    waiting = [Requirement(line) for line in project["dependencies"]]
    waiting += [Requirement(line) for extra in project["optional-dependencies"].values() for line in extra]
    pinned, seen, problems = pins(), set[str](), []
    while waiting:
        requirement = waiting.pop()
        name = canonicalize_name(requirement.name)
        if name not in pinned:
            problems.append(f"{requirement} is not pinned")
        elif not requirement.specifier.contains(pinned[name], prereleases=True):
            problems.append(f"{requirement} is pinned to {pinned[name]}")
        if name not in seen:
            seen.add(name)
            further = [Requirement(line) for line in importlib.metadata.requires(name) or []]
            waiting += [need for need in further if need.marker is None or need.marker.evaluate({"extra": ""})]
    assert not problems
    assert set(pinned) == seen, "run `make pins`"


def test_a_missing_extra_can_be_named() -> None:
    from vidrio.cli import EXTRAS

    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        assert library in {Requirement(line).name for line in extras[extra]}


@pytest.mark.parametrize("command", ["ruff check --output-format concise", "ruff format --check", "mypy"])
def test_style_and_types(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=REPOSITORY, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
