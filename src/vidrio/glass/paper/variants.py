"""Functions that can stand in the place of the paper's: what people try, and what they get wrong. For what-ifs."""

import numpy as np

from vidrio.glass.paper import positions
from vidrio.glass.paper.attention import allowed_LM
from vidrio.glass.paper.maths import Array, Tap, no_tap


def naive_softmax(x: Array) -> Array:
    """exp(xᵢ) / Σⱼ exp(xⱼ) as the formula stands: exp overflows above 709.78 (88.72 in float32), and ∞/∞ is NaN."""
    with np.errstate(over="ignore", invalid="ignore"):
        exp = np.exp(x)
        return exp / exp.sum(axis=-1, keepdims=True)


def unmasked(scaled_HLM: Array, name: str, tap: Tap) -> Array:
    """Nothing is hidden: every row sees the later ones that are there."""
    return tap(name, scaled_HLM)


def zero_scores(scaled_HLM: Array, name: str, tap: Tap) -> Array:
    """Scores of later rows set to 0: a common slip, for 0 is a score like any other and hides nothing."""
    return tap(name, np.where(allowed_LM(*scaled_HLM.shape[-2:]), scaled_HLM, 0.0))


def zero_after(weights_HLM: Array) -> Array:
    """Weights of later rows set to 0 after the softmax: they are hidden, but the rows no longer sum to 1."""
    return np.where(allowed_LM(*weights_HLM.shape[-2:]), weights_HLM, weights_HLM.dtype.type(0))


def zero_after_renormalised(weights_HLM: Array) -> Array:
    """The same with each row divided by its sum: again what −∞ before the softmax gives."""
    kept_HLM = zero_after(weights_HLM)
    return kept_HLM / kept_HLM.sum(axis=-1, keepdims=True)


def unnormalised(x_LD: Array, gain_D: Array, bias_D: Array, epsilon: float, name: str, tap: Tap = no_tap) -> Array:
    """No layer norm: the rows go on as they are."""
    return tap(f"{name}.out", x_LD)


def no_residual(x_LD: Array, made_LD: Array) -> Array:
    """What came in is lost: only what the sub-layer made of it goes on."""
    return made_LD


def slipped_sinusoidal(n_positions: int, d_model: int) -> Array:
    """The worked example's slip: the column j stands where the pair's number i should, so that no two columns share a
    frequency. Row 1 of width 4 begins sin 1, cos 0.01 instead of sin 1, cos 1."""
    scale_D = positions.exp(2 * np.arange(d_model) / d_model * positions.LOG_10000)
    sine_PD, cosine_PD = positions.sine_and_cosine(np.arange(n_positions)[:, None] / scale_D)
    return np.where(np.arange(d_model) % 2 == 0, sine_PD, cosine_PD)
