"""The NumPy line that makes each quantity from its inputs, to read and to try.

A test runs every line on the inputs of a trace and compares the outcome with what the glass computed.
"""

from vidrio.glass.numbers.stages import Stage
from vidrio.glass.paper.transformer import Machine

# {0}, {1}, … are the inputs' names; {L} the rows' axis.
_LINES = {
    "lookup": "{0}[{1}]",
    "scale": "{0}{scale}",
    "project": "{0} @ {1}{bias}",
    "project_tied": "{0} @ {1}.T{bias}",
    "lookup_whole": "{0}[{1}] * {2}[{1}, None]",
    "scale_of_rows": "np.where((m := np.abs({0}).max(-1)) < 2**-100, 1, m / 127)",
    "scale_of_weight_rows": "np.where((m := np.abs({0}).max(1)) > 0, m, 1) / 63",
    "scale_of_weight_columns": "np.where((m := np.abs({0}).max(0)) > 0, m, 1) / 63",
    "whole_by_rows": "np.rint({0} * (1 / {1})[..., None])",
    "whole_by_columns": "np.rint({0} / {1})",
    "whole_table": "np.rint({0} / {1}[:, None])",
    "whole_product": "{0} @ {1}",
    "whole_product_tied": "{0} @ {1}.T",
    "restore": "{0} * ({1}[..., None] * {2}){bias}",
    "concat": "np.concatenate([{all}], axis=-1)",
    "rows_dot_rows": "{0} @ {1}.T",
    "rows_dot_columns": "{0} @ {1}",
    "divide": "{0} / np.sqrt({K})",
    "divide_by": "{0} / {divisor!r}",
    "mask": "np.where(np.tri(len({0}), dtype=bool), {0}, -np.inf)",
    "zero_scores": "np.where(np.tri(len({0}), dtype=bool), {0}, 0.0)",
    "softmax": "(e := np.exp({0} - {0}.max(-1, keepdims=True))) / e.sum(-1, keepdims=True)",
    "naive_softmax": "np.exp({0}) / np.exp({0}).sum(-1, keepdims=True)",
    "add": "{0} + {1}",
    "copy": "{0}",
    "mean": "{0}.mean(-1)",
    "variance": "(({0} - {1}[:, None]) ** 2).mean(-1)",
    "normalise": "({0} - {1}[:, None]) / np.sqrt({2}[:, None] + {epsilon!r})",
    "gain_and_bias": "{0} * {1} + {2}",
    "relu": "np.maximum({0}, 0)",
    "swish": "{0} / (1 + np.exp(-{0}))",
    "gelu": "{0} * 0.5 * (1 + np.vectorize(math.erf)({0} / np.sqrt(2)))",
    "column_mean": "{0}.mean(0)",
    "log_of_choice": "np.log({0}[np.arange(len({1})), {1}])",
    "log_softmax_of_choice": (
        "(z := {0} - {0}.max(-1, keepdims=True))[np.arange(len({1})), {1}] - np.log(np.exp(z).sum(-1))"
    ),
    "learned_positions": "{0}[:{L}]",
    "none_positions": "np.zeros(({L}, {D}))",
    "sinusoidal_positions": (
        "np.where((j := np.arange({D})) % 2 == 0, np.sin(a := np.arange({L})[:, None] / 10000 ** (j // 2 * 2 / {D})), "
        "np.cos(a))"
    ),
    "sinusoidal_halves_positions": (
        "np.hstack([np.sin(a := np.arange({L})[:, None] / 10000 ** (np.arange({D} // 2) * 2 / {D})), np.cos(a)])"
    ),
    "sinusoidal_marian_positions": (
        "np.hstack([np.sin(a := np.arange({L})[:, None] / 10000 ** (np.arange(0, {D}, 2) / ({D} - 2))), np.cos(a)])"
    ),
    "slipped_positions": (
        "np.where((j := np.arange({D})) % 2 == 0, np.sin(a := np.arange({L})[:, None] / 10000 ** (2 * j / {D})), "
        "np.cos(a))"
    ),
}


def numpy_line(stage: Stage, machine: Machine) -> str:
    """`scores = Q @ K.T`; nothing for what is not computed: parameters, ids and the search's choice."""
    if stage.operation not in _LINES:
        return ""
    config, names = machine.config, input_names(stage)
    line = _LINES[stage.operation].format(
        *names,
        all=", ".join(names),
        bias="".join(f" + {name}" for name in names[3 if stage.operation == "restore" else 2 :]),
        scale=f" * np.sqrt({config.d_model})" if config.scale_embeddings else "",
        divisor=float(machine.score_divisor),
        epsilon=config.norm_epsilon,
        K=config.d_head,
        D=config.d_model,
        L=stage.axes[:1],
    )
    return f"{short_name(stage.address)} = {line}"


def input_names(stage: Stage) -> list[str]:
    """Of the inputs, as in `numpy_line`: heads side by side have numbers."""
    names = [short_name(name) for name in stage.inputs]
    if stage.operation == "concat":
        return [f"{name}_{h}" for h, name in enumerate(names)]
    return names


_TOO_SHORT = {"out", "in", "sum", "ids", "scale", "whole", "product"}  # they need the name before them


def short_name(address: str) -> str:
    """A variable's name for a quantity: `scores` of enc.0.self.scores.h1, `norm_out` of enc.0.self.norm.out."""
    parts = [part for part in address.split(".") if not part.lstrip("h").isdigit()]
    return "_".join(parts[-2:]) if parts[-1] in _TOO_SHORT and len(parts) > 1 else parts[-1]
