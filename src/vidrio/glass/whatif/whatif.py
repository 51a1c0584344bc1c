"""What if …? A list of changes, and what they do to a machine.

    whatif = parse([("without", "layer-norm"), ("softmax", "naive")], before)  # `before`: the machine's trace as it is
    machine, change = whatif.apply(machine)  # run it again with these: `after`
    compare(before, after, whatif)  # comparison.py

A change alters the machine (a function of `changes.py`), or the numbers on their way (a tap), or both. Addresses and
tokens in it are those of the run before the change.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from vidrio.errors import AddressError, ConfigError, VidrioError, nearest
from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Address, Trace, parse_address
from vidrio.glass.paper import variants
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.glass.paper.transformer import Machine
from vidrio.glass.whatif import changes

WITHOUT = {
    "layer-norm": "no layer norm: rows go on as they are",
    "residual": "no residual connections: what comes into a sub-layer is lost",
    "positions": "no positions: zeros are added to the embeddings",
    "scaling": "scores are not divided by √K",
    "embedding-scale": "embeddings are not multiplied by √D",
    "cross": "cross-attention adds nothing",
    "ffn": "the feed-forward networks add nothing",
}
SOFTMAXES = ("naive", "stable")
MASKS = ("causal", "off", "zeros", "zero-after", "zero-after-renormalised")
_POSITIONS = {
    "sinusoidal": "sines and cosines in turn, §3.5",
    "sinusoidal-halves": "first all sines, then all cosines",
    "sinusoidal-marian": "first all sines, then all cosines, of Marian's longer waves",
    "learned": "as the model learned them",
    "none": "zeros are added to the embeddings",
    "seed": "the worked example's slip: the column's number stands where the pair's should",
}
DTYPES = {
    "int8": (np.int8, "parameters multiply in eight bits, as in the fast engine"),
    "float16": (np.float16, "everything is computed in float16"),
    "float32": (np.float32, "everything is computed in float32"),
    "float64": (np.float64, "everything is computed in float64"),
}


@dataclass(frozen=True)
class Change:
    """One change: as it was asked for, what it does, and how."""

    asked: str  # --softmax naive
    says: str
    to_machine: Callable[[Machine], Machine] = lambda machine: machine
    tap: Tap = no_tap
    reaches: Callable[[Trace], bool] = lambda after: True  # whether there was anything to change


@dataclass(frozen=True)
class WhatIf:
    """Some changes, made together."""

    changes: tuple[Change, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changes)

    def apply(self, machine: Machine) -> tuple[Machine, Tap]:
        """The changed machine, and the tap that changes numbers on the way."""
        for change in self.changes:
            machine = change.to_machine(machine)
        taps = [change.tap for change in self.changes if change.tap is not no_tap]

        def tap(name: str, value: Array) -> Array:
            for change in taps:
                value = change(name, value)
            return value

        return machine, tap if taps else no_tap


def parse(asked: Sequence[tuple[str, str]], before: Trace) -> WhatIf:
    """The changes that pairs such as ("without", "layer-norm") or ("set", "enc.0.self.WQ.h1[2,3]=0.5") ask for.

    All that cannot be made is told at once.
    """
    made, problems = [], []
    for option, words in asked:
        try:
            made.append(_change(option, words, before))
        except VidrioError as error:
            problems.append(f"--{option} {words}: {error.what}" + (f" ({error.found})" if error.found else ""))
    if problems:
        raise ConfigError(
            "this what-if cannot be made", found="\n         ".join(problems), do="change or leave out what is named"
        )
    return WhatIf(tuple(made))


def _change(option: str, words: str, before: Trace) -> Change:
    asked = f"--{option} {words}"
    match option:
        case "without":
            return _without(asked, words, before)
        case "softmax":
            kind = _one_of(words, SOFTMAXES)
            says = {
                "naive": "softmax as the formula stands: exp(x) / Σ exp(x)",
                "stable": "softmax with the maximum taken off first",
            }[kind]
            return Change(asked, says, lambda machine: changes.with_softmax(machine, kind))
        case "mask":
            return _mask(asked, _one_of(words, MASKS), before)
        case "heads-off":
            return _heads_off(asked, words, before)
        case "positions":
            kind = _one_of(words, tuple(_POSITIONS))
            says = _POSITIONS[kind]
            changes.with_positions(before.machine, kind)  # refused now if it cannot be
            return Change(asked, says, lambda machine: changes.with_positions(machine, kind))
        case "divisor":
            divisor = _number(words)
            return Change(
                asked, f"scores are divided by {divisor:g}", lambda machine: changes.with_divisor(machine, divisor)
            )
        case "norm-epsilon":
            epsilon = _number(words)
            changes.with_norm_epsilon(before.machine, epsilon)
            return Change(
                asked, f"ε in layer norm is {epsilon:g}", lambda machine: changes.with_norm_epsilon(machine, epsilon)
            )
        case "change-dtype":
            dtype, says = DTYPES[_one_of(words, tuple(DTYPES))]
            return Change(asked, says, lambda machine: changes.with_dtype(machine, dtype))
        case "set" | "scale":
            return _edit(asked, option, words, before)
    raise ConfigError(f"there is no what-if {option!r}")


def _one_of(word: str, valid: Sequence[str]) -> str:
    if word not in valid:
        raise ConfigError(f"{word!r} is not one of {', '.join(valid)}")
    return word


def _number(words: str) -> float:
    try:
        return float(words)
    except ValueError:
        raise ConfigError(f"{words!r} is not a number") from None


# --- the changes ------------------------------------------------------------------------------------------------------


def _without(asked: str, what: str, before: Trace) -> Change:
    machine_changes: dict[str, Callable[[Machine], Machine]] = {
        "layer-norm": changes.without_layer_norm,
        "residual": changes.without_residual,
        "positions": lambda machine: changes.with_positions(machine, "none"),
        "scaling": lambda machine: changes.with_divisor(machine, 1.0),
        "embedding-scale": changes.without_embedding_scale,
    }
    if what in machine_changes:
        return Change(asked, WITHOUT[what], machine_changes[what])
    sub_layers = [name.removesuffix(".sum") for name in before.stages if name.endswith(".sum")]
    if what in ("cross", "ffn"):
        silent, says = [name for name in sub_layers if name.endswith(f".{what}")], WITHOUT[what]
    else:
        silent = [name for name in sub_layers if name == what or name.startswith(f"{what}.")]
        says = f"{', '.join(silent)}: adds nothing"
    if not silent:
        valid = [*WITHOUT, *sub_layers, *dict.fromkeys(name.rpartition(".")[0] for name in sub_layers)]
        raise ConfigError(f"there is no {what!r} to leave out", found=f"the nearest: {nearest(what, valid)}")
    return Change(asked, says, tap=_zero({f"{name}.out" for name in silent}))


def _zero(names: set[str]) -> Tap:
    return lambda name, value: np.zeros_like(value) if name in names else value


def _mask(asked: str, kind: str, before: Trace) -> Change:
    if not before.machine.config.has_decoder:
        raise ConfigError("this model has no decoder, so no mask")
    says, after = {
        "causal": ("later words are hidden by −∞ before the softmax", None),
        "off": ("no mask: while decoding, every row is computed afresh at each step and sees all words so far", None),
        "zeros": ("scores of later words are set to 0, which hides nothing", None),
        "zero-after": ("weights of later words are set to 0 after the softmax", variants.zero_after),
        "zero-after-renormalised": (
            "weights of later words are set to 0 after the softmax, and each row divided by its sum",
            variants.zero_after_renormalised,
        ),
    }[kind]

    def tap(name: str, value: Array) -> Array:
        return after(value) if after and re.fullmatch(r"dec\.\d+\.self\.weights\.h\d+", name) else value

    return Change(asked, says, lambda machine: changes.with_mask(machine, kind), tap if after else no_tap)


def _heads_off(asked: str, words: str, before: Trace) -> Change:
    """Heads are named enc.1.self.h0; their outputs become 0."""
    heads = {
        name.replace(".head.", "."): name for name, stage in before.stages.items() if stage.operation == _HEAD_OPERATION
    }
    wanted = [word.strip() for word in words.split(",") if word.strip()]
    unknown = [word for word in wanted if word not in heads]
    if unknown or not wanted:
        word = unknown[0] if unknown else words
        raise AddressError(f"there is no head {word!r}", found=f"the nearest: {nearest(word, list(heads))}")
    says = "this head gives out zeros" if len(wanted) == 1 else "these heads give out zeros"
    return Change(asked, says, tap=_zero({heads[word] for word in wanted}))


_HEAD_OPERATION = "rows_dot_columns"  # the last step of a head: weights V


def _edit(asked: str, option: str, words: str, before: Trace) -> Change:
    """ADDRESS=VALUE: a parameter or a number on the way, one cell, a row (`*` for an index), or all of it."""
    text, equals, value_text = words.rpartition("=")
    if not equals:
        raise ConfigError("what is missing is =VALUE", found="write it like enc.0.self.WQ.h1[2,3]=0.5")
    address, value = parse_address(text), _number(value_text)
    if address.step is not None:
        raise AddressError(f"{address}: leave out @{address.step}", found="the row already says which step")
    stage = before.stage(address.name)
    if stage.kind in ("input", "choice") or stage.operation == "log_of_choice":
        raise AddressError(f"{address.name} cannot be changed", found="it follows from the text and the search")
    place = _place(address, stage, before)

    def altered(array: Array) -> Array:
        if any(isinstance(i, int) and i >= length for i, length in zip(place, array.shape, strict=True)):
            return array  # fewer words now: there is no such row
        array = array.copy()
        with np.errstate(over="ignore", invalid="ignore"):
            array[place] = array[place] * value if option == "scale" else value
        return array

    says = f"{'a parameter' if stage.kind == 'parameter' else 'a number on the way'}: {stage.says}"
    if stage.kind == "parameter":
        return Change(asked, says, lambda machine: _with_edited(machine, address.name, altered))

    def reaches(after: Trace) -> bool:
        array = after.values.get(address.name)
        return array is not None and all(
            not isinstance(i, int) or i < length for i, length in zip(place, array.shape, strict=True)
        )

    return Change(
        asked, says, tap=lambda name, value: altered(value) if name == address.name else value, reaches=reaches
    )


def _with_edited(machine: Machine, name: str, altered: Callable[[Array], Array]) -> Machine:
    if name.rpartition(".")[2] == "pos" and name not in machine.parameters:
        return machine  # another what-if has put other positions in its place
    machine = changes.with_parameter(machine, name, altered)
    return changes.with_learned_positions_of_parameters(machine) if name.endswith(".pos") else machine


def _place(address: Address, stage: Stage, before: Trace) -> tuple[int | slice, ...]:
    """Where an address points; `*` is the whole axis, and no index at all is everything."""
    if not address.index:
        return (slice(None),) * len(stage.axes)
    numbered = Address(address.name, tuple("0" if part == "*" else part for part in address.index))
    position = before.position(numbered)
    return tuple(slice(None) if part == "*" else place for part, place in zip(address.index, position, strict=True))
