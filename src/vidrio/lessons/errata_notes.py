"""Slips 25 to 33: the second document. Its tables and sums live with the lesson `notes`, which computes with them."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from vidrio.glass.paper.maths import linear, softmax
from vidrio.glass.paper.positions import sinusoidal
from vidrio.glass.paper.variants import zero_after
from vidrio.lessons.notes_attention import PRINTED_WEIGHTS, future_share, masked
from vidrio.lessons.notes_positions import PRINTED_SUMS, rotation_error, wrong_sums


def zeros() -> Mapping[str, Any]:
    small = masked(np.array([[2.0, 1.0, 0.5]] * 3))
    table = masked(np.log(PRINTED_WEIGHTS))
    return {
        "scores 2, 1, 0.5, the last two set to 0, then softmax": small.zero_scores[0],
        "the same with −∞ (right)": small.hidden[0],
        "the table: what the future keeps of each row if scores are set to 0": future_share(table.zero_scores),
        "the table: sums of its rows as printed": PRINTED_WEIGHTS.sum(axis=1),
        "the table: sums of its rows if weights are set to 0": zero_after(PRINTED_WEIGHTS).sum(axis=1),
        "the table, right": table.hidden,
    }


def dimensions() -> Mapping[str, Any]:
    table_PD = sinusoidal(50, 8)
    return {
        "position 1: sines in the even columns, cosines in the odd": table_PD[1],
        "position 2: the same": table_PD[2],
        "one rotation leads from any position to the fifth after it; largest error": rotation_error(table_PD, 5),
    }


def sums() -> Mapping[str, Any]:
    wrong = [PRINTED_SUMS[n] for n in wrong_sums()]
    figures: dict[str, float] = {f"{a:.3f} + {b:.3f} (printed: {total:.3f})": a + b for _, a, b, total in wrong}
    return {**figures, "largest |position| in the table of §3.5": float(np.abs(sinusoidal(6, 512)).max())}


def relation() -> Mapping[str, Any]:
    generator = np.random.Generator(np.random.PCG64(1))
    Q, K = generator.standard_normal((2, 6, 128))
    try:
        product = str((Q @ K).shape)
    except ValueError:
        product = "impossible: 6 × 128 times 6 × 128"
    scores = Q @ K.T
    return {
        "Q K for 6 words": product,
        "Q Kᵀ": f"{scores.shape[0]} × {scores.shape[1]}",
        "sum of a row of Q Kᵀ": scores[0].sum(),
        "sum of a row of softmax(Q Kᵀ / √128)": softmax(scores / np.sqrt(128))[0].sum(),
    }


def heads() -> Mapping[str, Any]:
    generator = np.random.Generator(np.random.PCG64(1))
    W_HDK = generator.standard_normal((4, 512, 128))
    x_D = generator.standard_normal(512)
    moved_D = x_D.copy()
    moved_D[500] += 1.0
    return {
        "numbers of a head's 128 that move when number 500 of 512 moves": [
            int(np.count_nonzero(linear(x_D, W) != linear(moved_D, W))) for W in W_HDK
        ],
    }


def forcing() -> Mapping[str, Any]:
    decoder_in, right_in = "<sos> Le chat s'est", "<sos> Le chat s'est assis"
    out = "Le chat s'est assis <eos>"
    return {
        "tokens in, as printed": len(decoder_in.split()),
        "tokens out": len(out.split()),
        "tokens in, right": len(right_in.split()),
        "each word in, and the word that has to come out": ", ".join(
            f"{a} → {b}" for a, b in zip(right_in.split(), out.split(), strict=True)
        ),
    }


FIGURES: dict[int, Callable[[], Mapping[str, Any]]] = {
    25: zeros,
    26: dimensions,
    27: sums,
    29: relation,
    30: heads,
    33: forcing,
}
