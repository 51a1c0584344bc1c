"""One training step on one pair: teacher forcing, the loss, label smoothing, the gradient part by part.

Every number is `learn/one_step.py`'s, which needs PyTorch and is imported only when asked for.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vidrio.errors import InputError
from vidrio.glass.numbers.trace import Address
from vidrio.look.blocks import Bar, Block, Note, Rows, Table, apart
from vidrio.look.command_line import CommandLine
from vidrio.look.layout import lying
from vidrio.look.overview import describe
from vidrio.look.run import LoadedModel, Look, look
from vidrio.look.writing import PRECISION, cut, number

if TYPE_CHECKING:
    from vidrio.learn.next_step import Rules
    from vidrio.learn.one_step import Seen

TOKEN = 16  # columns


# --- what is looked at ------------------------------------------------------------------------------------------------


def pair_of(model: LoadedModel, text: str, answer: str | None) -> tuple[list[int], list[int]]:
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


def label_of(model: LoadedModel, answer: str) -> int:
    """The number of a class, from its label or from the number itself."""
    names = model.about.labels or [str(c) for c in range(model.config.n_classes)]
    if answer in names:
        return names.index(answer)
    raise InputError(f"{answer!r} is no class of this model", found=f"its classes: {', '.join(names)}")


def run(model: LoadedModel, text: str, answer: str | None, rules: "Rules") -> tuple["Seen", Look]:
    """One step of learning from a pair, in both engines: in `learn/` with gradients, in `glass/` with addresses."""
    from vidrio.learn.one_step import Seen

    model = model.in_floating_point()
    source, target = pair_of(model, text, answer)
    forced = None if model.config.shape == "encoder" else [*target, model.config.special.end]
    looked = look(model, text, target=forced)
    return Seen.of(model.config, model.machine.parameters, source, target, rules.smoothing), looked


def disagreement(seen: "Seen", looked: Look) -> float:
    """The largest difference between a logit here and the same logit in the glass engine."""
    return float(np.abs(seen.logits_TV - np.atleast_2d(looked.trace.values["out.logits"])).max())


# --- the whole step ---------------------------------------------------------------------------------------------------


def overview(seen: "Seen", looked: Look, again: CommandLine, precision: int = PRECISION) -> Iterator[Block]:
    """Teacher forcing, the loss token by token, label smoothing, and the gradient part by part."""
    parts: list[Iterable[Block]] = [heading(seen, looked), forcing(seen, looked), losses(seen, looked, precision)]
    parts += [smoothing(seen, looked, precision), parts_of(seen, precision), onward(seen, looked, again)]
    yield from apart(part for part in parts if part)


def heading(seen: "Seen", looked: Look) -> Iterator[Block]:
    answer = " ".join(words(seen, looked))
    yield Note(f"{looked.text} → {answer}   (the right answer, given)", hang=2)
    yield ""
    yield Note(f"The machine  {describe(looked)}", hang=13)
    for word in looked.unknown:
        yield Note(f"! {word!r} is not in the vocabulary: the unknown token stands for it.", hang=2)
    if looked.model.config.has_decoder and looked.model.config.special.unk in seen.expected:
        yield Note("! The vocabulary does not hold all of the right answer: it would teach the unknown token.", hang=2)
    differs = disagreement(seen, looked)
    if differs <= looked.tolerance * max(1.0, float(np.abs(seen.logits_TV).max())):
        yield Note(f"Checked: every logit is the glass engine's, to {differs:.1e}. No dropout here.", hang=2)
    else:
        yield Note(f"! The glass engine computes other logits: they differ by up to {differs:.1e}.", hang=2)


def words(seen: "Seen", looked: Look) -> list[str]:
    """What should come out, as tokens or as a class."""
    names = names_of(seen, looked)
    return [names[i] for i in seen.expected]


def names_of(seen: "Seen", looked: Look) -> Sequence[str]:
    """Everything that could come out."""
    if looked.model.config.shape == "encoder":
        return looked.model.about.labels or [f"class {c}" for c in range(seen.log_p_TV.shape[1])]
    return looked.trace.vocabulary


def forcing(seen: "Seen", looked: Look) -> list[Block]:
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
    return [*lines, *lying(["place", "reads", "should say"], columns)]


def losses(seen: "Seen", looked: Look, precision: int) -> Iterator[Block]:
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
    likelier = "likelier" if any(row[-1] for row in rows) else ""
    if len(rows) > 1:
        rows += [["", "sum", "", number(nll_T.sum(), precision)], ["", "mean", "", number(nll_T.mean(), precision)]]
    head = ["place", "should say", "p", "−log p", "rank", likelier]
    yield Table(rows, head, "rl..rl")
    first = f"−log {_p(seen.log_p_T[0], precision)} = {number(nll_T[0], precision)}"
    yield Note(
        f"Place 0: {first}. Rank 1 is the likeliest. A model that knows nothing gives every one of the "
        f"{len(names):,} the same p, and loses log {len(names):,} = {number(np.log(len(names)), precision)}.",
        indent=2,
    )


def _p(log_p: float, precision: int) -> str:
    return number(float(np.exp(log_p)), precision)


def smoothing(seen: "Seen", looked: Look, precision: int) -> Iterator[Block]:
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
    yield Note(
        f"The right answer q is not “{word}, surely”: it is 1 − ε on {word}, and ε spread over all {V:,}.", indent=2
    )
    q = [
        [f"q({word})", f"= 1 − ε + ε / V = 1 − {e:g} + {e:g} / {V} = {n(right)}"],
        ["q(any other)", f"= ε / V = {e:g} / {V} = {n(other)}"],
    ]
    yield Table(q, indent=4)
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
    yield Table(rows, head, "rl....")
    least = -right * np.log(right) - (V - 1) * other * np.log(other)
    yield Note(
        f"The least that this loss can be is q's own entropy, {n(least)}, where p = q. So a model that is too sure is "
        f"taught to be less so: the loss's derivative by a logit is p − q. For {word} at place 0 "
        f"that is {n(p)} − {n(right)} = {n(p - right)}; a step goes against it, {'down' if p > right else 'up'}.",
        indent=2,
    )


def parts_of(seen: "Seen", precision: int) -> Iterator[Block]:
    """How long the gradient is in every part of the model."""
    yield f"The gradient of the mean loss, {number(seen.loss, precision)}, part by part"
    squares: dict[str, list[float]] = {}
    values = seen.parameters.to_arrays()
    for name, gradient in seen.gradients.items():
        kept = squares.setdefault(part_of(name), [0, 0.0, 0.0])
        for i, more in enumerate((gradient.size, np.square(gradient).sum(), np.square(values[name]).sum())):
            kept[i] += more
    whole = sum(gradient for _, gradient, _ in squares.values())
    rows: Rows = [
        [part, f"{int(size):,}", number(np.sqrt(gradient), precision), number(np.sqrt(value), precision),
         f"{100 * gradient / whole if whole else 0:.1f} %", Bar(gradient / whole if whole else 0, 12)]
        for part, (size, gradient, value) in squares.items()
    ]  # fmt: skip
    size = sum(int(size) for size, *_ in squares.values())
    rows.append(["all", f"{size:,}", number(np.sqrt(whole), precision)])
    head = ["part", "numbers", "|gradient|", "|values|", "share of |gradient|²"]
    yield Table(rows, head, "lr..rl")
    yield Note(
        "|x| is the length √(Σ x²) of all numbers of a part taken as one vector. The square of the whole length is the "
        "sum of the parts' squares: that is what the shares are of.",
        indent=2,
    )


def part_of(name: str) -> str:
    """The sub-layer that a parameter belongs to; a table by itself."""
    side, *rest = name.split(".")
    return (
        ".".join([side, *rest[:2]]) if rest and rest[0].isdigit() else name.removesuffix(".gain").removesuffix(".bias")
    )


def onward(seen: "Seen", looked: Look, again: CommandLine) -> Iterator[Block]:
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
