"""Create dataclasses from untrusted JSON. Types must match exactly: 256.0 and true are not accepted as integers."""

import reprlib
from dataclasses import is_dataclass
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

T = TypeVar("T")

NAMES = {
    int: "an integer",
    float: "a number",
    str: "a string",
    bool: "true or false",
    list: "a list",
    dict: "an object",
}

shown = reprlib.repr  # shortens values for messages


def record(kind: type[T], data: Any) -> T:
    """Convert `data` to an object of this class. Raises TypeError if the fields or types do not match."""
    hints = get_type_hints(kind)
    for name, value in fitted(dict[str, Any], data).items():
        if name not in hints:
            raise TypeError(f"{shown(name)} is not a known field")
        try:
            data = {**data, name: fitted(hints[name], value)}
        except TypeError as error:
            raise TypeError(f"{name}: {error}") from None
    return kind(**data)  # raises a TypeError that lists missing entries


def fitted(hint: Any, value: Any) -> Any:
    """Return the value if it and its parts have this type; otherwise, raise TypeError."""
    kind, inner = get_origin(hint) or hint, get_args(hint)
    if is_dataclass(kind):
        return record(kind, value)  # type: ignore[arg-type]
    is_number = kind is float and type(value) in (int, float) and abs(value) < 1e308  # excludes NaN
    if not (kind is Any or is_number or (kind is not float and type(value) is kind)):
        raise TypeError(f"{shown(value)} is not {NAMES[kind]}")
    for part in value if kind is list else value.values() if kind is dict else ():
        fitted(inner[-1], part)
    return value
