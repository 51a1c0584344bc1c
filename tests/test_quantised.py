"""Parameters in eight bits: close to what they were, the same numbers in every engine, found again in the file."""

import json
import shutil

import numpy as np
import pytest

from small_models import random_sources, rewrite_config, write_model
from vidrio.draw.terminal import text as plain
from vidrio.errors import ModelError
from vidrio.fast.engine import Engine as Fast
from vidrio.fast.export import export, specify
from vidrio.glass.paper.transformer import build
from vidrio.glass.proof.stored import check_file, stored
from vidrio.look.receipt import as_data, why
from vidrio.look.run import look, open_model
from vidrio.model.folder import read_config, read_parameters, write_parameters
from vidrio.model.parameters import parameter_specs
from vidrio.model.quantised import LARGEST, SCALE, SUMMED, dequantise, quantise
from vidrio.translate.glass_engine import Glass


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A model, and the same one in eight bits."""
    exact = tmp_path_factory.mktemp("models") / "exact"
    config = write_model(exact, seed=5, norm="pre", ends=True, d_model=32, d_ff=48)
    small = exact.with_name("small")
    shutil.copytree(exact, small)
    write_parameters(small, quantise(read_parameters(exact), config))
    rewrite_config(small)
    return exact, small


def test_no_number_is_moved_by_more_than_half_a_step(folders):
    exact, small = map(read_parameters, folders)
    config, _ = read_config(folders[0])
    stored_arrays = quantise(exact, config)
    assert set(exact) == set(small)
    for name, value in exact.items():
        if value.ndim == 1 or name.endswith(("pos", "bQ", "bK", "bV")):
            np.testing.assert_array_equal(small[name], value)
            continue
        scale = stored_arrays[name + SCALE]
        assert np.all(np.abs(small[name] - value) <= 0.5001 * scale)
        assert np.all(np.abs(stored_arrays[name]).max(axis=int(np.argmin(scale.shape))) == LARGEST)


def test_quantising_again_changes_nothing(folders):
    config, _ = read_config(folders[1])
    once = read_parameters(folders[1])
    twice = dequantise(quantise(once, config))
    for name in once:
        np.testing.assert_allclose(twice[name], once[name], rtol=3e-7)
        first, second = quantise(once, config)[name], quantise(twice, config)[name]
        if first.dtype == np.int8:
            np.testing.assert_array_equal(first, second)


def test_ctranslate2_finds_the_same_integers(folders):
    config, _ = read_config(folders[1])
    parameters = read_parameters(folders[1])
    mine = quantise(parameters, config)
    spec = specify(config, parameters)
    spec.register_source_vocabulary([*map(str, range(config.source_vocabulary))])
    spec.register_target_vocabulary([*map(str, range(config.target_vocabulary))])
    spec.validate()
    spec.optimize(quantization="int8")
    first = spec.decoder.layer[0]
    np.testing.assert_array_equal(first.ffn.linear_0.weight.numpy(), mine["dec.0.ffn.W1"].T)
    np.testing.assert_array_equal(first.ffn.linear_1.weight.numpy(), mine["dec.0.ffn.W2"].T)
    fused = [mine[f"dec.0.self.W{letter}"].transpose(0, 2, 1).reshape(-1, config.d_model) for letter in "QKV"]
    np.testing.assert_array_equal(first.self_attention.linear[0].weight.numpy(), np.concatenate(fused))


def test_every_matrix_is_in_eight_bits(folders):
    config, _ = read_config(folders[0])
    whole = {name for name, value in quantise(read_parameters(folders[0]), config).items() if value.dtype == np.int8}
    assert whole == {name for name, spec in parameter_specs(config).items() if spec.axes in SUMMED}
    assert all(f".W{letter}" in " ".join(whole) for letter in "QKVO12")


def test_a_row_of_nothing_stays_nothing(folders):
    config, _ = read_config(folders[0])
    parameters = {**read_parameters(folders[0])}
    parameters["enc.0.ffn.W1"] = np.zeros_like(parameters["enc.0.ffn.W1"])
    assert not dequantise(quantise(parameters, config))["enc.0.ffn.W1"].any()


def test_the_fast_engine_makes_the_same_of_both(folders):
    """It quantises the exact model itself; of the one in eight bits nothing is left to quantise."""
    config, _ = read_config(folders[0])
    pairs = [(source, [5, 6, 7]) for source in random_sources(config, 20, longest=8)]
    found = []
    for folder in folders:
        export(folder)
        found.append(np.array(Fast(folder / "fast", config).score(pairs)))
    np.testing.assert_allclose(*found, atol=1e-4)
    glass = np.array(Glass(build(config, read_parameters(folders[1]))).score(pairs))
    assert np.abs(found[1] - glass).mean() < 0.1  # activations are in eight bits, too


def test_each_number_is_found_in_the_file(folders):
    small = folders[1]
    model = open_model(small)
    file = small / "model.safetensors"
    data = file.read_bytes()
    checked = check_file(file, model.machine.parameters)
    assert not checked.wrong
    assert checked.numbers == sum(value.size for value in model.machine.parameters.values())
    tensors = {tensor.name: tensor for tensor in stored(file)}
    matrix = tensors["enc.1.self.WK"]
    offset, raw = matrix.bytes_of((1, 2, 3))
    at, scale = matrix.scale_bytes_of((1, 2, 3))
    assert (data[offset : offset + 1], data[at : at + 4]) == (raw, scale)
    value = np.frombuffer(raw, np.int8)[0] * np.frombuffer(scale, "<f4")[0]
    assert value == model.machine.parameters["enc.1.self.WK"][1, 2, 3]
    changed = {**model.machine.parameters}
    changed["enc.1.self.WK"] = changed["enc.1.self.WK"] + 1e-3
    assert check_file(file, changed).wrong == ("enc.1.self.WK",)


def test_the_receipt_of_such_a_number_is_integer_times_scale(folders):
    small = folders[1]
    trace = look(open_model(small), "bala core").trace
    address, file = "enc.0.ffn.W1[3,4]", small / "model.safetensors"
    told = as_data(trace, address, file)["stored"]
    assert json.loads(json.dumps(told)) == told
    assert np.float32(told["integer"]) * np.float32(told["scale"]["value"]) == np.float32(told["value"])
    text = plain(why(trace, address, file))
    assert f"is {told['integer']}" in text
    assert "which 1 is worth there" in " ".join(text.split())
    assert "changed by a what-if" not in text


def test_integers_without_a_scale_are_refused(folders, tmp_path):
    config, _ = read_config(folders[0])
    arrays = quantise(read_parameters(folders[0]), config)
    del arrays["embed.scale" if "embed.scale" in arrays else "src.embed.scale"]
    write_parameters(tmp_path, arrays)
    with pytest.raises(ModelError, match="without their scale"):
        read_parameters(tmp_path)
    with pytest.raises(ModelError, match="cannot be read"):
        list(stored(tmp_path / "model.safetensors"))
