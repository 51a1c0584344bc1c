"""Builds the table of a model's quantities: address, axes, formula, NumPy code, section of the paper, and inputs.

To build the table, walk.py runs on a Declaration instead of a Machine. Each call then declares a quantity instead of
computing it.
"""

import ast
import inspect
import re
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache, lru_cache
from types import ModuleType
from typing import Any

import numpy as np

from vidrio.glass.engine import INT8, Arithmetic
from vidrio.glass.machine import Machine
from vidrio.glass.operations import Operation
from vidrio.glass.walk import classify, take, translate_forced
from vidrio.glass.words import KINDS, PARAMETERS, Stage, part, without_head, words
from vidrio.model.config import ModelConfig
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import SUMMED


def stages_of(machine: Machine) -> dict[str, Stage]:
    """Return all quantities of a machine: first the parameters, then the values in the order of computation."""
    return _stages(
        machine.config, machine.arithmetic, machine.dtype, frozenset(machine.changes.items()), machine.without
    )


@lru_cache(maxsize=32)
def _stages(
    config: ModelConfig,
    arithmetic: Arithmetic,
    dtype: np.dtype[Any],
    changes: frozenset[tuple[str, Operation]],
    without: frozenset[str],
) -> dict[str, Stage]:
    operations = Machine(config, {}, arithmetic, changes=dict(changes)).operations
    g = Declaration(config, arithmetic, dtype, operations, without)
    g.declare_parameters()
    if not config.has_decoder:
        classify(g, ())
    else:
        translate_forced(g, (), ())
        take(g, (), "out.logits", "out.prob")
    return g.table


class Name(str):
    """A name that is shown in code as it is. In contrast, a plain `str` is the address of an input."""

    __slots__ = ()


@dataclass
class Declaration:
    """A substitute for a Machine. Each call declares a quantity and returns its address instead of a value."""

    config: ModelConfig
    arithmetic: Arithmetic
    dtype: np.dtype[Any]
    operations: Mapping[str, Operation]
    without: frozenset[str]
    table: dict[str, Stage] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        return self.arithmetic is INT8

    def __call__(self, address: str, operation: str, *inputs: Any, axes: str = "") -> str:
        row, names = self.operations[operation], tuple(one for one in inputs if type(one) is str)
        axes = axes or self._axes(row, names)
        return self._add(address, axes, row, names, _code(address, row, inputs))

    def row_by_row(self, address: str, operation: str, *inputs: str) -> str:
        """Declare a recurrence. Its code is a loop, and the quantity is one of its own inputs."""
        row, axes, made = self.operations[operation], self.table[inputs[0]].axes, variable(address)
        rows = (*(f"{variable(one)}[t]" for one in inputs), f"({made}[t - 1] if t else 0)")
        code = f"for t in range({axes[0]}): {line(row.run, f'{made}[t]', rows)}"
        return self._add(address, axes, row, (*inputs, address), code)

    def _add(self, address: str, axes: str, row: Operation, inputs: tuple[str, ...], code: str = "") -> str:
        assert address not in self.table, address
        formula = _written(row.formula.plain, " + b", row, inputs)
        latex = _written(row.formula.latex, "+b", row, inputs)
        place, says = words(address, axes)
        place, says = row.formula.place or place, row.formula.says or says
        kind = KINDS.get(row.name, "value")
        self.table[address] = Stage(address, axes, row.name, inputs, formula, latex, place, says, kind, code)
        return address

    def _axes(self, row: Operation, inputs: Sequence[str]) -> str:
        """Infer the axes from the operation's index letters: with ik,kj->ij, inputs TD and DK give TK."""
        wanted, made = row.cell.indices.split("->")
        axis: dict[str, str] = {}
        for letters, name in zip(wanted.split(","), inputs, strict=False):
            own = self.table[name].axes
            axis |= zip(letters if len(letters) == len(own) else letters.replace("i", ""), own, strict=True)
        # A single row has no i. A softmax keeps the columns that it sums over. Concatenated heads have axis E.
        axis = {"i": "", "j": axis.get("k", "E")} | axis
        return "".join(axis[letter] for letter in made)

    def given(self, address: str, operation: str, ids: Sequence[int], *inputs: str, axes: str = "") -> str:
        row = self.operations[operation]
        return self._add(address, axes or self._axes(row, inputs), row, inputs)

    def count(self, ids: str) -> Name:
        return Name(self.table[ids].axes)

    def parameter(self, address: str) -> str:
        return address

    @property
    def seen(self) -> int:
        return 0

    def all_rows(self, address: str, make: Callable[[], str], *, grow: bool) -> str:
        return make()

    def declare_parameters(self) -> None:
        for name, (axes, _) in parameter_specs(self.config).items():
            letter = name.rpartition(".")[2]
            for head in [f".h{h}" for h in range(self.config.n_heads)] if axes[0] == "H" else [""]:
                address, own = name + head, axes.removeprefix("H")
                place, says = PARAMETERS.get(".".join(name.split(".")[-2:])) or PARAMETERS[letter]
                self.table[address] = Stage(address, own, "parameter", (), letter, letter, place, says, "parameter")
                if self.whole and axes in SUMMED:
                    of, whole = ("rows", "table") if axes == "VD" else ("columns", "by_columns")
                    scale = self(part(address, "scale"), f"scale_of_weight_{of}", address)
                    self(part(address, "whole"), f"whole_{whole}", address, scale)


def _written(text: str, plus: str, row: Operation, inputs: Sequence[str]) -> str:
    """Fill in a formula: <0> and <1> become inputs, <W> the letter of the weight, and <b> the bias if there is one."""
    for i, name in enumerate(inputs):
        text = text.replace(f"<{i}>", name)
    W = 2 if row.name == "restore" else 1  # index of the weight, which is followed by its bias
    if "<W>" in text:
        letter = without_head(inputs[W])[0].removesuffix(".whole").removesuffix(".scale").rpartition(".")[2]
        text = text.replace("<W>", letter)
    return text.replace("<b>", plus if len(inputs) > W + 1 else "")


def _code(address: str, row: Operation, inputs: Sequence[Any]) -> str:
    """Return the NumPy code that computes a quantity, with inputs as variables and constants as literals."""
    short = iter(variables([one for one in inputs if type(one) is str]))
    shown = [
        next(short) if type(one) is str else repr(one.name) if isinstance(one, np.dtype) else one for one in inputs
    ]
    return line(row.run, variable(address), tuple(map(str, shown)))


# --- NumPy code, derived from the source code of the operation --------------------------------------------------------


@lru_cache(maxsize=4096)
def line(run: Callable[..., Any], made: str, arguments: tuple[str, ...]) -> str:
    """Return the body of `run` with its arguments filled in. For example, `scores / math.sqrt(d_head)` becomes
    `scaled = scores / math.sqrt(32)`."""
    statements, parameters = _statements(sys.modules[run.__module__], run.__code__.co_firstlineno)
    if not statements:
        return f"{made} = {run.__name__}({', '.join(arguments)})"
    given = _given(run, parameters, arguments)
    *texts, last = (MARKED.sub(lambda name: given.get(name[1], name[1]), text) for text in statements)
    if branches := BRANCHES.fullmatch(last):  # keep the branch that is taken
        last = f"return {branches[1] if branches[2] == 'None' else branches[3]}"
    return "; ".join([*texts, last.replace("return", f"{made} =", 1)])


MARKED = re.compile("«(.+?)»")  # a name that may have to be replaced
BRANCHES = re.compile(r"return (.+) if (\w+) is None else (.+)")


@cache
def _statements(module: ModuleType, number: int) -> tuple[list[str], ast.arguments]:
    """Return the statements of the function that starts at a line, with names marked as «name», and its parameters.

    If the body contains anything but assignments and returns, e.g. a loop, the list of statements is empty.
    """
    function = deepcopy(_definitions(module)[number])
    body = function.body if isinstance(function, ast.FunctionDef) else [ast.Return(function.body)]
    statements = [part for part in body if not isinstance(part, ast.Expr)]  # without the docstring
    if not all(isinstance(part, ast.Assign | ast.Return) for part in statements):
        return [], function.args
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
            node.id = f"«{node.id}»"
    return [ast.unparse(part) for part in statements], function.args


def _given(run: Callable[..., Any], parameters: ast.arguments, arguments: tuple[str, ...]) -> dict[str, str]:
    """Map a function's parameters and closure variables to the text that replaces them."""
    names = [parameter.arg for parameter in parameters.args]
    given = {name: repr(value) for name, value in inspect.getclosurevars(run).nonlocals.items()}
    given |= dict.fromkeys(names, "None")  # a missing bias
    given |= zip(names, arguments, strict=False)
    if parameters.vararg:
        given[parameters.vararg.arg] = f"[{', '.join(arguments[len(names) :])}]"
    return given


def variable(address: str) -> str:
    """Return a variable name for a quantity: `scores` for enc.0.self.scores.h1, `norm_out` for enc.0.self.norm.out."""
    parts = [part for part in address.split(".") if not part.lstrip("h").isdigit()]
    needs_more = parts[-1] in ("out", "in", "sum", "ids", "scale", "whole", "product") and len(parts) > 1
    return "_".join(parts[-2:]) if needs_more else parts[-1]


def variables(addresses: Sequence[str]) -> list[str]:
    """Return variable names for the inputs of a quantity, numbered if two would otherwise be equal, as for heads."""
    names = [variable(address) for address in addresses]
    return names if len(set(names)) == len(names) else [f"{name}_{i}" for i, name in enumerate(names)]


_PARSING = threading.Lock()  # before Python 3.11.8, concurrent parsing may fail with SystemError


@cache
def _definitions(module: ModuleType) -> dict[int, ast.Lambda | ast.FunctionDef]:
    """Return the functions in a module, keyed by line number."""
    with _PARSING:
        tree = ast.parse(inspect.getsource(module))
    return {node.lineno: node for node in ast.walk(tree) if isinstance(node, ast.Lambda | ast.FunctionDef)}
