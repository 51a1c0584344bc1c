"""The exported model computes what the model computes, for every choice of the closed set."""

import itertools
import json
import shutil

import numpy as np
import pytest
from small_models import random_sources, write_model
from tolerances import FLOAT32

from vidrio.config import SpecialIds
from vidrio.errors import ModelError, VidrioError
from vidrio.fast import export as export_module
from vidrio.fast.engine import Engine
from vidrio.fast.export import differences, export, obstacles
from vidrio.fast.files import MANIFEST, check_whole, is_current, read_manifest
from vidrio.folder import read_parameters, write_parameters
from vidrio.glass.decoding import stepper
from vidrio.glass.transformer import build
from vidrio.search import Options, search

CHOICES = {
    "norm": ("post", "pre"),
    "activation": ("relu", "gelu", "swish"),
    "positions": ("sinusoidal", "sinusoidal-halves", "learned", "none"),
    "tying": ("all", "output", "none"),
    "scale_embeddings": (True, False),
    "attention_bias": (True, False),
    "output_bias": (True, False),
    "source_end": (True, False),
    "d_head": (8, 5),
}


def covering(choices):
    """Few combinations in which every two values of different choices meet."""
    names = list(choices)
    wanted = {((a, x), (b, y)) for a, b in itertools.combinations(names, 2) for x in choices[a] for y in choices[b]}
    generator = np.random.default_rng(0)
    while wanted:
        tries = [{n: choices[n][generator.integers(len(choices[n]))] for n in names} for _ in range(60)]
        best = max(tries, key=lambda row: len(wanted & set(itertools.combinations(row.items(), 2))))
        met = wanted & set(itertools.combinations(best.items(), 2))
        if met:
            wanted -= met
            yield best


@pytest.mark.parametrize(
    "choices", list(covering(CHOICES)), ids=lambda row: "-".join(str(value) for value in row.values())
)
def test_every_choice_gives_the_log_probabilities_and_translations_of_glass(tmp_path, choices):
    config = write_model(tmp_path / "model", **choices)
    manifest = export(tmp_path / "model", quantisation="float32")
    # Scores of random sentences are near −20, not 1, so that one digit of float32 is lost.
    assert manifest.float32_difference < 10 * FLOAT32
    machine = build(config, read_parameters(tmp_path / "model"))
    engine = Engine(tmp_path / "model" / "fast", config)
    options = Options(beam=3, n_best=2, max_length=12, length_penalty=0.7)
    sources = random_sources(config, 8, longest=10)
    for ids, fast in zip(sources, engine.search(sources, options), strict=True):
        glass = search(stepper(machine, ids), config.special.start, config.special.end, options)
        assert [h.ids for h in fast] == [h.ids for h in glass]
        assert [h.ended for h in fast] == [h.ended for h in glass]
        assert [h.score for h in fast] == pytest.approx([h.score for h in glass], abs=10 * FLOAT32)
        assert [h.log_prob for h in fast] == pytest.approx([h.log_prob for h in glass], abs=100 * FLOAT32)


def test_the_choices_tried_cover_every_pair():
    rows = list(covering(CHOICES))
    for a, b in itertools.combinations(CHOICES, 2):
        assert {(row[a], row[b]) for row in rows} == set(itertools.product(CHOICES[a], CHOICES[b]))
    assert len(rows) < 40
