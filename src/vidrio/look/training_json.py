"""One training step on one pair as JSON: what the views of training tell, every number in full."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from vidrio._version import __version__
from vidrio.look.manifest import identity
from vidrio.look.run import Look
from vidrio.look.training import disagreement, names_of, words
from vidrio.look.training_numbers import parameter
from vidrio.model.json_text import json_text

if TYPE_CHECKING:
    from vidrio.learn.next_step import Rules
    from vidrio.learn.one_step import Seen


def to_json(
    seen: "Seen", looked: Look, rules: "Rules", gradients: Sequence[str] = (), lives: Sequence[str] = ()
) -> str:
    """The same as data; every number in full."""
    names, expected = names_of(seen, looked), words(seen, looked)
    read = [looked.trace.vocabulary[i] for i in seen.read]
    tokens = [
        {
            "place": t,
            "reads": read[t] if read else None,
            "should_say": expected[t],
            "log_p": float(seen.log_p_T[t]),
            "rank": int(seen.ranks_T[t]),
            "likeliest": names[int(np.argmax(seen.log_p_TV[t]))],
            "minus_log_p": float(seen.losses_T2[t, 1]),
            "mean_minus_log_p_of_all": float(-seen.log_p_TV[t].mean()),
            "loss": float(seen.losses_T2[t, 0]),
        }
        for t in range(len(expected))
    ]
    data = {
        "kind": "vidrio-training",
        "format": 1,
        "vidrio": __version__,
        "model": identity(looked.model),
        "text": looked.text,
        "smoothing": seen.smoothing,
        "differs_from_glass_by": disagreement(seen, looked),
        "tokens": tokens,
        "loss": {
            "sum": float(seen.losses_T2[:, 0].sum()),
            "mean": seen.loss,
            "without_smoothing": {
                "sum": float(seen.losses_T2[:, 1].sum()),
                "mean": float(seen.losses_T2[:, 1].mean()),
            },
        },
        "gradient_length": float(seen.gradient.norm()),
        "gradient_length_of": {name: float(np.linalg.norm(array)) for name, array in seen.gradients.items()},
        "gradients": [_gradient_as_data(seen, looked, where) for where in gradients],
        "lives": [_life_as_data(seen, looked, rules, where) for where in lives],
    }
    return json_text(data, indent=1) + "\n"


def _gradient_as_data(seen: "Seen", looked: Look, where: str) -> dict[str, Any]:
    address, place = parameter(seen, looked, where)
    differences = [
        {**asdict(d), "quotient": d.quotient, "relative_error": d.relative_error} for d in seen.differences(place)
    ]
    value, slope = float(seen.parameters.flat[place]), float(seen.gradient[place])
    return {"address": str(address), "value": value, "gradient": slope, "differences": differences}


def _life_as_data(seen: "Seen", looked: Look, rules: "Rules", where: str) -> dict[str, Any]:
    address, place = parameter(seen, looked, where)
    return {"address": str(address), **asdict(seen.life(place, rules)), "told": rules.told}
