"""Records out of JSON that anybody may have written: every entry has the type of its field, or is refused.

JSON has one kind of number, and none of its sizes end: 256.0 and true are no whole numbers here, and what no float can
hold is no number. What a value may be beyond its type (how large, which words) the record itself knows.
"""

import math
import types
from dataclasses import MISSING, fields, is_dataclass
from functools import cache
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from vidrio.model.json_text import encodable

T = TypeVar("T")

LARGEST_WHOLE = 1 << 53  # beyond it other readers of JSON round
SHOWN = 40  # characters of a value, in a message


def record(kind: type[T], data: Any) -> T:
    """`data` as a record of this kind; TypeError with every problem at once if it is none."""
    if not isinstance(data, dict):
        raise TypeError(f"a JSON {type(data).__name__}, not an object")
    (hints, needed), values = entries(kind), {}  # type: ignore[arg-type]
    problems = [f"{shown(name)} is not an entry of it" for name in data if name not in hints]
    problems += [f"{name} is missing" for name in needed if name not in data]
    for name in filter(data.__contains__, hints):
        try:
            values[name] = fitted(hints[name], data[name])
        except TypeError as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise TypeError("; ".join(problems[:12]))
    return kind(**values)


@cache
def entries(kind: type) -> tuple[dict[str, Any], list[str]]:
    """What a record holds, with its types; and those without which there is none."""
    needed = [f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING]
    return get_type_hints(kind), needed


def fitted(hint: Any, value: Any) -> Any:
    """The value, if it has this type; records and what lists and objects hold are looked into."""
    if hint in (int, str) and has_type(hint, value):  # nearly all are, and what follows takes ten times as long
        return value
    inner = get_args(hint)
    if get_origin(hint) in (Union, types.UnionType):
        [hint] = [option for option in inner if option is not types.NoneType]
        return None if value is None else fitted(hint, value)
    if is_dataclass(hint):
        return record(hint, value)  # type: ignore[arg-type]
    if get_origin(hint) is list and isinstance(value, list):
        return [fitted(inner[0], part) for part in value]
    if get_origin(hint) is dict and isinstance(value, dict):
        return {fitted(str, name): fitted(inner[1], part) for name, part in value.items()}
    if hint is not Any and not has_type(hint, value):
        raise TypeError(f"{shown(value)} is not {NAMES[get_origin(hint) or hint]}")
    return value


NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a text of whole characters",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}


def has_type(hint: Any, value: Any) -> bool:
    """Whether JSON's value is one of Python's plain types."""
    if hint is float:
        return type(value) in (int, float) and abs(value) <= LARGEST_FLOAT and not math.isnan(value)
    if hint is int:
        return type(value) is int and abs(value) <= LARGEST_WHOLE
    return type(value) is hint and (hint is not str or encodable(value))


LARGEST_FLOAT = 1.7e308


def shown(value: Any) -> str:
    """A value for a message: the beginning of a long one."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of too many digits
        text = f"a {type(value).__name__}"
    text = text if encodable(text) else ascii(value)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
