"""Exercises 7 and 8 of the first document: from the decoder's output to probabilities, and why greedy goes wrong."""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.maths import Array, softmax
from vidrio.glass.paper.transformer import Machine
from vidrio.hypothesis import Options
from vidrio.lessons.as_data import Measured
from vidrio.lessons.machines import random_machine
from vidrio.lessons.notes_text import first_step
from vidrio.search import Tree, search

# --- 7: from the decoder's output to probabilities --------------------------------------------------------------------

TEMPERATURES = (1.0, 0.5, 2.0)


def measure_probabilities() -> Measured:
    """The first decoding step of `hello world`: the last row, its logits, and probabilities by temperature."""
    trace = first_step()
    logits_V = trace.values["out.logits"][0]
    order, exps = np.argsort(-logits_V)[:10], np.exp(logits_V - logits_V.max())
    by_temperature = {T: softmax(logits_V / T) for T in TEMPERATURES}
    probabilities = list(by_temperature.values())
    return Measured(
        {
            **{"order": order, "best": order[0], "exps": exps, "exp_sum": exps.sum()},
            **{"probabilities": probabilities, "sums": [prob_V.sum() for prob_V in probabilities]},
        },
        words=trace.vocabulary,
        row_D=trace.values["dec.out"][0],
        logits_V=logits_V,
        prob_V=trace.values["out.prob"][0],
        by_temperature=by_temperature,
    )


# --- 8: why not always the likeliest word? ----------------------------------------------------------------------------

START, END = "<s>", "</s>"
CORPUS = (
    "la noche llega",
    "la luna brilla",
    "la casa duerme",
    "la tarde espera",
    "el sol brilla",
    "el sol brilla",
    "el sol brilla",
)


def counted_model(corpus: Sequence[str] = CORPUS) -> tuple[list[str], Callable[[Sequence[tuple[int, ...]]], Array]]:
    """The smallest language model: how often each word follows another in these sentences. Words, and its `step`."""
    sentences = [[START, *line.split(), END] for line in corpus]
    words = list(dict.fromkeys(word for sentence in sentences for word in sentence))
    counts_VV = np.zeros((len(words), len(words)))
    for sentence in sentences:
        for before, after in pairwise(sentence):
            counts_VV[words.index(before), words.index(after)] += 1
    counts_VV[words.index(END), words.index(END)] = 1  # nothing follows the end
    with np.errstate(divide="ignore"):
        log_VV = np.log(counts_VV / counts_VV.sum(axis=1, keepdims=True))
    return words, lambda prefixes: log_VV[[prefix[-1] for prefix in prefixes]]


def measure_counted() -> Measured:
    """Greedy, a beam of 2, and a beam so wide that nothing is dropped, on the counted model."""
    words, step = counted_model()
    start, end = words.index(START), words.index(END)
    found, trees = {}, {}
    for name, beam in (("greedy", 1), ("beam 2", 2), ("all", 64)):
        tree = Tree()
        options = Options(beam=beam, length_penalty=0.0, max_length=5, suppressed=(start,))
        found[name] = search(step, start, end, options, tree)[0]
        trees[name] = tree
    best = found.pop("all")  # of all sentences there are
    del trees["all"]
    return Measured(words=words, found=found, trees=trees, best=best)


def measure_missed(n_models: int = 60, length: int = 3) -> dict[int, float]:
    """For beams of 1, 2 and 4 the share of small untrained translators whose likeliest sentence they miss.

    All sentences have the same number of words, so that length plays no part; the end token is forbidden.
    """
    words = [START, END, "la", "luna", "brilla", "sola", "hoy"]
    missed = dict.fromkeys((1, 2, 4), 0)
    for seed in range(n_models):
        machine = random_machine(words, seed, n_encoder_layers=1, n_decoder_layers=1, tying="none")

        def best(beam: int, machine: Machine = machine) -> float:
            options = Options(beam=beam, length_penalty=0.0, max_length=length, suppressed=(0, 1))
            return search(stepper(machine, (2, 3)), 0, 1, options)[0].log_prob

        everything = best((len(words) - 2) ** (length - 1))  # so wide that no beginning is dropped
        for beam in missed:
            missed[beam] += best(beam) < everything - 1e-6
    return {beam: count / n_models for beam, count in missed.items()}


def branches(tree: Tree, words: Sequence[str], parent: int = -1, indent: str = "  ") -> Iterator[dict[str, Any]]:
    """The tree of a search: the hypotheses that went on or ended, and how many were dropped beside their like."""
    nodes = [(place, node) for place, node in enumerate(tree.nodes) if node.parent == parent]
    for place, node in nodes:
        if node.fate != "dropped":
            p, total = np.exp(node.log_prob), np.exp(node.total)
            word = {"word": words[node.token], "p": p, "total": total, "best": place == tree.best}
            yield {"indent": indent, "dropped": 0, **word}
            yield from branches(tree, words, place, indent + "  ")
    dropped = sum(node.fate == "dropped" for _, node in nodes)
    if dropped:
        yield {"indent": indent, "dropped": dropped}


def measure_greedy() -> Measured:
    """The counted model, and how often searches miss the likeliest sentence of others, by the width of their beam."""
    counted = measure_counted()
    words, hypotheses = counted.words, {**counted.found, "best": counted.best}
    page = {
        "corpus": {line: CORPUS.count(line) for line in CORPUS},
        "sentence": {search: " ".join(words[i] for i in hypothesis.ids) for search, hypothesis in hypotheses.items()},
        "probability": {search: np.exp(hypothesis.log_prob) for search, hypothesis in hypotheses.items()},
        "factors": np.exp(counted.found["greedy"].token_log_probs),  # of each word that greedy chose
        "tree": {search: list(branches(tree, words)) for search, tree in counted.trees.items()},
    }
    return Measured(page, counted=counted, missed=measure_missed())
