"""Test int8 parameters: rounding error, storage, receipts, and the choice of models that use them."""

import json
import shutil
from dataclasses import replace

import numpy as np
import pytest

from small_models import rewrite_config, write_model
from vidrio.errors import ModelError
from vidrio.glass.trace import parse_address
from vidrio.look.receipt import receipt_data, why
from vidrio.look.run import look, open_model
from vidrio.model.folder import read_arrays, read_config, read_parameters, write_parameters
from vidrio.model.quantised import (
    LARGEST,
    SCALE,
    int8_matrices,
    quantise,
    uses_int8,
)


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Return the folders of a model and of the same model in int8."""
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


def test_stored_integers_are_taken_as_they_are_and_others_made_anew(folders):
    config, _ = read_config(folders[1])
    stored_arrays = read_arrays(folders[1])
    found = int8_matrices(stored_arrays, config)["enc.0.ffn.W1"]
    np.testing.assert_array_equal(found.whole, stored_arrays["enc.0.ffn.W1"])
    np.testing.assert_array_equal(found.scale, stored_arrays["enc.0.ffn.W1.scale"][0])
    wider = {**stored_arrays, "enc.0.ffn.W1": stored_arrays["enc.0.ffn.W1"] * np.int8(2)}
    found = int8_matrices(wider, config)["enc.0.ffn.W1"]
    assert np.abs(found.whole).max() == LARGEST
    np.testing.assert_allclose(found.scale, 2 * stored_arrays["enc.0.ffn.W1.scale"][0], rtol=2e-7)


def test_a_large_model_and_one_that_is_stored_so_multiply_in_whole_numbers(folders):
    exact, small = map(read_arrays, folders)
    config, _ = read_config(folders[1])
    large = {"embed": np.zeros(250_000, np.float32)}
    assert not uses_int8(exact, config)
    assert uses_int8(small, config)
    assert uses_int8(large, config)
    for arrays in (exact, small, large):
        assert not uses_int8(arrays, replace(config, int8=False))


def test_the_receipt_of_such_a_number_is_integer_times_scale(folders):
    small = folders[1]
    seen = look(open_model(small), "bala core")
    address, file = "enc.0.ffn.W1[3,4]", small / "model.safetensors"
    told = receipt_data(seen, address)["stored"]
    assert json.loads(json.dumps(told)) == told
    assert np.float32(told["integer"]) * np.float32(told["scale"]["value"]) == np.float32(told["value"])
    data, scale = file.read_bytes(), told["scale"]
    assert data[told["offset"] : told["offset"] + 1] == bytes.fromhex(told["bytes"])
    assert data[scale["offset"] : scale["offset"] + 4] == bytes.fromhex(scale["bytes"])
    assert told["value"] == seen.trace.number(parse_address(address))
    text = "\n".join(why(seen.trace, address, file))
    assert f"is {told['integer']}" in text
    assert "times the scale" in " ".join(text.split())
    assert "changed by a what-if" not in text


def test_integers_without_a_scale_are_refused(folders, tmp_path):
    config, _ = read_config(folders[0])
    arrays = quantise(read_parameters(folders[0]), config)
    del arrays["embed.scale" if "embed.scale" in arrays else "src.embed.scale"]
    write_parameters(tmp_path, arrays)
    with pytest.raises(ModelError, match=r"(?s)damaged.*scale"):
        read_parameters(tmp_path)
