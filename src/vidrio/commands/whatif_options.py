"""What if …? The options that change the machine or its numbers, shared by look, why and check."""

from typing import Any

import click

from vidrio.commands._options import together

Asked = list[tuple[str, str]]  # ("without", "layer-norm")

# `glass/whatif.py` says which words are valid; help pages must not import it. `take_asked` takes what was given.
whatif_options = together(
    click.option(
        *("--without", "without"),
        metavar="WHAT",
        multiple=True,
        help="Leave out layer-norm, residual, positions, scaling, embedding-scale, cross, ffn, or a layer: enc.1.ffn.",
    ),
    click.option("--softmax", metavar="KIND", help="naive (exp of the scores as they are) or stable."),
    click.option(
        "--mask",
        metavar="KIND",
        help="off, zeros, zero-after, zero-after-renormalised or causal: decoder self-attention.",
    ),
    click.option("--heads-off", metavar="HEAD,…", multiple=True, help="Heads that give out zeros: enc.1.self.h0."),
    click.option(
        *("--positions", "positions"),
        metavar="KIND",
        help="sinusoidal, sinusoidal-halves, sinusoidal-marian, none, or seed (the column for the pair).",
    ),
    click.option("--divisor", metavar="X", help="Divide scores by X instead of √K."),
    click.option("--norm-epsilon", metavar="X", help="ε of layer norm."),
    click.option(
        "--change-dtype", metavar="TYPE", help="Compute in int8 (as the fast engine), float16, float32 or float64."
    ),
    click.option(
        "--set",
        "set_",
        metavar="ADDRESS=X",
        multiple=True,
        help="A parameter or a number on the way; [2,*] is a row, no index at all is all of it.",
    ),
    click.option("--scale", metavar="ADDRESS=X", multiple=True, help="The same, times X."),
)
_NAMES = {
    **{"change_dtype": "change-dtype", "without": "without", "softmax": "softmax", "mask": "mask"},
    **{"positions": "positions", "divisor": "divisor", "norm_epsilon": "norm-epsilon", "heads_off": "heads-off"},
    **{"set_": "set", "scale": "scale"},
}  # by parameter, in the order in which changes are made


def take_asked(given: dict[str, Any]) -> Asked:
    """The what-ifs among a command's arguments, which lose them."""
    asked: Asked = []
    for parameter, option in _NAMES.items():
        words = given.pop(parameter)
        asked += [
            (option, change) for change in (words if isinstance(words, tuple) else (words,)) if change is not None
        ]
    return asked


def as_typed(asked: Asked) -> list[str]:
    """The same again as command-line words."""
    return [part for option, words in asked for part in (f"--{option}", words)]
