"""From probabilities to a translation: greedy, beam and sampling over `step(prefixes) → logits of the next token`.

Knows ids only: no model, no text. What is asked for, and what is found: `hypothesis.py`. The order of the restrictions,
the 2 · beam candidates of a step and the moment when the search stops are CTranslate2's.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from vidrio.errors import ConfigError
from vidrio.hypothesis import Hypothesis, Ids, Options, Sampling, best_first, score_of

# One row for each prefix (all begin with the start token): logits of the next token. They are normalised here, after
# the restrictions; log-probabilities do as well, unless there is a repetition penalty, which is defined on logits.
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
    if options.sampling is not None:
        generator = np.random.default_rng(options.sampling.seed)
        return best_first([sample(step, start, end, options, generator) for _ in range(options.n_best)])
    if options.beam > 1 or tree:
        return beam_search(step, start, end, options, tree)
    return [greedy(step, start, end, options)]


def greedy(step: Step, start: int, end: int, options: Options) -> Hypothesis:
    """The likeliest token at every step: beam search with a beam of 1."""
    return _follow(step, start, end, options, lambda log_probs_V: int(np.argmax(log_probs_V)))


def sample(step: Step, start: int, end: int, options: Options, generator: "np.random.Generator") -> Hypothesis:
    """A token drawn from the tempered and truncated distribution at every step."""
    sampling = options.sampling or Sampling()
    return _follow(step, start, end, options, lambda log_probs_V: draw(log_probs_V, sampling, generator))


def _follow(step: Step, start: int, end: int, options: Options, choose: Callable[[np.ndarray], int]) -> Hypothesis:
    ids, log_probs = options.prefix, [0.0] * len(options.prefix)
    while True:
        log_probs_V = restrict(step([(start, *ids)])[0], ids, end, options)
        token = choose(log_probs_V)
        log_probs.append(float(log_probs_V[token]))
        ids = (*ids, token)
        if token == end or len(ids) == options.max_length:
            return finish(ids, log_probs, end, options)


def beam_search(step: Step, start: int, end: int, options: Options, tree: Tree | None = None) -> list[Hypothesis]:
    """The `beam` best hypotheses of every step go on, until as many have ended as the beam is wide."""
    record = tree or Tree()
    record.prefix = options.prefix
    beam = [_Alive(options.prefix, 0.0, (0.0,) * len(options.prefix))]
    finished: list[tuple[Hypothesis, int]] = []
    best_ended = False  # whether a finished hypothesis has ever led its step
    for depth in range(len(options.prefix), options.max_length):
        candidates = expand(step, start, end, options, beam, record)
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


def expand(step: Step, start: int, end: int, options: Options, beam: list[_Alive], record: Tree) -> list[_Alive]:
    """The 2 · beam best continuations of the hypotheses in the beam, best first; equals keep the order (beam, id)."""
    depth = len(beam[0].ids)  # all are as long
    rows = step([(start, *alive.ids) for alive in beam])
    log_probs_NV = np.stack([restrict(row, alive.ids, end, options) for row, alive in zip(rows, beam, strict=True)])
    totals_NV = log_probs_NV + np.array([alive.total for alive in beam])[:, None]
    candidates = []
    for rank, flat in enumerate(largest(totals_NV.ravel(), 2 * options.beam), start=1):
        n, token = divmod(int(flat), totals_NV.shape[1])
        old = beam[n]
        total, log_prob = float(totals_NV[n, token]), float(log_probs_NV[n, token])
        score = score_of(total, depth + 1, options)
        candidates.append(_Alive((*old.ids, token), total, (*old.token_log_probs, log_prob), len(record.nodes)))
        record.nodes.append(Node(old.place, depth, token, log_prob, total, score, rank))
    return candidates


def finish(ids: Ids, token_log_probs: Sequence[float], end: int, options: Options) -> Hypothesis:
    """A hypothesis that goes no further: it has ended, or it is cut."""
    ended = ids[-1] == end
    log_prob = float(sum(token_log_probs))
    score = score_of(log_prob, len(ids), options)
    return Hypothesis(ids[:-1] if ended else ids, log_prob, score, tuple(token_log_probs), ended)


def restrict(row_V: np.ndarray, ids: Ids, end: int, options: Options) -> np.ndarray:
    """Log-probabilities of the next token: what is forbidden gets −∞, and the rest still sums to probability 1."""
    row_V = np.array(row_V, dtype=np.float64)
    if options.repetition_penalty != 1.0 and ids:
        seen = np.unique(np.array(ids))
        row_V[seen] *= np.where(row_V[seen] < 0, options.repetition_penalty, 1 / options.repetition_penalty)
    if options.no_repeat_ngram > 0:
        row_V[list(repeating(ids, options.no_repeat_ngram))] = -np.inf
    row_V[list(options.suppressed)] = -np.inf
    if len(ids) < options.min_length:
        row_V[end] = -np.inf
    highest = row_V.max()
    if not np.isfinite(highest):
        raise ConfigError(
            "no token is left to choose from",
            found=f"at step {len(ids)} all {len(row_V)} tokens are forbidden, or the model computes NaN",
            do="allow more: fewer suppressed tokens, a larger or no no_repeat_ngram",
        )
    shifted_V = row_V - highest
    normalised_V: np.ndarray = shifted_V - np.log(np.exp(shifted_V).sum())
    return normalised_V


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


def draw(log_probs_V: np.ndarray, sampling: Sampling, generator: "np.random.Generator") -> int:
    """One token at random, of those that may be drawn."""
    tokens, probs = drawable(log_probs_V, sampling)
    return int(generator.choice(tokens, p=probs))


def drawable(log_probs_V: np.ndarray, sampling: Sampling) -> tuple[np.ndarray, np.ndarray]:
    """The tokens that may be drawn, likeliest first, and the probability of each to be: after temperature, top-k, top-p
    and min-p, in this order."""
    tempered_V = log_probs_V / sampling.temperature
    order = largest(tempered_V, sampling.top_k or len(tempered_V))
    probs = np.exp(tempered_V[order] - tempered_V[order[0]])
    probs /= probs.sum()
    before = np.cumsum(probs) - probs  # of the likelier tokens; the likeliest always stays
    left = (before < sampling.top_p) & (probs >= sampling.min_p * probs[0])
    return order[left], probs[left] / probs[left].sum()


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
    ranked = sorted(finished, key=lambda pair: -pair[0].score)
    for rank, (hypothesis, place) in enumerate(ranked, start=1):
        node = record.nodes[place]
        cut = "" if hypothesis.ended else f"cut at max length {options.max_length}; "
        if rank == 1:
            record.best = place
            node.why = f"{cut}the best score: {hypothesis.score:.3f}"
        else:
            node.why = f"{cut}worse than the best finished: {hypothesis.score:.3f} < {ranked[0][0].score:.3f}"
