"""Exercises 5 to 8 of the first document: the decoder's speed, residual and norm, probabilities, greedy.

`measure_…` runs an experiment and returns its numbers; `tell_…` prints them. Nothing is written down beforehand.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from vidrio import show
from vidrio.glass.changes import without_layer_norm, without_residual
from vidrio.glass.decoding import Kept, decode_step, stepper
from vidrio.glass.maths import Array, softmax
from vidrio.glass.transformer import Machine, decode, encode, encoder_layer, logits
from vidrio.lessons import counting
from vidrio.lessons.errata import flag
from vidrio.lessons.machines import largest_difference, random_machine
from vidrio.lessons.nan_draws import Draws, Recipe, run
from vidrio.lessons.notes_text import first_step
from vidrio.search import Hypothesis, Options, Tree, search

# --- 5: why is the decoder slower than the encoder? -------------------------------------------------------------------


@dataclass(frozen=True)
class Speed:
    """One translation of a small untrained model: passes, multiplications, seconds, by way of running."""

    n_source: int
    n_target: int
    passes: dict[str, int]
    multiplications: dict[str, int]
    seconds: dict[str, float]
    disagreement: float  # between the logits with kept keys and values and those computed anew


def measure_speed(n_source: int = 24, n_target: int = 24, repeats: int = 3) -> Speed:
    """Encode; decode all at once; step by step with kept keys and values; step by step anew. Best of some repeats."""
    words = [f"word{i}" for i in range(50)]
    machine = random_machine(words, d_model=64, d_head=16, n_heads=4, d_ff=256)
    source, target = list(range(n_source)), list(range(n_target))
    memory_SD = encode(machine, source)

    def kept() -> Array:
        so_far = Kept()
        return np.stack([decode_step(machine, [token], memory_SD, so_far) for token in target])

    def anew() -> Array:
        steps = range(1, n_target + 1)
        return np.stack([logits(machine, decode(machine, target[:t], memory_SD)[-1:])[0] for t in steps])

    c = machine.config
    ways: dict[str, tuple[Callable[[], Array], int, dict[str, int]]] = {
        "encoder": (lambda: encode(machine, source), 1, counting.encoding(c, n_source)),
        "decoder, all at once": (
            lambda: logits(machine, decode(machine, target, memory_SD)),
            1,
            counting.forced(c, n_source, n_target),
        ),
        "decoder, kept": (kept, n_target, counting.decoding(c, n_source, n_target, cached=True)),
        "decoder, anew": (anew, n_target, counting.decoding(c, n_source, n_target, cached=False)),
    }
    return Speed(
        n_source,
        n_target,
        {name: passes for name, (_, passes, _) in ways.items()},
        {name: sum(work.values()) for name, (_, _, work) in ways.items()},
        {name: min(_seconds(way) for _ in range(repeats)) for name, (way, _, _) in ways.items()},
        largest_difference(kept(), anew()),
    )


def _seconds(way: Callable[[], Array]) -> float:
    began = time.perf_counter()
    way()
    return time.perf_counter() - began


def tell_speed(precision: int) -> Iterator[str]:
    seen = measure_speed()
    yield show.wrap(
        "Because word t cannot be computed before word t − 1 is known. The encoder has the whole sentence and sends "
        "all its rows through at once; the decoder goes through all its layers once for every word. In training, where "
        "all words are known, it runs at once too."
    )
    yield f"\nAn untrained model (D 64, 4 heads, 2 + 2 layers), {seen.n_source} tokens in, {seen.n_target} out\n"
    base = seen.seconds["encoder"]
    rows = [
        [name, str(seen.passes[name]), f"{seen.multiplications[name]:,}", f"{1000 * seen.seconds[name]:.2f} ms",
         f"× {seen.seconds[name] / base:.1f}"]
        for name in seen.passes
    ]  # fmt: skip
    yield show.table(rows, ["", "passes", "multiplications", "time here", ""], "lrrrr")
    kept, anew = seen.multiplications["decoder, kept"], seen.multiplications["decoder, anew"]
    yield "\n" + show.wrap(
        "kept: keys and values of earlier words are kept, and each step makes one new row; anew: every step computes "
        f"all rows again. Keeping saves multiplications ({anew / kept:.1f} times fewer here) and changes no number "
        f"(largest difference of a logit {seen.disagreement:.1g}). It does not save passes: one row at a time is slow "
        "on any machine that is fast with large matrices."
    )
    yield "\nBy hand: rows made anew = 1 + 2 + … + " + (
        f"{seen.n_target} = {seen.n_target * (seen.n_target + 1) // 2}, kept = {seen.n_target}."
    )
    yield "Counts for any sizes: vidrio lesson sizes"


# --- 6: what are residual connections and layer norm for? -------------------------------------------------------------

DEPTH = 12
WAYS = {
    "residual and norm": (True, True),
    "norm only": (False, True),
    "residual only": (True, False),
    "neither": (False, False),
}


@dataclass(frozen=True)
class Depth:
    """By layer, the size of what comes in and of the gradient of a loss at the top with respect to it."""

    values: Array
    gradients: Array

    @property
    def reaches(self) -> float:
        """Gradient at the lowest layer, as a share of that at the highest."""
        return float(self.gradients[0] / self.gradients[-1])


def measure_depth(residual: bool, layer_norm: bool, seeds: Sequence[int] = range(8)) -> Depth:
    """Twelve encoder layers of Glorot-drawn matrices; gradients by central differences in float64, geometric mean of
    some draws."""
    values, gradients = [], []
    for seed in seeds:
        machine = random_machine(["word"], seed, n_encoder_layers=DEPTH)
        machine = machine if residual else without_residual(machine)
        machine = machine if layer_norm else without_layer_norm(machine)
        generator = np.random.default_rng(seed)
        inputs = [generator.standard_normal((2, machine.config.d_model))]
        for n in range(DEPTH):
            inputs.append(encoder_layer(machine, inputs[-1], f"enc.{n}"))
        direction_LD = generator.standard_normal(inputs[0].shape)  # loss = Σ direction · output
        values.append([_size(x) for x in inputs[:DEPTH]])
        gradients.append([_size(gradient(machine, n, inputs[n], direction_LD)) for n in range(DEPTH)])
    return Depth(np.exp(np.log(values).mean(axis=0)), np.exp(np.log(gradients).mean(axis=0)))


def _size(x: Array) -> float:
    """The root of the mean square."""
    return float(np.sqrt((x**2).mean()))


def gradient(machine: Machine, layer: int, x_LD: Array, direction_LD: Array, h: float = 1e-5) -> Array:
    """d loss / d x by (loss(x + h) − loss(x − h)) / 2h, entry by entry, for the x that comes into this layer."""
    step = h * max(1.0, float(np.abs(x_LD).max()))

    def loss(rows_LD: Array) -> float:
        for n in range(layer, machine.config.n_encoder_layers):
            rows_LD = encoder_layer(machine, rows_LD, f"enc.{n}")
        return float((rows_LD * direction_LD).sum())

    slopes = np.zeros_like(x_LD)
    for place in np.ndindex(x_LD.shape):
        nudge = np.zeros_like(x_LD)
        nudge[place] = step
        slopes[place] = (loss(x_LD + nudge) - loss(x_LD - nudge)) / (2 * step)
    return slopes


def tell_depth(precision: int) -> Iterator[str]:
    yield show.wrap(
        "Residual connections give the gradient a way down and the words a way up past every layer; layer norm keeps "
        "the numbers at one size on that way. Each alone is not enough. The document brings them in against NaN, which "
        "is a third thing:"
    )
    yield "\n" + flag(10)
    yield "\nNaN in six blocks, 200 draws (vidrio lesson nan)\n"
    draws = Draws(200)
    rows = []
    for softmax_kind in ("naive", "stable"):
        outcomes = [run(Recipe(softmax_kind, residual, norm), draws) for residual, norm in WAYS.values()]
        rows.append([f"{softmax_kind} softmax", *(f"{outcome.nan_share:.0%}" for outcome in outcomes)])
    yield show.table(rows, ["", *WAYS], "lrrrr")
    seen = {name: measure_depth(*way) for name, way in WAYS.items()}
    for title, quantity in (
        ("Size of the numbers that come into each layer", "values"),
        ("Size of the gradient there, for a loss at the top (central differences)", "gradients"),
    ):
        yield f"\n{title}\n"
        rows = [
            [str(n), *(show.number(float(getattr(depth, quantity)[n]), precision) for depth in seen.values())]
            for n in range(DEPTH)
        ]
        yield show.table(rows, ["layer", *seen], "r....")
    yield f"\nWhat of the gradient at layer {DEPTH - 1} is there at layer 0"
    for name, depth in seen.items():
        yield f"  {name:18} × {depth.reaches:.3g}"
    yield show.wrap(
        f"(Geometric mean of 8 draws; {DEPTH} layers, D 8, 2 rows, matrices as small as one starts to train with.) "
        "Without residual connections the gradient fades on its way down, and the lower layers learn little; without "
        "norm it grows with the numbers; with both it arrives about as large as it left."
    )
    p = seen["neither"].gradients
    yield f"\nBy hand: neither, layer 0 / layer {DEPTH - 1} = {p[0]:.3g} / {p[-1]:.3g} = {p[0] / p[-1]:.3g}"
    yield "\nAnd the words: how far two rows are apart, matrices drawn from N(0, 1/16)\n"
    apart = {
        name: run(Recipe("stable", residual, norm), Draws(200, spread=0.25)).medians("apart")
        for name, (residual, norm) in WAYS.items()
    }
    rows = [
        [str(b + 1), *("-" if (a := medians[b]) is None else show.number(a, precision) for medians in apart.values())]
        for b in range(6)
    ]
    yield show.table(rows, ["block", *WAYS], "r....")
    yield show.wrap(
        "Attention mixes rows, so without the way past it they become one row, norm or not; the words are gone."
    )


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
    values, trace = first_step()
    logits_V = trace.values["out.logits"][0]
    return Chosen(
        values.vocabulary,
        trace.values["dec.out"][0],
        logits_V,
        trace.values["out.prob"][0],
        {T: softmax(logits_V / T) for T in TEMPERATURES},
    )


def tell_probabilities(precision: int) -> Iterator[str]:
    seen = measure_probabilities()
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


def tell_greedy(precision: int) -> Iterator[str]:
    seen = measure_counted()
    yield show.wrap(
        "Because the likeliest word now may lead where only unlikely words follow. What counts is the probability of "
        "the whole sentence, the product of its words' probabilities."
    )
    yield "\nA model small enough to check: how often a word follows another here\n"
    for line in dict.fromkeys(CORPUS):
        yield f"  {line}" + (f"   (× {CORPUS.count(line)})" if CORPUS.count(line) > 1 else "")
    for name, tree in seen.trees.items():
        yield f"\n{name}: {_sentence(seen.found[name], seen.words)}"
        yield from _drawn(tree, seen.words, precision)
    yield "\n" + f"of all sentences the likeliest: {_sentence(seen.best, seen.words)}"
    greedy = seen.found["greedy"]
    factors = " · ".join(show.number(float(np.exp(p)), precision) for p in greedy.token_log_probs)
    yield f"By hand, greedy: {factors} = {show.number(float(np.exp(greedy.log_prob)), precision)}"
    missed = measure_missed()
    yield "\n60 untrained translators, 5 words, sentences of 3 words, all 125 compared\n"
    rows = [["greedy" if beam == 1 else f"beam {beam}", f"{share:.0%}"] for beam, share in missed.items()]
    yield show.table(rows, ["", "likeliest sentence missed"], "lr")
    yield "\n" + show.wrap(
        "A beam keeps several beginnings alive and misses it less often; only trying everything is certain. The "
        "likeliest sentence is not always the best one either: every word multiplies by a number below 1, so short "
        "sentences win; that is why scores are divided by a power of the length. On any "
        "model: vidrio look TEXT --beam 4 --tree"
    )


def _sentence(hypothesis: Hypothesis, words: Sequence[str]) -> str:
    text = " ".join(words[i] for i in hypothesis.ids)
    return f"{text}, probability {np.exp(hypothesis.log_prob):.4f}"


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
