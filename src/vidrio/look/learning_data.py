"""What a model's folder tells of its learning, as data for the page: the same sentence at every age, what the right
answer costs token by token, and one parameter's life. The glass computes all of it; PyTorch is not needed."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from vidrio.errors import AddressError, InputError
from vidrio.glass.numbers.trace import parameter_array, parse_address
from vidrio.glass.paper.transformer import build
from vidrio.glass.proof.receipts import locate
from vidrio.learn.run.run_files import snapshots
from vidrio.look.history import history
from vidrio.look.measures import likeliest
from vidrio.look.run import LoadedModel, Look, look, target_ids
from vidrio.model.folder import read_parameters


def ages_data(model: LoadedModel, text: str, target: Sequence[int]) -> dict[str, Any] | None:
    """The same sentence from random to trained; None where the folder keeps no snapshots."""
    if not snapshots(model.path / "run") or not text.strip():
        return None
    return history(model, text, target=target or None).to_json()


def forced_data(model: LoadedModel, text: str, answer: str) -> dict[str, Any]:
    """Teacher forcing: what −log p the model pays for every token of the right answer, those before it given."""
    if not model.config.has_decoder:
        raise InputError("this model tells classes: there is no answer to force token by token")
    seen = look(model, text, target=target_ids(model, answer))
    if seen.empty:
        raise InputError("there is nothing to learn from an empty text")
    score_T = seen.trace.values["out.score"].astype(np.float64)
    prob_TV = seen.trace.values["out.prob"]
    tokens = [
        {
            "reads": seen.trace.target_tokens[t],
            "should_say": token,
            "address": f"out.prob[{seen.chosen_ids[t]}]@{t}",
            "p": float(np.exp(score_T[t])),
            "loss": float(-score_T[t]),
            "rank": int((prob_TV[t] > prob_TV[t, seen.chosen_ids[t]]).sum()) + 1,
            "instead": likeliest(seen, t, 1)[0].token,
        }
        for t, token in enumerate(seen.trace.chosen_tokens)
    ]
    knows_nothing = float(np.log(model.config.target_vocabulary))
    return {"tokens": tokens, "sum": float(-score_T.sum()), "mean": float(-score_T.mean()), "nothing": knows_nothing}


def life_data(seen: Look, address: str) -> dict[str, Any]:
    """One parameter at every age, from the snapshots of the run."""
    at = locate(seen.trace, parse_address(address))
    model = seen.model
    kept = snapshots(model.path / "run")
    if seen.trace.stages[at.name].kind != "parameter":
        raise AddressError(
            f"{address} is no parameter", do="open one: the numbers a quantity is made from lead to them"
        )
    if not kept:
        raise InputError("this model's folder keeps no snapshots of its training", found=str(model.path / "run"))
    dtype = next(iter(model.machine.parameters.values())).dtype.type
    ages = [
        {
            "step": step,
            "value": float(parameter_array(build(model.config, read_parameters(folder), dtype), at.name)[at.place]),
        }
        for step, folder in kept
    ]
    return {"address": str(at), "ages": [*ages, {"step": None, "value": float(seen.trace.array(at.name)[at.place])}]}
