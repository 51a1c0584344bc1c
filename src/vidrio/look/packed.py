"""The numbers of a run, packed for a page that must do without the model: small, and to the last bit.

A quantity is stored as it is, or as the rule that makes it from others, if that rule gives the very same bits: sums
of two numbers, products, quotients and square roots have one right answer, whoever computes them. Whether a rule does
is tried here, on the numbers themselves; where it does not, they are stored.

Parameters go in whole layers, the first layers of both sides before the others, until there is no room; the rest is
named as left out.
"""

import math
import re
import zlib
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from typing import Any

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.look.patterns import Node, Pattern

LARGE = 1 << 16  # numbers of a table that is not packed whole
LEVEL = 1  # of the compression; more takes longer and gives 1 %
STORED: dict[str, Any] = {"i1": np.int8, "i2": np.int16, "i4": np.int32, "f4": np.float32, "f8": np.float64}

LAYER = re.compile(r"(enc|dec)\.\d+(?=\.)")

_ONE: Node = ["num", 1.0, ""]


def in_its_own_order(trace: Trace, stage: Stage) -> Iterator[Pattern]:
    """How the eight-bit arithmetic rounds on the way (glass/paper/eight_bits.py), where the formula does not tell.
    `f4` rounds to float32 in the middle of float64."""
    x: Node = ["in", 0]
    match stage.operation:
        case "restore":
            y: Node = ["/", ["*", x, ["/", _ONE, ["in", 1]]], ["in", 2]]
            bias = ["+", y, ["in", 3]]
            yield Pattern(stage.inputs, "ij,i,j,j->ij", bias if len(stage.inputs) > 3 else y)
        case "lookup_whole":
            yield Pattern(stage.inputs, "pj,i,p->ij", ["*", x, ["/", _ONE, ["in", 2]]])
        case "normalise":
            gain = f"{stage.address.rpartition('.')[0]}.gain"
            epsilon = ["num", float(np.float32(trace.machine.config.norm_epsilon)), "ε"]
            root = ["f4", ["sqrt", ["f4", ["+", ["in", 2], epsilon]]]]
            stretch = ["f4", ["*", ["f4", ["/", _ONE, root]], ["in", 3]]]
            make = ["*", ["f4", ["-", x, ["in", 1]]], ["/", stretch, ["in", 3]]]
            yield Pattern((*stage.inputs, gain), "ij,i,i,j->ij", make)
        case "rows_dot_rows":
            scaled = stage.address.replace(".scores.", ".scaled.")
            divisor = float(trace.machine.score_divisor)
            yield Pattern((scaled,), "ij->ij", ["*", x, ["num", divisor, "√K"]])


def scales(trace: Trace, name: str) -> tuple[str, str, Array] | None:
    """Of a parameter that is stored in eight bits: its whole numbers, along which letters it has scales, and these."""
    table, dot, head = name.rpartition(".h")
    stem, end = (table, dot + head) if head.isdigit() else (name, "")
    whole = f"{stem}.whole{end}"
    if whole not in trace.stages or whole not in trace:
        return None
    by = "ij,i->ij" if trace.stages[whole].operation == "whole_table" else "ij,j->ij"
    numbers, parameter = trace.array(whole), trace.array(name)
    if by == "ij,i->ij":
        numbers, parameter = numbers.T, parameter.T
    largest, columns = np.abs(numbers).argmax(0), np.arange(numbers.shape[1])
    with np.errstate(all="ignore"):
        near = parameter[largest, columns] / numbers[largest, columns]
    best: Array = near
    for scale in (near, *(np.nextafter(near, near.dtype.type(way)) for way in (np.inf, -np.inf))):
        # The product was rounded, so its quotient may be the neighbour.
        best = np.where(np.all(numbers * scale == parameter, axis=0), scale, best)
    return (whole, by, best) if np.all(numbers * best == parameter) else None


# --- rules -----------------------------------------------------------------------------------------------------------

_TWO = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}
_ONE_NUMBER = {"sqrt": np.sqrt, "round": np.rint}


def made_by(pattern: Pattern, arrays: Sequence[Array], like: Array, precision: Any) -> Array | None:
    """The whole quantity by a rule, each step rounded to a precision; None where the rule is not of the kind that has
    one right answer. page/src/lib/unpack.ts does the same."""
    inputs, made = pattern.indices.split("->")
    axes_of = inputs.split(",")

    def value(node: Node) -> Array:
        match node:
            case ["in", int(slot)]:
                return _spread(arrays[slot].astype(precision), axes_of[slot], made, arrays[1:2])
            case ["num", constant, _]:
                return np.asarray(float(constant), precision)
            case ["max0", inside]:
                return np.maximum(value(inside), precision(0))
            case ["f4", inside]:
                return value(inside).astype(np.float32).astype(precision)
            case ["seen", inside, constant]:
                below = np.tri(like.shape[0], like.shape[1]) == 1
                return np.where(below, value(inside), value(constant))
            case ["part"]:
                return np.concatenate(arrays, axis=1)
            case [str(function), inside] if function in _ONE_NUMBER:
                return np.asarray(_ONE_NUMBER[function](value(inside)))
            case [str(sign), first, *rest] if sign in _TWO:
                result = value(first)
                for other in rest:
                    result = _TWO[sign](result, value(other))
                return result
        raise NotImplementedError

    try:
        with np.errstate(all="ignore"):
            made_whole = value(pattern.make)[: len(like)]  # a table of positions is longer than a text
            return np.broadcast_to(made_whole, like.shape).astype(like.dtype)
    except NotImplementedError:
        return None


def _spread(array: Array, axes: str, made: str, picks: Sequence[Array]) -> Array:
    """An input with an axis for each letter of what is made; p is the number that the second input holds."""
    if "p" in axes:
        array, axes = array[picks[0].astype(np.int64)], axes.replace("p", "i")
    return array[tuple(slice(None) if letter in axes else None for letter in made)]


def rule_of(trace: Trace, stage: Stage, pattern: Pattern | None, here: Mapping[str, Any]) -> dict[str, Any] | None:
    """A rule that makes just these bits from quantities that are here."""
    array = trace.array(stage.address)
    for rule in (*in_its_own_order(trace, stage), *([pattern] if pattern and stage.kind == "value" else [])):
        axes = rule.indices.partition("->")[0].split(",")
        if not all(_is_here(here.get(name), of) for name, of in zip_longest(rule.inputs, axes[: len(rule.inputs)])):
            continue
        arrays = [trace.array(name) for name in rule.inputs]
        for precision in dict.fromkeys((array.dtype.type, np.float64)):
            again = made_by(rule, arrays, array, precision)
            if again is not None and again.tobytes() == array.tobytes():
                return _as_data(rule, precision)
    return None


def _as_data(rule: Pattern, precision: object) -> dict[str, Any]:
    width = "f4" if precision is np.float32 else "f8"
    return {"of": list(rule.inputs), "by": rule.indices, "make": rule.make, "in": width}


def _is_here(entry: Mapping[str, Any] | None, axes: str | None) -> bool:
    """Of a table of which only some rows are here, these must be asked for."""
    return entry is not None and ("rows" not in entry or "p" in (axes or ""))


# --- packing ---------------------------------------------------------------------------------------------------------


class Part:
    """Numbers that are deflated together, kind by kind."""

    def __init__(self) -> None:
        self.kept: dict[str, list[Array]] = {kind: [] for kind in STORED}
        self.entries: dict[str, dict[str, Any]] = {}

    def keep(self, name: str, array: Array) -> None:
        kind, numbers = _small(array)
        self.entries[name] = {**_about(array), "kind": kind, "at": sum(map(len, self.kept[kind]))}
        self.kept[kind].append(numbers)


@dataclass
class Packed:
    """Quantities by address, and the numbers themselves in parts that are each read as a whole."""

    quantities: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)  # deflated
    directory: list[dict[str, int]] = field(default_factory=list)  # of each part: how many numbers of which kind
    left_out: list[str] = field(default_factory=list)

    def add(self, part: Part, room: float = math.inf) -> bool:
        """One part more, if there is room for it."""
        small = zlib.compress(b"".join(map(_planes, part.kept.values())), LEVEL)
        if sum(map(len, self.parts)) + len(small) > room:
            return False
        for entry in part.entries.values():
            if "kind" in entry:
                entry["part"] = len(self.parts)
        self.quantities |= part.entries
        self.directory.append({kind: sum(map(len, arrays)) for kind, arrays in part.kept.items()})
        self.parts.append(small)
        return True


def packed(trace: Trace, patterns: Mapping[str, Pattern], room: int, tokens: Sequence[int] = ()) -> Packed:
    """The run's numbers, all of them, and as many parameters as go into `room` bytes; of a large table only the rows
    of `tokens`."""
    pack = Packed()
    if not trace.values:
        return pack
    of_the_model = [name for name in trace.addresses() if trace.stages[name].of_the_model]
    matrices = [name for name in of_the_model if trace.array(name).ndim == 2]
    tables = [name for name in matrices if not LAYER.match(name) and trace.array(name).size > LARGE]
    layers: dict[str, list[str]] = {}
    for name in matrices:
        if match := LAYER.match(name):
            layers.setdefault(match[0], []).append(name)
    apart = {*tables, *chain(*layers.values())}
    few = [name for name in of_the_model if name not in apart]
    pack.add(_part(pack, trace, patterns, few))
    for table in tables:
        pack.add(_part(pack, trace, patterns, [table], sorted(set(tokens))))
    pack.add(_part(pack, trace, patterns, trace.values))
    for layer in sorted(layers, key=lambda name: not name.endswith(".0")):
        if pack.left_out or not pack.add(_part(pack, trace, patterns, layers[layer]), room):
            pack.left_out += layers[layer]
    return pack


def _part(
    pack: Packed, trace: Trace, patterns: Mapping[str, Pattern], names: Iterable[str], rows: Sequence[int] = ()
) -> Part:
    """Quantities, or some rows of each, stored or by a rule that makes them from what is here."""
    part = Part()
    for name in _rules_last(trace, names):
        array, stage = trace.array(name), trace.stages[name]
        if stage.kind == "parameter" and (in_eight_bits := scales(trace, name)) is not None:
            whole, by, scale = in_eight_bits
            part.keep(f"{name}:scale", scale[rows] if rows and by == "ij,i->ij" else scale)
            times_scale = Pattern([whole, f"{name}:scale"], by, ["*", ["in", 0], ["in", 1]])
            rule: dict[str, Any] | None = _as_data(times_scale, np.float32)
        else:
            rule = rule_of(trace, stage, patterns.get(name), ChainMap(part.entries, pack.quantities))
        if rule:
            part.entries[name] = {**_about(array), "rule": rule}
        else:
            part.keep(name, array[rows] if rows else array)
        if rows:
            part.entries[name] |= {**_about(array), "rows": rows}
    return part


def _rules_last(trace: Trace, names: Iterable[str]) -> list[str]:
    """Whole numbers and scaled scores before what is made from them."""
    order = {"constant": 0, "parameter": 1}
    scores = "rows_dot_rows"
    return sorted(names, key=lambda n: (trace.stages[n].operation == scores, order.get(trace.stages[n].kind, 2)))


def _about(array: Array) -> dict[str, Any]:
    return {"shape": list(array.shape), "type": array.dtype.str[1:]}


def _small(array: Array) -> tuple[str, Array]:
    """The same numbers in as few bytes as hold them."""
    flat = np.ravel(array)
    if flat.size and np.all(flat == np.rint(flat)) and not np.any(np.signbit(flat) & (flat == 0)):
        largest = float(np.abs(flat).max())
        for kind in ("i1", "i2", "i4"):
            if largest <= np.iinfo(STORED[kind]).max:
                return kind, flat.astype(STORED[kind])
    kind = "f4" if flat.dtype in (np.float16, np.float32) else "f8"
    return kind, flat.astype(STORED[kind])


def _planes(arrays: Sequence[Array]) -> bytes:
    """All first bytes, then all second bytes, and so on: alike stands beside alike."""
    if not arrays:
        return b""
    numbers = np.concatenate(arrays)
    return numbers.view(np.uint8).reshape(len(numbers), -1).T.tobytes()


# --- as text ---------------------------------------------------------------------------------------------------------

_DIGITS = np.frombuffer(bytes(126 if code == ord("<") else code for code in range(40, 125)), np.uint8)


def as_text(part: bytes) -> str:
    """Bytes as text that stands in a page: four bytes are five digits to base 85, none the sign that begins a tag."""
    numbers = np.frombuffer(part + bytes(-len(part) % 4), ">u4").astype(np.uint32)
    digits = np.empty((len(numbers), 5), np.uint32)
    for column in range(4, -1, -1):
        numbers, digits[:, column] = np.divmod(numbers, 85)
    return _DIGITS[digits].tobytes().decode("ascii")
