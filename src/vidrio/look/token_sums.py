"""Splits the difference between two logits into contributions of the input tokens of the encoder and the decoder.

The parts in `parts.py` go back only to the inputs of the last stack, including the memory, whose rows mix information
from the entire source. This module goes back to the inputs of both stacks. The model is affine if attention weights,
gates, norm variances and the ratio of each activation's output to its input (0 or 1 for ReLU) are held fixed (Ali et
al., 2022). Apart from rounding, the difference is then the sum of the contributions of the input rows and the biases.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.look.parts import before_norm, parameter


class TokenSums(NamedTuple):
    """The contributions to N differences: of each source token, of each target token, and of all biases together."""

    source_NS: Array
    target_NT: Array
    biases_N: Array


def token_sums(trace: Trace, rows: Sequence[int], d_ND: Array) -> TokenSums:
    """Split the differences at the decoder's `rows` into contributions of the input tokens and the biases.

    `d_ND` contains the difference between two columns of the output matrix for each row. A classifier has one row, the
    mean of the memory. The output bias is not included.
    """
    values, biases, count = trace.values, [np.zeros(len(d_ND))], len(d_ND)
    source = target = np.zeros((count, 0))
    if trace.machine.config.has_decoder:
        d_NRD = np.zeros((count, *values["dec.out"].shape))
        d_NRD[np.arange(count), list(rows)] = d_ND
        d_NRD, memory_NSD = _to_input(trace, "dec", d_NRD, biases)
        target = (d_NRD * values["dec.in"]).sum(axis=-1)
    else:
        n = len(values["memory"])
        memory_NSD = np.repeat(d_ND[:, None] / n, n, axis=1)
    if trace.machine.config.has_encoder:
        d_NSD, _ = _to_input(trace, "enc", memory_NSD, biases)
        source = (d_NSD * values["enc.in"]).sum(axis=-1)
    return TokenSums(source, target, np.sum(biases, axis=0))


def _to_input(trace: Trace, side: str, d_NRD: Array, biases: list[Array]) -> tuple[Array, Array]:
    """Propagate d back from the output of a stack to its input, and to the memory if it has cross-attention."""
    config, memory_NSD = trace.machine.config, np.zeros(())
    pre, layers = config.norm == "pre", config.n_decoder_layers if side == "dec" else config.n_encoder_layers
    if pre:
        d_NRD = _norm(trace, d_NRD, f"{side}.norm", biases)
    for name in (f"{side}.{n}.{kind}" for n in reversed(range(layers)) for kind in ("ffn", "cross", "ssru", "self")):
        if f"{name}.out" not in trace.values:
            continue
        d_NRD = d_NRD if pre else _norm(trace, d_NRD, f"{name}.norm", biases)
        read = _BACK[name.rpartition(".")[2]](trace, d_NRD, name, biases)
        if name.endswith(".cross"):
            memory_NSD = memory_NSD + read
        else:
            d_NRD = d_NRD + (_norm(trace, read, f"{name}.norm", biases) if pre else read)
    return d_NRD, memory_NSD


def _norm(trace: Trace, d_NRD: Array, name: str, biases: list[Array]) -> Array:
    biases.append(d_NRD.sum(axis=1) @ parameter(trace, f"{name}.bias"))
    return before_norm(trace, d_NRD, name)


def _attention(trace: Trace, d_NRD: Array, name: str, biases: list[Array]) -> Array:
    has_bias, read = f"{name}.bO" in trace.machine.parameters, np.zeros(())
    if has_bias:
        biases.append(d_NRD.sum(axis=1) @ parameter(trace, f"{name}.bO"))
    WV_HDK, WO_ED = parameter(trace, f"{name}.WV"), parameter(trace, f"{name}.WO")
    for h, WO_KD in enumerate(np.split(WO_ED, len(WV_HDK))):
        d_NSK = trace.values[f"{name}.weights.h{h}"].T.astype(float) @ (d_NRD @ WO_KD.T)
        read = read + d_NSK @ WV_HDK[h].T
        if has_bias:
            biases.append(d_NSK.sum(axis=1) @ parameter(trace, f"{name}.bV", h))
    return read


def _feed_forward(trace: Trace, d_NRD: Array, name: str, biases: list[Array]) -> Array:
    hidden, active = (trace.values[f"{name}.{part}"].astype(float) for part in ("hidden", "active"))
    d_NRF = d_NRD @ parameter(trace, f"{name}.W2").T
    d_NRF *= np.divide(active, hidden, out=np.zeros_like(hidden), where=hidden != 0)
    biases.append(
        d_NRD.sum(axis=1) @ parameter(trace, f"{name}.b2") + d_NRF.sum(axis=1) @ parameter(trace, f"{name}.b1")
    )
    return d_NRF @ parameter(trace, f"{name}.W1").T


def _cell(trace: Trace, d_NRD: Array, name: str, biases: list[Array]) -> Array:
    forget, cell = (trace.values[f"{name}.{part}"].astype(float) for part in ("forget", "cell"))
    d_NRD = d_NRD * (cell > 0)
    for row in reversed(range(1, len(cell))):
        d_NRD[:, row - 1] += d_NRD[:, row] * forget[row]
    return d_NRD * (1 - forget) @ parameter(trace, f"{name}.W").T


_BACK = {"ffn": _feed_forward, "cross": _attention, "self": _attention, "ssru": _cell}
