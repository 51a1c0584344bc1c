"""Test that the independent code in `glass/` and `learn/` agrees part by part on every combination of options."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch

from parity_models import SOURCE, TARGET, make_config, make_parameters
from tolerances import FLOAT64
from vidrio.glass import positions as glass_positions
from vidrio.glass import walk as glass
from vidrio.glass.machine import KeyValueCache, Machine, build
from vidrio.glass.walk import last_row, logits
from vidrio.learn import model as learn
from vidrio.learn.parameters import Parameters
from vidrio.model import config as choices
from vidrio.model.config import ModelConfig, SpecialIds
from vidrio.model.parameters import parameter_specs


def both(config: ModelConfig, seed: int = 0) -> tuple[Machine, learn.Network]:
    parameters = make_parameters(config, seed)
    return build(config, parameters), learn.build(Parameters.from_arrays(config, parameters, torch.float64))


def padded(ids: list[int], extra: int = 3) -> tuple[torch.Tensor, torch.Tensor]:
    """Return a padded batch of two sequences, the ids and the ids without the last, and their lengths."""
    longest = len(ids) + extra
    rows = [ids + [9] * extra, ids[:-1] + [9] * (extra + 1)]  # padded with a real token: its value must not matter
    return torch.tensor(rows).view(2, longest), torch.tensor([len(ids), len(ids) - 1])


def batch_of(x_LD: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(x_LD).unsqueeze(0)


def assert_agree(ours: torch.Tensor, glass_value: np.ndarray) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), glass_value, rtol=0, atol=FLOAT64)


def rows(length: int, width: int = 12, seed: int = 5) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(length, width))


@pytest.mark.parametrize("tying", choices.TYINGS)
@pytest.mark.parametrize("shape", choices.SHAPES)
def test_parameters_come_back_unchanged(shape: str, tying: str) -> None:
    config = make_config(
        shape=shape, tying=tying, attention_bias=True, output_bias=True, positions="learned", norm="pre"
    )
    parameters = make_parameters(config)
    back = Parameters.from_arrays(config, parameters, torch.float64).to_arrays()
    assert list(back) == list(parameter_specs(config))
    for name, value in parameters.items():
        np.testing.assert_array_equal(back[name], value, err_msg=name)


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal-halves", "sinusoidal-marian", "none"])
def test_position_tables(positions: str) -> None:
    config = make_config(positions=positions, max_positions=700)
    ours = learn.positions(config, torch.float64, torch.device("cpu"))
    assert_agree(ours, glass_positions.TABLES[positions](700, config.d_model))


@pytest.mark.parametrize(("norm", "activation"), list(product(choices.NORMS, choices.ACTIVATIONS)))
def test_layers(norm: str, activation: str) -> None:
    machine, net = both(make_config(norm=norm, activation=activation, attention_bias=True))
    x_SD, x_TD = rows(5), rows(7, seed=8)
    ours = learn.layer(net, batch_of(x_SD), "enc.1", None)
    assert_agree(ours[0], glass.encoder_layer(machine, x_SD, "enc.1"))
    allowed = learn.causal(7, 7, torch.device("cpu"))
    ours = learn.layer(net, batch_of(x_TD), "dec.1", allowed, (batch_of(x_SD), None))
    assert_agree(ours[0], glass.decoder_layer(machine, x_TD, x_SD, "dec.1"))
    machine, net = both(make_config(norm=norm, activation=activation, decoder_cell="ssru"))
    ours = learn.layer(net, batch_of(x_TD), "dec.1", None, (batch_of(x_SD), None))
    assert_agree(ours[0], glass.decoder_layer(machine, x_TD, x_SD, "dec.1"))


MAIN = ("shape", "norm", "activation", "positions")
MAIN_CHOICES = list(product(choices.SHAPES, choices.NORMS, choices.ACTIVATIONS, choices.POSITIONS))
OTHER = ("tying", "scale_embeddings", "attention_bias", "output_bias")
OTHER_CHOICES = list(product(choices.TYINGS, [False, True], [False, True], [False, True]))
NO_START = SpecialIds(pad=-1, start=-1)


@pytest.mark.parametrize("n", range(len(MAIN_CHOICES)), ids=lambda n: "-".join(MAIN_CHOICES[n]))
def test_whole_model_on_every_combination_of_choices(n: int) -> None:
    """Test each combination of the main options with three of the 24 combinations of the others, in rotation."""
    for others in OTHER_CHOICES[n % 8 :: 8]:
        config = make_config(**dict(zip(MAIN + OTHER, MAIN_CHOICES[n] + others, strict=True)))
        assert_whole_models_agree(config)
        if config.has_decoder:
            assert_whole_models_agree(replace(config, decoder_cell="ssru", special=NO_START))


def assert_whole_models_agree(config: ModelConfig) -> None:
    shape = config.shape
    machine, net = both(config)
    source, source_lengths = padded(SOURCE)
    target, target_lengths = padded([config.special.start, *TARGET[1:]])
    allowed = learn.within_lengths(source, source_lengths)
    if shape == "encoder":
        pooled = learn.pool(learn.encode(net, source, source_lengths), source_lengths)
        probabilities = learn.logits(net, pooled).softmax(-1)
    else:
        memory = learn.encode(net, source, source_lengths) if config.has_encoder else None
        probabilities = learn.logits(net, learn.decode(net, target, memory, allowed)).softmax(-1)
    for b in range(2):
        source_ids = source[b, : source_lengths[b]].tolist()
        target_ids = target[b, : target_lengths[b]].tolist()
        if shape == "encoder":
            assert_agree(probabilities[b], glass.classify(machine, source_ids))
        else:
            expected = glass.translate_forced(machine, source_ids, target_ids)
            assert_agree(probabilities[b, : target_lengths[b]], expected)


@pytest.mark.parametrize("cell", choices.CELLS)
@pytest.mark.parametrize("shape", ["encoder-decoder", "decoder"])
def test_kept_keys_and_values_change_nothing(shape: str, cell: str) -> None:
    """Check that both engines, each with its own cache, give the same logits when fed one token at a time."""
    machine, net = both(make_config(shape=shape, decoder_cell=cell))
    memory_SD = glass.encode(machine, SOURCE) if shape == "encoder-decoder" else None
    memory = None if memory_SD is None else batch_of(memory_SD)
    cache, store = KeyValueCache(), {}
    for t, token in enumerate(TARGET):
        expected = logits(machine, last_row(machine, [token], memory_SD, cache))[0]
        ours = learn.logits(net, learn.decode(net, torch.tensor([[token]]), memory, None, store, t))
        assert_agree(ours[0, 0], expected)
    kept = {"attention": ("dec.1.self", (1, 3, len(TARGET), 5)), "ssru": ("dec.1.ssru", (1, 12))}
    assert store[kept[cell][0]][0].shape == kept[cell][1]
