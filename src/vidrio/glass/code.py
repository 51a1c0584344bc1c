"""The line of NumPy that makes a quantity: the code of its operation, with the names of what it is given.

It is read from the function that runs, so it cannot say anything else than what runs.
"""

import ast
import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache, lru_cache
from types import ModuleType
from typing import Any


class Name(str):
    """An argument to be shown by this name; every other one is shown as its value."""

    __slots__ = ()


@lru_cache(maxsize=4096)
def line(run: Callable[..., Any], made: str, arguments: tuple[Any, ...]) -> str:
    """`scaled = scores / math.sqrt(32)`, for a `run` with the body `scores / math.sqrt(d_head)`."""
    function = _definition(run)
    body = function.body if isinstance(function, ast.FunctionDef) else [ast.Return(function.body)]
    statements = [part for part in body if not isinstance(part, ast.Expr)]  # but for the docstring
    if not all(isinstance(part, ast.Assign | ast.Return) for part in statements):  # a loop: shown by its name
        return f"{made} = {run.__name__}({', '.join(map(str, arguments))})"
    shown = _Shown(run, function.args, arguments)
    texts = [ast.unparse(shown.visit(deepcopy(part))) for part in statements]
    return "; ".join([*texts[:-1], texts[-1].replace("return", f"{made} =", 1)])


def variable(address: str) -> str:
    """A variable's name for a quantity: `scores` of enc.0.self.scores.h1, `norm_out` of enc.0.self.norm.out."""
    parts = [part for part in address.split(".") if not part.lstrip("h").isdigit()]
    needs_more = parts[-1] in ("out", "in", "sum", "ids", "scale", "whole", "product") and len(parts) > 1
    return "_".join(parts[-2:]) if needs_more else parts[-1]


def variables(addresses: Sequence[str]) -> list[str]:
    """The same for the inputs of a quantity; where two would share a name, as heads do, they are numbered."""
    names = [variable(address) for address in addresses]
    return names if len(set(names)) == len(names) else [f"{name}_{i}" for i, name in enumerate(names)]


@cache
def _definitions(module: ModuleType) -> list[ast.Lambda | ast.FunctionDef]:
    tree = ast.parse(inspect.getsource(module))
    return [node for node in ast.walk(tree) if isinstance(node, ast.Lambda | ast.FunctionDef)]


def _definition(run: Callable[..., Any]) -> ast.Lambda | ast.FunctionDef:
    """The function in its file: at its line, and with its parameters."""
    module, code = inspect.getmodule(run), run.__code__
    assert module is not None
    parameters = code.co_varnames[: code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)]
    for node in _definitions(module):
        args = [arg.arg for arg in (*node.args.args, *filter(None, [node.args.vararg]))]
        if node.lineno == code.co_firstlineno and tuple(args) == parameters:
            return node
    raise LookupError(f"{module.__name__}, line {code.co_firstlineno}, has no function of {parameters}")


class _Shown(ast.NodeTransformer):
    """Puts the arguments in the place of the parameters."""

    def __init__(self, run: Callable[..., Any], parameters: ast.arguments, arguments: Sequence[Any]) -> None:
        given = [ast.Name(str(a), ast.Load()) if isinstance(a, Name) else ast.Constant(a) for a in arguments]
        names = [parameter.arg for parameter in parameters.args]
        made_with = inspect.getclosurevars(run).nonlocals
        self.given: dict[str, ast.expr] = {name: ast.Constant(value) for name, value in made_with.items()}
        self.given |= dict.fromkeys(names, ast.Constant(None))  # a bias that is not there
        self.given |= zip(names, given, strict=False)
        if parameters.vararg:
            self.given[parameters.vararg.arg] = ast.List([*given[len(names) :]], ast.Load())

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """`… if b is None else …`: only the case at hand."""
        match self.generic_visit(node):
            case ast.IfExp(ast.Compare(left, [ast.Is()], [ast.Constant(None)])):
                return node.body if isinstance(left, ast.Constant) else node.orelse
        return node
