"""Test configs and parameters: invalid ones are rejected on construction, and the error lists all problems."""

import json

import numpy as np
import pytest

from vidrio.errors import ConfigError, ModelError
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.parameters import check_parameters, count, parameter_specs, random_parameters

SMALL = {"source_vocabulary": 29, "target_vocabulary": 29, "d_model": 12, "n_heads": 3, "d_head": 5, "d_ff": 20}


def test_json_round_trip_keeps_every_field() -> None:
    config = ModelConfig(**SMALL, norm="pre", special=SpecialIds(pad=9, unk=8, start=6, end=5), tying="none")
    assert ModelConfig.from_json(json.loads(json.dumps(config.to_json()))) == config


def test_every_problem_of_a_config_is_told_at_once() -> None:
    with pytest.raises(ConfigError) as told:
        ModelConfig(source_vocabulary=0, target_vocabulary=7, d_model=0, norm="middle", activation="tanh")
    for part in ("source_vocabulary is 0", "d_model is 0", "'middle'", "'tanh'", "post, pre", "relu, gelu, swish"):
        assert part in str(told.value)


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"d_model": 11}, "even"),
        ({"target_vocabulary": 31}, "vocabularies of 29 and 31"),
        ({"shape": "encoder"}, "n_classes"),
        ({"n_encoder_layers": 0}, "n_encoder_layers"),
        ({"norm_epsilon": 0.0}, "norm_epsilon"),
        ({"positions": "rotary"}, "sinusoidal-halves"),
        ({"positions": "sinusoidal-marian", "d_model": 2}, "4 or more"),
        ({"decoder_cell": "lstm"}, "attention, ssru"),
    ],
)
def test_impossible_choices_are_refused(change: dict, part: str) -> None:
    with pytest.raises(ConfigError, match=part):
        ModelConfig(**{**SMALL, **change})


def test_an_unknown_setting_is_refused() -> None:
    with pytest.raises(ConfigError, match="d_modell"):
        ModelConfig.from_json({**SMALL, "d_modell": 3})


def test_the_papers_base_model_has_its_size() -> None:
    # Table 3 of the paper says 65 million for base; its shared vocabulary had "about 37000" tokens (§5.1).
    assert count(ModelConfig(source_vocabulary=37000, target_vocabulary=37000)) == pytest.approx(65e6, rel=0.04)


def test_a_recurrent_decoder_has_a_cell_in_the_place_of_self_attention() -> None:
    attention, ssru = (set(parameter_specs(ModelConfig(**SMALL, decoder_cell=cell))) for cell in ("attention", "ssru"))
    assert attention - ssru == {n for n in attention if n.startswith("dec.") and ".self." in n}
    parts = ("W", "Wf", "bf", "norm.gain", "norm.bias")
    assert ssru - attention == {f"dec.{n}.ssru.{part}" for n in range(6) for part in parts}


def test_misfitting_parameters_are_all_named() -> None:
    config = ModelConfig(**SMALL)
    parameters = random_parameters(config, np.random.default_rng(1))
    del parameters["enc.0.ffn.W1"]
    parameters["enc.0.ffn.b1"] = np.zeros(21)
    parameters["odd"] = np.zeros(1)
    with pytest.raises(ModelError) as told:
        check_parameters(parameters, config)
    for part in ("enc.0.ffn.W1 is missing", "(21,), not (20,)", "odd is not a parameter"):
        assert part in str(told.value)


def test_a_parameter_that_is_not_finite_is_named() -> None:
    parameters = random_parameters(ModelConfig(**SMALL), np.random.default_rng(1))
    parameters["dec.0.ffn.b2"] = np.full(12, np.nan)
    with pytest.raises(ModelError, match=r"dec\.0\.ffn\.b2 contains NaN"):
        check_parameters(parameters, ModelConfig(**SMALL))
