"""The notebook: it keeps to nbformat's rules, and its cells, run again, give the outputs that stand in it."""

import ast
import contextlib
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from small_models import write_model
from vidrio import cli


def written(path: Path, *arguments: str) -> dict[str, Any]:
    assert cli.main(["look", *arguments, "--ipynb", str(path)]) == 0
    data: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return data


def check_rules(data: dict[str, Any]) -> None:
    """nbformat 4.5, as its JSON schema has it (checked once with nbformat.validate itself)."""
    assert set(data) == {"cells", "metadata", "nbformat", "nbformat_minor"}
    assert (data["nbformat"], data["nbformat_minor"]) == (4, 5)
    assert set(data["metadata"]["kernelspec"]) >= {"name", "display_name"}
    ids = [cell["id"] for cell in data["cells"]]
    assert len(ids) == len(set(ids))
    for cell in data["cells"]:
        assert re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", cell["id"])
        assert cell["metadata"] == {}
        assert all(isinstance(line, str) for line in cell["source"])
        common = {"id", "cell_type", "metadata", "source"}
        if cell["cell_type"] == "markdown":
            assert set(cell) == common
            continue
        assert cell["cell_type"] == "code"
        assert set(cell) == common | {"execution_count", "outputs"}
        for output in cell["outputs"]:
            if output["output_type"] == "stream":
                assert set(output) == {"output_type", "name", "text"}
            else:
                assert output["output_type"] == "execute_result"
                assert set(output) == {"output_type", "data", "metadata", "execution_count"}
                assert output["execution_count"] == cell["execution_count"]
                assert "text/plain" in output["data"]


def run_cell(source: str, names: dict[str, Any]) -> tuple[str, Any]:
    """What a cell prints, and the value of its last line."""
    tree = ast.parse(source)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, "cell", "exec"), names)
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names) if last else None
    return printed.getvalue(), value


def run_again(data: dict[str, Any]) -> int:
    """Run every cell and compare; how many there were."""
    names: dict[str, Any] = {}
    code = [cell for cell in data["cells"] if cell["cell_type"] == "code"]
    for cell in code:
        printed, value = run_cell("".join(cell["source"]), names)
        kept = {output["output_type"]: output for output in cell["outputs"]}
        assert printed == "".join(kept.get("stream", {}).get("text", []))
        data_kept = kept.get("execute_result", {}).get("data", {})
        assert (value is None) == (not data_kept)
        if value is not None:
            assert repr(value) == "".join(data_kept["text/plain"])
        if "text/html" in data_kept:
            assert value._repr_html_() == "".join(data_kept["text/html"])
    return len(code)


@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--beam", "3", "--precision", "6"],
        ["--temperature", "1.5", "--seed", "4", "--dtype", "float32"],
        ["--target", "hola hola"],
        ["--without", "layer-norm", "--heads-off", "enc.1.self.h0"],
        ["--mask", "off"],
    ],
)
def test_the_notebook_gives_what_stands_in_it(options: list[str], tmp_path: Path) -> None:
    data = written(tmp_path / "n.ipynb", "Hello world", "--model", "lesson", *options)
    check_rules(data)
    assert run_again(data) > 30
    again = written(tmp_path / "again.ipynb", "Hello world", "--model", "lesson", *options)
    assert again == data


@pytest.mark.parametrize(
    "given",
    [
        {"shape": "encoder", "n_classes": 3, "target_vocabulary": 0, "tying": "none"},
        {"shape": "decoder", "source_vocabulary": 0, "norm": "pre"},
    ],
)
def test_other_shapes(given: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_model(tmp_path / "model", **given)
    data = written(tmp_path / "n.ipynb", "bala *core* _fula_", "--model", str(tmp_path / "model"))
    check_rules(data)
    assert run_again(data) > 15
    assert "".join(data["cells"][0]["source"]).startswith(r"# bala \*core\* \_fula\_ → ")


def test_an_empty_text(tmp_path: Path) -> None:
    data = written(tmp_path / "n.ipynb", "", "--model", "lesson")
    check_rules(data)
    assert run_again(data) == 1
