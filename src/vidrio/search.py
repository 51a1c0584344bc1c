"""From probabilities to a translation: greedy, beam and sampling over `step(prefixes) → logits of the next token`.

Knows ids only: no model, no text. A hypothesis is judged by

    score = log p / length ^ length_penalty

where log p sums over the chosen tokens and length counts them, the end token included in both.
That is CTranslate2's form, not the ((5 + length) / 6)^α of §6.1, so that every engine ranks alike (docs/departures.md).
The order of the restrictions, the 2 · beam candidates of a step and the moment when the search stops are its own too.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from vidrio.errors import ConfigError
from vidrio.model.config import ModelConfig

Ids = tuple[int, ...]
LARGEST_SEED = 2**32 - 1  # that every engine takes
# One row for each prefix (all begin with the start token): logits of the next token. They are normalised here, after
# the restrictions; log-probabilities do as well, unless there is a repetition penalty, which is defined on logits.
Step = Callable[[Sequence[Ids]], np.ndarray]
# An engine's search: some sources → for each its hypotheses.
SearchAll = Callable[[Sequence[Sequence[int]], "Options"], list[list["Hypothesis"]]]


@dataclass(frozen=True, kw_only=True)
class Sampling:
    """Draw each token at random instead of searching for the best. Log-probabilities told stay untempered."""

    temperature: float = 1.0  # below 1 bolder, above 1 more even
    top_k: int = 0  # only the k likeliest tokens; 0: all
    top_p: float = 1.0  # only the likeliest tokens that together have probability p
    min_p: float = 0.0  # only tokens with at least this share of the likeliest one's probability
    seed: int = 0


@dataclass(frozen=True, kw_only=True)
class Options:
    """How to search. The same options mean the same in every engine."""

    beam: int = 4
    length_penalty: float = 1.0
    min_length: int = 1  # tokens before the end token is allowed; 0 allows an empty result
    max_length: int = 256  # steps; a hypothesis that has not ended by then is cut
    n_best: int = 1
    repetition_penalty: float = 1.0  # above 1: tokens that stand in the hypothesis become less likely
    no_repeat_ngram: int = 0  # n: no n tokens in a row twice; 0: off
    prefix: Ids = ()  # forced first tokens; they count in the length and, being forced, have log p 0
    suppressed: Ids = ()  # never chosen: padding, start, perhaps unknown
    sampling: Sampling | None = None
    scores: bool = True  # tell log-probabilities; an engine that finds the likeliest token sooner without may tell NaN

    def __post_init__(self) -> None:
        problems = [text for text, wrong in self._problems() if wrong]
        if problems:
            raise ConfigError(
                "these search options cannot be used", found="; ".join(problems), do="change the ones named"
            )

    def _problems(self) -> list[tuple[str, bool]]:
        draw = self.sampling or Sampling()
        return [
            (f"beam {self.beam} is below 1", self.beam < 1),
            (f"max_length {self.max_length} is below 1", self.max_length < 1),
            (f"min_length {self.min_length} is below 0", self.min_length < 0),
            (f"max_length {self.max_length} is below min_length {self.min_length}", self.max_length < self.min_length),
            (f"n_best {self.n_best} is below 1", self.n_best < 1),
            (f"n_best {self.n_best} is above beam {self.beam}", not self.sampling and self.n_best > self.beam >= 1),
            (
                f"beam {self.beam} with sampling: a draw has no beam, so it must be 1",
                bool(self.sampling) and self.beam > 1,
            ),
            (f"length_penalty {self.length_penalty} is not finite", not np.isfinite(self.length_penalty)),
            (
                f"repetition_penalty {self.repetition_penalty} is not above 0, or not finite",
                not 0 < self.repetition_penalty < np.inf,
            ),
            (f"no_repeat_ngram {self.no_repeat_ngram} is below 0", self.no_repeat_ngram < 0),
            (
                f"temperature {draw.temperature} is not above 0 (beam 1 is greedy), or not finite",
                not 0 < draw.temperature < np.inf,
            ),
            (f"seed {draw.seed} is not from 0 to {LARGEST_SEED}", not 0 <= draw.seed <= LARGEST_SEED),
            (f"top_k {draw.top_k} is below 0", draw.top_k < 0),
            (f"top_p {draw.top_p} is not above 0 and at most 1", not 0 < draw.top_p <= 1),
            (f"min_p {draw.min_p} is not from 0 to 1", not 0 <= draw.min_p <= 1),
            (f"the forced prefix of {len(self.prefix)} tokens fills max_length", len(self.prefix) >= self.max_length),
        ]


def default_options(config: ModelConfig) -> Options:
    """How a model of this config searches unless told otherwise."""
    own = config.decoding
    return Options(
        beam=own.beam,
        length_penalty=own.length_penalty,
        max_length=min(own.max_length, config.max_positions),
        suppressed=tuple(i for i in (config.special.pad, config.special.start) if i >= 0),
    )


class Hypothesis(NamedTuple):
    """A translation found: ids without start and end."""

    ids: Ids
    log_prob: float
    score: float
    token_log_probs: tuple[float, ...]  # one for each id, and one for the end token if it ended
    ended: bool  # False: cut at max_length


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

    def extended(self, token: int, total: float, log_prob: float, place: int) -> "_Alive":
        return _Alive((*self.ids, token), total, (*self.token_log_probs, log_prob), place)


def search(step: Step, start: int, end: int, options: Options, tree: Tree | None = None) -> list[Hypothesis]:
    """The best hypotheses, best first; with sampling, the draws, likeliest first."""
    if options.sampling is None:
        return (
            beam_search(step, start, end, options, tree)
            if options.beam > 1 or tree
            else [greedy(step, start, end, options)]
        )
    generator = np.random.default_rng(options.sampling.seed)
    return best_first([sample(step, start, end, options, generator) for _ in range(options.n_best)])


def diverging(search_all: SearchAll, source: Sequence[int], options: Options) -> list[Hypothesis]:
    """The `n_best` likeliest tokens after the prefix, each gone on with by itself: what else could stand there."""
    here = len(options.prefix) + 1
    one_step = replace(
        options,
        beam=max(options.beam, options.n_best),
        length_penalty=0.0,
        min_length=min(options.min_length, here),
        max_length=here,
    )
    found = []
    for first in search_all([source], one_step)[0]:
        whole = first
        if not first.ended and here < options.max_length:
            rest = search_all([source], replace(options, prefix=first.ids, n_best=1))[0][0]
            log_probs = (*first.token_log_probs, *rest.token_log_probs[here:])
            whole = rest._replace(log_prob=first.log_prob + rest.log_prob, token_log_probs=log_probs)
        found.append(whole._replace(score=score_of(whole.log_prob, len(whole.ids) + whole.ended, options)))
    return found  # the likeliest token first, whatever became of it


def greedy(step: Step, start: int, end: int, options: Options) -> Hypothesis:
    """The likeliest token at every step: beam search with a beam of 1."""
    return _follow(step, start, end, options, lambda log_probs_V: int(np.argmax(log_probs_V)))


def sample(step: Step, start: int, end: int, options: Options, generator: np.random.Generator) -> Hypothesis:
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
    record = tree if tree is not None else Tree()
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
        total, log_prob = float(totals_NV[n, token]), float(log_probs_NV[n, token])
        score = score_of(total, depth + 1, options)
        candidates.append(beam[n].extended(token, total, log_prob, len(record.nodes)))
        record.nodes.append(Node(beam[n].place, depth, token, log_prob, total, score, rank))
    return candidates


def score_of(log_prob: float, length: int, options: Options) -> float:
    """What hypotheses are ranked by."""
    return float(log_prob / length**options.length_penalty)


def finish(ids: Ids, token_log_probs: Sequence[float], end: int, options: Options) -> Hypothesis:
    """A hypothesis that goes no further: it has ended, or it is cut."""
    ended = ids[-1] == end
    log_prob = float(sum(token_log_probs))
    score = score_of(log_prob, len(ids), options)
    return Hypothesis(ids[:-1] if ended else ids, log_prob, score, tuple(token_log_probs), ended)


def best_first(hypotheses: list[Hypothesis]) -> list[Hypothesis]:
    """By score; equals stay in the order in which they were found."""
    return sorted(hypotheses, key=lambda hypothesis: -hypothesis.score)


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


def draw(log_probs_V: np.ndarray, sampling: Sampling, generator: np.random.Generator) -> int:
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
    for alive in candidates:
        node = record.nodes[alive.place]
        if node.fate == "dropped" and node.token == end and node.rank <= options.beam:
            node.why = f"right after the forced prefix only the likeliest may end: rank {node.rank}"
        elif node.fate == "dropped":
            reason = f"outside the beam of {options.beam}: rank {node.rank}, log p {node.total:.3f}"
            if node.token == end:
                reason += "; a hypothesis ends only from inside the beam"
            elif last_kept is not None:
                reason += f", the last one kept has {last_kept:.3f}"
            node.why = reason


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
