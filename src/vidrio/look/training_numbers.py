"""One parameter in training: its gradient, checked by moving it; its next step, every formula with numbers."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from vidrio.errors import AddressError
from vidrio.glass.numbers.stages import without_head
from vidrio.glass.numbers.trace import Address, parameter_addresses, parse_address
from vidrio.look.blocks import Block, Note, Table
from vidrio.look.layout import right, wrap
from vidrio.look.run import Look
from vidrio.look.writing import PRECISION, WIDTH, left, number

if TYPE_CHECKING:
    from vidrio.learn.next_step import Rules
    from vidrio.learn.one_step import Seen

LOSS_DECIMALS = 12  # of the losses whose difference is taken


def parameter(seen: "Seen", looked: Look, where: str) -> tuple[Address, int]:
    """A parameter's number by its address, and its place among all numbers of the parameters."""
    trace, address = looked.trace, parse_address(where)
    if trace.stage(address.name).kind != "parameter":
        raise AddressError(
            f"{address.name} is no parameter: training changes parameters only",
            found=f"a value that is computed: {trace.stage(address.name).says}",
            do=f"give a parameter, {parameter_addresses(trace.machine)[-1]} for example",
        )
    index, (name, head) = trace.position(address), without_head(address.name)
    return address, seen.place(name, (int(head.removeprefix(".h")), *index) if head else index)


# --- one gradient -----------------------------------------------------------------------------------------------------


def gradient(seen: "Seen", looked: Look, where: str, precision: int = PRECISION) -> Iterator[Block]:
    """The derivative of the loss by one parameter, and the same from nothing but losses."""
    address, place = parameter(seen, looked, where)
    differences = seen.differences(place)
    value, slope = float(seen.parameters.flat[place]), float(seen.gradient[place])
    yield f"∂L / ∂ {address} = {number(slope, precision)}   in full {slope!r}"
    yield Note(
        f"L is the mean loss of the {len(seen.expected)} predictions, {number(seen.loss, precision)}. With this "
        f"parameter, w = {number(value, precision)}, larger by a small h, L is larger by {number(slope, precision)} h.",
        indent=2,
    )
    yield f"  {looked.trace.stage(address.name).says}. {looked.trace.stage(address.name).place}"
    yield "\nChecked without any calculus: (L(w + h) − L(w − h)) / 2h, in float64"
    decimals = max(precision, LOSS_DECIMALS)
    rows = [
        ["→" if d.best else "", f"{d.by:.1e}", f"{d.up:.{decimals}f}", f"{d.down:.{decimals}f}",
         number(d.quotient, precision + 6), f"{d.relative_error:.1e}"]
        for d in differences
    ]  # fmt: skip
    head = ["", "h", "L(w + h)", "L(w − h)", "quotient", "off by"]
    yield Table(rows, head, "ll...l")
    best = next(d for d in differences if d.best)
    if slope == 0 and best.quotient == 0:
        yield Note("Both are exactly 0: nothing in this pair passes through this number.", indent=2)
        return
    yield Note(
        f"“Off by” is |quotient − gradient| / the larger of the two. A large h is wrong because L is curved, by about "
        f"h² (and more where a ReLU turns on or off within it); a small one because both losses are rounded to 16 "
        f"digits, by about 1e-16 / h. The two balance near h = ∛2.2e-16 = 6.1e-06, times |w| where that is above 1: "
        f"the arrow, off by {best.relative_error:.1e}.",
        indent=2,
    )


# --- one parameter's life ---------------------------------------------------------------------------------------------


def life(seen: "Seen", looked: Look, rules: "Rules", where: str, precision: int = PRECISION) -> Iterator[Block]:
    """One parameter in the next step of the optimiser: every formula with its numbers."""
    address, place = parameter(seen, looked, where)
    x = seen.life(place, rules)

    def n(value: float) -> str:
        return f"({figures(value, precision)})" if value < 0 else figures(value, precision)

    yield f"{address}: {figures(x.value, precision)} → {figures(x.new, precision)}"
    yield Note(f"Step {x.step}, taken on this pair alone. {rules.told}", indent=2)
    b1, b2 = f"{x.beta1:g}", f"{x.beta2:g}"
    rest1, rest2 = f"{1 - x.beta1:g}", f"{1 - x.beta2:g}"
    lines = [
        ("w", "its value", "", x.value),
        ("g", "its gradient ∂L/∂w", "", x.gradient),
        ("|g|", "the whole gradient's length √(Σ g²)", "", x.length),
    ]
    if x.longest:
        how = f"min(1, {n(x.longest)} / {n(x.length)})"
        lines += [
            ("c", "clipping: min(1, longest / |g|)", how, x.factor),
            ("g", "c g", f"{n(x.factor)} · {n(x.gradient)}", x.clipped),
        ]
    means = f"{b1} · {n(x.mean_before)} + {rest1} · {n(x.clipped)}"
    lines.append(("m", "mean of gradients: β₁ m + (1 − β₁) g", means, x.mean))
    if x.turned is None:
        step = f"{n(x.mean / x.mean_grown)} / (√{n(x.square / x.square_grown)} + {x.epsilon:g})"
        squares = f"{b2} · {n(x.square_before)} + {rest2} · {n(x.clipped)}²"
        lines += [
            ("v", "mean of squares: β₂ v + (1 − β₂) g²", squares, x.square),
            ("m̂", "m / (1 − β₁ⁿ), as m began at 0", f"{n(x.mean)} / (1 − {b1}^{x.step})", x.mean / x.mean_grown),
            ("v̂", "v / (1 − β₂ⁿ), as v began at 0", f"{n(x.square)} / (1 − {b2}^{x.step})", x.square / x.square_grown),
            ("r", "the learning rate", rules.rate_told, x.rate),
            ("w", "w − r m̂ / (√v̂ + ε)", f"{n(x.value)} − {n(x.rate)} · {step}", x.new),
        ]
    else:
        lines += [
            ("a", "one step ahead: β₁ m + (1 − β₁) g", f"{b1} · {n(x.mean)} + {rest1} · {n(x.clipped)}", x.ahead),
            ("o", "all of the matrix's a, made orthogonal, times 0.2 √longer side", "", x.turned),
            ("r", "the learning rate", rules.rate_told, x.rate),
            ("w", "w − r o", f"{n(x.value)} − {n(x.rate)} · {n(x.turned)}", x.new),
        ]
    width = max(len(figures(value, precision)) for *_, value in lines)
    for letter, what, how, value in lines:
        yield f"  {left(letter, 3)} {left(what, WIDTH - 10 - width)} {right(figures(value, precision), width)}"
        if how:
            yield wrap(f"= {how}", indent=" " * 8, hang=" " * 10)
    moved = x.new - x.value
    yield Note(
        f"It moved by {figures(moved, precision)}: {abs(moved) / x.rate if x.rate else 0:.2f} times the learning rate. "
        + (
            "Adam goes one rate a step where the gradient keeps its sign and size, less where it does not."
            if x.turned is None
            else "Muon makes all directions of a matrix's gradient equally long: the rare ones are learned from too."
        ),
        indent=2,
    )


def figures(value: float, precision: int) -> str:
    """A number with `precision` significant figures: gradients and their squares are small."""
    return f"{float(value):.{max(1, precision)}g}"


def gradient_data(seen: "Seen", looked: Look, where: str) -> dict[str, Any]:
    address, place = parameter(seen, looked, where)
    differences = [
        {**asdict(d), "quotient": d.quotient, "relative_error": d.relative_error} for d in seen.differences(place)
    ]
    value, slope = float(seen.parameters.flat[place]), float(seen.gradient[place])
    return {"address": str(address), "value": value, "gradient": slope, "differences": differences}


def life_data(seen: "Seen", looked: Look, rules: "Rules", where: str) -> dict[str, Any]:
    address, place = parameter(seen, looked, where)
    return {"address": str(address), **asdict(seen.life(place, rules)), "told": rules.told}
