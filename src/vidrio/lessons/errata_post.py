"""Slips 1 to 24: the first document. Each number is computed where it is asked for."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vidrio.glass.numbers.stages import stages
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.attention import causal
from vidrio.glass.paper.maths import Array, layer_norm, no_tap, softmax
from vidrio.glass.paper.positions import sinusoidal
from vidrio.glass.paper.transformer import Machine, decode, encode, feed_forward, norm, predict
from vidrio.glass.paper.variants import naive_softmax, slipped_sinusoidal, unmasked
from vidrio.lessons import printed
from vidrio.lessons.machines import largest_difference
from vidrio.lessons.runs import Lesson
from vidrio.lessons.values import Values
from vidrio.lessons.values_file import of_the_post
from vidrio.lessons.values_reader import draw
from vidrio.model.parameters import parameter_specs

DECODER_LAYERS = (1, 2, 3, 6)


def _by_thirty(parameters: Mapping[str, Array] | None = None) -> Trace:
    """The encoder by the post's arithmetic, / 30, with other parameters where they are given."""
    values = of_the_post()
    return Lesson("printed", replace(values, parameters={**values.parameters, **(parameters or {})})).run("by-30")


def _unit_norm(x_LD: Array, epsilon: float = 1e-5) -> Array:
    """The right layer norm with γ = 1, β = 0."""
    d = x_LD.shape[-1]
    return layer_norm(x_LD, np.ones(d), np.zeros(d), epsilon, "norm", no_tap)


def _printed_norm(x_LD: Array) -> Array:
    d = x_LD.shape[-1]
    return printed.layer_norm(x_LD, np.ones(d), np.zeros(d), 0.0, "norm", no_tap)


def positions() -> Mapping[str, Any]:
    right, slipped = sinusoidal(3, 4), slipped_sinusoidal(3, 4)
    return {
        "right row of position 1": right[1],
        "by the slip": slipped[1],
        "right row of position 2": right[2],
        "by the slip, position 2": slipped[2],
        "right E, row of World": Lesson("corrected", of_the_post()).run("whole").array("enc.in")[1],
    }


def rounding() -> Mapping[str, Any]:
    return {"cos 0.01": math.cos(0.01), "to two decimals": f"{math.cos(0.01):.2f}"}


def matrices() -> Mapping[str, Any]:
    own = of_the_post().parameters
    WQ, WK = own["enc.0.self.WQ"].copy(), own["enc.0.self.WK"].copy()
    WQ[0], WK[1] = printed.WQ1_OF_THE_TEXT, printed.WK2_OF_THE_TEXT
    code, text = _by_thirty(), _by_thirty({"enc.0.self.WQ": WQ, "enc.0.self.WK": WK})
    told = {
        "Q1": "Q.h0",
        "scores1": "scores.h0",
        "K2": "K.h1",
        "scores2": "scores.h1",
        "attention1 (/ 30)": "head.h0",
        "attention2 (/ 30)": "head.h1",
        "layer norm": "norm.out",
    }
    figures: dict[str, Any] = {}
    for what, address in told.items():
        figures[f"{what}, matrices of the text"] = text.array(f"enc.0.self.{address}")
        figures[f"{what}, matrices of the code"] = code.array(f"enc.0.self.{address}")
    return figures


def by_hand() -> Mapping[str, Any]:
    return {"4 + 6": 4 + 6, "3.99 + 6": 3.99 + 6}


def overflow() -> Mapping[str, Any]:
    x = np.array([[709.0, 710.0]])
    return {
        "exp overflows in float64 above": math.log(np.finfo(np.float64).max),
        "softmax [709, 710] as printed": naive_softmax(x),
        "right": softmax(x),
    }


def reminder() -> Mapping[str, Any]:
    Z = _by_thirty().array("enc.0.self.out")
    return {
        "Z from the W that is printed": Z,
        "Z as repeated": printed.REMINDER_Z,
        "largest difference": largest_difference(Z, printed.REMINDER_Z),
    }


def truncation() -> Mapping[str, Any]:
    quotient = 17.05231849 / 9.9206152789297
    return {"17.05231849 / 9.9206152789297": quotient, "to three decimals": f"{quotient:.3f}"}


def epsilon() -> Mapping[str, Any]:
    x_SD = _by_thirty().array("enc.0.self.sum")
    flat = np.array([[1.0, 1.0, 1.0, 1.00001]])
    return {
        "as printed, row 1 by σ + 10⁻⁶": _printed_norm(x_SD)[0],
        "right, row 1 by √(σ² + 10⁻⁵)": _unit_norm(x_SD)[0],
        "they differ by": largest_difference(_printed_norm(x_SD)[0], _unit_norm(x_SD)[0]),
        "a nearly flat row, 1 1 1 1.00001, as printed": _printed_norm(flat)[0],
        "the same, right": _unit_norm(flat)[0],
    }


def twice_added() -> Mapping[str, Any]:
    trace = Lesson("printed", of_the_post()).run("whole")
    machine, x_SD, Z_SD = trace.machine, trace.array("enc.in"), trace.array("enc.0.self.norm.out")

    def block(inside: Array) -> Array:
        return norm(machine, Z_SD + feed_forward(machine, inside, "enc.0.ffn", no_tap), "enc.0.ffn.norm", no_tap)

    return {
        "LayerNorm(Z + FFN(Z))": block(Z_SD),
        "LayerNorm(Z + FFN(Z + x)), as the formula has it": block(Z_SD + x_SD),
        "they differ by": largest_difference(block(Z_SD), block(Z_SD + x_SD)),
    }


def collapse() -> Mapping[str, Any]:
    rows = {
        "after six encoder blocks": printed.SIX_BLOCKS,
        "after six decoder blocks": printed.SIX_DECODER_BLOCKS,
        "when generating": printed.GENERATING,
    }
    return {f"the two rows differ by, {when}": largest_difference(*pair) for when, pair in rows.items()}


def attentions() -> Mapping[str, Any]:
    names = stages(of_the_post().config)
    found = [name.split(".")[2] for name in names if name.startswith("dec.0.") and name.endswith("weights.h0")]
    return {"attentions in a decoder layer": ", ".join(found)}


def mask(draws: int = 60, seed: int = 1) -> Mapping[str, Any]:
    """How far the last of three rows moves when the mask is left out, with fresh parameters for each draw."""
    values = of_the_post()
    ids = [values.config.special.start, *values.tokenizer.encode("hola mundo")]
    figures: dict[str, Any] = {
        "the decoder reads": "SOS hola mundo and the post's assumed memory, in 1, 2, 3 and 6 layers"
    }
    for spread in (1.0, 0.5):
        generator = np.random.Generator(np.random.PCG64(seed))
        moved = np.array(
            [[_unmasking(values, layers, spread, generator, ids) for _ in range(draws)] for layers in DECODER_LAYERS]
        )
        what = f"parameters from N(0, {spread:g}²), {draws} draws"
        figures[f"the last row moves by, median ({what})"] = np.median(moved, axis=1)
        figures[f"and at most ({what})"] = moved.max(axis=1)
    return figures


def _unmasking(values: Values, layers: int, spread: float, generator: np.random.Generator, ids: Sequence[int]) -> float:
    """How far the last row moves without the mask, in one drawn decoder of so many layers."""
    config = replace(values.config, n_decoder_layers=layers, n_encoder_layers=1)
    drawn = draw(parameter_specs(config), generator)
    own = {name: array if name.endswith("gain") else array * spread for name, array in drawn.items()}
    machine = replace(values, config=config, parameters=own).machine()
    rows = [decode(replace(machine, mask=how), ids, printed.ASSUMED_MEMORY)[-1] for how in (causal, unmasked)]
    return largest_difference(*rows)


def cross_norm() -> Mapping[str, Any]:
    right_TD = _printed_norm(printed.CROSS_ATTENTION_OF_SOS + printed.SELF_NORM_OF_SOS)
    return {
        "right, from the two rows that are printed": right_TD[0],
        "printed": printed.CROSS_NORM_OF_SOS[0],
    }


def norm_of_a_norm() -> Mapping[str, Any]:
    row = printed.FEED_FORWARD_NORM_OF_SOS
    return {"mean of the printed row": row.mean(), "its standard deviation": row.std()}


def logits_shape() -> Mapping[str, Any]:
    values = of_the_post()
    W = values.parameters["out.W"]
    return {
        "shape of the output matrix (d × vocabulary)": f"{W.shape[0]} × {W.shape[1]}",
        "the printed outputs add up to": printed.LOGITS.sum(),
        "their softmax adds up to": softmax(printed.LOGITS).sum(),
    }


def wrong_axis() -> Mapping[str, Any]:
    try:
        np.sum(np.exp(printed.LOGITS), axis=1, keepdims=True)
    except np.exceptions.AxisError as error:
        return {"NumPy says": str(error)}
    return {"NumPy says": "nothing"}


def other_logits() -> Mapping[str, Any]:
    words = of_the_post().vocabulary
    now, before = softmax(printed.LOGITS), softmax(printed.EARLIER_LOGITS)[0]
    return {
        "softmax of the printed logits": now,
        "the likeliest word": words[int(now.argmax())],
        "softmax of the logits of an earlier version": before,
        "the likeliest word then": words[int(before.argmax())],
    }


def redrawn(draws: int = 100, seed: int = 1) -> Mapping[str, Any]:
    """The post's program, run many times: blocks drawn anew at every call, no positions, no mask."""
    values = of_the_post()
    generator = np.random.Generator(np.random.PCG64(seed))
    questions = [values.tokenizer.encode(words) for words in ("hello world", "how ?")]
    answers = [
        [_generated(values, ids, np.random.Generator(np.random.PCG64(stream))) for ids in questions]
        for stream in generator.integers(2**63, size=draws)
    ]
    first = [" ".join(answer) for answer, _ in answers]
    return {
        "draws": draws,
        "different answers to hello world": len(set(first)),
        "share that begins with hola mundo": sum(a.startswith("hola mundo") for a in first) / draws,
        "share that is hola mundo EOS": sum(a == "hola mundo EOS" for a in first) / draws,
        "share with the same answer to how ?": sum(a == b for a, b in answers) / draws,
    }


def _generated(values: Values, source_ids: Sequence[int], generator: np.random.Generator) -> list[str]:
    """Up to three words from a model whose every block, but not the output layer, is drawn anew at every call."""
    config = replace(values.config, positions="none")
    specs = parameter_specs(config)
    tables = {} if values.generation_VD is None else dict.fromkeys(("src.embed", "tgt.embed"), values.generation_VD)

    def fresh() -> Machine:
        machine = replace(values, config=config, parameters={**draw(specs, generator), **tables}).machine()
        return replace(printed.as_printed(machine), mask=unmasked)

    first = fresh()
    memory_SD = encode(first, source_ids)
    output = {name: first.parameters[name] for name in ("out.W", "out.b")}
    ids = [config.special.start]
    for _ in range(3):
        machine = fresh()
        machine = replace(machine, parameters={**machine.parameters, **output})
        ids.append(int(predict(machine, decode(machine, ids, memory_SD))[-1].argmax()))
        if ids[-1] == config.special.end:
            break
    return [values.vocabulary[i] for i in ids[1:]]


FIGURES: dict[int, Callable[[], Mapping[str, Any]]] = {
    1: positions,
    2: rounding,
    3: matrices,
    4: by_hand,
    5: overflow,
    6: reminder,
    7: truncation,
    8: epsilon,
    9: twice_added,
    10: collapse,
    11: attentions,
    14: mask,
    15: cross_norm,
    16: norm_of_a_norm,
    18: logits_shape,
    19: wrong_axis,
    20: other_logits,
    21: redrawn,
}
