"""Records out of JSON that anybody may have written: every entry has the type of its field, or is refused.

256.0 and true are no whole numbers here. What a value may be beyond its type (how large, which words) the record
itself knows.
"""

import reprlib
from dataclasses import is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}

shown = reprlib.repr  # a value for a message, a long one shortened


def record(kind: type[T], data: Any) -> T:
    """`data` as a record of this kind; TypeError if it is none."""
    hints, values = get_type_hints(kind), {}
    for name, value in fitted(dict[str, Any], data).items():
        if name not in hints:
            raise TypeError(f"{shown(name)} is not an entry of it")
        try:
            values[name] = fitted(hints[name], value)
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    return kind(**values)  # a TypeError of Python's own names what is missing


def fitted(hint: Any, value: Any) -> Any:
    """The value, if it has this type, and what lists and objects hold has theirs."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if is_dataclass(kind):
        return record(kind, value)  # type: ignore[arg-type]
    if kind is not Any and not has_type(kind, value):
        raise TypeError(f"{shown(value)} is not {NAMES[kind]}")
    for part in value if kind is list else value.values() if kind is dict else ():
        fitted(inner[-1], part)
    return value


def has_type(kind: type, value: Any) -> bool:
    if kind is float:
        return type(value) in (int, float) and abs(value) < 1e308  # NaN is not
    return type(value) is kind
