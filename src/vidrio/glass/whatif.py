"""A what-if is a list of changes to a machine.

    whatif = parse([("without", "layer-norm"), ("softmax", "naive")], before)  # `before`: a trace of the machine
    machine = whatif.apply(machine)  # running it gives `after`
    compare(before, after, whatif)  # compared.py

Each change calls a function from `changes.py`, which replaces operations or parameters of the machine, or edits numbers
as they are computed. Addresses and tokens in a change refer to the run without changes.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from vidrio.errors import AddressError, ConfigError, VidrioError, nearest
from vidrio.glass import changes
from vidrio.glass.engine import FLOAT, INT8
from vidrio.glass.machine import Machine
from vidrio.glass.maths import Array
from vidrio.glass.operations import Operation
from vidrio.glass.trace import Address, Trace, parse_address
from vidrio.glass.words import Stage, without_head
from vidrio.hypothesis import HeadOff, Hidden, Interventions


@dataclass(frozen=True)
class Change:
    """A single change and its description."""

    says: str
    make: Callable[[Machine], Machine] = lambda machine: machine
    reaches: Callable[[Trace], bool] = lambda after: True  # whether the changed run contains the numbers to edit
    option: str = ""  # the option as requested, e.g. --softmax naive
    interventions: Interventions | None = None  # equivalent interventions in the engine, if there are any


@dataclass(frozen=True)
class WhatIf:
    """Several changes, applied in order."""

    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    @property
    def interventions(self) -> Interventions | None:
        """Equivalent interventions in the engine, or None if the engine cannot make every change."""
        each = [change.interventions for change in self.changes]
        return None if None in each else tuple(one for some in each for one in some or ())

    def apply(self, machine: Machine) -> Machine:
        """Return a machine with all changes applied."""
        for change in self.changes:
            machine = change.make(machine)
        return machine


def parse(wanted: Sequence[tuple[str, str]], before: Trace) -> WhatIf:
    """Parse changes given as pairs such as ("without", "layer-norm") or ("set", "enc.0.self.WQ.h1[2,3]=0.5").

    If any changes are impossible, a single ConfigError lists all of them.
    """
    made, problems = [], []
    for option, words in wanted:
        try:
            made.append(replace(_change(option, words, before), option=f"--{option} {words}"))
        except VidrioError as error:
            problems.append(f"--{option} {words}: {error.what}" + (f" ({error.found})" if error.found else ""))
    hidden = {one.row for change in made for one in change.interventions or () if isinstance(one, Hidden)}
    if hidden and len(hidden) == len(before.source_tokens):
        problems.append("--hide: every source position is hidden (attention needs at least one)")
    if problems:
        raise ConfigError(
            "these changes cannot be made",
            found="\n         ".join(problems),
            do="correct or remove the changes listed",
        )
    return WhatIf(tuple(made))


# --- named changes ----------------------------------------------------------------------------------------------------


def _row(name: str, row: Operation | None = None) -> Callable[[Machine], Machine]:
    return partial(changes.with_row, name=name, row=row)


_POSITIONS = {
    "sinusoidal": "alternating sines and cosines, §3.5",
    "sinusoidal-halves": "all sines, then all cosines",
    "sinusoidal-marian": "all sines, then all cosines, with Marian's longer wavelengths",
    "none": "zeros are added to the embeddings",
    "seed": "the mistake in the worked example: the column index instead of the pair index",
}
CHOICES = {
    "softmax": {
        "naive": Change("softmax exactly as in the formula: exp(x) / Σ exp(x)", _row("softmax", changes.NAIVE_SOFTMAX)),
    },
    "layer-norm": {
        "beside": Change(
            "ε in layer norm is added outside the square root, as in the worked example",
            _row("normalise", changes.NORMALISED_BESIDE),
        ),
    },
    "mask": {
        "off": Change(
            "no mask: during decoding, all rows are recomputed at each step and see all tokens so far",
            _row("mask", changes.UNMASKED),
        ),
        "zeros": Change("scores of later tokens are set to 0, which hides nothing", _row("mask", changes.ZERO_SCORES)),
    },
    "positions": {kind: Change(says, partial(changes.with_positions, kind=kind)) for kind, says in _POSITIONS.items()},
    "change-dtype": {
        "int8": Change(
            "parameters are multiplied in int8, as in the engine",
            partial(changes.with_arithmetic, arithmetic=INT8, dtype=np.float32),
        ),
        **{
            dtype.__name__: Change(
                f"everything is computed in {dtype.__name__}",
                partial(changes.with_arithmetic, arithmetic=FLOAT, dtype=dtype),
            )
            for dtype in (np.float16, np.float32, np.float64)
        },
    },
}
WITHOUT = {
    "layer-norm": Change("no layer norm: rows are passed on unchanged", partial(changes.without, what="layer-norm")),
    "residual": Change(
        "no residual connections: a sub-layer's input is not added to its output",
        partial(changes.without, what="residual"),
    ),
    "positions": replace(CHOICES["positions"]["none"], says="no positions: zeros are added to the embeddings"),
    "forget-gate": Change(
        "the forget gate is 0: the cell keeps nothing from earlier rows", _row("sigmoid", changes.CLOSED_GATE)
    ),
    "scaling": Change("scores are not divided by √d_k", _row("divide", changes.divide_by(1.0))),
    "embedding-scale": Change(
        "embeddings are not multiplied by √D", partial(changes.with_config, scale_embeddings=False)
    ),
}
_SILENT = {
    "cross": "cross-attention adds nothing",
    "ffn": "the feed-forward networks add nothing",
    "ssru": "the recurrent cells add nothing",
}
# Changes that apply only to models with certain operations, and the names of those operations.
_NEEDED = {
    ("mask", ""): ("mask", "masked self-attention"),
    ("without", "forget-gate"): ("sigmoid", "recurrent cell"),
}


# --- parsing ----------------------------------------------------------------------------------------------------------


def _change(option: str, words: str, before: Trace) -> Change:
    match option:
        case _ if option in CHOICES:
            if words not in CHOICES[option]:
                raise ConfigError(f"{words!r} is not one of {', '.join(CHOICES[option])}")
            change = CHOICES[option][words]
        case "without":
            change = WITHOUT[words] if words in WITHOUT else _without_sub_layer(words, before)
        case "divisor":
            divisor = _number(words)
            change = Change(f"scores are divided by {divisor:g}", _row("divide", changes.divide_by(divisor)))
        case "norm-epsilon":
            epsilon = _number(words)
            change = Change(f"ε in layer norm is {epsilon:g}", partial(changes.with_config, norm_epsilon=epsilon))
        case "heads-off":
            change = _heads_off(words, before)
        case "hide":
            change = _hidden(words, before)
        case "set" | "scale":
            change = _edit(option, words, before)
        case _:
            raise ConfigError(f"there is no what-if {option!r}")
    operation, part = _NEEDED.get((option, words)) or _NEEDED.get((option, "")) or ("", "")
    if operation and all(stage.operation != operation for stage in before.stages.values()):
        raise ConfigError(f"this model has no {part}")
    if option in ("positions", "norm-epsilon"):
        change.make(before.machine)  # raises an error if the change is impossible
    return change


def _number(words: str) -> float:
    try:
        return float(words)
    except ValueError:
        raise ConfigError(f"{words!r} is not a number") from None


def _numbers(words: str) -> Array:
    """Parse a number, or rows of numbers."""
    words = words.strip()
    try:
        return np.array(json.loads(words) if words.startswith("[") else float(words), dtype=float)
    except (ValueError, TypeError, OverflowError, RecursionError):
        raise ConfigError(f"{words!r} is not a number", found="nor rows of numbers such as [[1, 0], [0, 1]]") from None


def _without_sub_layer(what: str, before: Trace) -> Change:
    """Make sub-layers output zeros: all of one kind, all in one layer, or a single one."""
    sub_layers = [name.removesuffix(".sum") for name in before.stages if name.endswith(".sum")]
    if what in _SILENT:
        silent = [name for name in sub_layers if name.endswith(f".{what}")]
    else:
        silent = [name for name in sub_layers if name == what or name.startswith(f"{what}.")]
    if not silent:
        valid = [*WITHOUT, *_SILENT, *sub_layers, *dict.fromkeys(name.rpartition(".")[0] for name in sub_layers)]
        raise ConfigError(f"there is no {what!r} to leave out", found=f"closest matches: {nearest(what, valid)}")
    says = _SILENT.get(what, f"{', '.join(silent)}: adds nothing")
    return Change(says, _zero({f"{name}.out" for name in silent}))


def _zero(names: set[str]) -> Callable[[Machine], Machine]:
    def edit(address: str, value: Array) -> Array:
        return np.zeros_like(value) if address in names else value

    return partial(changes.with_edits, edit=edit, rows=False)


def _heads_off(words: str, before: Trace) -> Change:
    """Set the outputs of heads, such as enc.1.self.h0, to 0."""
    heads = {name.replace(".head.", "."): name for name in before.stages if ".head." in name}
    wanted = [word.strip() for word in words.split(",") if word.strip()] or [words]
    for word in wanted:
        if word not in heads:
            raise AddressError(f"there is no head {word!r}", found=f"closest matches: {nearest(word, list(heads))}")
    says = "this head outputs zeros" if len(wanted) == 1 else "these heads output zeros"
    off = tuple(HeadOff(name, int(head[2:])) for name, head in map(without_head, wanted))
    return Change(says, _zero({heads[word] for word in wanted}), interventions=off)


def _hidden(words: str, before: Trace) -> Change:
    """Mask source positions, given by index or token, in every attention layer by setting their scores to −∞."""
    if "src.ids" not in before:
        raise ConfigError("this model has no encoder and therefore no source")
    rows = [before.position(Address("src.ids", (word.strip(),)))[0] for word in words.split(",")]
    names = {name for name in before.stages if ".scaled.h" in name and (name[:3] == "enc" or ".cross." in name)}

    def edit(address: str, value: Array) -> Array:
        if address not in names:
            return value
        value = value.copy()
        value[:, rows] = -np.inf
        return value

    says = f"hidden from all attention: {', '.join(before.source_tokens[row] for row in rows)}"
    hidden = partial(changes.with_edits, edit=edit, rows=False)
    return Change(says, hidden, interventions=tuple(map(Hidden, rows)))


def _edit(option: str, words: str, before: Trace) -> Change:
    """Parse ADDRESS=VALUE.

    ADDRESS selects a parameter or a computed quantity, or one of its numbers or rows (with `*` as an index).
    VALUE is a number, or rows of numbers such as [[1, 0], [0, 1]].
    """
    text, equals, value_text = words.rpartition("=")
    if not equals:
        raise ConfigError("=VALUE is missing", found="write it like enc.0.self.WQ.h1[2,3]=0.5")
    address, value = parse_address(text), _numbers(value_text)
    stage = before.stage(address.name)
    if stage.kind in ("input", "choice") or address.name == "out.score":
        raise AddressError(f"{address.name} cannot be changed", found="it is determined by the text and the search")
    place = _place(address, stage, before)

    def fits(array: Array) -> bool:
        """Return whether the value fits the array, which may have fewer rows in the changed run."""
        try:
            np.broadcast_to(value, array[place].shape)
        except (IndexError, ValueError):
            return False
        return True

    if address.name in before and not fits(before.array(address.name)):
        given, has = (" × ".join(map(str, array.shape)) for array in (value, before.array(address.name)))
        raise AddressError(f"{given} numbers do not fit", found=f"{address.name} has {has}")

    def altered(array: Array) -> Array:
        if not fits(array):
            return array
        array = array.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            array[place] = array[place] * value if option == "scale" else value
        return array

    says = f"{'a parameter' if stage.kind == 'parameter' else 'an intermediate result'}: {stage.says}"
    if stage.kind == "parameter":
        return Change(says, lambda machine: changes.with_parameter(machine, address.name, altered))
    return Change(
        says,
        partial(changes.with_edits, edit=lambda name, value: altered(value) if name == address.name else value),
        reaches=lambda after: address.name in after.values and fits(after.values[address.name]),
    )


def _place(address: Address, stage: Stage, before: Trace) -> tuple[int | slice, ...]:
    """Return the position that an address selects. `*` selects an entire axis, and an address without indices selects
    the entire quantity."""
    if not address.index:
        return (slice(None),) * len(stage.axes)
    numbered = Address(address.name, tuple("0" if part == "*" else part for part in address.index))
    position = before.position(numbered)
    return tuple(slice(None) if part == "*" else place for part, place in zip(address.index, position, strict=True))
