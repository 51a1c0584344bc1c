"""The numbers of the errata, both sides of each slip, computed where they are asked for; no right one is written down.

What each number is, data/errata.toml says; here it has a name. Slips 1 to 24 are the first document's, 25 to 33 the
second's.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vidrio.glass.numbers.stages import stages
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.attention import causal
from vidrio.glass.paper.maths import Array, layer_norm, linear, no_tap, softmax
from vidrio.glass.paper.positions import sinusoidal
from vidrio.glass.paper.transformer import Machine, decode, encode, feed_forward, norm, predict
from vidrio.glass.paper.variants import naive_softmax, slipped_sinusoidal, unmasked, zero_after
from vidrio.lessons import printed
from vidrio.lessons.machines import largest_difference
from vidrio.lessons.notes_attention import PRINTED_WEIGHTS, future_share, masked
from vidrio.lessons.notes_positions import PRINTED_SUMS, rotation_error, wrong_sums
from vidrio.lessons.printed import NUMBERS
from vidrio.lessons.runs import Lesson
from vidrio.lessons.values import Values, draw
from vidrio.lessons.values_file import of_the_post
from vidrio.model.parameters import parameter_specs

DECODER_LAYERS = (1, 2, 3, 6)
Figures = Mapping[str, Any]


def _by_thirty(parameters: Mapping[str, Array] | None = None) -> Trace:
    """The encoder by the post's arithmetic, / 30, with other parameters where they are given."""
    values = of_the_post()
    return Lesson("printed", replace(values, parameters={**values.parameters, **(parameters or {})})).run("by-30")


def _normed(normalise: Callable[..., Array], x_LD: Array) -> Array:
    """By a layer norm with γ = 1, β = 0."""
    d = x_LD.shape[-1]
    return normalise(x_LD, np.ones(d), np.zeros(d), 1e-5, "norm")


# --- the first document -----------------------------------------------------------------------------------------------


def positions() -> Figures:
    E = Lesson("corrected", of_the_post()).run("whole").array("enc.in")
    return {"right": sinusoidal(3, 4), "slipped": slipped_sinusoidal(3, 4), "E": E}


def matrices() -> Figures:
    own = of_the_post().parameters
    WQ, WK = own["enc.0.self.WQ"].copy(), own["enc.0.self.WK"].copy()
    WQ[0], WK[1] = NUMBERS["wq1_of_the_text"], NUMBERS["wk2_of_the_text"]
    return {"text": _by_thirty({"enc.0.self.WQ": WQ, "enc.0.self.WK": WK}).values, "code": _by_thirty().values}


def overflow() -> Figures:
    x = np.array([[709.0, 710.0]])
    return {"limit": math.log(np.finfo(np.float64).max), "printed": naive_softmax(x), "right": softmax(x)}


def reminder() -> Figures:
    Z, repeated = _by_thirty().array("enc.0.self.out"), NUMBERS["reminder_z"]
    return {"Z": Z, "repeated": repeated, "difference": largest_difference(Z, repeated)}


def truncation() -> Figures:
    quotient = 17.05231849 / 9.9206152789297
    return {"quotient": quotient, "rounded": f"{quotient:.3f}"}


def epsilon() -> Figures:
    x_SD = _by_thirty().array("enc.0.self.sum")
    flat = np.array([[1.0, 1.0, 1.0, 1.00001]])
    as_printed, right = _normed(printed.layer_norm, x_SD), _normed(layer_norm, x_SD)
    return {
        "printed": as_printed,
        "right": right,
        "difference": largest_difference(as_printed[0], right[0]),
        "flat_printed": _normed(printed.layer_norm, flat)[0],
        "flat_right": _normed(layer_norm, flat)[0],
    }


def twice_added() -> Figures:
    trace = Lesson("printed", of_the_post()).run("whole")
    machine, x_SD, Z_SD = trace.machine, trace.array("enc.in"), trace.array("enc.0.self.norm.out")

    def block(inside: Array) -> Array:
        return norm(machine, Z_SD + feed_forward(machine, inside, "enc.0.ffn", no_tap), "enc.0.ffn.norm", no_tap)

    right, wrong = block(Z_SD), block(Z_SD + x_SD)
    return {"right": right, "wrong": wrong, "difference": largest_difference(right, wrong)}


def attentions() -> Figures:
    names = stages(of_the_post().config)
    kinds = [name.split(".")[2] for name in names if name.startswith("dec.0.") and name.endswith("weights.h0")]
    return {"kinds": ", ".join(kinds)}


def mask(draws: int = 60, seed: int = 1) -> Figures:
    """How far the last of three rows moves when the mask is left out, with fresh parameters for each draw: the median
    and the most, in decoders of 1, 2, 3 and 6 layers."""
    values = of_the_post()
    ids = [values.config.special.start, *values.tokenizer.encode("hola mundo")]
    figures: dict[str, Any] = {}
    for name, spread in (("wide", 1.0), ("narrow", 0.5)):
        generator = np.random.Generator(np.random.PCG64(seed))
        moved = np.array(
            [[_unmasking(values, layers, spread, generator, ids) for _ in range(draws)] for layers in DECODER_LAYERS]
        )
        figures[name] = {"median": np.median(moved, axis=1), "most": moved.max(axis=1)}
    return figures


def _unmasking(values: Values, layers: int, spread: float, generator: np.random.Generator, ids: Sequence[int]) -> float:
    """How far the last row moves without the mask, in one drawn decoder of so many layers."""
    config = replace(values.config, n_decoder_layers=layers, n_encoder_layers=1)
    machine = replace(values, config=config, parameters=draw(parameter_specs(config), generator, spread)).machine()
    rows = [decode(replace(machine, mask=how), ids, NUMBERS["assumed_memory"])[-1] for how in (causal, unmasked)]
    return largest_difference(*rows)


def cross_norm() -> Figures:
    right_TD = _normed(printed.layer_norm, NUMBERS["cross_attention_of_sos"] + NUMBERS["self_norm_of_sos"])
    return {"right": right_TD[0], "printed": NUMBERS["cross_norm_of_sos"][0]}


def norm_of_a_norm() -> Figures:
    row = NUMBERS["feed_forward_norm_of_sos"]
    return {"mean": row.mean(), "deviation": row.std()}


def logits_shape() -> Figures:
    W, logits = of_the_post().parameters["out.W"], NUMBERS["logits"]
    return {"shape": f"{W.shape[0]} × {W.shape[1]}", "sum": logits.sum(), "softmax_sum": softmax(logits).sum()}


def wrong_axis() -> Figures:
    try:
        np.sum(np.exp(NUMBERS["logits"]), axis=1, keepdims=True)
    except np.exceptions.AxisError as error:
        return {"numpy": str(error)}
    return {"numpy": "nothing"}


def other_logits() -> Figures:
    words = of_the_post().vocabulary
    now, before = softmax(NUMBERS["logits"]), softmax(NUMBERS["earlier_logits"])[0]
    return {
        "now": now,
        "likeliest": words[int(now.argmax())],
        "before": before,
        "likeliest_before": words[int(before.argmax())],
    }


def redrawn(draws: int = 100, seed: int = 1) -> Figures:
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
        "different": len(set(first)),
        "begins": sum(a.startswith("hola mundo") for a in first) / draws,
        "right": sum(a == "hola mundo EOS" for a in first) / draws,
        "same": sum(a == b for a, b in answers) / draws,
    }


def _generated(values: Values, source_ids: Sequence[int], generator: np.random.Generator) -> list[str]:
    """Up to three words from a model whose every block, but not the output layer, is drawn anew at every call."""
    config = replace(values.config, positions="none")
    specs = parameter_specs(config)

    def fresh() -> Machine:
        machine = replace(values, config=config, parameters=draw(specs, generator)).machine_for_generation()
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


# --- the second document: its tables and sums live with the lesson `notes`, which computes with them ------------------


def zeros() -> Figures:
    table = masked(np.log(PRINTED_WEIGHTS))
    return {
        "row": masked(np.array([[2.0, 1.0, 0.5]] * 3)),
        "future": future_share(table.zero_scores),
        "printed_sums": PRINTED_WEIGHTS.sum(axis=1),
        "zeroed_sums": zero_after(PRINTED_WEIGHTS).sum(axis=1),
        "right": table.hidden,
    }


def sums() -> Figures:
    right = [PRINTED_SUMS[n][1] + PRINTED_SUMS[n][2] for n in wrong_sums()]
    return {"right": right, "largest": float(np.abs(sinusoidal(6, 512)).max())}


def relation() -> Figures:
    Q, K = np.random.Generator(np.random.PCG64(1)).standard_normal((2, 6, 128))
    try:
        product = str((Q @ K).shape)
    except ValueError:
        product = "impossible: 6 × 128 times 6 × 128"
    scores = Q @ K.T
    shape = f"{scores.shape[0]} × {scores.shape[1]}"
    return {"product": product, "shape": shape, "sum": scores[0].sum(), "softmax": softmax(scores / 128**0.5)[0].sum()}


def heads() -> Figures:
    generator = np.random.Generator(np.random.PCG64(1))
    W_HDK = generator.standard_normal((4, 512, 128))
    x_D = generator.standard_normal(512)
    moved_D = x_D.copy()
    moved_D[500] += 1.0
    return {"moved": [int(np.count_nonzero(linear(x_D, W) != linear(moved_D, W))) for W in W_HDK]}


def forcing() -> Figures:
    decoder_in, right_in, out = (
        text.split() for text in ("<sos> Le chat s'est", "<sos> Le chat s'est assis", "Le chat s'est assis <eos>")
    )
    aligned = ", ".join(f"{a} → {b}" for a, b in zip(right_in, out, strict=True))
    return {"printed_in": len(decoder_in), "out": len(out), "right_in": len(right_in), "aligned": aligned}


FIGURES: dict[int, Callable[[], Figures]] = {
    1: positions,
    2: lambda: {"cosine": math.cos(0.01), "rounded": f"{math.cos(0.01):.2f}"},
    3: matrices,
    4: lambda: {"with_4": 4 + 6, "with_399": 3.99 + 6},
    5: overflow,
    6: reminder,
    7: truncation,
    8: epsilon,
    9: twice_added,
    10: lambda: {
        rows: largest_difference(*NUMBERS[rows]) for rows in ("six_blocks", "six_decoder_blocks", "generating")
    },
    11: attentions,
    14: mask,
    15: cross_norm,
    16: norm_of_a_norm,
    18: logits_shape,
    19: wrong_axis,
    20: other_logits,
    21: redrawn,
    25: zeros,
    26: lambda: {"table": sinusoidal(50, 8), "error": rotation_error(sinusoidal(50, 8), 5)},
    27: sums,
    29: relation,
    30: heads,
    33: forcing,
}
