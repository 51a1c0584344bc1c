"""What a model's folder tells of its learning: the same sentence at every age, what the right answer costs, one
parameter's life.

The ages are the snapshots that a training run kept (`learn/run_files.py`); each is run by the glass engine like any
model, so PyTorch is not needed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from typing import Any

import numpy as np

from vidrio.errors import AddressError, InputError
from vidrio.glass.machine import build
from vidrio.glass.maths import Array
from vidrio.glass.receipts import locate
from vidrio.glass.trace import parse_address
from vidrio.hypothesis import Options, default_options
from vidrio.learn.run_files import snapshots
from vidrio.look.blocks import Block, Note, Table, apart
from vidrio.look.layout import lying
from vidrio.look.measures import entropy, likeliest
from vidrio.look.run import LoadedModel, Look, look, target_ids
from vidrio.look.writing import PRECISION, WIDTH, cut, number, text_width
from vidrio.model.folder import read_parameters

TOKEN = 16  # columns
ROOM = 10  # tokens more than twice the source's that a young model may babble
FOLLOWED = 16  # tokens of the translation


@dataclass(frozen=True)
class Age:
    """A model at one age, on one text. The last age, the model that was kept, has no step."""

    step: int | None
    says: str
    ended: bool
    log_p: float  # of what it says
    p: Sequence[float]  # of each token that is followed, those before it given
    reads: Sequence[str] = ()  # for each of them the source token with the largest share of the cross-attention,
    share: Sequence[float] = ()  # that share,
    entropy: Sequence[float] = ()  # and how spread out all shares are, in bits

    @property
    def name(self) -> str:
        return "kept" if self.step is None else f"{self.step:,}"


@dataclass(frozen=True)
class History:
    """All ages of a model, the youngest first, on one text."""

    model: str
    text: str
    tokens: Sequence[str]  # those that are followed: given, or what the model says as it is (or the class)
    left_out: int  # tokens after them
    source_tokens: Sequence[str]
    attention: str  # whose shares are past; empty where nothing crosses
    heads: int  # whose mean they are
    ages: Sequence[Age]

    def to_json(self) -> dict[str, Any]:
        return {"kind": "vidrio-history", "format": 1, **asdict(self)}


def young(model: LoadedModel) -> Iterator[tuple[int | None, LoadedModel]]:
    """A model as it was after the steps of which there is a snapshot, the youngest first; one at a time is held."""
    for step, folder in snapshots(model.path / "run"):
        yield step, replace(model, machine=build(model.config, read_parameters(folder), model.dtype.type))


def history(
    model: LoadedModel, text: str, options: Options | None = None, where: str = "", target: Sequence[int] | None = None
) -> History:
    """Run every age of a model on a text. `where` is the cross-attention to tell: `dec.1.cross`, or one head of it;
    `target` is the translation to follow, if it is not to be what the model says as it is."""
    if not snapshots(model.path / "run"):
        raise InputError(
            "this model has no history",
            found=f"no snapshots in {model.path / 'run'}",
            do="train one: `vidrio train` keeps some on the way; or look at a model that was trained so",
        )
    options = options or default_options(model.config)
    tokenizer = model.source_tokenizer if model.config.has_encoder else model.target_tokenizer
    babble = 2 * len(tokenizer.encode(text)) + ROOM
    options = replace(options, max_length=min(options.max_length, babble))
    now = look(model, text, options=options)
    if now.empty or (now.result is None and model.config.has_decoder):
        raise InputError("there is nothing to follow", found=f"TEXT {text!r} leaves nothing to compute")
    every = list(now.chosen_ids if target is None else target)
    followed = every[:FOLLOWED]
    attention, names = _attention(now, where)
    ages = [_age(step, look(aged, text, options=options), followed, now, names) for step, aged in young(model)]
    ages.append(_age(None, now, followed, now, names))
    tokens = [now.trace.vocabulary[i] for i in followed] or [now.translation]
    sources = list(now.trace.source_tokens)
    return History(model.name, text, tokens, len(every) - len(followed), sources, attention, len(names), ages)


def _attention(now: Look, where: str) -> tuple[str, list[str]]:
    """Whose attention to tell, and the heads that it is the mean of."""
    part_of = {name: name.rpartition(".weights.")[0] for name in now.trace.values if ".cross.weights.h" in name}
    if not (where or part_of):
        return "", []
    where = where or list(part_of.values())[-1]
    names = [name for name in part_of if name == where or name.startswith(f"{where}.")]
    if len({part_of[name] for name in names}) != 1:
        raise AddressError(
            f"{where} is no cross-attention of this model",
            found=f"it has {', '.join(dict.fromkeys(part_of.values())) or 'none'}",
            do="give one of these, or one head of it: dec.0.cross.weights.h0" if part_of else "leave --at out",
        )
    return where, names


def _age(step: int | None, seen: Look, followed: Sequence[int], now: Look, names: Sequence[str]) -> Age:
    if seen.result is None:
        prob_C = seen.trace.values["out.prob"]
        taken = int(np.argmax(now.trace.values["out.prob"]))
        return Age(step, seen.translation, True, float(np.log(prob_C.max())), [float(prob_C[taken])])
    forced = look(seen.model, seen.text, options=seen.options, target=followed)
    p_T = np.exp(forced.trace.values["out.score"])
    age = Age(step, seen.translation, seen.result.ended, seen.result.log_prob, p_T.tolist())
    if not names:
        return age
    weights_TS: Array = np.mean([forced.trace.array(name) for name in names], axis=0)
    reads = [forced.trace.source_tokens[s] for s in weights_TS.argmax(1)]
    return replace(age, reads=reads, share=weights_TS.max(1).tolist(), entropy=entropy(weights_TS).tolist())


# --- for the page -----------------------------------------------------------------------------------------------------


def ages_data(model: LoadedModel, text: str, target: Sequence[int]) -> dict[str, Any] | None:
    """The same sentence from random to trained; None where the folder keeps no snapshots."""
    if not snapshots(model.path / "run") or not text.strip():
        return None
    return history(model, text, target=target or None).to_json()


def forced_data(model: LoadedModel, text: str, answer: str) -> dict[str, Any]:
    """Teacher forcing: what −log p the model pays for every token of the right answer, those before it given."""
    if not model.config.has_decoder:
        raise InputError("this model tells classes: there is no answer to force token by token")
    seen = look(model, text, target=target_ids(model, answer))
    if seen.empty:
        raise InputError("there is nothing to learn from an empty text")
    score_T, prob_TV = seen.trace.values["out.score"].astype(np.float64), seen.trace.values["out.prob"]
    tokens = [
        {
            "reads": seen.trace.target_tokens[t],
            "should_say": seen.trace.chosen_tokens[t],
            "address": f"out.prob[{t},{chosen}]",
            "p": float(np.exp(score_T[t])),
            "loss": float(-score_T[t]),
            "rank": int((prob_TV[t] > prob_TV[t, chosen]).sum()) + 1,
            "instead": likeliest(seen, t, 1)[0].token,
        }
        for t, chosen in enumerate(seen.chosen_ids)
    ]
    knows_nothing = float(np.log(model.config.target_vocabulary))
    return {"tokens": tokens, "sum": float(-score_T.sum()), "mean": float(-score_T.mean()), "nothing": knows_nothing}


def life_data(seen: Look, address: str) -> dict[str, Any]:
    """One parameter at every age."""
    at, model = locate(seen.trace, parse_address(address)), seen.model
    if seen.trace.stages[at.name].kind != "parameter":
        raise AddressError(
            f"{address} is no parameter", do="open one: the numbers a quantity is made from lead to them"
        )
    if not snapshots(model.path / "run"):
        raise InputError("this model's folder keeps no snapshots of its training", found=str(model.path / "run"))
    ages = [
        {"step": step, "value": float(aged.machine.parameter(at.name)[at.place])}
        for step, aged in chain(young(model), [(None, model)])
    ]
    return {"address": str(at), "ages": ages}


# --- the view --------------------------------------------------------------------------------------------------------


def view(past: History, precision: int = PRECISION) -> Iterator[Block]:
    """The three tables."""
    parts = [_heading(past), _said(past, precision), _sure(past, precision)]
    yield from apart([*parts, _read(past, precision)] if past.attention else parts)


def _heading(past: History) -> Iterator[Block]:
    yield Note(f"{past.text} → {past.ages[-1].says or '(nothing)'}", hang=2)
    yield ""
    yield Note(
        f"{past.model} at {len(past.ages)} ages: after steps {', '.join(age.name for age in past.ages[:-1])} of its "
        f"training, and as it was kept at the end (the best on held-out sentences, and a mean over steps, if the run "
        f"chose so).",
        hang=2,
    )


def _said(past: History, precision: int) -> Iterator[Block]:
    yield "What it says"
    width = max(text_width(age.name) for age in past.ages) + 12 + precision
    rows = []
    for age in past.ages:
        says = cut(age.says, WIDTH - width - 8) if age.ended else cut(age.says, WIDTH - width - 14) + " (cut)"
        rows.append([age.name, number(age.log_p, precision), says])
    yield Table(rows, ["step", "log p", "translation"], "r.l")


def _sure(past: History, precision: int) -> Iterator[Block]:
    words = " ".join(past.tokens)
    more = f" … ({past.left_out} more tokens)" if past.left_out else ""
    yield Note(f"How sure it is of “{words}”{more}: p of each token, those before it given", hang=2)
    columns = [
        [cut(token, TOKEN), *(number(age.p[t], precision) for age in past.ages)] for t, token in enumerate(past.tokens)
    ]
    yield lying(_steps(past), columns)


def _read(past: History, precision: int) -> Iterator[Block]:
    heads = f", the mean of its {past.heads} heads" if past.heads > 1 else ""
    yield Note(f"What each token reads: {past.attention}{heads}", hang=2)
    yield Note(
        "The row that says the token takes its largest share from the source token named; then the share, and the "
        f"entropy of all shares in bits: 0 for one source token only, "
        f"{number(np.log2(len(past.source_tokens)), precision)} for all alike.",
        indent=2,
    )
    columns = [
        [
            cut(token, TOKEN),
            *(
                f"{cut(age.reads[t], TOKEN)} {number(age.share[t], precision)} ({number(age.entropy[t], precision)})"
                for age in past.ages
            ),
        ]
        for t, token in enumerate(past.tokens)
    ]
    yield lying(_steps(past), columns)


def _steps(past: History) -> list[str]:
    width = max(4, *(text_width(age.name) for age in past.ages))
    return ["step".rjust(width), *(age.name.rjust(width) for age in past.ages)]
