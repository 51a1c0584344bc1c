"""The package's source: its functions, and its imports, including those in functions and for type checking."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
PACKAGE = REPOSITORY / "src" / "vidrio"

Function = ast.FunctionDef | ast.AsyncFunctionDef


@cache
def syntax_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


@cache
def nodes_of(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(syntax_of(path)))


@cache
def source_files() -> tuple[Path, ...]:
    return tuple(sorted(PACKAGE.rglob("*.py")))


def module_name(path: Path, package: Path = PACKAGE) -> str:
    """Return a name such as `glass.maths`. A folder's `__init__` has the folder's name, the package's is `__init__`."""
    parts = path.relative_to(package).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)


def imports_of(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield every name that a file imports: modules, and their members as `module.name`."""
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None, "relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def libraries_imported_by(nodes: Iterable[ast.AST]) -> set[str]:
    return {name.split(".")[0] for name in imports_of(nodes)}


@cache
def import_graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    """Map each file to the files that it imports. `from vidrio.model import config` imports `model.config`."""
    files = {module_name(path, package): nodes_of(path) for path in sorted(package.rglob("*.py"))}
    return {name: set(_files_imported(nodes, files)) - {name} for name, nodes in files.items()}


def _files_imported(nodes: Iterable[ast.AST], known: Mapping[str, object]) -> Iterator[str]:
    for full in imports_of(nodes):
        root, _, name = full.partition(".")
        if root == PACKAGE.name:
            inner = name.rpartition(".")[0]
            yield name if name in known else inner if inner in known else "__init__"


def circle(graph: Mapping[str, Iterable[str]]) -> list[str]:
    """Return the files of an import cycle, if there is one."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as found:
        return list(found.args[1])
    return []


def functions() -> Iterator[tuple[str, Function]]:
    """Yield every function with its full name, such as `commands.look.show` or `glass.trace.Trace.tap`."""
    for path in source_files():
        yield from _functions_in(syntax_of(path), module_name(path))


def _functions_in(node: ast.AST, owner: str) -> Iterator[tuple[str, Function]]:
    for child in ast.iter_child_nodes(node):
        named = isinstance(child, Function | ast.ClassDef)
        name = f"{owner}.{child.name}" if isinstance(child, Function | ast.ClassDef) else owner
        if isinstance(child, Function):
            yield name, child
        yield from _functions_in(child, name if named else owner)


def count_parameters(function: Function) -> int:
    """Count the parameters without `self` and `cls`. `*args` and `**kwargs` count as one each."""
    given = function.args
    names = [argument.arg for argument in (*given.posonlyargs, *given.args, *given.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"])) + bool(given.vararg) + bool(given.kwarg)
