"""Test the properties of the search that hold for any model, using small random models."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vidrio.errors import ConfigError
from vidrio.hypothesis import Options, Sampling
from vidrio.model.config import LARGEST_BEAM
from vidrio.search import (
    Tree,
    allowed,
    draw,
    drawable,
    finish,
    largest,
    log_softmax,
    restrict,
    search,
    uniform,
)

START, END, V = 0, 1, 5


def random_model(seed, *, n_vocabulary=V, spread=2.0):
    """Return a model with fixed random log-probabilities for the next token of each prefix."""
    table = {}

    def row(prefix):
        if prefix not in table:
            logits = np.random.default_rng([seed, *prefix]).normal(0, spread, n_vocabulary)
            table[prefix] = logits - np.log(np.exp(logits).sum())
        return table[prefix]

    return lambda prefixes: np.stack([row(prefix) for prefix in prefixes])


def log_probs_of(step, ids, options):
    """Compute the log-probability of each token directly from the definition."""
    return [float(restrict(step([(START, *ids[:n])])[0], ids[:n], END, options)[ids[n]]) for n in range(len(ids))]


def every_hypothesis(step, options):
    """Enumerate, without a search, every hypothesis up to max_length, ended or cut."""
    inner = [token for token in range(V) if token != END and token not in options.suppressed]
    for length in range(options.min_length, options.max_length + 1):
        for ids in itertools.product(inner, repeat=length):
            whole = ids if length == options.max_length else (*ids, END)
            yield finish(whole, log_probs_of(step, whole, options), END, options)


options_st = st.builds(
    Options,
    beam=st.integers(2, 6),
    length_penalty=st.sampled_from([0.0, 0.6, 1.0, 1.5]),
    min_length=st.integers(0, 3),
    max_length=st.integers(3, 7),
    n_best=st.integers(1, 2),
    no_repeat_ngram=st.sampled_from([0, 2, 3]),
    suppressed=st.sampled_from([(), (START,)]),
)


@given(seed=st.integers(0, 10_000), alpha=st.sampled_from([0.0, 0.6, 1.0]), suppressed=st.sampled_from([(), (START,)]))
def test_a_beam_as_wide_as_the_search_space_finds_the_optimum(seed, alpha, suppressed):
    options = Options(beam=LARGEST_BEAM, max_length=3, length_penalty=alpha, suppressed=suppressed)
    step = random_model(seed)
    best = max(every_hypothesis(step, options), key=lambda hypothesis: hypothesis.score)
    found = search(step, START, END, options)[0]
    assert found.score == pytest.approx(best.score, abs=1e-5)
    assert found.ids == best.ids


@given(seed=st.integers(0, 10_000), options=options_st)
def test_a_beam_of_one_is_greedy(seed, options):
    one = replace(options, beam=1, n_best=1)
    step = random_model(seed)
    ids, log_probs = (), []
    while len(ids) < one.max_length and ids[-1:] != (END,):
        logits = allowed(step([(START, *ids)])[0], ids, END, one)
        token = int(np.argmax(logits))
        ids, log_probs = (*ids, token), [*log_probs, float(log_softmax(logits)[token])]
    assert search(step, START, END, one) == [finish(ids, log_probs, END, one)]


@given(seed=st.integers(0, 10_000), options=options_st)
def test_scores_add_up_and_options_hold(seed, options):
    step = random_model(seed)
    found = search(step, START, END, options)
    assert 1 <= len(found) <= options.n_best
    assert [h.score for h in found] == sorted((h.score for h in found), reverse=True)
    assert len({h.ids for h in found}) == len(found)
    for h in found:
        whole = (*h.ids, END) if h.ended else h.ids
        assert list(h.token_log_probs) == pytest.approx(log_probs_of(step, whole, options), abs=1e-5)
        assert h.log_prob == pytest.approx(sum(h.token_log_probs), abs=1e-5)
        assert h.score == pytest.approx(h.log_prob / len(whole) ** options.length_penalty, abs=1e-5)
        assert options.min_length <= len(h.ids) <= options.max_length
        assert h.ended or len(h.ids) == options.max_length
        assert END not in h.ids
        assert not set(h.ids) & set(options.suppressed)
        if n := options.no_repeat_ngram:
            grams = [h.ids[i : i + n] for i in range(len(h.ids) - n + 1)]
            assert len(set(grams)) == len(grams)


@given(seed=st.integers(0, 10_000), prefix=st.lists(st.integers(2, V - 1), min_size=1, max_size=2).map(tuple))
def test_a_forced_prefix_is_kept_and_costs_nothing(seed, prefix):
    step = random_model(seed)
    for options in (Options(beam=1, max_length=6, prefix=prefix), Options(beam=3, max_length=6, prefix=prefix)):
        found = search(step, START, END, options)[0]
        assert found.ids[: len(prefix)] == prefix
        assert found.token_log_probs[: len(prefix)] == (0.0,) * len(prefix)
        whole = (*found.ids, END) if found.ended else found.ids
        free = log_probs_of(step, whole, options)[len(prefix) :]
        assert found.log_prob == pytest.approx(sum(free), abs=1e-5)


def test_equals_go_to_the_lower_id_and_the_earlier_hypothesis():
    def step(prefixes):
        return np.full((len(prefixes), V), -np.log(V))

    assert search(step, START, END, Options(beam=1, max_length=3))[0].ids == (0, 0, 0)
    ids = [h.ids for h in search(step, START, END, Options(beam=3, n_best=3, max_length=2, suppressed=(START,)))]
    assert ids == [(2,), (2, 2), (2, 3)]  # the end token counts, so all three have the same length
    assert list(largest(np.array([1.0, 3.0, 3.0, -np.inf, 2.0]), 3)) == [1, 2, 4]
    assert list(largest(np.array([-np.inf, 0.0]), 5)) == [1]


# --- the tree ---------------------------------------------------------------------------------------------------------


@given(seed=st.integers(0, 10_000), options=options_st)
def test_the_tree_tells_every_hypothesis_and_what_became_of_it(seed, options):
    step, tree = random_model(seed), Tree()
    found = search(step, START, END, options, tree)
    assert found == search(step, START, END, options)  # recording the tree changes nothing
    best_ids = tree.ids(tree.best)
    assert best_ids == (*found[0].ids, END) if found[0].ended else found[0].ids
    for place, node in enumerate(tree.nodes):
        parent_total = tree.nodes[node.parent].total if node.parent >= 0 else 0.0
        assert node.parent < place
        assert node.total == pytest.approx(parent_total + node.log_prob)
        assert node.parent < 0 or tree.nodes[node.parent].fate == "kept"
        children = [child for child in tree.nodes if child.parent == place]
        assert node.fate == "kept" or not children
        went_on = any(child.fate != "dropped" for child in children)
        assert bool(node.why) == (node.fate != "kept" or not went_on)
        whole = tree.ids(place)
        assert node.depth == len(whole) - 1
        assert node.log_prob == pytest.approx(log_probs_of(step, whole, options)[-1])
    for depth in range(max(node.depth for node in tree.nodes) + 1):
        ranks = [node.rank for node in tree.nodes if node.depth == depth]
        assert ranks == list(range(1, len(ranks) + 1))
        kept = [node for node in tree.nodes if node.depth == depth and node.fate == "kept"]
        assert len(kept) <= options.beam
    finished = [node for node in tree.nodes if node.fate in ("finished", "cut")]
    assert max(finished, key=lambda node: node.score).score == found[0].score


def test_the_tree_of_a_search_that_one_can_follow():
    """Use two words, A = 2 and B = 3, with probabilities that are easy to multiply."""
    probabilities = {(0,): [0, 0, 0.6, 0.4], (0, 2): [0, 0.5, 0.3, 0.2], (0, 3): [0, 0.9, 0.05, 0.05]}

    def step(prefixes):
        with np.errstate(divide="ignore"):
            return np.log([probabilities.get(prefix, [0, 1, 0, 0]) for prefix in prefixes])

    tree = Tree()
    best = search(step, START, END, Options(beam=2, max_length=4, length_penalty=0.0), tree)[0]
    assert best.ids == (3,)  # B: 0.4 · 0.9 = 0.36 beats the greedy A: 0.6 · 0.5 = 0.30
    assert np.exp(best.log_prob) == pytest.approx(0.36)
    assert search(step, START, END, Options(beam=1, max_length=4))[0].ids == (2,)
    told = {tree.ids(place): (node.fate, node.why) for place, node in enumerate(tree.nodes)}
    assert told[3, END] == ("finished", "the best score: -1.022")
    assert told[2, END] == ("finished", "worse than the best finished: -1.204 < -1.022")
    assert told[2, 2] == ("kept", "the search stopped: 2 hypotheses had ended")
    assert told[2,] == ("kept", "")


def test_a_hypothesis_at_the_maximum_length_is_cut_and_told_so():
    def step(prefixes):
        return np.log(np.tile([0.1, 0.001, 0.6, 0.2, 0.099], (len(prefixes), 1)))

    tree = Tree()
    found = search(step, START, END, Options(beam=2, n_best=2, max_length=3), tree)
    assert [h.ended for h in found] == [False, False]
    assert found[0].ids == (2, 2, 2)
    assert tree.nodes[tree.best].why == "cut at max length 3; the best score: -0.510"
    dropped = [node.why for node in tree.nodes if node.fate == "dropped" and node.depth == 0]
    assert dropped[0] == "outside the beam of 2: rank 3, log p -2.302, the last one kept has -1.608"


# --- sampling ---------------------------------------------------------------------------------------------------------


def shares(sampling, probabilities, n=5_000):
    with np.errstate(divide="ignore"):
        logits = np.log(probabilities)
    numbers = itertools.islice(uniform(5, 0), n)
    return np.bincount([draw(logits, sampling, u) for u in numbers], minlength=len(probabilities)) / n


P = [0.1, 0.5, 0.0, 0.25, 0.15]


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(), P),
        (Sampling(temperature=0.5), np.square(P) / np.square(P).sum()),
        (Sampling(top_k=2), [0, 2 / 3, 0, 1 / 3, 0]),
        (Sampling(top_k=1, temperature=9.0), [0, 1, 0, 0, 0]),
        (Sampling(top_p=0.5), [0, 1, 0, 0, 0]),
        (Sampling(top_p=0.6), [0, 2 / 3, 0, 1 / 3, 0]),
        (Sampling(top_k=3, top_p=0.7), [0, 2 / 3, 0, 1 / 3, 0]),
    ],
)
def test_draws_come_as_often_as_their_probability_says(sampling, expected):
    # The standard error of 5,000 draws is at most 0.007.
    assert shares(sampling, P) == pytest.approx(np.array(expected), abs=0.03)
    with np.errstate(divide="ignore"):
        tokens, probs = drawable(np.log(P), sampling)
    assert probs == pytest.approx(np.array(expected)[tokens])
    assert probs.sum() == pytest.approx(1)


def test_random_numbers_are_those_of_splitmix64():
    """Compare the first numbers from seed 1234567 with those in the reference implementation's test."""
    numbers = [6457827717110365317, 3203168211198807973, 9817491932198370423]
    first = list(itertools.islice(uniform(0, 1234567), 3))
    assert first == [np.float32((number >> 40) / 2**24) for number in numbers]
    assert list(itertools.islice(uniform(1, 0), 3)) != list(itertools.islice(uniform(0, 1), 3))


def test_sampling_is_told_by_its_seed_and_reports_the_models_own_probabilities():
    step = random_model(1)

    def found(seed):
        sampling = Sampling(temperature=2.0, seed=seed)
        return search(step, START, END, Options(beam=1, n_best=5, max_length=6, sampling=sampling))

    assert found(7) == found(7)
    assert found(7) != found(8)
    for h in found(7):
        whole = (*h.ids, END) if h.ended else h.ids
        assert list(h.token_log_probs) == pytest.approx(log_probs_of(step, whole, Options(max_length=6)))


# --- invalid options, NaN and cut hypotheses --------------------------------------------------------------------------


def test_impossible_options_are_refused_all_at_once():
    with pytest.raises(ConfigError) as told:
        Options(beam=0, min_length=-1, max_length=-1, n_best=0)
    for name in ("beam 0", "min_length -1", "max_length -1", "n_best 0"):
        assert name in str(told.value)
    given = {"beam": 10**5, "n_best": 10**5, "min_length": 10**9, "max_length": 10**9, "no_repeat_ngram": 10**20}
    drawn = {"top_k": 10**20, "seed": 2**32, "temperature": 1e99, "top_p": 1.1}
    real = {"length_penalty": 11}
    for wrong in (
        {**given, **real},
        dict.fromkeys([*given, *real], math.nan),
        dict.fromkeys([*given, *real], math.inf),
    ):
        with pytest.raises(ConfigError) as told:
            Options(**wrong)
        assert all(f"{name} {value!r} is not" in str(told.value) for name, value in wrong.items())
    for wrong in (drawn, dict.fromkeys(drawn, math.nan), dict.fromkeys(drawn, math.inf), dict.fromkeys(drawn, "1")):
        with pytest.raises(ConfigError) as told:
            Options(beam=1, sampling=Sampling(**wrong))
        assert all(f"{name} {value!r} is not" in str(told.value) for name, value in wrong.items())
    with pytest.raises(ConfigError, match=r"beam 2\.5 is not an integer"):
        Options(beam=2.5)
    assert Options(beam=np.int64(3), length_penalty=np.float32(0.5)).beam == 3
    with pytest.raises(ConfigError, match="n_best 5 is above beam 4"):
        Options(n_best=5)
    with pytest.raises(ConfigError, match="top_p 0"):
        Options(beam=1, sampling=Sampling(top_p=0))
    with pytest.raises(ConfigError, match="must be 1"):
        Options(beam=2, sampling=Sampling())


@pytest.mark.parametrize("beam", [1, 3])
def test_a_hypothesis_is_cut_where_no_token_is_allowed(beam):
    nothing = search(random_model(0), START, END, Options(beam=beam, suppressed=tuple(range(V))))[0]
    assert (nothing.ids, nothing.ended, nothing.score) == ((), False, 0)
    once = Options(beam=beam, no_repeat_ngram=1, suppressed=(START, END), prefix=(2,))
    tree = Tree()
    found = search(random_model(0), START, END, once, tree)[0]
    assert sorted(found.ids) == [2, 3, 4]
    assert not found.ended
    assert tree.nodes[tree.best].why.startswith("cut because no token was allowed; the best score")


def test_a_model_that_computes_nan_is_told():
    with pytest.raises(ConfigError, match="NaN"):
        search(lambda prefixes: np.full((len(prefixes), V), np.nan), START, END, Options())


@pytest.mark.parametrize("beam", [1, 3])
def test_a_hypothesis_is_cut_where_the_caller_says(beam):
    def three(ids):
        return len(ids) == 3

    tree, options = Tree(), Options(beam=beam, max_length=9, suppressed=(START, END))
    found = search(random_model(0), START, END, options, tree, three)
    assert [(len(one.ids), one.ended) for one in found] == [(3, False)]
    assert tree.nodes[tree.best].why.startswith("cut because it repeats itself; the best score")
    drawn = search(random_model(0), START, END, replace(options, beam=1, sampling=Sampling()), None, three)
    assert [len(one.ids) for one in drawn] == [3]
