"""How words are chosen: what the search may be asked to do otherwise, and what temperature, top-k and top-p leave.

Three changes are about the search and not about the machine:

    ("prefix", "Ayer he")                  the translation begins with these words
    ("pin", "▁Ayer ▁compr é")              with these tokens; it is whole if the end token is among them
    ("draw", "temperature=1.2 top-k=10")   each token is drawn at random
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from vidrio.errors import ConfigError, nearest
from vidrio.glass.whatif.whatif import Change
from vidrio.hypothesis import Options, Sampling
from vidrio.look.run import LoadedModel, Look
from vidrio.search import drawable, largest, restrict

Asked = tuple[str, str]
_DRAWS = {"temperature": float, "top-k": int, "top-p": float, "seed": int}
LISTED = 12  # tokens; the others are told by their sum


@dataclass(frozen=True)
class Searching:
    """How to search: options, or the whole translation given; and in words, what of it was asked for."""

    options: Options
    target: tuple[int, ...] | None
    changes: tuple[Change, ...]


def is_about_the_search(asked: Asked) -> bool:
    return asked[0] in ("prefix", "pin", "draw")


def searching(asked: Sequence[Asked], model: LoadedModel, options: Options) -> Searching:
    """What the changes that are about the search ask for."""
    target, changes = None, []
    for option, words in asked:
        if model.config.shape != "encoder-decoder":
            raise ConfigError(f"--{option}: this model does not translate", do="type another text instead")
        if option == "draw":
            options = replace(options, beam=1, n_best=1, sampling=_sampling(words))
            says = "each token is drawn at random"
        else:
            encode = model.target_tokenizer.encode
            ids = tuple(encode(words) if option == "prefix" else _ids(words, model.target_vocabulary))
            end = model.config.special.end
            target = ids if ids and ids[-1] == end else target
            options = replace(options, prefix=ids[: options.max_length - 1])
            says = "the translation begins with these words" if option == "prefix" else "this hypothesis is taken"
        changes.append(Change(says, asked=f"--{option} {words}"))
    return Searching(options, target, tuple(changes))


def _ids(words: str, vocabulary: Sequence[str]) -> list[int]:
    places = {token: i for i, token in enumerate(vocabulary)}
    unknown = [token for token in words.split() if token not in places]
    if unknown:
        near = nearest(unknown[0], list(vocabulary))
        raise ConfigError(f"there is no token {unknown[0]!r} to begin with", found=f"the nearest: {near}")
    return [places[token] for token in words.split()]


def _sampling(words: str) -> Sampling:
    given: dict[str, Any] = {}
    for word in words.split():
        name, _, value = word.partition("=")
        try:
            given[name.replace("-", "_")] = _DRAWS[name](value)
        except (KeyError, ValueError):
            raise ConfigError(f"--draw: {word!r} cannot be read", found=f"name=value, of {', '.join(_DRAWS)}") from None
    return Sampling(**given)


def choosing_data(seen: Look, step: int, sampling: Sampling) -> dict[str, Any]:
    """The choice at one decoding step: logits, the model's probabilities, and those to be drawn by, which temperature
    changes and top-k and top-p cut."""
    trace, end = seen.trace, seen.model.config.special.end
    logits_V, prob_V = (trace.values[f"out.{name}"][step].astype(np.float64) for name in ("logits", "prob"))
    options = replace(seen.options, beam=1, n_best=1, sampling=sampling)
    allowed_V = restrict(logits_V, tuple(seen.chosen_ids[:step]), end, options)
    rows = {"p": prob_V, "tempered": np.zeros(len(prob_V)), "drawn": np.zeros(len(prob_V))}
    for name, cuts in (("tempered", Sampling(temperature=sampling.temperature)), ("drawn", sampling)):
        tokens, probs = drawable(allowed_V, cuts)
        rows[name][tokens] = probs
    taken = seen.chosen_ids[step]
    ids = [int(i) for i in largest(prob_V, LISTED)]
    ids += [taken] if taken not in ids else []
    rest = np.ones(len(prob_V), dtype=bool)
    rest[ids] = False
    return {
        "step": step,
        "largest": float(logits_V.max()),
        "log_sum_exp": float(np.log(np.exp(logits_V - logits_V.max()).sum()) + logits_V.max()),
        "tokens": [
            {
                "token": trace.vocabulary[i],
                "id": i,
                "logit_address": f"out.logits[{i}]@{step}",
                "logit": float(logits_V[i]),
                "address": f"out.prob[{i}]@{step}",
                **{name: float(row_V[i]) for name, row_V in rows.items()},
                "taken": i == taken,
                "forbidden": bool(np.isneginf(allowed_V[i])),
            }
            for i in ids
        ],
        "left": int((rows["drawn"] > 0).sum()),
        "others": {"count": int(rest.sum()), **{name: float(row_V[rest].sum()) for name, row_V in rows.items()}},
    }
