"""Test explanations and checks of changed runs: sums stay exact, and NaN is not an error of the check."""

import json
import math
from pathlib import Path

import pytest

from vidrio.cli import main
from vidrio.errors import ConfigError
from vidrio.hypothesis import Options
from vidrio.look.changed import look_changed
from vidrio.look.run import open_model
from vidrio.look.why_word import why_word

TARGET = ["--target", "hola mundo"]


@pytest.mark.parametrize("what", ["layer-norm", "residual"])
def test_without_norms_or_residuals_there_is_no_sum_over_tokens(what: str) -> None:
    model = open_model("lesson")
    target = model.target_tokenizer.encode("hola mundo")
    seen = look_changed(model, "hello world", [("without", what)], target=(*target, model.config.special.end)).after
    made = why_word(seen, "hola")
    assert made.tokens == []
    assert "hola" in str(made)


def test_without_a_mask_the_parts_add_up_too(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["why", "hola", "hello world", "--model", "lesson", *TARGET, "--mask", "off", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert math.fsum(part["value"] for part in found["parts"]) == found["difference"]


@pytest.mark.parametrize(
    "options", [["--softmax", "naive", "--divisor", "0.0001"], ["--set", "enc.0.self.WQ.h0[0,0]=nan"]], ids=" ".join
)
def test_a_check_of_nan_in_int8_agrees(options: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command = ["check", "hello world", "--model", "lesson", "--change-dtype", "int8"]
    assert main([*command, *options]) == 0, capsys.readouterr().out


def test_a_page_of_a_run_that_came_to_nan_is_written(tmp_path: Path) -> None:
    changes = ["--softmax", "naive", "--divisor", "0.0001"]
    page = tmp_path / "page.html"
    assert main(["look", "hello world", "--model", "lesson", *TARGET, *changes, "--html", str(page)]) == 0
    assert page.stat().st_size > 100_000


def test_options_of_another_type_are_refused_with_a_message() -> None:
    for wrong in ({"beam": "4"}, {"max_length": "9"}, {"min_length": None}):
        with pytest.raises(ConfigError, match="these search options cannot be used"):
            Options(**wrong)  # type: ignore[arg-type]
