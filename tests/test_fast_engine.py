"""The fast engine understands the options as `search.py` does, and its output does not depend on the batch."""

import threading

import numpy as np
import pytest

from small_models import random_sources, write_model
from tolerances import FLOAT32
from vidrio.errors import InputError, ModelError
from vidrio.fast.engine import Engine
from vidrio.fast.export import export
from vidrio.glass.paper.decoding import stepper
from vidrio.glass.paper.transformer import build
from vidrio.hypothesis import Options, Sampling
from vidrio.model.folder import read_parameters
from vidrio.search import search


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """(config, machine in glass, the same in CTranslate2 at float32)."""
    folder = tmp_path_factory.mktemp("models") / "model"
    config = write_model(folder, norm="pre")
    export(folder, quantisation="float32")
    return config, build(config, read_parameters(folder)), Engine(folder / "fast", config)


def test_a_wide_beam_makes_small_batches(model, monkeypatch):
    """A batch of 128 sentences with 64 hypotheses each took 20 s, in which nobody could stop it."""

    class Counting:
        def translate_batch(self, batch, **options):
            rows.append(len(batch))
            return translator.translate_batch(batch, **options)

    config, _, engine = model
    translator, rows, sources = engine._translator, [], [ids[:3] for ids in random_sources(config, 600, longest=12)]
    monkeypatch.setattr(engine, "_translator", Counting())
    for beam, most in ((4, 128), (64, 16)):
        rows.clear()
        found = engine.search(sources, Options(beam=beam, max_length=3))
        assert (max(rows), len(found)) == (most, 600)


OPTIONS = {
    "greedy": Options(beam=1, max_length=14),
    "beam": Options(beam=4, n_best=4, max_length=14),
    "no length penalty": Options(beam=4, n_best=2, length_penalty=0.0, max_length=14),
    "long preferred": Options(beam=3, length_penalty=2.5, max_length=14),
    "beam wider than the vocabulary": Options(beam=20, n_best=9, max_length=6),
    "minimum length": Options(beam=3, n_best=3, min_length=7, max_length=14),
    "empty allowed": Options(beam=3, n_best=3, min_length=0, max_length=14),
    "cut": Options(beam=3, n_best=3, min_length=5, max_length=5),
    "suppressed": Options(beam=3, n_best=3, suppressed=(0, 2, 7, 12), max_length=14),
    "repetition penalty": Options(beam=3, n_best=3, repetition_penalty=1.4, max_length=14),
    "repetition penalty, greedy": Options(beam=1, repetition_penalty=1.4, max_length=14),
    "no repeated pairs": Options(beam=3, n_best=3, no_repeat_ngram=2, max_length=14),
    "no repeated tokens": Options(beam=3, no_repeat_ngram=1, max_length=9),
    "prefix": Options(beam=3, n_best=3, prefix=(9, 14), max_length=14),
    "prefix, greedy": Options(beam=1, prefix=(9, 14, 9), max_length=14),
}


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_means_the_same_in_both_engines(model, name):
    config, machine, engine = model
    options = OPTIONS[name]
    sources = random_sources(config, 25, longest=12)
    for ids, fast in zip(sources, engine.search(sources, options), strict=True):
        glass = search(stepper(machine, ids), config.special.start, config.special.end, options)
        assert [(h.ids, h.ended) for h in fast] == [(h.ids, h.ended) for h in glass]
        assert [h.score for h in fast] == pytest.approx([h.score for h in glass], abs=10 * FLOAT32)
        assert [h.log_prob for h in fast] == pytest.approx([h.log_prob for h in glass], abs=100 * FLOAT32)


@pytest.fixture(scope="module", params=["int8", "float32"])
def larger(request, tmp_path_factory):
    """Large enough for 8-bit products to round as in a real model."""
    folder = tmp_path_factory.mktemp("models") / request.param
    sizes = {"d_model": 64, "n_heads": 4, "d_head": 16, "d_ff": 256, "n_encoder_layers": 4, "max_positions": 48}
    config = write_model(folder, norm="pre", **sizes)
    export(folder, quantisation=request.param)
    return request.param, config, folder / "fast"


@pytest.mark.parametrize("beam", [1, 4])
def test_the_output_does_not_depend_on_the_batch(larger, beam):
    quantisation, config, fast = larger
    options = Options(beam=beam, max_length=16)
    sources = random_sources(config, 1000, longest=24)
    alone_engine, engine = Engine(fast, config), Engine(fast, config, workers=2)
    together = engine.search(sources, options)
    shuffled = np.random.default_rng(3).permutation(len(sources))
    again = engine.search([sources[n] for n in shuffled], options)
    assert [together[n][0].ids for n in shuffled] == [found[0].ids for found in again]
    for n in range(0, len(sources), 4):
        alone = alone_engine.search([sources[n]], options)[0][0]
        assert alone.ids == together[n][0].ids
        # Whole numbers add up alike in every order; float32 sums differ in their last bit.
        assert alone.score == pytest.approx(together[n][0].score, abs=0 if quantisation == "int8" else FLOAT32)


def test_scoring_does_not_depend_on_the_batch(larger):
    quantisation, config, fast = larger
    engine = Engine(fast, config)
    sources = random_sources(config, 60, longest=20)
    targets = [ids[:-1] for ids in random_sources(config, 60, longest=20, seed=9)]
    pairs = list(zip(sources, targets, strict=True))
    for pair, told in zip(pairs, engine.score(pairs), strict=True):
        alone = engine.score([pair])[0]
        assert len(alone) == len(pair[1]) + 1
        assert alone == pytest.approx(told, abs=0 if quantisation == "int8" else 10 * FLOAT32)


def test_many_threads_may_use_one_engine(model):
    config, _, engine = model
    options = Options(beam=2, max_length=14)
    sources = random_sources(config, 40)
    expected = engine.search(sources, options)
    found = {}
    threads = [
        threading.Thread(target=lambda n=n: found.update({n: engine.search(sources[n::8], options)})) for n in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [[h.ids for h in hypotheses] for n in range(8) for hypotheses in found[n]] == [
        [h.ids for h in hypotheses] for n in range(8) for hypotheses in expected[n::8]
    ]


def test_nothing_gives_nothing(model):
    _, _, engine = model
    assert engine.search([], Options(max_length=14)) == []
    assert engine.score([]) == []


def test_draws_are_told_by_their_seed_and_follow_the_models_probabilities(model):
    config, machine, engine = model
    source = random_sources(config, 1)[0]

    def draws(seed, count=1, **sampling):
        options = Options(beam=1, n_best=count, max_length=3, sampling=Sampling(seed=seed, **sampling))
        return [h.ids for h in engine.search([source], options)[0]]

    assert draws(5, 8, temperature=2.0) == draws(5, 8, temperature=2.0)
    assert draws(5, 8, temperature=2.0) != draws(6, 8, temperature=2.0)
    logits_V = stepper(machine, source)([(config.special.start,)])[0]
    probs_V = np.exp(logits_V - logits_V.max())
    probs_V[config.special.end] = 0
    probs_V[np.argsort(-probs_V)[6:]] = 0
    probs_V /= probs_V.sum()
    first = np.bincount([ids[0] for ids in draws(1, 3000, top_k=6)], minlength=len(probs_V)) / 3000
    assert first == pytest.approx(probs_V, abs=0.04)  # four standard errors of 3,000 draws are at most 0.037
    assert set(draws(1, 50, top_p=1e-6)) == {engine.search([source], Options(beam=1, max_length=3))[0][0].ids}


def test_min_p_draws_what_glass_draws(model):
    config, machine, engine = model
    special, sampling = config.special, Sampling(min_p=0.2, top_p=0.98, temperature=1.5, seed=3)
    options = Options(beam=1, n_best=3, prefix=(9,), suppressed=(0, 2), max_length=14, sampling=sampling)
    sources = random_sources(config, 6)
    for ids, fast in zip(sources, engine.search(sources, options), strict=True):
        glass = search(stepper(machine, ids), special.start, special.end, options)
        assert [(h.ids, h.ended) for h in fast] == [(h.ids, h.ended) for h in glass]
        assert [h.score for h in fast] == pytest.approx([h.score for h in glass], abs=10 * FLOAT32)
    assert len({h.ids for h in fast}) > 1


def test_what_the_engine_cannot_do_is_said(model, tmp_path):
    config, _, engine = model
    with pytest.raises(InputError, match="33 tokens to read"):
        engine.search([[5] * 33], Options(beam=1, max_length=14))
    with pytest.raises(InputError, match="33 to write; the model holds 32"):
        engine.search([[5, 3]], Options(beam=1, max_length=33))
    with pytest.raises(InputError, match="nothing was cut off"):
        engine.score([([5, 3], [5] * 32)])
    with pytest.raises(ModelError, match="source_vocabulary"):
        Engine(tmp_path, config)
