"""One training step on one pair: teacher forcing, the loss, label smoothing, the gradient part by part.

Every number is `learn/one_step.py`'s, which needs PyTorch and is imported only when asked for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from vidrio._version import __version__
from vidrio.errors import InputError
from vidrio.glass.numbers.trace import Address
from vidrio.look.blocks import Bar, Block, Note, Rows, Table, apart
from vidrio.look.command_line import CommandLine
from vidrio.look.layout import lying
from vidrio.look.manifest import identity
from vidrio.look.overview import describe
from vidrio.look.run import LoadedModel, Look, look
from vidrio.look.training_numbers import gradient_data, life_data
from vidrio.look.writing import PRECISION, cut, number
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.learn.next_step import Rules
    from vidrio.learn.one_step import Seen

TOKEN = 16  # columns


# --- what is looked at ------------------------------------------------------------------------------------------------


def pair_of(model: LoadedModel, text: str, answer: str | None) -> tuple[list[int], list[int]]:
    """The ids that training would see: of the text, and of what should come out. No special tokens."""
    config = model.config
    source, target = [], []
    if config.shape == "decoder":
        if answer is not None:
            raise InputError("a decoder alone learns from one text", do="give TEXT only, without --target")
        target = model.target_tokenizer.encode(text)
    elif answer is None:
        what = "--target LABEL" if config.shape == "encoder" else "--target TRANSLATION"
        raise InputError("training needs the right answer too", found="a text alone", do=f"give {what}")
    else:
        source = model.source_tokenizer.encode(text)
        target = [class_of(model, answer)] if config.shape == "encoder" else model.target_tokenizer.encode(answer)
    if not (source if config.has_encoder else target):
        raise InputError("there is nothing to learn from an empty text", found=f"TEXT {text!r}")
    return source, target


def class_of(model: LoadedModel, answer: str) -> int:
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


@dataclass(frozen=True)
class Prediction:
    """What should come out at one place, and what the model loses there."""

    place: int
    reads: str | None  # the token before it in the right answer; a classifier has none
    should_say: str
    log_p: float
    rank: int
    likeliest: str
    minus_log_p: float
    mean_minus_log_p_of_all: float
    loss: float  # with smoothing


def predictions(seen: "Seen", looked: Look) -> list[Prediction]:
    """Every prediction of the step."""
    names: Sequence[str] = looked.trace.vocabulary
    if looked.model.config.shape == "encoder":
        names = looked.model.about.labels or [f"class {c}" for c in range(seen.log_p_TV.shape[1])]
    read = seen.read
    return [
        Prediction(
            place=t,
            reads=looked.trace.vocabulary[read[t]] if read else None,
            should_say=names[wanted],
            log_p=float(seen.log_p_T[t]),
            rank=int(seen.ranks_T[t]),
            likeliest=names[int(np.argmax(log_p_V))],
            minus_log_p=float(nll),
            mean_minus_log_p_of_all=float(-log_p_V.mean()),
            loss=float(loss),
        )
        for t, (wanted, log_p_V, (loss, nll)) in enumerate(
            zip(seen.expected, seen.log_p_TV, seen.losses_T2, strict=True)
        )
    ]


# --- the whole step ---------------------------------------------------------------------------------------------------


def overview(seen: "Seen", looked: Look, again: CommandLine, precision: int = PRECISION) -> Iterator[Block]:
    """Teacher forcing, the loss token by token, label smoothing, and the gradient part by part."""
    told = predictions(seen, looked)
    parts = [heading(seen, looked, told)]
    if looked.model.config.has_decoder:
        parts.append(forcing(told))
    parts += [losses(seen, told, precision), smoothing(seen, told, precision), parts_of(seen, precision)]
    yield from apart([*parts, onward(seen, looked, again)])


def heading(seen: "Seen", looked: Look, told: Sequence[Prediction]) -> Iterator[Block]:
    answer = " ".join(one.should_say for one in told)
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


def forcing(told: Sequence[Prediction]) -> Iterator[Block]:
    """What the decoder reads above what it should say: the same words, one place on."""
    yield "Teacher forcing: the decoder reads the right answer so far, whatever it would"
    yield "have said itself, and should say the next token"
    columns = [[str(one.place), cut(one.reads or "", TOKEN), cut(one.should_say, TOKEN)] for one in told]
    yield lying(["place", "reads", "should say"], columns)


def losses(seen: "Seen", told: Sequence[Prediction], precision: int) -> Iterator[Block]:
    """−log p of every token that should be said, the sum and the mean."""
    n = partial(number, precision=precision)
    yield "The loss, token by token: −log p of what should come out"
    rows = []
    for one, log_p_V in zip(told, seen.log_p_TV, strict=True):
        instead = "" if one.rank == 1 else f"{cut(one.likeliest, TOKEN)} {n(np.exp(log_p_V.max()))}"
        word, p = cut(one.should_say, TOKEN), n(np.exp(one.log_p))
        rows.append([str(one.place), word, p, n(one.minus_log_p), str(one.rank), instead])
    likelier = "likelier" if any(row[-1] for row in rows) else ""
    if len(rows) > 1:
        nll_T = seen.losses_T2[:, 1]
        rows += [["", "sum", "", n(nll_T.sum())], ["", "mean", "", n(nll_T.mean())]]
    yield Table(rows, ["place", "should say", "p", "−log p", "rank", likelier], "rl..rl")
    known = seen.log_p_TV.shape[1]
    yield Note(
        f"Place 0: −log {n(np.exp(told[0].log_p))} = {n(told[0].minus_log_p)}. Rank 1 is the likeliest. A model that "
        f"knows nothing gives every one of the {known:,} the same p, and loses log {known:,} = {n(np.log(known))}.",
        indent=2,
    )


def smoothing(seen: "Seen", told: Sequence[Prediction], precision: int) -> Iterator[Block]:
    """The right answer, made a little unsure; what that adds to the loss."""
    e, V = seen.smoothing, seen.log_p_TV.shape[1]
    if not e:
        yield "Label smoothing (§5.4): ε is 0, so what is learned from is the loss above."
        return
    n = partial(number, precision=precision)
    word, p = cut(told[0].should_say, TOKEN), np.exp(told[0].log_p)
    right, other = 1 - e + e / V, e / V
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
    figures = [(one.minus_log_p, one.mean_minus_log_p_of_all, one.loss, one.loss - one.minus_log_p) for one in told]
    nll, mean, loss, _ = map(n, figures[0])
    yield f"    place 0: {1 - e:g} · {nll} + {e:g} · {mean} = {loss}"
    rows = [[str(one.place), cut(one.should_say, TOKEN), *map(n, row)] for one, row in zip(told, figures, strict=True)]
    if len(rows) > 1:
        rows.append(["", "mean", *map(n, np.mean(figures, axis=0))])
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
    sums: dict[str, np.ndarray] = {}  # of each part: how many numbers, the squares of the gradient, of the values
    values = seen.parameters.to_arrays()
    for name, gradient in seen.gradients.items():
        more = np.array([gradient.size, np.square(gradient).sum(), np.square(values[name]).sum()])
        sums[part_of(name)] = sums.get(part_of(name), 0) + more
    numbers, whole, _ = np.sum(list(sums.values()), axis=0)
    rows: Rows = []
    for part, (count, gradient, value) in sums.items():
        share = gradient / whole if whole else 0.0
        lengths = (number(np.sqrt(square), precision) for square in (gradient, value))
        rows.append([part, f"{count:,.0f}", *lengths, f"{100 * share:.1f} %", Bar(share, 12)])
    rows.append(["all", f"{numbers:,.0f}", number(np.sqrt(whole), precision)])
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
    if rest and rest[0].isdigit():
        return ".".join([side, *rest[:2]])
    return name.removesuffix(".gain").removesuffix(".bias")


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


def to_json(
    seen: "Seen", looked: Look, rules: "Rules", gradients: Sequence[str] = (), lives: Sequence[str] = ()
) -> str:
    """The same as data; every number in full."""
    loss_T, nll_T = seen.losses_T2.T
    data = {
        "kind": "vidrio-training",
        "format": 1,
        "vidrio": __version__,
        "model": identity(looked.model),
        "text": looked.text,
        "smoothing": seen.smoothing,
        "differs_from_glass_by": disagreement(seen, looked),
        "tokens": [asdict(one) for one in predictions(seen, looked)],
        "loss": {
            "sum": float(loss_T.sum()),
            "mean": seen.loss,
            "without_smoothing": {"sum": float(nll_T.sum()), "mean": float(nll_T.mean())},
        },
        "gradient_length": float(seen.gradient.norm()),
        "gradient_length_of": {name: float(np.linalg.norm(array)) for name, array in seen.gradients.items()},
        "gradients": [gradient_data(seen, looked, where) for where in gradients],
        "lives": [life_data(seen, looked, rules, where) for where in lives],
    }
    return json_text(data, indent=1) + "\n"
