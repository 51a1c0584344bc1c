"""Test data, training, import and export with input at the edge of what is allowed."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from small_models import write_model
from test_learn_run import QUICK, learn, number_pairs
from vidrio.cli import main
from vidrio.data.clean import _identical, _numbers_differ
from vidrio.errors import ConfigError, DataError, ModelError
from vidrio.interop.convert import export_model, import_model
from vidrio.learn.state import write_snapshot
from vidrio.model.folder import read_config, read_parameters

GOLDEN = Path(__file__).parent / "golden/marian"
torch.set_num_threads(1)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "numbers.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in number_pairs(1500)), encoding="utf-8")
    return path


def test_more_positions_than_a_model_file_may_have_are_refused_before_training(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="max_positions"):
        learn(tmp_path / "model", pairs, replace(QUICK, sizes={**QUICK.sizes, "max_positions": 1 << 20}))


def test_weights_that_leave_no_pair_are_refused(pairs: Path, tmp_path: Path) -> None:
    with pytest.raises(DataError, match="an epoch contains no pairs"):
        learn(tmp_path / "model", Path(f"{pairs}@0.0001"))
    with pytest.raises(DataError, match="the weight 1e\\+20"):
        learn(tmp_path / "other", Path(f"{pairs}@100000000000000000000"))


def test_a_file_among_the_snapshots_is_left_alone(tmp_path: Path) -> None:
    write_model(tmp_path / "model")
    parameters = read_parameters(tmp_path / "model")
    for step in (1, 2, 4):
        write_snapshot(tmp_path, step, parameters)
        (tmp_path / "snapshots/.DS_Store").touch()
    assert (tmp_path / "snapshots/step-00000004").is_dir()


def test_numbers_in_other_digits_are_equal() -> None:
    assert not _numbers_differ("It costs 25 dollars.", "２５ドルです。")
    assert not _numbers_differ("It costs 25 dollars.", "इसकी कीमत २५ डॉलर है।")
    assert _numbers_differ("It costs 25 dollars.", "２６ドルです。")


def test_quotation_marks_do_not_hide_identical_sides() -> None:
    assert _identical("New York is big", "«New York is big»", 3)


@pytest.mark.parametrize("language", ["../../x", "en/..", ""])
def test_a_language_code_is_no_path(language: str, tmp_path: Path) -> None:
    import_model(str(GOLDEN), tmp_path / "ours")
    path = tmp_path / "ours/config.json"
    data = json.loads(path.read_text())
    data["about"]["source_language"] = language
    path.write_text(json.dumps(data))
    with pytest.raises(ModelError, match="no valid source_language"):
        export_model(str(tmp_path / "ours"), "marian", tmp_path / "out", ["The house."])
    assert not (tmp_path / "out").exists()


def test_a_target_of_a_model_with_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="only one target language"):
        import_model(str(GOLDEN), tmp_path / "ours", target="fra")


def test_an_absurd_number_of_positions_is_refused_before_a_table_is_made(tmp_path: Path) -> None:
    from marian_models import write_marian

    write_marian(tmp_path / "theirs")
    path = tmp_path / "theirs/config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "max_position_embeddings": 1 << 24}))
    with pytest.raises((ModelError, ConfigError), match="position"):
        import_model(str(tmp_path / "theirs"), tmp_path / "ours")


@pytest.mark.parametrize("labels", [["a"], ["a", "b", "a"]])
def test_labels_that_do_not_fit_the_classes_are_refused(labels: list[str], tmp_path: Path) -> None:
    write_model(tmp_path / "m", shape="encoder", n_classes=3, target_vocabulary=0, tying="none")
    path = tmp_path / "m/config.json"
    data = json.loads(path.read_text())
    data["about"]["labels"] = labels
    path.write_text(json.dumps(data))
    with pytest.raises(ModelError, match="labels for 3 classes"):
        read_config(tmp_path / "m")


def test_an_address_that_cannot_be_parsed_is_a_message(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "--available", "--mirror", "http://["]) == 1
    assert "not the address of a registry" in capsys.readouterr().err


def test_columns_are_named_without_the_spaces_around_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = tmp_path / "pairs.csv"
    table.write_text("en, es\n" + "".join(f"House {n} is red.,La casa {n} es roja.\n" for n in range(10)))
    assert main(["data", "clean", str(table), "--columns", "en,es"]) == 0
    assert "10 pairs read" in capsys.readouterr().out
