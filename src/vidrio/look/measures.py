"""Measures of a run: similarities of tokens' rows, and the most probable tokens."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vidrio.glass.maths import Array
from vidrio.glass.trace import Trace
from vidrio.look.run import Look
from vidrio.model.parameters import source_table, target_table
from vidrio.search import largest

NEAR = 5  # neighbours of a token


def mean_of_heads(trace: Trace, name: str) -> Array:
    """The mean over heads: of `dec.1.cross.weights.h0`, `.h1`, … for `dec.1.cross.weights`."""
    mean: Array = np.mean([trace.array(f"{name}.h{h}") for h in range(trace.machine.config.n_heads)], axis=0)
    return mean


# --- the rows of tokens -----------------------------------------------------------------------------------------------


def cosines(a_LD: Array, b_MD: Array) -> Array:
    """cos(a, b) = a · b / (|a| |b|) of every row with every row; 0 if a row is all zeros."""
    lengths = np.linalg.norm(a_LD, axis=1)[:, None] * np.linalg.norm(b_MD, axis=1)[None, :]
    return np.divide(a_LD @ b_MD.T, lengths, out=np.zeros(lengths.shape), where=lengths > 0)


def neighbours(table_VD: Array, rows: Sequence[int], count: int) -> dict[int, list[tuple[int, float]]]:
    """For each of these rows of a table, the rows that are most similar by cosine."""
    nearest = {}
    for row, cosine_V in zip(rows, cosines(table_VD[list(rows)], table_VD), strict=True):
        order = [int(i) for i in largest(cosine_V, count + 1) if i != row]
        nearest[row] = [(i, float(cosine_V[i])) for i in order[:count]]
    return nearest


def alike(trace: Trace, side: str) -> dict[str, Any]:
    """For the tokens of one side, `src` or `tgt`: the similarities of their embeddings, and the nearest neighbours of
    each."""
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
    p: float  # the model's own probability
    taken: bool


def listed(seen: Look, step: int, count: int) -> list[int]:
    """The ids of the most probable next tokens, and the chosen one even if it is not among them."""
    likely = largest(seen.trace.values["out.prob"][step], count).tolist()
    return list(dict.fromkeys([*likely, seen.chosen_ids[step]]))


def likeliest(seen: Look, step: int, count: int) -> list[Candidate]:
    """The most probable next tokens at a decoding step, and the chosen one even if it is not among them."""
    prob_V, taken, tokens = seen.trace.values["out.prob"][step], seen.chosen_ids[step], seen.trace.vocabulary
    return [Candidate(i, tokens[i], float(prob_V[i]), i == taken) for i in listed(seen, step, count)]


def classes(seen: Look) -> list[tuple[str, int, float]]:
    """A classifier's classes, most probable first: name, number, probability."""
    prob_C = seen.trace.values["out.prob"]
    names = list(seen.trace.labels) or [f"class {c}" for c in range(len(prob_C))]
    return [(names[c], int(c), float(prob_C[c])) for c in np.argsort(-prob_C, kind="stable")]
