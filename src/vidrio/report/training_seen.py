"""One training step on one pair as text: teacher forcing, the loss, label smoothing, gradients, one parameter's life.

Every number is `learn/seen.py`'s, which needs PyTorch; that module is imported only by the command that asks for it.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import numpy as np

from vidrio import __version__
from vidrio.errors import AddressError, InputError
from vidrio.glass.trace import Address, parameter_addresses, parse_address
from vidrio.look import Look, Opened, look
from vidrio.report.again import Again
from vidrio.report.machine import describe
from vidrio.report.manifest import identity
from vidrio.show import PRECISION, WIDTH, bar, cut, left, number, right, table, text_width, visible, wrap

if TYPE_CHECKING:
    from vidrio.learn.seen import Difference, Life, Rules, Seen

LOSS_DECIMALS = 12  # of the losses whose difference is taken
TOKEN = 16  # columns


# --- what is looked at ------------------------------------------------------------------------------------------------


def pair_of(model: Opened, text: str, answer: str | None) -> tuple[list[int], list[int]]:
    """The ids that training would see: of the text, and of what should come out. No special tokens."""
    config = model.config
    if config.shape == "decoder":
        if answer is not None:
            raise InputError("a decoder alone learns from one text", do="give TEXT only, without --target")
        source, target = [], model.target_tokenizer.encode(text)
    else:
        if answer is None:
            what = "--target LABEL" if config.shape == "encoder" else "--target TRANSLATION"
            raise InputError("training needs the right answer too", found="a text alone", do=f"give {what}")
        source = model.source_tokenizer.encode(text)
        target = [label_of(model, answer)] if config.shape == "encoder" else model.target_tokenizer.encode(answer)
    if not (source or target):
        raise InputError("there is nothing to learn from an empty text")
    if config.has_encoder and not source:
        raise InputError("there is nothing to learn from an empty text", found=f"TEXT {text!r}")
    return source, target


def label_of(model: Opened, answer: str) -> int:
    """The number of a class, from its label or from the number itself."""
    names = model.about.labels or [str(c) for c in range(model.config.n_classes)]
    if answer in names:
        return names.index(answer)
    raise InputError(f"{answer!r} is no class of this model", found=f"its classes: {', '.join(names)}")


def run(model: Opened, text: str, answer: str | None, rules: "Rules") -> tuple["Seen", Look]:
    """One step of learning from a pair, in both engines: in `learn/` with gradients, in `glass/` with addresses."""
    from vidrio.learn.seen import Seen

    source, target = pair_of(model, text, answer)
    forced = None if model.config.shape == "encoder" else [*target, model.config.special.end]
    looked = look(model, text, target=forced)
    return Seen.of(model.config, model.machine.parameters, source, target, rules.smoothing), looked


def disagreement(seen: "Seen", looked: Look) -> float:
    """The largest difference between a logit here and the same logit in the glass engine."""
    return float(np.abs(seen.logits_TV - np.atleast_2d(looked.trace.values["out.logits"])).max())


def parameter(looked: Look, where: str) -> tuple[Address, str, tuple[int, ...]]:
    """A parameter's number by its address: the address, the parameter's name, and the place in it."""
    trace, address = looked.trace, parse_address(where)
    if trace.stage(address.name).kind != "parameter":
        raise AddressError(
            f"{address.name} is no parameter: training changes parameters only",
            found=f"a value that is computed: {trace.stage(address.name).says}",
            do=f"give a parameter, {parameter_addresses(trace.machine)[-1]} for example",
        )
    place = trace.position(address)
    name, _, head = address.name.rpartition(".h")
    if address.name not in trace.machine.parameters:
        return address, name, (int(head), *place)
    return address, address.name, place


# --- the whole step ---------------------------------------------------------------------------------------------------


def overview(seen: "Seen", looked: Look, rules: "Rules", again: Again, precision: int = PRECISION) -> str:
    """Teacher forcing, the loss token by token, label smoothing, and the gradient part by part."""
    parts = [heading(seen, looked), forcing(seen, looked), losses(seen, looked, precision)]
    parts += [smoothing(seen, looked, precision), parts_of(seen, precision), onward(seen, looked, rules, again)]
    return "\n\n".join("\n".join(part) for part in parts if part)


def heading(seen: "Seen", looked: Look) -> Iterator[str]:
    answer = " ".join(visible(word) for word in words(seen, looked))
    yield wrap(f"{visible(looked.text)} → {answer}   (the right answer, given)", hang="  ")
    yield ""
    yield wrap(f"The machine  {describe(looked)}", hang=" " * 13)
    differs = disagreement(seen, looked)
    if differs <= looked.tolerance * max(1.0, float(np.abs(seen.logits_TV).max())):
        yield wrap(f"Checked: every logit is the glass engine's, to {differs:.1e}. No dropout here.", hang="  ")
    else:
        yield wrap(f"! The glass engine computes other logits: they differ by up to {differs:.1e}.", hang="  ")


def words(seen: "Seen", looked: Look) -> list[str]:
    """What should come out, as tokens or as a class."""
    if looked.model.config.shape == "encoder":
        return [(looked.model.about.labels or [f"class {c}" for c in range(seen.log_p_TV.shape[1])])[seen.expected[0]]]
    return [looked.trace.vocabulary[i] for i in seen.expected]


def names_of(seen: "Seen", looked: Look) -> Sequence[str]:
    """Everything that could come out."""
    if looked.model.config.shape == "encoder":
        return looked.model.about.labels or [f"class {c}" for c in range(seen.log_p_TV.shape[1])]
    return looked.trace.vocabulary


def forcing(seen: "Seen", looked: Look) -> list[str]:
    """What the decoder reads above what it should say: the same words, one place on."""
    if looked.model.config.shape == "encoder":
        return []
    read = [looked.trace.vocabulary[i] for i in seen.read]
    columns = [
        [str(t), cut(one, TOKEN), cut(other, TOKEN)]
        for t, (one, other) in enumerate(zip(read, words(seen, looked), strict=True))
    ]
    lines = [
        "Teacher forcing: the decoder reads the right answer so far, whatever it would",
        "have said itself, and should say the next token",
    ]
    return [*lines, *(f"  {line}" for line in side_by_side(["place", "reads", "should say"], columns, WIDTH - 2))]


def side_by_side(heads: Sequence[str], columns: Sequence[Sequence[str]], width: int = WIDTH) -> Iterator[str]:
    """Rows of cells, as many columns beside each other as fit; the others in blocks below."""
    head_width = max(map(text_width, heads))
    widths = [max(map(text_width, column)) for column in columns]
    start = 0
    while start < len(columns):
        end, used = start, head_width
        while end < len(columns) and (end == start or used + 2 + widths[end] <= width):
            used += 2 + widths[end]
            end += 1
        if start:
            yield ""
        for r, head in enumerate(heads):
            cells = (left(column[r], w) for column, w in zip(columns[start:end], widths[start:end], strict=True))
            yield "  ".join([left(head, head_width), *cells]).rstrip()
        start = end


def losses(seen: "Seen", looked: Look, precision: int) -> Iterator[str]:
    """−log p of every token that should be said, the sum and the mean."""
    names, expected = names_of(seen, looked), words(seen, looked)
    nll_T = seen.losses_T2[:, 1]
    yield "The loss, token by token: −log p of what should come out"
    rows = []
    for t, word in enumerate(expected):
        best = int(np.argmax(seen.log_p_TV[t]))
        instead = "" if seen.ranks_T[t] == 1 else f"{cut(names[best], TOKEN)} {_p(seen.log_p_TV[t, best], precision)}"
        p, nll = _p(seen.log_p_T[t], precision), number(nll_T[t], precision)
        rows.append([str(t), cut(word, TOKEN), p, nll, str(seen.ranks_T[t]), instead])
    if len(rows) > 1:
        rows += [["", "sum", "", number(nll_T.sum(), precision)], ["", "mean", "", number(nll_T.mean(), precision)]]
    head = ["place", "should say", "p", "−log p", "rank", "likelier" if any(row[-1] for row in rows[:-2]) else ""]
    yield from (f"  {line}" for line in table(rows, head, "rl..rl").splitlines())
    first = f"−log {_p(seen.log_p_T[0], precision)} = {number(nll_T[0], precision)}"
    yield wrap(
        f"Place 0: {first}. Rank 1 is the likeliest. A model that knows nothing gives every one of the "
        f"{len(names):,} the same p, and loses log {len(names):,} = {number(np.log(len(names)), precision)}.",
        indent="  ",
    )


def _p(log_p: float, precision: int) -> str:
    return number(float(np.exp(log_p)), precision)


def smoothing(seen: "Seen", looked: Look, precision: int) -> Iterator[str]:
    """The right answer, made a little unsure; what that adds to the loss."""
    e, V = seen.smoothing, seen.log_p_TV.shape[1]
    expected = words(seen, looked)
    if not e:
        yield "Label smoothing (§5.4): ε is 0, so what is learned from is the loss above."
        return

    def n(value: float) -> str:
        return number(float(value), precision)

    word, p, (loss, nll) = cut(expected[0], TOKEN), float(np.exp(seen.log_p_T[0])), seen.losses_T2[0]
    right, other, spread_T = 1 - e + e / V, e / V, -seen.log_p_TV.mean(1)
    yield f"Label smoothing, ε = {e:g} (§5.4)"
    yield wrap(
        f"The right answer q is not “{word}, surely”: it is 1 − ε on {word}, and ε spread over all {V:,}.", indent="  "
    )
    q = [
        [f"q({word})", f"= 1 − ε + ε / V = 1 − {e:g} + {e:g} / {V} = {n(right)}"],
        ["q(any other)", f"= ε / V = {e:g} / {V} = {n(other)}"],
    ]
    yield from (f"    {line}" for line in table(q).splitlines())
    yield "  The loss is −Σ q log p = (1 − ε) (−log p) + ε (mean of −log p over all)."
    yield f"    place 0: {1 - e:g} · {n(nll)} + {e:g} · {n(spread_T[0])} = {n(loss)}"
    rows = [
        [str(t), cut(w, TOKEN), n(nll), n(spread), n(loss), n(loss - nll)]
        for t, (w, (loss, nll), spread) in enumerate(zip(expected, seen.losses_T2, spread_T, strict=True))
    ]
    if len(rows) > 1:
        loss, nll = seen.losses_T2.mean(0)
        rows.append(["", "mean", n(nll), n(spread_T.mean()), n(loss), n(loss - nll)])
    head = ["place", "should say", "−log p", "mean of all", "loss", "smoothing adds"]
    yield from (f"  {line}" for line in table(rows, head, "rl....").splitlines())
    least = -right * np.log(right) - (V - 1) * other * np.log(other)
    yield wrap(
        f"The least that this loss can be is q's own entropy, {n(least)}, where p = q. So a model that is too sure is "
        f"taught to be less so: the loss's derivative by a logit is p − q. For {word} at place 0 "
        f"that is {n(p)} − {n(right)} = {n(p - right)}; a step goes against it, {'down' if p > right else 'up'}.",
        indent="  ",
    )


def parts_of(seen: "Seen", precision: int) -> Iterator[str]:
    """How long the gradient is in every part of the model."""
    yield f"The gradient of the mean loss, {number(seen.loss, precision)}, part by part"
    squares: dict[str, list[float]] = {}
    values = seen.weights.to_arrays()
    for name, gradient in seen.gradients.items():
        kept = squares.setdefault(part_of(name), [0, 0.0, 0.0])
        for i, more in enumerate((gradient.size, np.square(gradient).sum(), np.square(values[name]).sum())):
            kept[i] += more
    whole = sum(gradient for _, gradient, _ in squares.values())
    rows = [
        [part, f"{int(size):,}", number(np.sqrt(gradient), precision), number(np.sqrt(value), precision),
         f"{100 * gradient / whole if whole else 0:.1f} %", bar(gradient / whole if whole else 0, 12)]
        for part, (size, gradient, value) in squares.items()
    ]  # fmt: skip
    size = sum(int(size) for size, *_ in squares.values())
    rows.append(["all", f"{size:,}", number(np.sqrt(whole), precision)])
    head = ["part", "numbers", "|gradient|", "|values|", "share of |gradient|²"]
    yield from (f"  {line}" for line in table(rows, head, "lr..rl").splitlines())
    yield wrap(
        "|x| is the length √(Σ x²) of all numbers of a part taken as one vector. The square of the whole length is the "
        "sum of the parts' squares: that is what the shares are of.",
        indent="  ",
    )


def part_of(name: str) -> str:
    """The sub-layer that a parameter belongs to; a table by itself."""
    side, *rest = name.split(".")
    return (
        ".".join([side, *rest[:2]]) if rest and rest[0].isdigit() else name.removesuffix(".gain").removesuffix(".bias")
    )


def onward(seen: "Seen", looked: Look, rules: "Rules", again: Again) -> Iterator[str]:
    steepest = max(seen.gradients, key=lambda name: float(np.abs(seen.gradients[name]).max()))
    array = seen.gradients[steepest]
    index = tuple(int(i) for i in np.unravel_index(int(np.abs(array).argmax()), array.shape))
    address = address_of(looked, steepest, index)
    yield f"Look closer; the largest single derivative is that of {address}"
    for what, option in (("its gradient, checked by moving it", "--gradient"), ("its next step", "--life")):
        yield f"  {what}:\n    {again.look(option, address)}"


def address_of(looked: Look, name: str, index: tuple[int, ...]) -> str:
    """The address of one number of a parameter, heads apart."""
    if name in looked.trace.stages:
        return str(Address(name, tuple(map(str, index))))
    return str(Address(f"{name}.h{index[0]}", tuple(map(str, index[1:]))))


def to_json(
    seen: "Seen", looked: Look, rules: "Rules", gradients: Sequence[str] = (), lives: Sequence[tuple[str, "Life"]] = ()
) -> str:
    """The same as data; every number in full."""
    names, expected = names_of(seen, looked), words(seen, looked)
    read = [looked.trace.vocabulary[i] for i in seen.read]
    tokens = [
        {
            "place": t,
            "reads": read[t] if read else None,
            "should_say": expected[t],
            "log_p": float(seen.log_p_T[t]),
            "rank": int(seen.ranks_T[t]),
            "likeliest": names[int(np.argmax(seen.log_p_TV[t]))],
            "minus_log_p": float(seen.losses_T2[t, 1]),
            "mean_minus_log_p_of_all": float(-seen.log_p_TV[t].mean()),
            "loss": float(seen.losses_T2[t, 0]),
        }
        for t in range(len(expected))
    ]
    data = {
        "kind": "vidrio-training",
        "format": 1,
        "vidrio": __version__,
        "model": identity(looked.model),
        "text": looked.text,
        "smoothing": seen.smoothing,
        "differs_from_glass_by": disagreement(seen, looked),
        "tokens": tokens,
        "loss": {
            "sum": float(seen.losses_T2[:, 0].sum()),
            "mean": seen.loss,
            "without_smoothing": {
                "sum": float(seen.losses_T2[:, 1].sum()),
                "mean": float(seen.losses_T2[:, 1].mean()),
            },
        },
        "gradient_length": float(seen.gradient.norm()),
        "gradient_length_of": {name: float(np.linalg.norm(array)) for name, array in seen.gradients.items()},
        "gradients": [_gradient_as_data(seen, looked, where) for where in gradients],
        "lives": [{"address": where, **asdict(lived), "told": rules.told} for where, lived in lives],
    }
    return json.dumps(data, ensure_ascii=False, indent=1) + "\n"


def _gradient_as_data(seen: "Seen", looked: Look, where: str) -> dict[str, Any]:
    address, name, index = parameter(looked, where)
    place = seen.place(name, index)
    differences = [
        {**asdict(d), "quotient": d.quotient, "relative_error": d.relative_error} for d in seen.differences(place)
    ]
    value, slope = float(seen.weights.flat[place]), float(seen.gradient[place])
    return {"address": str(address), "value": value, "gradient": slope, "differences": differences}


# --- one gradient -----------------------------------------------------------------------------------------------------


def gradient(seen: "Seen", looked: Look, where: str, precision: int = PRECISION) -> str:
    """The derivative of the loss by one parameter, and the same from nothing but losses."""
    address, name, index = parameter(looked, where)
    place = seen.place(name, index)
    return "\n".join(_gradient(seen, looked, address, place, seen.differences(place), precision))


def _gradient(
    seen: "Seen", looked: Look, address: Address, place: int, differences: Sequence["Difference"], precision: int
) -> Iterator[str]:
    value, slope = float(seen.weights.flat[place]), float(seen.gradient[place])
    yield f"∂L / ∂ {address} = {number(slope, precision)}   in full {slope!r}"
    yield wrap(
        f"L is the mean loss of the {len(seen.expected)} predictions, {number(seen.loss, precision)}. Making this "
        f"parameter, w = {number(value, precision)}, larger by a small h makes L larger by {number(slope, precision)} h.",
        indent="  ",
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
    yield from (f"  {line}" for line in table(rows, head, "ll...l").splitlines())
    best = next(d for d in differences if d.best)
    if slope == 0 and best.quotient == 0:
        yield wrap("Both are exactly 0: nothing in this pair passes through this number.", indent="  ")
        return
    yield wrap(
        f"“Off by” is |quotient − gradient| / the larger of the two. A large h is wrong because L is curved, by about "
        f"h² (and more where a ReLU turns on or off within it); a small one because both losses are rounded to 16 "
        f"digits, by about 1e-16 / h. The two balance near h = ∛2.2e-16 = 6.1e-06, times |w| where that is above 1: "
        f"the arrow, off by {best.relative_error:.1e}.",
        indent="  ",
    )


# --- one parameter's life ---------------------------------------------------------------------------------------------


def life(seen: "Seen", looked: Look, rules: "Rules", where: str, precision: int = PRECISION) -> str:
    """One parameter in the next step of the optimiser: every formula with its numbers."""
    address, name, index = parameter(looked, where)
    lived = seen.life(seen.place(name, index), rules)
    return "\n".join(_life(lived, address, rules, precision))


def _life(x: "Life", address: Address, rules: "Rules", precision: int) -> Iterator[str]:
    def n(value: float) -> str:
        return f"({figures(value, precision)})" if value < 0 else figures(value, precision)

    yield f"{address}: {figures(x.value, precision)} → {figures(x.new, precision)}"
    yield wrap(f"The next step on this pair alone: step {x.step}. {rules.told}", indent="  ")
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
    lines += [
        ("m", "mean of gradients: β₁ m + (1 − β₁) g", f"{b1} · {n(x.mean_before)} + {rest1} · {n(x.clipped)}", x.mean),
        (
            "v",
            "mean of squares: β₂ v + (1 − β₂) g²",
            f"{b2} · {n(x.square_before)} + {rest2} · {n(x.clipped)}²",
            x.square,
        ),
        ("m̂", "m / (1 − β₁ⁿ), as m began at 0", f"{n(x.mean)} / (1 − {b1}^{x.step})", x.mean / x.mean_grown),
        ("v̂", "v / (1 − β₂ⁿ), as v began at 0", f"{n(x.square)} / (1 − {b2}^{x.step})", x.square / x.square_grown),
        ("r", "the learning rate", rules.rate_told, x.rate),
    ]
    formula = "w − r m̂ / (√v̂ + ε)" + " − r λ w" * bool(x.decay)
    numbers = (
        f"{n(x.value)} − {n(x.rate)} · {n(x.mean / x.mean_grown)} / (√{n(x.square / x.square_grown)} + {x.epsilon:g})"
    )
    numbers += f" − {n(x.rate)} · {x.decay:g} · {n(x.value)}" * bool(x.decay)
    lines.append(("w", formula, numbers, x.new))
    width = max(text_width(figures(value, precision)) for *_, value in lines)
    for letter, what, how, value in lines:
        room = WIDTH - 6 - 4 - width
        yield f"  {left(letter, 3)} {left(what, room)} {right(figures(value, precision), width)}"
        if how:
            yield wrap(f"= {how}", indent="        ", hang="          ")
    moved = x.new - x.value
    yield wrap(
        f"It moved by {figures(moved, precision)}: {abs(moved) / x.rate if x.rate else 0:.2f} times the learning rate. "
        f"Adam goes one rate a step where the gradient keeps its sign and size, less where it does not.",
        indent="  ",
    )


def figures(value: float, precision: int) -> str:
    """A number with `precision` significant figures: gradients and their squares are small."""
    return f"{float(value):.{max(1, precision)}g}"
