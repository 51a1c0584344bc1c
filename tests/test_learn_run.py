"""Test training from the user's files to a model: every task learns, a run keeps its settings, errors are reported."""

import subprocess
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import forked
from vidrio.cli import main
from vidrio.data.lock import only_one
from vidrio.data.progress import Progress
from vidrio.errors import DataError, RunError
from vidrio.glass import walk
from vidrio.glass.machine import build
from vidrio.learn import model
from vidrio.learn import train as training
from vidrio.learn.plan import (
    BATCH_FOR,
    DROPOUT_FOR,
    DROPOUT_OF_FEW,
    FEW_WORDS,
    PAIRS_FOR,
    PASSES,
    PRESETS,
    RATE_FOR,
    Plan,
    Recipe,
    batch_for,
    choose_preset,
    describe_plan,
    dropout_for,
    new_plan,
    preset_of,
)
from vidrio.learn.task import VOCABULARY_FOR, Request, Stop, make_task
from vidrio.learn.train import Run, write_model
from vidrio.learn.validate import translate
from vidrio.model.folder import read_config, read_parameters
from vidrio.score.metrics import corpus_scores, usual_metrics
from vidrio.text.tokens.tokenizer import Tokenizer

torch.set_num_threads(1)
NUMBERS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
NUMEROS = ["uno", "dos", "tres", "cuatro", "cinco", "seis", "siete", "ocho", "nueve", "diez"]
SMALL = {"d_model": 32, "n_heads": 4, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}
QUICK = Request(
    folder=Path(),
    names=(),
    vocabulary=320,
    preset="tiny",
    device="cpu",
    sizes=SMALL,
    recipe={"rate": 5e-3, "dropout": 0.0, "precision": "float32", "validations": 2, "batch_tokens": 800},
    stop=Stop(steps=150),
)


def number_pairs(count: int) -> list[tuple[str, str]]:
    """Return sequences of one to four numbers in English and Spanish."""
    choices = [row for length in (1, 2, 3, 4) for row in product(range(10), repeat=length)]
    order = np.random.default_rng(0).permutation(len(choices))[:count]
    return [
        (" ".join(NUMBERS[n] for n in choices[i]).capitalize(), " ".join(NUMEROS[n] for n in choices[i]).capitalize())
        for i in order
    ]


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "numbers.tsv"
    path.write_text("".join(f"{a}\t{b}\n" for a, b in number_pairs(1500)), encoding="utf-8")
    return path


def learn(folder: Path, pairs: Path, request: Request = QUICK, **changes: Any) -> tuple[Run, list[str]]:
    said: list[str] = []
    request = replace(request, folder=folder, names=(str(pairs),), **changes)
    with only_one(request.run):
        learned = training.learn(request, Progress(said.append))
    assert learned is not None
    return learned, said


# --- each task learns -------------------------------------------------------------------------------------------------


def test_it_learns_to_translate(pairs: Path, tmp_path: Path) -> None:
    learned, said = learn(tmp_path / "model", pairs, replace(QUICK, stop=Stop(steps=250)))
    assert learned.task.source is not None
    assert learned.task.target is not None
    ids = translate(model.build(learned.parameters), learned.task.encoded(learned.task.test))
    found = map(learned.task.target.decode, ids)
    right = sum(text == wanted for text, (_, wanted) in zip(found, learned.task.test, strict=True))
    assert right / len(learned.task.test) > 0.6
    assert any("training pairs" in line for line in said)


def test_it_learns_to_tell_classes(tmp_path: Path) -> None:
    """The class says whether the text contains the word "two"."""
    rows = [f"{a} {b} {c}\t{'yes' if 'two' in (a, b, c) else 'no'}" for a, b, c in product(NUMBERS, repeat=3)]
    path = tmp_path / "classes.tsv"
    path.write_text("\n".join(rows) + "\n")
    learned, _ = learn(tmp_path / "model", path, replace(QUICK, task="classify"))
    assert learned.task.labels == ("no", "yes")
    assert learned.state.best_score is not None
    assert learned.state.best_score > 95  # always answering "no" would score 73
    # The written model classifies in glass/ as it did in training.
    write_model(learned)
    config, about = read_config(tmp_path / "model")
    machine = build(config, read_parameters(tmp_path / "model"))
    tokenizer = Tokenizer.load(tmp_path / "model" / "tokenizer.json", config.special)
    for text, label in (("nine two five", "yes"), ("nine three five", "no")):
        ids = [*tokenizer.encode(text), config.special.end]
        assert about.labels[int(np.argmax(walk.classify(machine, ids)))] == label


# --- a run keeps its settings -----------------------------------------------------------------------------------------


def test_a_run_goes_on_and_may_have_another_end(pairs: Path, tmp_path: Path) -> None:
    short = replace(QUICK, stop=Stop(steps=20))
    learn(tmp_path / "model", pairs, short)
    _, said = learn(tmp_path / "model", pairs, replace(short, stop=None, recipe={}, sizes={}, preset=""))
    assert any("resuming from step 20" in line for line in said)  # all other settings stay the same
    learned, said = learn(tmp_path / "model", pairs, replace(QUICK, stop=Stop(steps=30)))
    assert learned.state.step == 30
    assert "training ends after 30 steps" in said


def test_the_pairs_may_have_moved(pairs: Path, tmp_path: Path) -> None:
    short, copy = replace(QUICK, stop=Stop(steps=2)), tmp_path / "copy.tsv"
    _, said = learn(tmp_path / "model", pairs, short)
    source, target = number_pairs(1)[0]
    assert said[:2] == [f"{pairs}: source, target", f"  {source} → {target}"]
    copy.write_bytes(pairs.read_bytes())
    _, said = learn(tmp_path / "model", copy, replace(short, stop=Stop(steps=4)))
    assert any("resuming from step 2" in line for line in said)


def test_what_cannot_change_is_refused_by_name_and_the_run_left_as_it_was(pairs: Path, tmp_path: Path) -> None:
    short, run = replace(QUICK, stop=Stop(steps=2)), tmp_path / "model"
    learn(run, pairs, short)
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    refused: list[tuple[dict[str, Any], str]] = [
        ({"sizes": {**SMALL, "d_model": 64}}, "d_model 32 → 64"),
        ({"recipe": {**QUICK.recipe, "rate": 1e-3}}, "rate 0.005 → 0.001"),
        ({"vocabulary": 330}, "the tokenizer"),
        ({"sizes": {**SMALL, "norm": "post"}}, "norm pre → post"),
        ({"task": "classify"}, "task translate → classify"),
    ]
    for changes, told in refused:
        with pytest.raises(RunError, match="only the end of an existing run") as error:
            learn(run, pairs, short, **changes)
        assert told in str(error.value)
    with pytest.raises(RunError, match="not a metric for this task"):
        learn(run, pairs, replace(short, recipe={"metric": "accuracy"}))
    changed = tmp_path / "other.tsv"
    changed.write_text(pairs.read_text() + "Twelve\tDoce\n")
    with pytest.raises(RunError, match="the sentence pairs"):
        learn(run, changed, short)
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


# --- choosing sizes and defaults --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pairs", "seconds", "speed", "preset"),
    [
        (29_000, 0.0, 5e11, "tiny"),  # few pairs: a small model, even without a time limit
        (300_000, 0.0, 5e11, "small"),
        (300_000, 1800.0, 1e10, "tiny"),  # a slow machine
        (3_000_000, 0.0, 5e11, "base"),
        (3_000_000, 40_000.0, 5e11, "small"),  # too little time for a larger model
        (30_000_000, 864_000.0, 1e14, "big"),
    ],
)
def test_a_size_for_the_data_the_machine_and_the_time(pairs: int, seconds: float, speed: float, preset: str) -> None:
    assert choose_preset(pairs, 30 * pairs, 8000, seconds, speed) == preset


def test_the_page_tells_the_rules(repository: Path) -> None:
    page = (repository / "docs" / "training.md").read_text(encoding="utf-8")
    for name, s in PRESETS.items():
        layers = f"{s['n_encoder_layers']} + {s['n_decoder_layers']}"
        sizes = f"{s['d_model']} | {s['n_heads']} × {s['d_head']} | {s['d_ff']} | {layers}"
        assert f"| `{name}` | {sizes} | {RATE_FOR[name]:g} | {BATCH_FOR[name]:,} | {PAIRS_FOR[name]:,} pairs |" in page
    words = " ".join(page.split())
    for table, unit in ((VOCABULARY_FOR, " tokens"), (DROPOUT_FOR, "")):
        first, *others = table.items()
        assert f"| {first[0]:,}{unit}; " in words
        for value, pairs in others:
            assert f"{value:,} from {pairs:,}" in words
    assert f"for {PASSES} epochs" in words
    # A small vocabulary of frequent words is not memorised, so it needs little dropout.
    assert [dropout_for(count, 20.0) for count in (4_000, 99_999, 100_000, 500_000)] == [0.3, 0.3, 0.2, 0.1]
    assert dropout_for(4_000, FEW_WORDS) == dropout_for(100_000, FEW_WORDS) == DROPOUT_OF_FEW < 0.2
    assert [batch_for("tiny", tokens) for tokens in (1_000_000, 20_000, 100)] == [4096, 1000, 256]
    for name, default in (("label smoothing", "smoothing"), ("running mean of the parameters with decay", "average")):
        assert f"{name} {getattr(Recipe(stop=Stop(steps=1)), default)}" in words


def test_own_sizes_have_the_rate_of_the_preset_that_is_as_large(pairs: Path, tmp_path: Path) -> None:
    """Few pairs select `tiny`, but a user may enlarge it: the learning rate must suit the actual size."""

    def planned(sizes: dict[str, Any]) -> Plan:
        return new_plan(replace(request, sizes=sizes, stop=Stop(steps=1)), task, cpu)

    request, cpu = Request(folder=tmp_path, names=(str(pairs),)), torch.device("cpu")
    task = make_task(request, Progress())
    plan = planned({"d_model": 256, "n_encoder_layers": 6, "n_heads": 8, "d_ff": 1024})
    assert plan.recipe.rate == RATE_FOR["small"]
    assert next(describe_plan(plan, cpu, task)).startswith("model: custom sizes, ")
    assert plan.config.d_head * plan.config.n_heads == 256
    for name in PRESETS:  # giving the sizes of a preset one by one selects the preset
        plan = planned(dict(PRESETS[name]))
        assert (preset_of(plan.config), plan.recipe.rate) == (name, RATE_FOR[name])


# --- invalid input ----------------------------------------------------------------------------------------------------


def test_a_refused_training_leaves_nothing_behind(pairs: Path, tmp_path: Path) -> None:
    """The folders that it created are removed. Those that existed before stay."""
    few = tmp_path / "few.tsv"
    few.write_text("one\tuno\n")
    (tmp_path / "there").mkdir()
    for name in ("there", "new/a/b"):
        with pytest.raises(DataError, match="too few"):
            learn(tmp_path / name, few)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["few.tsv", "there"]
    with pytest.raises(RunError, match="too long for the model"):
        learn(tmp_path / "there", pairs, replace(QUICK, sizes={**SMALL, "max_positions": 1}))


def test_one_class_is_nothing_to_tell_apart(tmp_path: Path) -> None:
    path = tmp_path / "one.tsv"
    path.write_text("".join(f"{number} apples\tfruit\n" for number in range(50)))
    with pytest.raises(DataError, match="at least two classes"):
        learn(tmp_path / "model", path, replace(QUICK, task="classify"))


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "Missing argument 'PAIRS...'"),
        (["pairs.tsv"], 2, "Missing option '--to'"),
        (["nowhere.tsv", "--to", "m"], 1, "there is no file nowhere.tsv"),
        (["pairs.tsv", "--to", "m", "--time", "soon"], 2, "'soon' is not a duration"),
        (["pairs.tsv", "--to", "m", "--time", "5m", "--steps", "3"], 2, "mutually exclusive"),
        (["pairs.tsv", "--to", "m", "--d-model", "33", "--heads", "3"], 1, "d_model is 33"),
        (["pairs.tsv", "--to", "m", "--dropout", "1.5"], 2, "1.5 is not in the range 0<=x<1"),
        (["pairs.tsv", "--to", "pairs.tsv"], 1, "is a file"),
        (["pairs.tsv", "--to", "."], 1, "is not empty"),
        (["pairs.tsv", "--to", "m", "--metric", "accuracy"], 1, "use --metric chrf or bleu or loss"),
        (["pairs.tsv", "--to", "m", "--device", "toaster"], 1, "there is no device 'toaster'"),
    ],
)
def test_the_commands_mistakes_are_told(
    arguments: list[str],
    code: int,
    told: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in number_pairs(60)))
    assert main(["train", *arguments]) == code
    assert told in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]  # nothing is left behind


def test_what_the_end_needs_is_checked_before_the_beginning(tmp_path: Path) -> None:
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in number_pairs(60)))
    done = forked.run_vidrio("train", "pairs.tsv", "--to", "m", cwd=tmp_path, environment={"VIDRIO_ENGINE": "none"})
    assert done.returncode == 1
    assert done.stderr.startswith("vidrio: no build of the engine runs here\n  found: VIDRIO_ENGINE is 'none'")
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.tsv"]


def test_no_other_command_writes_the_model_while_one_ends(
    pairs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = replace(QUICK, folder=tmp_path / "model", names=(str(pairs),), stop=Stop(steps=2))

    def other_command(learned: Run, progress: Progress) -> None:
        with pytest.raises(RunError, match="another command is working"):
            training.train(request)

    monkeypatch.setattr(training, "finish", other_command)
    assert training.train(request) is not None


SECONDS = "--steps 60 --validations 2 --languages en,es --rate 0.005 --d-model 32 --d-ff 64"


def test_the_command_makes_a_translator(
    run_vidrio: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
) -> None:
    """Train with the command, at a size that takes seconds. The model translates and has scores and a model card."""
    (tmp_path / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in number_pairs(1500)))
    done = run_vidrio(*f"train pairs.tsv --to m {SECONDS}".split())
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    for told in ("kept 1,", "training pairs", "parameters", "validation at step", "BLEU", "wrote m"):
        assert told in done.stderr
    config, about = read_config(tmp_path / "m")
    assert config.has_encoder
    assert {score["metric"] for score in about.scores} >= {"BLEU", "TER"}
    assert all(score["signature"] for score in about.scores)
    card = (tmp_path / "m" / "README.md").read_text()
    assert about.provenance["command"] in card
    assert "Licence and attribution of the data" in card
    # The scores are those of the output of `vidrio translate`.
    test = [line.split("\t") for line in (tmp_path / "m/run/data/test.tsv").read_text("utf-8").splitlines()]
    (tmp_path / "test.en").write_text("".join(f"{source}\n" for source, _ in test), encoding="utf-8")
    said = run_vidrio("translate", "--model", "m", "--input", "test.en").stdout.splitlines()
    bleu = corpus_scores(said, [[target for _, target in test]], {"BLEU": usual_metrics()["BLEU"]})[0][0]
    assert bleu.value == next(score["value"] for score in about.scores if score["metric"] == "BLEU")
    heads, *rows = [line.split("\t") for line in (tmp_path / "m/translations.tsv").read_text("utf-8").splitlines()]
    assert heads == ["chrF", "source", "translation", "expected"]
    assert sorted([source, says, target] for _, source, says, target in rows) == sorted(
        [source, says, target] for (source, target), says in zip(test, said, strict=True)
    )
    assert [float(chrf) for chrf, *_ in rows] == sorted(float(chrf) for chrf, *_ in rows)
