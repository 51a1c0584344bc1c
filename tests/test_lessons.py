"""Test how lessons are read and displayed, and the worked example against the numbers in the post.

A separate program computed golden/random_transformer.json in float64. test_docs.py runs the lessons' code blocks.
"""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from vidrio.cli import vidrio
from vidrio.errors import ConfigError, LessonError
from vidrio.glass.trace import Trace
from vidrio.lessons import run
from vidrio.lessons.html import contents, fragment_of, section_html
from vidrio.look.changed import look_changed
from vidrio.look.run import open_model
from vidrio.model.find import WORKED_EXAMPLES, find
from vidrio.model.folder import read_config, read_parameters

GOLDEN: Mapping[str, Mapping[str, list[list[float]]]] = json.loads(
    (Path(__file__).parent / "golden" / "random_transformer.json").read_text("utf-8")
)
RECIPE = Path(__file__).parents[1] / "recipes/lesson/worked_example.py"
PRINTED, RIGHT = "worked-example-printed", "worked-example"
Changes = Sequence[tuple[str, str]]
BY_30 = [("divisor", "30")]


def trace_of(model: str, changes: Changes = (), text: str = "hello world") -> Trace:
    with np.errstate(all="ignore"):
        return look_changed(open_model(model), text, changes).after.trace


# --- the post's numbers, to every printed digit -----------------------------------------------------------------------

REPEATED_Z = (
    "enc.0.self.out=[[11.46394281, -13.18016469, -11.59340253, -17.04387833],"
    "[11.62608569, -13.47454934, -11.87126395, -17.49263674]]"
)
SOS_ATTENTION = "dec.0.self.out=[[2.19334924, 10.61851198, -4.50089666, -2.76366551]]"
EARLIER_LOGITS = (
    "out.logits=[-0.39929948, 0.96345013, 2.77090264, 0.25651866, -0.84738762,"
    "-1.67834992, -0.29583529, -3.55515281, 2.97453801, -1.10682376]"
)
# name in the post: changes to the model, address, rows as printed
POST: dict[str, tuple[Changes, str, str]] = {
    "positions": ([], "src.positions", "0 1 0 1 / 0.84 0.99 0 1"),
    "E": ([], "enc.in", "1 3 3 5 / 2.84 3.99 4 6"),
    "K1": ([], "enc.0.self.K.h0", "4 8 4 / 6.84 9.99 6.84"),
    "V1": ([], "enc.0.self.V.h0", "6 6 4 / 7.99 8.84 6.84"),
    "Q1": ([], "enc.0.self.Q.h0", "8 3 3 / 9.99 3.99 4"),
    "scores1": ([], "enc.0.self.scores.h0", "68 105.21 / 87.88 135.5517"),
    "scores1 / √3": ([], "enc.0.self.scaled.h0", "39.2598183 60.74302182 / 50.73754166 78.26081048"),
    "weights1": (
        *([], "enc.0.self.weights.h0"),
        "4.67695573e-10 1.00000000e+00 / 1.11377182e-12 1.00000000e+00",
    ),
    "attention1": ([], "enc.0.self.head.h0", "7.99 8.84 6.84 / 7.99 8.84 6.84"),
    "attention2": ([], "enc.0.self.head.h1", "8.84 3.99 7.99 / 8.84 3.99 7.99"),
    "weights2": (
        *([], "enc.0.self.weights.h1"),
        "1.10613872e-14 1.00000000e+00 / 4.95934510e-20 1.00000000e+00",
    ),
    "attention1, / 30": (
        *(BY_30, "enc.0.self.head.h0"),
        "7.54348784 8.20276657 6.20276657 / 7.65266185 8.35857269 6.35857269",
    ),
    "attention2, / 30": (
        *(BY_30, "enc.0.self.head.h1"),
        "8.45589591 3.85610456 7.72085664 / 8.63740591 3.91937741 7.84804146",
    ),
    "concatenated": (
        *(BY_30, "enc.0.self.concat"),
        "7.54348784 8.20276657 6.20276657 8.45589591 3.85610456 7.72085664 /"
        "7.65266185 8.35857269 6.35857269 8.63740591 3.91937741 7.84804146",
    ),
    "W": (
        *([], "enc.0.self.WO"),
        "0.79445237 0.1081456 0.27411536 0.78394531 / 0.29081936 -0.36187258 -0.32312791 -0.48530339 /"
        "-0.36702934 -0.76471963 -0.88058366 -1.73713022 / -0.02305587 -0.64315981 -0.68306653 -1.25393866 /"
        "0.29077448 -0.04121674 0.01509932 0.13149906 / 0.57451867 -0.08895355 0.02190485 0.24535932",
    ),
    "Z": (
        *(BY_30, "enc.0.self.out"),
        "11.46394285 -13.18016471 -11.59340253 -17.04387829 / 11.62608573 -13.47454936 -11.87126395 -17.4926367",
    ),
    "E + Z": (
        *([("set", REPEATED_Z)], "enc.0.self.sum"),
        "12.46394281 -10.18016469 -8.59340253 -12.04387833 / 14.46608569 -9.48454934 -7.87126395 -11.49263674",
    ),
    "μ, in code": (BY_30, "enc.0.self.norm.mean", "-4.58837567 -3.59559107"),
    "μ, by hand": ([("set", REPEATED_Z)], "enc.0.self.norm.mean", "-4.58837568 -3.595591085"),
    "σ², by hand": ([("set", REPEATED_Z)], "enc.0.self.norm.var", "98.418607512533 110.3871764"),
    "SOS + position": ([], "dec.in", "1 1 0 1"),
    "layer norm of SOS": ([("set", SOS_ATTENTION)], "dec.0.self.norm.out", "0.172362 1.546849 -1.082882 -0.636329"),
    "probabilities": (
        *([("set", EARLIER_LOGITS)], "out.prob"),
        "0.01602618 0.06261303 0.38162024 0.03087794 0.0102383 0.00446011 0.01777314 0.00068275 0.46780959 0.00789871",
    ),
}


def as_printed(value: float, text: str) -> str:
    """Return the value with as many digits as the text."""
    mantissa, e, _ = text.partition("e")
    return f"{value:.{len(mantissa.partition('.')[2])}{'e' if e else 'f'}}"


@pytest.mark.parametrize("what", POST)
def test_the_numbers_of_the_post_to_every_printed_digit(what: str) -> None:
    changes, address, text = POST[what]
    array = np.atleast_2d(trace_of(PRINTED, changes).array(address))
    rows = [row.split() for row in text.split("/")]
    for row, texts in zip(array, rows, strict=False):  # the post prints only the first row of the decoder
        assert [as_printed(value, digits) for value, digits in zip(row, texts, strict=True)] == texts
    assert len(array) >= len(rows)


# --- in full precision ------------------------------------------------------------------------------------------------

ADDRESSES = {
    **{"E": "enc.in", "Z": "enc.0.self.out", "res": "enc.0.self.sum", "concat": "enc.0.self.concat"},
    **{f"{letter}{h + 1}": f"enc.0.self.{letter}.h{h}" for letter in "QKV" for h in (0, 1)},
    **{f"{q}{h + 1}": f"enc.0.self.{q}.h{h}" for q in ("scores", "scaled", "weights", "head") for h in (0, 1)},
    **{"mu": "enc.0.self.norm.mean", "var": "enc.0.self.norm.var", "ln": "enc.0.self.norm.out"},
}
# Two matrices in the post's text differ from those in its code.
TEXTS_MATRICES = [("set", "enc.0.self.WQ.h0[3,*]=[1,1,0]"), ("set", "enc.0.self.WK.h1[2,*]=[1,0,1]")]
CHAINS: dict[str, tuple[str, Changes]] = {
    "as_printed (code matrices, E rounded, scale 30, LN std+1e-6)": (PRINTED, BY_30),
    "as_printed (scale sqrt3)": (PRINTED, []),
    "corrected (paper PE, code matrices, scale sqrt3, LN sqrt(var+1e-5))": (RIGHT, []),
    "paper PE, code matrices, scale 30, LN sqrt(var+1e-5)": (RIGHT, BY_30),
    "text matrices, E rounded, scale 30": (PRINTED, [*BY_30, *TEXTS_MATRICES]),
}


@pytest.mark.parametrize("chain", GOLDEN)
def test_every_chain_in_full_precision(chain: str) -> None:
    model, changes = CHAINS[chain]
    trace = trace_of(model, changes)
    for name, expected in GOLDEN[chain].items():
        computed = np.sqrt(trace.array("enc.0.self.norm.var")) if name == "std" else trace.array(ADDRESSES[name])
        if name == "ln" and model == PRINTED:  # the post adds ε after taking the root, not before
            x, mean, deviation = (np.asarray(GOLDEN[chain][part]) for part in ("res", "mu", "std"))
            np.testing.assert_allclose((x - mean[:, None]) / (deviation[:, None] + 1e-6), expected, rtol=0, atol=1e-12)
            np.testing.assert_allclose(computed, expected, rtol=0, atol=2e-7)
        else:
            np.testing.assert_allclose(computed, expected, rtol=0, atol=1e-12, err_msg=name)


def test_the_two_models_differ_in_positions_only() -> None:
    printed, right = (read_parameters(find(name)) for name in (PRINTED, RIGHT))
    assert {"src.pos", "tgt.pos"} == printed.keys() - right.keys()
    assert all(np.array_equal(printed[name], array) for name, array in right.items())
    assert " ".join(open_model(RIGHT).source_vocabulary) == "hello mundo world how ? EOS SOS a hola c"


def test_the_recipe_writes_these_folders(tmp_path: Path) -> None:
    subprocess.run([sys.executable, RECIPE, str(tmp_path)], check=True)
    for name in WORKED_EXAMPLES:
        for file in ("model.safetensors", "tokenizer.json"):
            assert (tmp_path / name / file).read_bytes() == (find(name) / file).read_bytes()
        assert read_config(tmp_path / name) == read_config(find(name))


def test_six_bare_blocks_overflow_as_printed_and_grow_with_the_stable_softmax() -> None:
    bare = [("without", "residual"), ("without", "layer-norm")]
    assert np.isnan(trace_of(PRINTED, [*bare, ("softmax", "naive")]).array("memory")).all()
    assert 1e6 < np.abs(trace_of(RIGHT, bare).array("memory")).max() < np.inf


def test_rows_of_numbers_are_set() -> None:
    identity = "[[1,0,0],[0,1,0],[0,0,1],[0,0,0]]"
    trace = trace_of(RIGHT, [("set", f"enc.0.self.WQ.h0={identity}")])
    assert np.array_equal(trace.array("enc.0.self.Q.h0"), trace.array("enc.in")[:, :3])
    for wrong in ("[[1,2],[3,4]]", "[[1,2],[3]]", "[", "blue", '["a"]'):
        with pytest.raises(ConfigError):
            trace_of(RIGHT, [("set", f"enc.0.self.WQ.h0={wrong}")])


def test_a_file_of_values_is_a_what_if(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('[enc.0.self]\nWQ.h0 = [[1,0,0],[0,1,0],[0,0,1],[0,0,0]]\n[enc.0]\n"self.WQ.h1" = 0\n')
    arguments = ["look", "hello world", "-m", RIGHT, "--at", "enc.0.self.Q.h0"]
    told = CliRunner().invoke(vidrio, [*arguments, "--values", str(file)])
    assert "0 hello  1.0000  3.0000  3.0000\n" in told.stdout
    assert f"--values {file}" in told.stdout
    file.write_text("enc.0 = [")
    told = CliRunner().invoke(vidrio, [*arguments, "--values", str(file)])
    assert told.exit_code == 1


# --- reading a lesson -------------------------------------------------------------------------------------------------

PAGE = """# A lesson

Text.

```python
x = 2
print("one")
```

```text output
one
```

## One: first

```python more
print(x + 1)
```

```text output
3
```

```console
$ vidrio --version
nothing
```

## Two

```sh
# no heading
```

```console
$ ls | head
shown
```
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "mine.md").write_text(PAGE)
    monkeypatch.setattr(run, "FOLDER", tmp_path)
    monkeypatch.setattr(run, "NAMES", ["mine"])
    return tmp_path


def test_a_lesson_has_sections(folder: Path) -> None:
    assert [section.title for section in run.sections("mine")] == ["A lesson", "One: first", "Two"]
    assert [run.chosen("mine", wanted)[0].title for wanted in ("1", "2", "first", "TWO")] == [
        *("One: first", "Two", "One: first", "Two")
    ]
    assert len(run.chosen("mine", "all")) == 3
    for name, wanted in (("mine", "3"), ("mine", "seven"), ("mine", "o"), ("yours", "1")):
        with pytest.raises(LessonError, match=r"matches \w+ section|no lesson"):
            run.chosen(name, wanted)


def test_blocks_print_what_they_print_now(folder: Path) -> None:
    _, one, two = run.sections("mine")
    told = list(run.read(one, folder))
    assert "```text\n3\n```" in told
    assert told[-1].startswith("```text\n$ vidrio --version\nvidrio, version")
    assert "shown" in list(run.read(two, folder))[-1]
    assert "# no heading" in list(run.read(two, folder))[1]
    assert run.python([one]).split() == ["x", "=", "2", 'print("one")', "print(x", "+", "1)"]


def test_the_command() -> None:
    invoke = CliRunner().invoke
    listed = invoke(vidrio, ["lesson"]).stdout
    assert all(page.stem in listed for page in run.FOLDER.glob("*.md"))
    told = invoke(vidrio, ["lesson", "exercises", "4"])
    assert "row 3 is changed; rows whose output moves: [3]" in told.stdout
    assert "<details>" not in told.stdout
    assert "  33  Notes, training, teacher forcing" in invoke(vidrio, ["lesson", "errata"]).stdout
    assert invoke(vidrio, ["lesson", "nan", "1", "--code"]).stdout.startswith("import numpy")
    assert invoke(vidrio, ["lesson", "nna"]).exit_code == 1


def test_spanish_where_it_is_asked_for_or_the_locale_is(monkeypatch: pytest.MonkeyPatch) -> None:
    invoke = CliRunner().invoke
    assert "ReLU pone a 0" in invoke(vidrio, ["lesson", "exercises", "estructura", "--language", "es"]).stdout
    monkeypatch.setenv("LC_ALL", "es_ES.UTF-8")
    assert "  33  Apuntes, entrenamiento" in invoke(vidrio, ["lesson", "errata"]).stdout
    assert "  33  Notes, training" in invoke(vidrio, ["lesson", "errata", "--language", "en"]).stdout


@pytest.mark.parametrize("folder", [run.FOLDER, run.FOLDER / "es"])
def test_every_lesson_is_listed(folder: Path) -> None:
    assert sorted(run.NAMES) == sorted(page.stem for page in folder.glob("*.md"))


@pytest.mark.parametrize("name", run.NAMES)
def test_a_spanish_lesson_has_the_blocks_of_the_english_one(name: str) -> None:
    """Compare line by line, because test_docs.py runs only the English blocks."""
    english, spanish = run.sections(name), run.sections(name, "es")
    assert [section.blocks for section in spanish] == [section.blocks for section in english]
    assert spanish[0].title != english[0].title


# --- lessons on the page ----------------------------------------------------------------------------------------------


def test_a_command_is_a_link_to_what_it_shows() -> None:
    command = (
        'vidrio look "hello world" --model lesson --precision 8 --divisor 30 --at enc.0.self.WO --at enc.0.self.out'
    )
    view = "#lesson=nan%2F1&text=hello+world&model=lesson&open=enc.0&if=divisor%3A30"
    assert fragment_of(command, "nan/1") == view
    why = fragment_of('vidrio why "out.logits[0,hola]" "hello world" --model lesson', "nan/1")
    assert why == "#lesson=nan%2F1&text=hello+world&model=lesson&at=out.logits%5B0%2Chola%5D&open=out"
    word = fragment_of('vidrio why nueva "A new house." --not nuevo --delete-words --patch-from "A new car."', "nan/1")
    assert word == ("#lesson=nan%2F1&text=A+new+house.&word=nueva&rival=nuevo&other=A+new+car.&card=without&card=rows")
    for elsewhere in ("vidrio look a --values my.toml", "vidrio --version", "vidrio lesson nan"):
        assert fragment_of(elsewhere, "nan/1") == ""


@pytest.mark.parametrize("language", ["en", "es"])
def test_every_section_becomes_html(language: run.Language) -> None:
    for lesson in contents(language):
        for number, section in enumerate(run.sections(str(lesson["name"]), language)):
            told = section_html(str(lesson["name"]), number, language)
            assert "```" not in told
            assert ".md" not in told
            assert section.title.split()[0] in told
            for block in section.parts:
                for command in block.commands if isinstance(block, run.Block) else ():
                    shown = escape(command, quote=False).replace('"', "&quot;")
                    assert bool(fragment_of(command, "nan/1")) == (f">{shown}</a>" in told), command
    assert 'href="#lesson=errata%2F10"' in section_html("nan", 4, language)
    assert 'href="#lesson=errata%2F25"' in section_html("notes", 0, language)
