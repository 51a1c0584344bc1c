"""Stores all values of a run by address.

`machine.tapped(trace.tap)` returns a machine that passes each quantity to a `Trace`, which rejects undeclared
quantities (declaration.py) and axes of the wrong length.

The command line, JSON, the page, tests and error messages all use the same addresses:

    enc.0.self.weights.h1            an entire matrix
    enc.0.self.weights.h1[1,0]       a number in the matrix, by index or by token: [world,hello]
    dec.0.self.WQ.h1[2,3]            a number in a parameter
    out.prob[0,hola]                 the probability of hola at decoding step 0
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.errors import AddressError, nearest
from vidrio.glass.declaration import stages_of
from vidrio.glass.machine import Machine
from vidrio.glass.maths import Array, Tap
from vidrio.glass.operations import Operation
from vidrio.glass.walk import take
from vidrio.glass.words import Stage

TAKEN = ("out.choice", "out.score")  # recorded after the search


@dataclass(frozen=True)
class Address:
    """A parsed address: a quantity and an index."""

    name: str
    index: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.name + (f"[{','.join(self.index)}]" if self.index else "")


_ADDRESS = re.compile(r"(?P<name>[A-Za-z][\w.]*)(?:\[(?P<index>.+)\])?", re.DOTALL)


def parse_address(text: str) -> Address:
    """Parse an address, without checking that a trace contains it."""
    match = _ADDRESS.fullmatch(text.strip())
    if match is None:
        raise AddressError(
            f"{text!r} is not an address", do="write it like enc.0.self.weights.h1[1,0] or out.prob[0,hola]"
        )
    # Split at commas outside quotes, because tokens that contain a comma or look like a number are quoted.
    index = re.findall(r'\s*"(?:[^"]|"(?!\s*(?:,|$)))*"\s*|[^,]+', match["index"] or "")
    return Address(match["name"], tuple(part.strip() for part in index))


@dataclass(repr=False)
class Trace:
    """All values of one run of a machine on a text."""

    machine: Machine
    source_tokens: Sequence[str] = ()  #: the encoder's input
    target_tokens: Sequence[str] = ()  #: the decoder's input, beginning with the start token
    chosen_tokens: Sequence[str] = ()  #: the token chosen at each step
    vocabulary: Sequence[str] = ()  #: the target vocabulary, by id
    source_vocabulary: Sequence[str] = ()
    labels: Sequence[str] = ()  #: a classifier's classes
    values: dict[str, Array] = field(default_factory=dict)  #: every quantity, by address
    sizes: dict[str, int] = field(default_factory=dict)  #: the length of each axis: S, T, D, …
    #: the values of quantities before a what-if replaced them
    computed: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        c = self.machine.config
        self.stages: Mapping[str, Stage] = stages_of(self.machine)
        self.sizes |= {"D": c.d_model, "H": c.n_heads, "K": c.d_head, "F": c.d_ff, "E": c.n_heads * c.d_head}
        self.sizes |= {"V": c.target_vocabulary, "C": c.n_classes, "P": c.max_positions}

    def __repr__(self) -> str:
        return f"Trace({len(self.values)} quantities of {' '.join(self.source_tokens or self.target_tokens)!r})"

    def tap(self, name: str, value: Array) -> Array:
        """Store a value under its address. Raises AddressError if the quantity is not declared."""
        stage = self.stages.get(name)
        if stage is None or stage.of_the_model:
            raise AddressError(f"{name} is computed but not declared", do="let the walk compute it")
        expected = tuple(
            self.sizes.setdefault(axis, length) for axis, length in zip(stage.axes, value.shape, strict=False)
        )
        if value.shape != expected or value.ndim != len(stage.axes):
            raise AddressError(f"{name} has shape {value.shape}", found=f"its axes {stage.axes} are {expected} here")
        self.values[name] = value
        return value

    def take(self, ids: Sequence[int]) -> None:
        """Store the tokens chosen by the search, and their log-probabilities."""
        with np.errstate(divide="ignore"):  # a forced token may have probability 0
            take(self.machine.tapped(self.tap), ids, self.values["out.logits"], self.values["out.prob"])

    def keep(self, found: Mapping[str, "memoryview[float]"]) -> bool:
        """Store the values of a pass that the engine computed. TAKEN is recorded later. Returns False, and stores
        nothing, if the engine's quantities differ from those of this machine."""
        names = [name for name, stage in self.stages.items() if not stage.of_the_model and name not in TAKEN]
        if found.keys() != set(names):
            return False
        self.values |= {name: np.asarray(found[name]) for name in names}
        for name in ("src.ids", "tgt.ids"):
            self.tap(name, self.values[name].astype(np.int64))
        return True

    def tap_through(self, change: Tap) -> Tap:
        """Return a tap that applies `change` to each value and stores the result."""

        def tap(name: str, value: Array) -> Array:
            changed = change(name, value)
            if changed is not value:
                self.computed[name] = value
            return self.tap(name, changed)

        return tap

    def __contains__(self, name: str) -> bool:
        return name in self.values or (name in self.stages and self.stages[name].of_the_model)

    def addresses(self, prefix: str = "") -> list[str]:
        """Return the addresses, including those of parameters, that equal `prefix` or start with `prefix.`."""
        return [name for name in self.stages if name in self and (not prefix or f"{name}.".startswith(f"{prefix}."))]

    def stage(self, name: str) -> Stage:
        """Return the declaration of a quantity. Raises AddressError, with the closest matches, for an unknown name."""
        stage = self.stages.get(name)
        if stage is None or name not in self:
            inside = self.addresses(name)
            if inside:
                shown = ", ".join(inside[:5]) + ", …" * (len(inside) > 5)
                raise AddressError(
                    f"{name} is not one quantity but {len(inside)}", found=shown, do="choose one of them"
                )
            raise AddressError(
                f"there is no {name!r} in this run",
                found=f"closest matches: {nearest(name, [n for n in self.stages if n in self])}",
                do="`vidrio look TEXT` lists all addresses",
            )
        return stage

    def array(self, name: str) -> Array:
        """Return an entire quantity or parameter as a NumPy array."""
        stage = self.stage(name)
        return self.machine.parameter(name) if stage.of_the_model else self.values[name]

    def operation(self, stage: Stage) -> Operation:
        """Return the operation that computes a quantity."""
        return self.machine.operations[stage.operation]

    def axis_tokens(self, name: str, axis: str) -> Sequence[str]:
        """Return the tokens along an axis, if it has any."""
        side = self.source_vocabulary if name.startswith("src.") else self.vocabulary
        return {"S": self.source_tokens, "T": self.target_tokens, "V": side, "C": self.labels}.get(axis, ())

    def position(self, address: Address) -> tuple[int, ...]:
        """Convert the index of an address to integers, replacing tokens with their positions. Raises AddressError for
        an index out of range."""
        array, axes = self.array(address.name), self.stage(address.name).axes
        if len(address.index) != array.ndim:
            here = Address(address.name, tuple("0" * array.ndim))
            count = f"{array.ndim} {'index' if array.ndim == 1 else 'indices'}"
            raise AddressError(
                f"{address} needs {count}, one for each of its axes {axes}",
                found=f"{len(address.index)}; its shape is {array.shape}",
                do=f"write {here}, for example",
            )
        return tuple(
            self._index(address, part, axis, length)
            for part, axis, length in zip(address.index, axes, array.shape, strict=True)
        )

    def _index(self, address: Address, part: str, axis: str, length: int) -> int:
        tokens = list(self.axis_tokens(address.name, axis)[:length])
        if re.fullmatch(r"\d+", part) and int(part) < length:
            return int(part)
        token = part[1:-1] if len(part) > 1 and part[0] == part[-1] == '"' else part
        places = [place for place, known in enumerate(tokens) if known == token]
        if len(places) == 1:
            return places[0]
        if places:
            raise AddressError(
                f"{address}: {token!r} occurs at more than one position",
                found=f"{places}",
                do="specify the position instead",
            )
        known = f"; closest tokens: {nearest(token, tokens)}" if tokens else ""
        raise AddressError(f"{address}: {part} is not on axis {axis}", found=f"0 to {length - 1}{known}")

    def number(self, address: Address) -> float:
        """Return the number at an address."""
        return float(self.array(address.name)[self.position(address)])
