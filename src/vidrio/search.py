"""Find translations by beam search or sampling, given a function that computes the logits of the next token.

The search works on token ids and needs neither a model nor text. The engine's search in C gives bit-for-bit identical
results: logits and log-probabilities are float32, and sums are float64. Only this version records the tree of
candidates. As in CTranslate2, each step considers 2 · beam candidates. A beam of 1 is greedy search.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.hypothesis import Hypothesis, Ids, Options, Sampling, best_first, computes_nan
from vidrio.model.exact import F, exp, in_lanes, log

# Computes the logits of the next token for each prefix, one row per prefix. A prefix begins with the start token.
Step = Callable[[Sequence[Ids]], np.ndarray]
Cut = Callable[[Ids], bool]  # whether to cut a hypothesis with these tokens
ROOT = -1  # represents the start token and the forced prefix


@dataclass
class Node:
    """A hypothesis considered by the search: its last token, its parent and its outcome."""

    parent: int  # index in the tree, or ROOT
    depth: int  # zero-based decoding step
    token: int
    log_prob: float  # of this token
    total: float  # log p of the hypothesis so far
    score: float
    rank: int  # rank among the candidates of the step, from 1
    fate: str = "dropped"  # kept, finished, cut or dropped
    why: str = ""


@dataclass
class Tree:
    """The record of a search: the 2 · beam best candidates of each step, ordered by step and rank."""

    prefix: Ids = ()
    nodes: list[Node] = field(default_factory=list)
    best: int = ROOT  # index of the best finished hypothesis

    def ids(self, place: int) -> Ids:
        """Return the tokens up to this node, including the forced prefix and any end token."""
        return (*self.prefix, *(node.token for node in self.path(place)))

    def path(self, place: int) -> list[Node]:
        """Return the nodes on the path from the root to this node."""
        nodes: list[Node] = []
        while place != ROOT:
            nodes.append(self.nodes[place])
            place = nodes[-1].parent
        return nodes[::-1]


def never(ids: Ids) -> bool:
    """Never cut a hypothesis early."""
    return False


def search(
    step: Step, start: int, end: int, options: Options, tree: Tree | None = None, cut: Cut = never
) -> list[Hypothesis]:
    """Return the best hypotheses, or the samples if sampling is enabled, in order of their scores."""
    if options.sampling is not None:
        return best_first([sample(step, start, end, options, number, cut) for number in range(options.n_best)])
    return beam_search(step, start, end, options, tree or Tree(), cut)


def sample(step: Step, start: int, end: int, options: Options, number: int, cut: Cut) -> Hypothesis:
    """Sample one hypothesis with temperature, top-k and top-p. `number` is the index of the sample."""
    sampling = options.sampling or Sampling()
    numbers = uniform(sampling.seed, number)
    ids, log_probs = options.prefix, [0.0] * len(options.prefix)
    while len(ids) < options.max_length and ids[-1:] != (end,) and not cut(ids):
        logits_V = allowed(step([(start, *ids)])[0], ids, end, options)
        if logits_V.max() == -np.inf:
            break
        token = draw(logits_V, sampling, next(numbers))
        log_probs.append(float(log_softmax(logits_V)[token]))
        ids = (*ids, token)
    return finish(ids, log_probs, end, options)


def beam_search(step: Step, start: int, end: int, options: Options, tree: Tree, cut: Cut) -> list[Hypothesis]:
    """Keep the `beam` best hypotheses at each step, until `beam` hypotheses have finished."""
    tree.prefix, nodes = options.prefix, tree.nodes
    beam = [ROOT]  # indices in the tree
    finished: list[tuple[Hypothesis, int]] = []
    best_ended = False  # whether a finished hypothesis has ever been the best of its step

    def finish_at(place: int) -> None:
        log_probs = [0.0] * len(tree.prefix) + [node.log_prob for node in tree.path(place)]
        hypothesis = finish(tree.ids(place), log_probs, end, options)
        finished.append((hypothesis, place))
        if place != ROOT:
            nodes[place].fate = "finished" if hypothesis.ended else "cut"

    for depth in range(len(options.prefix), options.max_length):
        candidates, stuck = expand(step, start, end, options, beam, tree)
        for place in stuck:  # no next token is allowed
            finish_at(place)
        is_last = depth + 1 == options.max_length
        inside = candidates[: options.beam]
        if depth == len(options.prefix) > 0:
            # Right after a forced prefix, a hypothesis may end only if it is the most probable one. Otherwise, short
            # results would crowd out the rest.
            inside = [place for place in inside if nodes[place].token != end or place == candidates[0]]
        over = [place for place in inside if is_last or nodes[place].token == end]
        for place in over:
            finish_at(place)
        best_ended = best_ended or (bool(over) and over[0] == candidates[0])
        # The next best candidates replace finished hypotheses, so that the beam stays full.
        substitutes = [place for place in candidates[options.beam :] if nodes[place].token != end][: len(over)]
        beam = [] if is_last else [place for place in inside if place not in over] + substitutes
        for place in [place for place in beam if cut(tree.ids(place))]:
            finish_at(place)
            beam.remove(place)
        for place in beam:
            nodes[place].fate = "kept"
        explain_dropped([nodes[place] for place in candidates], end, options)
        # Without a length penalty, a longer hypothesis cannot beat a finished one that leads.
        enough = len(finished) >= (options.n_best if options.length_penalty == 0 and best_ended else options.beam)
        if enough or not beam:
            break
    explain_ends(tree, finished, beam, options, cut)
    return best_first([hypothesis for hypothesis, _ in finished])[: options.n_best]


def expand(
    step: Step, start: int, end: int, options: Options, beam: list[int], tree: Tree
) -> tuple[list[int], list[int]]:
    """Return the 2 · beam best continuations of the beam, best first, and the hypotheses that have no continuation. The
    2 · beam most probable tokens of each hypothesis (ties broken by id) are ranked by total log-probability (ties
    broken by hypothesis, then probability)."""
    found: list[tuple[float, int, int, float]] = []
    stuck = []
    rows = step([(start, *tree.ids(place)) for place in beam])
    for row_V, place in zip(rows, beam, strict=True):
        logits_V = allowed(row_V, tree.ids(place), end, options)
        tokens = largest(logits_V, 2 * options.beam)
        if not len(tokens):
            stuck.append(place)
            continue
        total = 0.0 if place == ROOT else tree.nodes[place].total
        for token, log_prob in zip(tokens.tolist(), log_softmax(logits_V)[tokens].tolist(), strict=True):
            found.append((total + log_prob, place, token, log_prob))
    first = len(tree.nodes)
    best = sorted(found, key=lambda candidate: -candidate[0])[: 2 * options.beam]
    for rank, (total, parent, token, log_prob) in enumerate(best, start=1):
        length = len(tree.ids(parent)) + 1
        score = total / length_power(length, options)
        tree.nodes.append(Node(parent, length - 1, token, log_prob, total, score, rank))
    return list(range(first, len(tree.nodes))), stuck


def finish(ids: Ids, token_log_probs: Sequence[float], end: int, options: Options) -> Hypothesis:
    """Return the hypothesis with these ids, which has ended or has been cut."""
    ended = ids[-1:] == (end,)
    log_prob = float(sum(token_log_probs))
    score = log_prob / length_power(len(ids), options)
    return Hypothesis(ids[:-1] if ended else ids, log_prob, score, tuple(token_log_probs), ended)


def length_power(length: int, options: Options) -> float:
    """Compute length ^ length_penalty in float32."""
    penalty = options.length_penalty
    if penalty in (0, 1):
        return float(max(1, length) ** penalty)
    return float(exp(F(penalty) * log(F(max(1, length)))))


def allowed(row_V: np.ndarray, ids: Ids, end: int, options: Options) -> np.ndarray:
    """Return the logits of the next token, with −∞ for forbidden tokens."""
    logits_V = np.array(row_V, dtype=F)
    if options.no_repeat_ngram > 0:
        logits_V[list(repeating(ids, options.no_repeat_ngram))] = -np.inf
    logits_V[list(options.suppressed)] = -np.inf
    if len(ids) < options.min_length:
        logits_V[end] = -np.inf
    if not (logits_V < np.inf).all():
        raise computes_nan(len(ids))
    return logits_V


def log_softmax(logits_V: np.ndarray) -> np.ndarray:
    """Compute log-probabilities: logits shifted so that the probabilities sum to 1."""
    shifted_V = logits_V - logits_V.max()
    normalised_V: np.ndarray = shifted_V - log(in_lanes(exp(shifted_V)))
    return normalised_V


def restrict(row_V: np.ndarray, ids: Ids, end: int, options: Options) -> np.ndarray:
    """Return the log-probabilities of the next token, normalised over the allowed tokens. Forbidden tokens get −∞."""
    return log_softmax(allowed(row_V, ids, end, options))


def repeating(ids: Ids, n: int) -> set[int]:
    """Return the tokens that would repeat an n-gram in `ids`."""
    latest = ids[len(ids) - n + 1 :]
    return {ids[i + n - 1] for i in range(len(ids) - n + 1) if ids[i : i + n - 1] == latest} if len(ids) >= n else set()


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Return the indices of the largest values above −∞, largest first, with ties broken by index."""
    count = min(count, int((values > -np.inf).sum()))
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    lowest = np.partition(values, len(values) - count)[len(values) - count]
    places = np.flatnonzero(values >= lowest)
    return places[np.argsort(-values[places], kind="stable")][:count]


# --- sampling ---------------------------------------------------------------------------------------------------------


def uniform(seed: int, number: int) -> Iterator[np.float32]:
    """Yield random numbers in [0, 1) for one sample, from the upper 24 bits of SplitMix64."""
    mask, state = 2**64 - 1, (seed << 32) + number
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        yield F((z >> 40) * 2.0**-24)


def draw(logits_V: np.ndarray, sampling: Sampling, number: np.float32) -> int:
    """Sample a token: the first one whose cumulative weight exceeds `number` times the total weight."""
    tokens, weights = _drawable(logits_V, sampling)
    sums = np.add.accumulate(weights)
    return int(tokens[min(np.searchsorted(sums, number * sums[-1], side="right"), len(tokens) - 1)])


def drawable(logits_V: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """Return the tokens that can be sampled, most probable first, with their probabilities."""
    tokens, weights = _drawable(logits_V, sampling)
    order = np.argsort(-weights, kind="stable")
    return tokens[order], weights[order] / weights.sum()


def _drawable(logits_V: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """Apply temperature, top-k and top-p, in this order. The resulting weights are not normalised."""
    logits_V = np.asarray(logits_V, F)
    weights_V = exp((logits_V - logits_V.max()) / F(sampling.temperature))
    if not sampling.top_k and sampling.top_p == 1:
        tokens = np.flatnonzero(logits_V > -np.inf)
        return tokens, weights_V[tokens]
    tokens = largest(logits_V, sampling.top_k or len(logits_V))
    sums = np.add.accumulate(weights_V[tokens])
    before = np.concatenate([[F(0)], sums[:-1]])  # the sum over all more probable tokens; 0 for the first token
    tokens = tokens[before < F(sampling.top_p) * sums[-1]]
    return tokens, weights_V[tokens]


# --- why hypotheses were dropped --------------------------------------------------------------------------------------


def explain_dropped(candidates: list[Node], end: int, options: Options) -> None:
    """Record why candidates of a step were dropped."""
    last_kept = min((node.total for node in candidates if node.fate == "kept"), default=None)
    for node in (node for node in candidates if node.fate == "dropped"):
        if node.token == end and node.rank <= options.beam:
            node.why = f"right after the forced prefix, only the most probable hypothesis may end: rank {node.rank}"
            continue
        node.why = f"outside the beam of {options.beam}: rank {node.rank}, log p {node.total:.3f}"
        if node.token == end:
            node.why += "; a hypothesis can end only inside the beam"
        elif last_kept is not None:
            node.why += f", the last one kept has {last_kept:.3f}"


def explain_ends(
    tree: Tree, finished: list[tuple[Hypothesis, int]], beam: list[int], options: Options, cut: Cut
) -> None:
    """Record which hypothesis won, and why each other hypothesis ended."""
    went_on = {node.parent for node in tree.nodes if node.fate != "dropped"}
    ended = "1 hypothesis" if len(finished) == 1 else f"{len(finished)} hypotheses"
    for place, node in enumerate(tree.nodes):
        if node.fate == "kept" and place not in went_on:
            stopped = f"the search stopped: {ended} had ended"
            node.why = stopped if place in beam else "no continuation stayed in the beam"
    ranked = sorted((pair for pair in finished if pair[1] != ROOT), key=lambda pair: -pair[0].score)
    for hypothesis, place in ranked:
        if len(hypothesis.ids) == options.max_length:
            reason = f"cut at max length {options.max_length}; "
        else:
            reason = f"cut because {'it repeats itself' if cut(hypothesis.ids) else 'no token was allowed'}; "
        best = ranked[0][0].score
        tree.nodes[place].why = ("" if hypothesis.ended else reason) + (
            f"the best score: {best:.3f}"
            if place == ranked[0][1]
            else f"worse than the best finished: {hypothesis.score:.3f} < {best:.3f}"
        )
    if ranked:
        tree.best = ranked[0][1]
