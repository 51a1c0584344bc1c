"""Exercises 7 and 8 of the first document: from the decoder's output to probabilities, and why greedy goes wrong.

`measure_…` runs an experiment and returns its numbers; `tell_…` prints them. Nothing is written down beforehand.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vidrio.draw import show
from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.maths import Array, softmax
from vidrio.glass.paper.transformer import Machine
from vidrio.lessons.errata import flag
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


def tell_probabilities(seen: Chosen, precision: int) -> Iterator[str]:
    yield show.wrap(
        "By a linear layer and a softmax (§3.4). The linear layer turns the decoder's last row, D numbers, into one "
        "number for each word of the vocabulary, a logit; the softmax makes them positive and sum to 1."
    )
    yield "\n" + flag(18)
    yield "\nThe first word of hello world, on the lessons' trained model"
    yield f"the decoder's row: {show.shape(seen.row_D)} numbers; logits: {show.shape(seen.logits_V)}\n"
    highest = float(seen.logits_V.max())
    exps = np.exp(seen.logits_V - highest)
    order = np.argsort(-seen.logits_V)[:10]
    rows = [
        [seen.words[i], *(show.number(float(n), precision) for n in (seen.logits_V[i], exps[i])),
         *(show.number(float(p[i]), precision) for p in seen.by_temperature.values())]
        for i in order
    ]  # fmt: skip
    yield show.table(rows, ["word", "logit", "exp(logit − max)", *(f"p, T = {T:g}" for T in TEMPERATURES)], "l.....")
    sums = ", ".join(f"{p.sum():.{precision}f}" for p in seen.by_temperature.values())
    yield f"sums over all {len(seen.words)} words: exp {show.number(float(exps.sum()), precision)}; p {sums}"
    best = int(order[0])
    yield f"\nBy hand: p({seen.words[best]}) = exp(0) / {show.number(float(exps.sum()), precision)} = " + show.number(
        float(seen.prob_V[best]), precision
    )
    yield "\n" + show.wrap(
        "A temperature T divides the logits first: below 1 the likeliest word gets more, above 1 the others do; the "
        "order of the words never changes, so greedy takes the same one. Only draws at random differ."
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


def tell_greedy(measured: Greedy, precision: int) -> Iterator[str]:
    seen = measured.counted
    yield show.wrap(
        "Because the likeliest word now may lead where only unlikely words follow. What counts is the probability of "
        "the whole sentence, the product of its words' probabilities."
    )
    yield "\nA model small enough to check: how often a word follows another here\n"
    for line in dict.fromkeys(CORPUS):
        yield f"  {line}" + (f"   (× {CORPUS.count(line)})" if CORPUS.count(line) > 1 else "")
    for name, tree in seen.trees.items():
        yield f"\n{name}: {_sentence(seen.found[name], seen.words, precision)}"
        yield from _drawn(tree, seen.words, precision)
    yield "\n" + f"of all sentences the likeliest: {_sentence(seen.best, seen.words, precision)}"
    greedy = seen.found["greedy"]
    factors = " · ".join(show.number(float(np.exp(p)), precision) for p in greedy.token_log_probs)
    total = show.number(float(np.exp(greedy.log_prob)), precision)
    yield show.wrap(f"By hand, greedy: {factors} = {total}", hang="  ")
    yield "\n60 untrained translators, 5 words, sentences of 3 words, all 125 compared\n"
    rows = [["greedy" if beam == 1 else f"beam {beam}", f"{share:.0%}"] for beam, share in measured.missed.items()]
    yield show.table(rows, ["", "likeliest sentence missed"], "lr")
    yield "\n" + show.wrap(
        "A beam keeps several beginnings alive and misses it less often; only trying everything is certain. The "
        "likeliest sentence is not always the best one either: every word multiplies by a number below 1, so short "
        "sentences win; that is why scores are divided by a power of the length. On any "
        "model: vidrio look TEXT --beam 4 --tree"
    )


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
