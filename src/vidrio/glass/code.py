"""The line of NumPy that makes a quantity: the code of its operation, with the names of what it is given.

It is read from the function that runs, so it cannot say anything else than what runs.
"""

import ast
import inspect
from collections.abc import Callable, Sequence
from copy import deepcopy
from functools import cache, lru_cache
from types import CodeType, ModuleType
from typing import Any


class Name(str):
    """An argument to be shown by this name; every other one is shown as its value."""

    __slots__ = ()


@lru_cache(maxsize=4096)
def line(run: Callable[..., Any], made: str, arguments: tuple[Any, ...]) -> str:
    """`scaled = scores / math.sqrt(32)`, for a `run` with the body `scores / math.sqrt(d_head)`."""
    function = _definition(inspect.getmodule(run), run.__code__)
    body = function.body if isinstance(function, ast.FunctionDef) else [ast.Return(function.body)]
    statements = [part for part in body if not _is_docstring(part)]
    if not all(isinstance(part, ast.Assign | ast.Return) for part in statements):  # a loop: shown by its name
        return f"{made} = {run.__name__}({', '.join(map(str, arguments))})"
    shown = _Shown(_by_parameter(function.args, arguments) | _constants(run))
    return "; ".join(ast.unparse(shown.visit(_as_assignment(part, made))) for part in statements)


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


def _definition(module: ModuleType | None, code: CodeType) -> ast.Lambda | ast.FunctionDef:
    """The function in its file: at its line, and with its parameters."""
    assert module is not None
    parameters = code.co_varnames[: code.co_argcount + bool(code.co_flags & inspect.CO_VARARGS)]
    for node in _definitions(module):
        args = [arg.arg for arg in (*node.args.args, *filter(None, [node.args.vararg]))]
        if node.lineno == code.co_firstlineno and tuple(args) == parameters:
            return node
    raise LookupError(f"{module.__name__}, line {code.co_firstlineno}, has no function of {parameters}")


def _by_parameter(parameters: ast.arguments, arguments: Sequence[Any]) -> dict[str, ast.expr]:
    names = [parameter.arg for parameter in parameters.args]
    given: dict[str, ast.expr] = dict.fromkeys(names, ast.Constant(None))  # a bias that is not there
    given |= zip(names, map(_expression, arguments), strict=False)
    if parameters.vararg:
        given[parameters.vararg.arg] = ast.List([_expression(one) for one in arguments[len(names) :]], ast.Load())
    return given


def _constants(run: Callable[..., Any]) -> dict[str, ast.expr]:
    """What the function was made with."""
    return {name: ast.Constant(value) for name, value in inspect.getclosurevars(run).nonlocals.items()}


def _expression(argument: Any) -> ast.expr:
    return ast.Name(str(argument), ast.Load()) if isinstance(argument, Name) else ast.Constant(argument)


def _is_docstring(part: ast.stmt) -> bool:
    return isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant)


def _as_assignment(part: ast.stmt, made: str) -> ast.stmt:
    if isinstance(part, ast.Return) and part.value is not None:
        part = ast.Assign([ast.Name(made, ast.Store())], part.value, lineno=0)
    return deepcopy(part)


class _Shown(ast.NodeTransformer):
    """Puts the arguments in the place of the parameters."""

    def __init__(self, given: dict[str, ast.expr]) -> None:
        self.given = given

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.given.get(node.id, node) if isinstance(node.ctx, ast.Load) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """`… if b is None else …`: only the case at hand."""
        match self.generic_visit(node):
            case ast.IfExp(ast.Compare(ast.Constant(None), [ast.Is()], [ast.Constant(None)])):
                return node.body
            case ast.IfExp(ast.Compare(_, [ast.Is()], [ast.Constant(None)])):
                return node.orelse
        return node

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """0 + S is S."""
        match self.generic_visit(node):
            case ast.BinOp(ast.Constant(0), ast.Add(), right):
                return right
        return node
