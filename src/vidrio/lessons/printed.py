"""Where the post's arithmetic departs from the right one, and the numbers it takes as given on the way.

Nothing else in the lesson knows how the post computes: `as_printed` puts these functions into a machine, and the maths
runs as always. Each departure has the number of its slip (`vidrio lesson errata NUMBER`).
"""

from dataclasses import replace

import numpy as np

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.numbers.trace import Trace
from vidrio.glass.paper.maths import Array, Tap, no_tap
from vidrio.glass.paper.transformer import Machine
from vidrio.glass.paper.variants import naive_softmax, slipped_sinusoidal
from vidrio.glass.proof.cells import Cells, Place
from vidrio.glass.proof.expressions import Expression, Number, apply
from vidrio.glass.proof.receipts import At, Receipt, receipt
from vidrio.glass.proof.recompute import compared, expression

DIVISOR = 30.0  # the post's second try, instead of √3: the weights were almost 0 and 1
EPSILON = 1e-6  # of the post's layer norm, beside the standard deviation


def layer_norm(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """(x − μ) / (σ + 10⁻⁶): ε beside the root, not inside it. Slip 8. The post's γ is 1 and its β is 0."""
    mean_L = tap(f"{name}.mean", x_LD.mean(axis=-1))
    var_L = tap(f"{name}.var", x_LD.var(axis=-1))
    normed_LD = tap(f"{name}.normed", (x_LD - mean_L[:, None]) / (np.sqrt(var_L[:, None]) + EPSILON))
    return tap(f"{name}.out", normed_LD * gain_D + bias_D)


def positions(n_positions: int, d_model: int) -> Array:
    """The column for the pair's number (slip 1), to two decimals, of which one is cut off and not rounded (slip 2)."""
    table_PD = slipped_sinusoidal(n_positions, d_model).round(2)
    if d_model == 4:
        table_PD[1, 1] = 0.99  # cos 0.01 = 0.99995
    return table_PD


def as_printed(machine: Machine) -> Machine:
    """The machine with the post's softmax (slip 5), layer norm (slip 8) and positions (slips 1 and 2)."""
    machine = replace(machine, softmax=naive_softmax, normalise=layer_norm)
    if machine.config.positions != "sinusoidal":
        return machine
    table_PD = positions(machine.config.max_positions, machine.config.d_model)
    return replace(machine, source_positions_PD=table_PD, target_positions_PD=table_PD)


# --- and how it is told -----------------------------------------------------------------------------------------------

SLIPPED = "sin (even column j) or cos (odd) of p / 10000^(2j/D), two decimals"


def stage_of(trace: Trace, name: str) -> Stage:
    """What the table says of a quantity, where the post computes otherwise: what the post does."""
    return as_told(trace.stage(name), trace.machine)


def as_told(stage: Stage, machine: Machine) -> Stage:
    if stage.operation == "normalise" and machine.normalise is layer_norm:
        return replace(stage, formula="(x − mean) / (√var + 10⁻⁶)", latex=r"\frac{x-\mu}{\sigma+10^{-6}}")
    if stage.operation == "sinusoidal_positions" and _has_slipped_positions(machine):
        return replace(stage, operation="slipped_positions", formula=SLIPPED)
    return stage


def receipt_of(trace: Trace, at: At) -> Receipt:
    """The receipt of one number, by the post's arithmetic where that departs. Of a position before it was rounded."""
    bill, stage = receipt(trace, at), stage_of(trace, at.name)
    if trace.machine.normalise is layer_norm:  # ε is beside the root, not inside it
        bill = replace(bill, facts=tuple(fact for fact in bill.facts if "ε" not in fact[0]))
    if stage.operation not in ("normalise", "slipped_positions") or stage == bill.stage:
        return bill
    cells = Cells(trace.as_of(at.step))
    node = (
        _by_deviation(cells, stage, at.place) if stage.operation == "normalise" else expression(cells, stage, at.place)
    )
    again = compared(cells, stage, at.place, node)
    if stage.operation == "slipped_positions":
        again = replace(again, tolerance=0.01)  # two decimals, one of them cut off
    return replace(bill, stage=stage, expression=node, compared=again)


def _by_deviation(cells: Cells, stage: Stage, place: Place) -> Expression:
    x, mean, var = stage.inputs
    deviation = apply("sqrt", cells.number(var, place[:1])) + Number(EPSILON)
    return (cells.number(x, place) - cells.number(mean, place[:1])) / deviation


def _has_slipped_positions(machine: Machine) -> bool:
    config, table_PD = machine.config, machine.source_positions_PD
    return np.array_equal(table_PD, positions(config.max_positions, config.d_model))


# --- what the post prints and goes on with ----------------------------------------------------------------------------

# Z as the post repeats it before its feed-forward layer, from a W with more digits than it prints. Slip 6.
REMINDER_Z = np.array([[11.46394281, -13.18016469, -11.59340253, -17.04387833],
                       [11.62608569, -13.47454934, -11.87126395, -17.49263674]])  # fmt: skip

# Results of random draws that later numbers of the post are made from.
SELF_ATTENTION_OF_SOS = np.array([[2.19334924, 10.61851198, -4.50089666, -2.76366551]])
ASSUMED_MEMORY = np.array([[-1.5, 1.0, -0.8, 1.5], [1.0, -1.0, -0.5, 1.0]])
CROSS_ATTENTION_OF_SOS = np.array([[1.57651431, 4.92489307, -0.08644448, -0.46776051]])
ASSUMED_DECODER_OUTPUT = np.array([[1.0, 0.0, 1.0, 0.0]])
# The logits of an earlier version of the post; its probabilities are still those of these. Slip 20.
EARLIER_LOGITS = np.array([[-0.39929948, 0.96345013, 2.77090264, 0.25651866, -0.84738762,
                            -1.67834992, -0.29583529, -3.55515281, 2.97453801, -1.10682376]])  # fmt: skip

# --- what the post prints and contradicts -----------------------------------------------------------------------------

# Two matrices as the post's text has them; its code, and all its results, have others. Slip 3.
WQ1_OF_THE_TEXT = np.array([[0, 0, 0], [1, 1, 0], [0, 0, 1], [1, 1, 0]], dtype=float)
WK2_OF_THE_TEXT = np.array([[0, 1, 1], [1, 0, 1], [1, 0, 1], [0, 1, 0]], dtype=float)

SELF_NORM_OF_SOS = np.array([[0.17236212, 1.54684892, -1.0828824, -0.63632864]])  # right, from the row above
CROSS_NORM_OF_SOS = np.array([[-0.44406723, 1.6552893, -0.19984632, -1.01137575]])  # slip 15
FEED_FORWARD_NORM_OF_SOS = np.array([[-0.97650182, 0.81470137, -2.79122044, -3.39192873]])  # slip 16
LOGITS = np.array([0.06900542, -1.81351091, -1.3122958, -0.33197364, 2.54767851,
                   -1.55188231, 0.82907169, 0.85910931, -0.32982856, -1.26792439])  # fmt: skip

# Rows of two words after six blocks, three times in the post. Slip 10.
SIX_BLOCKS = np.array([[-0.335849, -1.44504571, 1.21698183, 0.56391289],
                       [-0.33583947, -1.44504861, 1.21698606, 0.56390202]])  # fmt: skip
SIX_DECODER_BLOCKS = np.array([[0.25919176, 1.49913566, -1.14331487, -0.61501256],
                               [0.25956188, 1.49896896, -1.14336934, -0.61516151]])  # fmt: skip
GENERATING = np.array([[1.14747807, -1.5941759, 0.36847675, 0.07822107],
                       [1.14747705, -1.59417696, 0.36847441, 0.07822551]])  # fmt: skip
