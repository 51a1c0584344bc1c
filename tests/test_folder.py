"""Test model folders: what is written reads back unchanged, and damage causes an error message, not a traceback."""

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from vidrio import cli
from vidrio.errors import ConfigError, ModelError
from vidrio.model.config import ModelConfig
from vidrio.model.files import write_atomically
from vidrio.model.find import packaged
from vidrio.model.folder import About, read_config, read_parameters, write_config, write_parameters
from vidrio.model.parameters import random_parameters

CONFIG = ModelConfig(source_vocabulary=11, target_vocabulary=11, d_model=4, n_heads=2, d_head=3, d_ff=8)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_parameters(tmp_path / "model", random_parameters(CONFIG, np.random.default_rng(3)))
    write_config(tmp_path / "model", CONFIG, About(name="small", source_language="en", target_language="es"))
    return tmp_path / "model"


def test_what_is_written_is_read_back(folder: Path) -> None:
    config, about = read_config(folder)
    assert (config, about.name, about.target_language) == (CONFIG, "small", "es")
    expected = random_parameters(CONFIG, np.random.default_rng(3))
    parameters = read_parameters(folder)
    assert set(parameters) == set(expected)
    assert all(np.array_equal(parameters[name], expected[name]) for name in expected)


def test_another_format_is_refused_with_the_version_that_wrote_it(folder: Path) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 7, "written_by": "vidrio 9.9"}))
    with pytest.raises(ModelError, match=r"(?s)format 7.*format 1.*vidrio 9\.9"):
        read_config(folder)


@pytest.mark.parametrize(
    "damage",
    [
        *("", "[]", "{", '{"format": 1}', '{"format": 1, "model": {}, "about": {"x": 1}}', "[" * 99999),
        '{"format": 1, "model": {"d_model": ' + "9" * 10_000 + "}}",
    ],
)
def test_a_damaged_config_is_told(folder: Path, damage: str) -> None:
    (folder / "config.json").write_text(damage)
    with pytest.raises((ModelError, ConfigError)):
        read_config(folder)


@pytest.mark.parametrize("keep", [0, 7, 100, -1])
def test_truncated_parameters_are_told_with_their_checksum(folder: Path, keep: int) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ModelError, match=r"(?s)damaged.*sha256 [0-9a-f]{64}"):
        read_parameters(folder)


def test_a_failed_write_leaves_the_last_good_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"good")
    monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"good"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def change_config(folder: Path, part: str, **changes: object) -> None:
    path = folder / "config.json"
    data = json.loads(path.read_text())
    data[part] |= changes
    path.write_text(json.dumps(data))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"n_encoder_layers": 10**8}, "n_encoder_layers is 100000000"),
        ({"n_encoder_layers": 1000}, r"enc.6.self.WQ is missing;(.|\n)*and \d+ more"),
        ({"source_vocabulary": 10**12, "target_vocabulary": 10**12}, "source_vocabulary is 1000000000000"),
        ({"source_vocabulary": 10**7, "target_vocabulary": 10**7}, r"\(11, 4\), not \(10000000, 4\)"),
        ({"max_positions": 10**10}, "max_positions is 10000000000"),
        ({"max_positions": 10**7}, "exceeds the limit for computed positions"),
        ({"d_model": 256.0}, "d_model: 256.0 is not an integer"),
        ({"d_model": True}, "d_model: True is not an integer"),
        ({"d_model": 10**4000}, r"d_model is 10+\.\.\.0+, not from 1 to"),
        ({"norm_epsilon": float("nan")}, "config.json cannot be read"),
        ({"special": {"end": 99}}, "the end token is 99"),
        ({"decoding": {"beam": 10**6}}, "beam is 1000000"),
        ({"decoding": {"length_penalty": 1e300}}, "length_penalty is 1e"),
        ({"norm": ["pre"]}, "norm: .* is not a string"),
    ],
)
def test_sizes_are_whole_numbers_that_the_file_of_the_parameters_bears_out(
    folder: Path, changes: dict[str, object], message: str
) -> None:
    change_config(folder, "model", **changes)
    with pytest.raises((ModelError, ConfigError), match=message):
        read_config(folder)


@pytest.mark.parametrize("changes", [{"symbols": [1, 2]}, {"labels": "ab"}, {"scores": [3]}, {"ages": 3}])
def test_what_a_model_tells_of_itself_has_types_too(folder: Path, changes: dict[str, object]) -> None:
    change_config(folder, "about", **changes)
    with pytest.raises(ModelError, match=f"(?s)'about'.*{next(iter(changes))}"):
        read_config(folder)


def test_a_bit_that_flips_among_the_parameters_is_found(folder: Path) -> None:
    path = folder / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ModelError, match=r"does not match the checksum in config\.json"):
        read_parameters(folder)


@pytest.mark.parametrize(
    ("name", "command"),
    [("model.safetensors", "look"), ("tokenizer.json", "translate"), ("model.safetensors", "translate")],
)
def test_a_bit_that_flips_in_a_packaged_model_is_told(
    name: str, command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "copy"
    shutil.copytree(packaged()["en-es"], folder)
    data = bytearray((folder / name).read_bytes())
    place = data.index(b'"id": ') + 6 if name.endswith("json") else 2 * len(data) // 3
    data[place] ^= 1
    (folder / name).write_bytes(data)
    assert cli.main([command, "Hello", "--model", str(folder)]) == 1
    told = capsys.readouterr().err
    assert str(folder / name) in told
    assert "sha256" in told


def test_integers_that_are_no_matrix_are_damaged(folder: Path) -> None:
    parameters = random_parameters(CONFIG, np.random.default_rng(3))
    write_parameters(folder, {**parameters, "enc.0.ffn.b1": np.zeros(8, np.int8)})
    with pytest.raises(ModelError, match="which only matrices may be"):
        read_config(folder)


def test_a_folder_without_checksums_is_read(folder: Path) -> None:
    path = folder / "config.json"
    data = json.loads(path.read_text())
    assert set(data.pop("files")) == {"model.safetensors"}
    path.write_text(json.dumps(data))
    assert len(read_parameters(folder)) > 9


@pytest.mark.parametrize(
    ("dtype", "shape", "end", "message"),
    [
        ("F32", [2, 2], 16, "4 bytes of data, but its header declares 16"),
        ("F32", [1], 8, "has the shape"),
        ("F32", [10**9, 10**9, 10**9, 10**9], 4, "has the shape"),
        ("I64", [1], 8, "stored as 'I64'"),
        ("F32", [-1], -4, "has the shape"),
        ("F32", ["1"], 4, "has the shape"),
        ("F32", [1.0], 4, "has the shape"),
        ("F32", None, 4, "its header is invalid"),
    ],
)
def test_a_header_that_tells_what_is_not_there_is_damaged(
    folder: Path, dtype: str, shape: list[object], end: int, message: str
) -> None:
    header = json.dumps({"embed": {"dtype": dtype, "shape": shape, "data_offsets": [0, end]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0" * 4)
    with pytest.raises(ModelError, match=f"(?s)damaged.*({message})"):
        read_config(folder)
