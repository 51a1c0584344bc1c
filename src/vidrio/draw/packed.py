"""The numbers of a run, packed for a page that must do without the model: small, and to the last bit.

A quantity is stored as it is, or as the rule that makes it from others, if that rule gives the very same bits: sums
of two numbers, products, quotients and square roots have one right answer, whoever computes them, and so have sums of
whole numbers. Whether a rule does is tried here, on the numbers themselves; where it does not, they are stored.

Parameters go in whole layers, the first layers of both sides before the others, as long as there is room; what has none
is named as left out.
"""

import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array
from vidrio.look.patterns import Node, Pattern

LARGE = 1 << 16  # numbers of a table that is not packed whole
LEVEL = 1  # of the compression; more takes longer and gives 1 %
MOST_SUMMED = 127  # whole numbers up to here: their sums of products stay below 2**53, so every order gives the same
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
            case ["dot", int(a), int(b)] if _whole(arrays[a]) and _whole(arrays[b]):
                left, right = arrays[a].astype(np.float64), arrays[b].astype(np.float64)
                total: Array = left @ (right if axes_of[b].endswith(made[-1]) else right.T)
                return total.astype(precision)
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


def _whole(array: Array) -> bool:
    return array.size > 0 and bool(np.all(np.abs(array) <= MOST_SUMMED) and np.all(array == np.rint(array)))


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
            if again is not None and _bits(again) == _bits(array):
                width = "f4" if precision is np.float32 else "f8"
                return {"of": list(rule.inputs), "by": rule.indices, "make": rule.make, "in": width}
    return None


def _is_here(entry: Mapping[str, Any] | None, axes: str | None) -> bool:
    """Of a table of which only some rows are here, these must be asked for."""
    return entry is not None and ("rows" not in entry or "p" in (axes or ""))


def _bits(array: Array) -> bytes:
    return np.ascontiguousarray(array).tobytes()


# --- packing ---------------------------------------------------------------------------------------------------------


Stored = tuple[list[str], list[str], dict[str, list[str]]]  # see _stored


@dataclass
class Packed:
    """Quantities by address, and the numbers themselves in parts that are each read as a whole."""

    quantities: dict[str, dict[str, Any]] = field(default_factory=dict)
    parts: list[bytes] = field(default_factory=list)  # deflated
    directory: list[dict[str, int]] = field(default_factory=list)  # of each part: how many numbers of which kind
    left_out: list[str] = field(default_factory=list)

    @property
    def size(self) -> int:
        return sum(map(len, self.parts))


def packed(trace: Trace, patterns: Mapping[str, Pattern], room: int, tokens: Sequence[int] = ()) -> Packed:
    """The run's numbers, all of them, and as many parameters as go into `room` bytes; of a large table only the rows
    of `tokens`."""
    if not trace.values:
        return Packed()
    stored = _stored(trace)
    first = [layer for layer in stored[2] if layer.endswith(".0")]
    pack = Packed()
    for layers in (first[:count] for count in range(len(first), -1, -1)):
        pack = _packed(trace, patterns, stored, layers, room, tokens)
        if pack.size <= room:
            break  # else the run's own numbers need the room of a layer
    pack.left_out.sort(key=list(trace.stages).index)
    return pack


def _packed(
    trace: Trace,
    patterns: Mapping[str, Pattern],
    stored: Stored,
    first: Sequence[str],
    room: int,
    tokens: Sequence[int],
) -> Packed:
    pack = Packed()
    few, tables, layers = stored
    _add(pack, trace, patterns, few)
    for table in tables:
        _add(pack, trace, patterns, [table], rows=sorted(set(tokens)))
    for layer in first:
        _add(pack, trace, patterns, layers[layer], room // len(first) // 2)
    _add(pack, trace, patterns, list(trace.values))
    for step, then in enumerate(trace.steps):  # each computed by itself, so each by itself here too
        _add_step(pack, then, step)
    for layer, names in layers.items():
        if layer not in first:
            _add(pack, trace, patterns, names, room - pack.size)
    return pack


def _stored(trace: Trace) -> Stored:
    """What is known before there is a text: vectors and small matrices; large tables; the matrices of each layer."""
    few, tables, layers = [], [], {}  # type: ignore[var-annotated]
    for name in (name for name in trace.addresses() if trace.stages[name].of_the_model):
        layer, array = LAYER.match(name), trace.array(name)
        if array.ndim < 2:
            few.append(name)
        elif layer:
            layers.setdefault(layer[0], []).append(name)
        else:
            (tables if array.size > LARGE else few).append(name)
    return few, tables, layers


def _add(
    pack: Packed,
    trace: Trace,
    patterns: Mapping[str, Pattern],
    names: Sequence[str],
    room: int | None = None,
    rows: Sequence[int] = (),
) -> None:
    """One part more, if there is room for it; of a table only some rows."""
    kinds: dict[str, list[Array]] = {kind: [] for kind in STORED}
    entries: dict[str, dict[str, Any]] = {}
    counts = dict.fromkeys(STORED, 0)

    def keep(array: Array) -> dict[str, Any]:
        kind, kept = _small(array)
        place = {"part": len(pack.parts), "kind": kind, "at": counts[kind]}
        counts[kind] += kept.size
        kinds[kind].append(kept)
        return {**_about(array), **place}

    for name in _rules_last(trace, names):
        array, stage = trace.array(name), trace.stages[name]
        rule = rule_of(trace, stage, patterns.get(name), {**pack.quantities, **entries})
        if stage.kind == "parameter" and (in_eight_bits := scales(trace, name)) is not None:
            whole, by, scale = in_eight_bits
            entries[f"{name}:scale"] = keep(scale[rows] if rows and by == "ij,i->ij" else scale)
            rule = {"of": [whole, f"{name}:scale"], "by": by, "make": ["*", ["in", 0], ["in", 1]], "in": "f4"}
        entry = {**_about(array), "rule": rule} if rule else keep(array[rows] if rows else array)
        entries[name] = {**entry, **_about(array), "rows": rows} if rows else entry
    small = zlib.compress(b"".join(_planes(kinds[kind]) for kind in STORED), LEVEL)
    if room is not None and len(small) > room:
        pack.left_out += names
        return
    pack.parts.append(small)
    pack.directory.append(counts)
    pack.quantities |= entries


def _add_step(pack: Packed, then: Trace, step: int) -> None:
    """The decoder's numbers as they were at one step."""
    arrays = [(name, array) for name, array in then.values.items() if "T" in then.stages[name].axes]
    entries = {}
    at = 0
    for name, array in arrays:
        entries[f"{name}@{step}"] = {**_about(array), "part": len(pack.parts), "kind": "f8", "at": at}
        at += array.size
    numbers = [np.ravel(array).astype(np.float64) for _, array in arrays]
    pack.parts.append(zlib.compress(_planes(numbers), LEVEL))
    pack.directory.append({**dict.fromkeys(STORED, 0), "f8": at})
    pack.quantities |= entries


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
    if flat.dtype == np.float16:
        return "f4", flat.astype(np.float32)
    return ("f4", flat) if flat.dtype == np.float32 else ("f8", flat.astype(np.float64))


def _planes(arrays: Sequence[Array]) -> bytes:
    """All first bytes, then all second bytes, and so on: alike stands beside alike."""
    if not arrays:
        return b""
    numbers = np.concatenate(arrays)
    return np.ascontiguousarray(numbers.view(np.uint8).reshape(len(numbers), -1).T).tobytes()


# --- as text ---------------------------------------------------------------------------------------------------------

_DIGITS = np.frombuffer(bytes(126 if code == ord("<") else code for code in range(40, 125)), np.uint8)


def as_text(part: bytes) -> str:
    """Bytes as text that stands in a page: four bytes are five digits to base 85, none the sign that begins a tag."""
    numbers = np.frombuffer(part + bytes(-len(part) % 4), ">u4").astype(np.uint32)
    digits = np.empty((len(numbers), 5), np.uint32)
    for column in range(4, -1, -1):
        numbers, digits[:, column] = np.divmod(numbers, 85)
    return _DIGITS[digits].tobytes().decode("ascii")
