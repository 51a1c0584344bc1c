"""Computes similarities between tokens, and finds the most probable tokens."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.look.run import Look
from vidrio.model.parameters import source_table, target_table
from vidrio.search import largest

NEAR = 5  # number of nearest neighbours to list per token


def mean_of_heads(trace: Trace, name: str) -> Array:
    """Return the mean of a quantity over its heads, e.g. of `dec.1.cross.weights.h0`, `dec.1.cross.weights.h1`, …"""
    mean: Array = np.mean([trace.array(f"{name}.h{h}") for h in range(trace.machine.config.n_heads)], axis=0)
    return mean


# --- similarities -----------------------------------------------------------------------------------------------------


def cosines(a_LD: Array, b_MD: Array) -> Array:
    """Return the cosine similarity a · b / (|a| |b|) of each pair of rows, or 0 if either row is zero."""
    lengths = np.linalg.norm(a_LD, axis=1)[:, None] * np.linalg.norm(b_MD, axis=1)[None, :]
    return np.divide(a_LD @ b_MD.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)


def neighbours(table_VD: Array, rows: Sequence[int], count: int) -> dict[int, list[tuple[int, float]]]:
    """For each given row of a table, return the `count` most similar other rows and their cosine similarities."""
    nearest = {}
    for row, cosine_V in zip(rows, cosines(table_VD[list(rows)], table_VD), strict=True):
        order = [int(i) for i in largest(cosine_V, count + 1) if i != row]
        nearest[row] = [(i, float(cosine_V[i])) for i in order[:count]]
    return nearest


def alike(trace: Trace, side: str) -> dict[str, Any]:
    """Return the similarities between the embeddings of the source (`src`) or target (`tgt`) tokens, and each token's
    nearest neighbours in the vocabulary."""
    config = trace.machine.config
    table, words = source_table(config), trace.source_vocabulary
    if side == "tgt":
        table, words = target_table(config), trace.vocabulary
    ids, rows_LD = trace.array(f"{side}.ids").tolist(), trace.array(f"{side}.embedding")
    near = neighbours(trace.array(table), list(dict.fromkeys(ids)), NEAR)
    return {
        "quantity": f"{side}.embedding",
        "table": table,
        "tokens": [words[i] for i in ids],
        "cosines": cosines(rows_LD, rows_LD).tolist(),
        "nearest": [
            {"token": words[i], "near": [{"token": words[j], "cosine": cosine} for j, cosine in found]}
            for i, found in near.items()
        ],
    }


# --- likely tokens ----------------------------------------------------------------------------------------------------


class Candidate(NamedTuple):
    """A possible next token."""

    id: int
    token: str
    p: float  # the model's probability
    taken: bool  # whether this token was chosen


def listed(seen: Look, step: int, count: int) -> list[int]:
    """Return the ids of the most probable next tokens at a step, and of the chosen token if it is not among them."""
    likely = largest(seen.trace.values["out.prob"][step], count).tolist()
    return list(dict.fromkeys([*likely, seen.chosen_ids[step]]))


def likeliest(seen: Look, step: int, count: int) -> list[Candidate]:
    """Return the most probable next tokens at a step, and the chosen token if it is not among them."""
    prob_V, taken, tokens = seen.trace.values["out.prob"][step], seen.chosen_ids[step], seen.trace.vocabulary
    return [Candidate(i, tokens[i], float(prob_V[i]), i == taken) for i in listed(seen, step, count)]


def classes(seen: Look) -> list[tuple[str, int, float]]:
    """Return each class's name, index and probability, most probable first."""
    prob_C = seen.trace.values["out.prob"]
    names = list(seen.trace.labels) or [f"class {c}" for c in range(len(prob_C))]
    return [(names[c], int(c), float(prob_C[c])) for c in np.argsort(-prob_C, kind="stable")]
