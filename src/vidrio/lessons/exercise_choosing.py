"""Exercises 7 and 8 of the first document: from the decoder's output to probabilities, and why greedy goes wrong.

`measure_…` runs an experiment; `values_of_…` names its results for the page. Nothing is written down beforehand.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from vidrio.draw import show
from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.maths import Array, softmax
from vidrio.glass.paper.transformer import Machine
from vidrio.lessons.machines import random_machine
from vidrio.lessons.notes_text import first_step
from vidrio.search import Hypothesis, Options, Tree, search

# --- 7: from the decoder's output to probabilities --------------------------------------------------------------------

TEMPERATURES = (1.0, 0.5, 2.0)


@dataclass(frozen=True)
class Chosen:
    """The first decoding step of `hello world`: the last row, its logits, and probabilities by temperature."""

    words: Sequence[str]
    row_D: Array
    logits_V: Array
    prob_V: Array
    by_temperature: dict[float, Array]


def measure_probabilities() -> Chosen:
    trace = first_step()
    logits_V = trace.values["out.logits"][0]
    return Chosen(
        trace.vocabulary,
        trace.values["dec.out"][0],
        logits_V,
        trace.values["out.prob"][0],
        {T: softmax(logits_V / T) for T in TEMPERATURES},
    )


def values_of_probabilities(seen: Chosen, precision: int) -> dict[str, Any]:
    exps = np.exp(seen.logits_V - seen.logits_V.max())
    order = np.argsort(-seen.logits_V)[:10]
    rows = [
        [seen.words[i], *(show.number(float(n), precision) for n in (seen.logits_V[i], exps[i])),
         *(show.number(float(p[i]), precision) for p in seen.by_temperature.values())]
        for i in order
    ]  # fmt: skip
    heads = ["word", "logit", "exp(logit − max)", *(f"p, T = {T:g}" for T in TEMPERATURES)]
    return {
        "row_shape": show.shape(seen.row_D),
        "logits_shape": show.shape(seen.logits_V),
        "words": show.table(rows, heads, "l....."),
        "n_words": len(seen.words),
        "exp_sum": exps.sum(),
        "sums": ", ".join(f"{p.sum():.{precision}f}" for p in seen.by_temperature.values()),
        "best": seen.words[int(order[0])],
        "best_prob": seen.prob_V[order[0]],
    }


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


@dataclass(frozen=True)
class Compared:
    """Searches over the same model: what each found, and the record of its search."""

    words: Sequence[str]
    found: dict[str, Hypothesis]
    trees: dict[str, Tree]
    best: Hypothesis  # of all sentences there are


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


def measure_counted() -> Compared:
    """Greedy, a beam of 2, and a beam so wide that nothing is dropped, on the counted model."""
    words, step = counted_model()
    start, end = words.index(START), words.index(END)
    found, trees = {}, {}
    for name, beam in (("greedy", 1), ("beam 2", 2), ("all", 1000)):
        tree = Tree()
        options = Options(beam=beam, length_penalty=0.0, max_length=5, suppressed=(start,))
        found[name] = search(step, start, end, options, tree)[0]
        trees[name] = tree
    best = found.pop("all")
    del trees["all"]
    return Compared(words, found, trees, best)


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

        everything = best(len(words) ** length)
        for beam in missed:
            missed[beam] += best(beam) < everything - 1e-9
    return {beam: count / n_models for beam, count in missed.items()}


@dataclass(frozen=True)
class Greedy:
    """The counted model, and how often searches miss the likeliest sentence of others."""

    counted: Compared
    missed: dict[int, float]  # by the width of the beam


def measure_greedy() -> Greedy:
    return Greedy(measure_counted(), measure_missed())


def values_of_greedy(seen: Greedy, precision: int) -> dict[str, Any]:
    words, found, trees = seen.counted.words, seen.counted.found, seen.counted.trees
    missed = [["greedy" if beam == 1 else f"beam {beam}", f"{share:.0%}"] for beam, share in seen.missed.items()]
    times = {line: CORPUS.count(line) for line in CORPUS}
    return {
        "corpus": "\n".join(f"  {line}" + (f"   (× {n})" if n > 1 else "") for line, n in times.items()),
        "greedy": _sentence(found["greedy"], words, precision),
        "greedy_tree": "\n".join(_drawn(trees["greedy"], words, precision)),
        "beam": _sentence(found["beam 2"], words, precision),
        "beam_tree": "\n".join(_drawn(trees["beam 2"], words, precision)),
        "best": _sentence(seen.counted.best, words, precision),
        "factors": " · ".join(show.number(float(np.exp(p)), precision) for p in found["greedy"].token_log_probs),
        "product": np.exp(found["greedy"].log_prob),
        "missed": show.table(missed, ["", "likeliest sentence missed"], "lr"),
    }


def _sentence(hypothesis: Hypothesis, words: Sequence[str], precision: int) -> str:
    text = " ".join(words[i] for i in hypothesis.ids)
    return f"{text}, probability {show.number(float(np.exp(hypothesis.log_prob)), precision)}"


def _drawn(tree: Tree, words: Sequence[str], precision: int) -> Iterator[str]:
    """The hypotheses that went on or ended, as a tree; those dropped are counted."""

    def below(parent: int, indent: str) -> Iterator[str]:
        children = [place for place, node in enumerate(tree.nodes) if node.parent == parent]
        dropped = 0
        for place in children:
            node = tree.nodes[place]
            if node.fate == "dropped":
                dropped += 1
                continue
            p, total = (show.number(float(np.exp(x)), precision) for x in (node.log_prob, node.total))
            mark = "  ← best" if place == tree.best else ""
            yield f"{indent}{words[node.token]}  p {p}, so far {total}{mark}"
            yield from below(place, indent + "  ")
        if dropped:
            yield f"{indent}({dropped} more considered, dropped)"

    yield from below(-1, "  ")
