"""From logits to a translation: greedy, beam and sampling over `step(prefixes) → logits of the next token`.

Knows ids only: no model, no text. The engine's search does the same in C, and finds the same, bit for bit: logits and
log-probabilities are float32, totals float64. This one also records a tree of what it considered. The 2 · beam
candidates of a step and the moment when the search stops are CTranslate2's.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.errors import ConfigError
from vidrio.hypothesis import Hypothesis, Ids, Options, Sampling, best_first
from vidrio.model.exact import F, exp, in_lanes, log

# One row for each prefix (all begin with the start token): logits of the next token.
Step = Callable[[Sequence[Ids]], np.ndarray]


@dataclass
class Node:
    """One hypothesis that the search considered: a token after its parent, and what became of it."""

    parent: int  # place of the parent in the tree; -1: the start (and the forced prefix)
    depth: int  # decoding step, from 0
    token: int
    log_prob: float  # of this token
    total: float  # log p of the hypothesis so far
    score: float
    rank: int  # among the candidates of its step, from 1
    fate: str = "dropped"  # kept, finished, cut or dropped
    why: str = ""


@dataclass
class Tree:
    """The record of one search: the 2 · beam best candidates of every step, in order of step and rank."""

    prefix: Ids = ()
    nodes: list[Node] = field(default_factory=list)
    best: int = -1  # place of the best finished hypothesis

    def ids(self, place: int) -> Ids:
        """The tokens from the start to this node, the forced prefix and the end token included."""
        tokens: list[int] = []
        while place >= 0:
            tokens.append(self.nodes[place].token)
            place = self.nodes[place].parent
        return self.prefix + tuple(reversed(tokens))


@dataclass(frozen=True)
class _Alive:
    """A hypothesis in the beam."""

    ids: Ids
    total: float
    token_log_probs: tuple[float, ...]
    place: int = -1  # in the tree


def search(step: Step, start: int, end: int, options: Options, tree: Tree | None = None) -> list[Hypothesis]:
    """The best hypotheses, best first; with sampling, the draws, likeliest first."""
    if (sampling := options.sampling) is not None:
        return best_first([sample(step, start, end, options, uniform(sampling.seed, n)) for n in range(options.n_best)])
    if options.beam > 1 or tree:
        return beam_search(step, start, end, options, tree)
    return [greedy(step, start, end, options)]


def greedy(step: Step, start: int, end: int, options: Options) -> Hypothesis:
    """The likeliest token at every step: beam search with a beam of 1."""
    return _follow(step, start, end, options, lambda logits_V: int(np.argmax(logits_V)))


def sample(step: Step, start: int, end: int, options: Options, numbers: Iterator[np.float32]) -> Hypothesis:
    """A token drawn from the tempered and truncated distribution at every step."""
    sampling = options.sampling or Sampling()
    return _follow(step, start, end, options, lambda logits_V: draw(logits_V, sampling, next(numbers)))


def _follow(step: Step, start: int, end: int, options: Options, choose: Callable[[np.ndarray], int]) -> Hypothesis:
    ids, log_probs = options.prefix, [0.0] * len(options.prefix)
    while len(ids) < options.max_length:
        logits_V = allowed(step([(start, *ids)])[0], ids, end, options)
        if logits_V.max() == -np.inf:
            break
        token = choose(logits_V)
        log_probs.append(float(log_softmax(logits_V)[token]))
        ids = (*ids, token)
        if token == end:
            break
    return finish(ids, log_probs, end, options)


def beam_search(step: Step, start: int, end: int, options: Options, tree: Tree | None = None) -> list[Hypothesis]:
    """The `beam` best hypotheses of every step go on, until as many have ended as the beam is wide."""
    record = tree or Tree()
    record.prefix = options.prefix
    beam = [_Alive(options.prefix, 0.0, (0.0,) * len(options.prefix))]
    finished: list[tuple[Hypothesis, int]] = []
    best_ended = False  # whether a finished hypothesis has ever led its step
    for depth in range(len(options.prefix), options.max_length):
        candidates, stuck = expand(step, start, end, options, beam, record)
        for alive in stuck:  # every next token is forbidden
            finished.append((finish(alive.ids, alive.token_log_probs, end, options), alive.place))
            if alive.place >= 0:
                record.nodes[alive.place].fate = "cut"
        if not candidates:
            beam = []
            break
        last_step = depth + 1 == options.max_length
        inside = candidates[: options.beam]
        if depth == len(options.prefix) > 0:
            # Right after a forced prefix, ending is for the likeliest only: short results would crowd out the others.
            inside = [alive for alive in inside if alive.ids[-1] != end or alive is candidates[0]]
        over = [alive for alive in inside if last_step or alive.ids[-1] == end]
        for alive in over:
            node, hypothesis = record.nodes[alive.place], finish(alive.ids, alive.token_log_probs, end, options)
            node.fate = "finished" if hypothesis.ended else "cut"
            finished.append((hypothesis, alive.place))
        best_ended = best_ended or candidates[0] in over
        # The next best step in for those that have ended, so that the beam stays full.
        substitutes = [alive for alive in candidates[options.beam :] if alive.ids[-1] != end][: len(over)]
        beam = [] if last_step else [alive for alive in inside if alive not in over] + substitutes
        for alive in beam:
            record.nodes[alive.place].fate = "kept"
        explain_dropped(record, candidates, beam, end, options)
        # Without a length penalty no longer hypothesis can beat a leader that has ended.
        enough = len(finished) >= (options.n_best if options.length_penalty == 0 and best_ended else options.beam)
        if enough or not beam:
            break
    explain_ends(record, finished, beam, options)
    return best_first([hypothesis for hypothesis, _ in finished])[: options.n_best]


def expand(
    step: Step, start: int, end: int, options: Options, beam: list[_Alive], record: Tree
) -> tuple[list[_Alive], list[_Alive]]:
    """The 2 · beam best continuations of the hypotheses in the beam, best first: of each the 2 · beam likeliest tokens
    (equals by id), all of them by total (equals by hypothesis and likelihood). And hypotheses that have none."""
    rows = step([(start, *alive.ids) for alive in beam])
    found: list[tuple[float, _Alive, int, float]] = []
    stuck = []
    for row_V, alive in zip(rows, beam, strict=True):
        logits_V = allowed(row_V, alive.ids, end, options)
        tokens = largest(logits_V, 2 * options.beam)
        if not len(tokens):
            stuck.append(alive)
            continue
        for token, log_prob in zip(tokens.tolist(), log_softmax(logits_V)[tokens].tolist(), strict=True):
            found.append((alive.total + log_prob, alive, token, log_prob))
    candidates = []
    best = sorted(found, key=lambda candidate: -candidate[0])[: 2 * options.beam]
    for rank, (total, old, token, log_prob) in enumerate(best, start=1):
        ids = (*old.ids, token)
        candidates.append(_Alive(ids, total, (*old.token_log_probs, log_prob), len(record.nodes)))
        score = total / length_power(len(ids), options)
        record.nodes.append(Node(old.place, len(ids) - 1, token, log_prob, total, score, rank))
    return candidates, stuck


def finish(ids: Ids, token_log_probs: Sequence[float], end: int, options: Options) -> Hypothesis:
    """A hypothesis that goes no further: it has ended, or it is cut."""
    ended = ids[-1:] == (end,)
    log_prob = float(sum(token_log_probs))
    score = log_prob / length_power(len(ids), options)
    return Hypothesis(ids[:-1] if ended else ids, log_prob, score, tuple(token_log_probs), ended)


def length_power(length: int, options: Options) -> float:
    """length ^ length_penalty, in float32."""
    penalty = options.length_penalty
    if penalty in (0, 1):
        return float(max(1, length) ** penalty)
    return float(exp(F(penalty) * log(F(max(1, length)))))


def allowed(row_V: np.ndarray, ids: Ids, end: int, options: Options) -> np.ndarray:
    """The logits of the next token, what is forbidden at −∞."""
    logits_V = np.array(row_V, dtype=F)
    if np.isnan(logits_V).any():
        raise ConfigError(
            "no token can be chosen",
            found=f"at step {len(ids)} the model computes NaN",
            do="look where the first NaN comes from: vidrio check, or vidrio look --json",
        )
    if options.no_repeat_ngram > 0:
        logits_V[list(repeating(ids, options.no_repeat_ngram))] = -np.inf
    logits_V[list(options.suppressed)] = -np.inf
    if len(ids) < options.min_length:
        logits_V[end] = -np.inf
    return logits_V


def log_softmax(logits_V: np.ndarray) -> np.ndarray:
    """Log-probabilities: the logits, shifted so that the probabilities sum to 1."""
    shifted_V = logits_V - logits_V.max()
    normalised_V: np.ndarray = shifted_V - log(in_lanes(exp(shifted_V)))
    return normalised_V


def restrict(row_V: np.ndarray, ids: Ids, end: int, options: Options) -> np.ndarray:
    """Log-probabilities of the next token: what is forbidden has −∞, and the rest still sums to probability 1."""
    return log_softmax(allowed(row_V, ids, end, options))


def repeating(ids: Ids, n: int) -> set[int]:
    """The tokens that would complete an n-gram which already stands in `ids`."""
    latest = ids[len(ids) - n + 1 :]
    return {ids[i + n - 1] for i in range(len(ids) - n + 1) if ids[i : i + n - 1] == latest} if len(ids) >= n else set()


def largest(values: np.ndarray, count: int) -> np.ndarray:
    """Places of the largest values above −∞, largest first, equals by place: the same on every machine."""
    count = min(count, int((values > -np.inf).sum()))
    if count == 0:
        return np.zeros(0, dtype=np.int64)
    lowest = np.partition(values, len(values) - count)[len(values) - count]
    places = np.flatnonzero(values >= lowest)
    return places[np.argsort(-values[places], kind="stable")][:count]


# --- sampling ---------------------------------------------------------------------------------------------------------


def uniform(seed: int, number: int) -> Iterator[np.float32]:
    """Random numbers from 0 up to 1 for the draw of this number: SplitMix64, its upper 24 bits."""
    mask, state = 2**64 - 1, (seed << 32) + number
    while True:
        state = (state + 0x9E3779B97F4A7C15) & mask
        z = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        yield F((z >> 40) * 2.0**-24)


def draw(logits_V: np.ndarray, sampling: Sampling, number: np.float32) -> int:
    """One token of those that may be drawn: the first at which the sum of weights exceeds `number` of the whole."""
    tokens, weights = _drawable(logits_V, sampling)
    sums = np.add.accumulate(weights)
    return int(tokens[min(np.searchsorted(sums, number * sums[-1], side="right"), len(tokens) - 1)])


def drawable(logits_V: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that may be drawn, likeliest first, and the probability of each to be."""
    tokens, weights = _drawable(logits_V, sampling)
    order = np.argsort(-weights, kind="stable")
    return tokens[order], weights[order] / weights.sum()


def _drawable(logits_V: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """After temperature, top-k and top-p, in this order; a weight each, which do not sum to 1."""
    logits_V = np.asarray(logits_V, F)
    weights_V = exp((logits_V - logits_V.max()) / F(sampling.temperature))
    if not sampling.top_k and sampling.top_p == 1:
        tokens = np.flatnonzero(logits_V > -np.inf)
        return tokens, weights_V[tokens]
    tokens = largest(logits_V, sampling.top_k or len(logits_V))
    sums = np.add.accumulate(weights_V[tokens])
    before = np.concatenate([[F(0)], sums[:-1]])  # of the likelier tokens; the likeliest always stays
    tokens = tokens[before < F(sampling.top_p) * sums[-1]]
    return tokens, weights_V[tokens]


# --- why a hypothesis is no longer there ------------------------------------------------------------------------------


def explain_dropped(record: Tree, candidates: list[_Alive], beam: list[_Alive], end: int, options: Options) -> None:
    """Tell, for the candidates of this step that go no further, what was wrong with them."""
    last_kept = min((alive.total for alive in beam), default=None)
    for node in (record.nodes[alive.place] for alive in candidates):
        if node.fate != "dropped":
            continue
        if node.token == end and node.rank <= options.beam:
            node.why = f"right after the forced prefix only the likeliest may end: rank {node.rank}"
            continue
        node.why = f"outside the beam of {options.beam}: rank {node.rank}, log p {node.total:.3f}"
        if node.token == end:
            node.why += "; a hypothesis ends only from inside the beam"
        elif last_kept is not None:
            node.why += f", the last one kept has {last_kept:.3f}"


def explain_ends(record: Tree, finished: list[tuple[Hypothesis, int]], beam: list[_Alive], options: Options) -> None:
    """Tell, once the search is over, who won and what stopped the others."""
    went_on = {node.parent for node in record.nodes if node.fate != "dropped"}
    for place, node in enumerate(record.nodes):
        if node.fate == "kept" and place not in went_on:
            node.why = "no continuation stayed in the beam"
    for alive in beam:
        if alive.place not in went_on:
            ended = "1 hypothesis" if len(finished) == 1 else f"{len(finished)} hypotheses"
            record.nodes[alive.place].why = f"the search stopped: {ended} had ended"
    ranked = sorted((pair for pair in finished if pair[1] >= 0), key=lambda pair: -pair[0].score)
    for rank, (hypothesis, place) in enumerate(ranked, start=1):
        node = record.nodes[place]
        is_longest = len(hypothesis.ids) == options.max_length
        cut = f"cut at max length {options.max_length}; " if is_longest else "cut, since no token was allowed; "
        cut = "" if hypothesis.ended else cut
        if rank == 1:
            record.best = place
            node.why = f"{cut}the best score: {hypothesis.score:.3f}"
        else:
            node.why = f"{cut}worse than the best finished: {hypothesis.score:.3f} < {ranked[0][0].score:.3f}"
