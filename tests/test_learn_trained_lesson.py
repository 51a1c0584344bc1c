"""Test the trained model of the lessons: its card is correct, and the recipe produces a similar model."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from vidrio.glass.machine import Machine, build
from vidrio.learn.state import snapshot_steps
from vidrio.look.history import ages_data, snapshots
from vidrio.look.run import open_model
from vidrio.model.folder import read_config, read_parameters
from vidrio.model.parameters import count, random_parameters
from vidrio.text.tokens.tokenizer import Tokenizer

REPOSITORY = Path(__file__).resolve().parent.parent
_spec = importlib.util.spec_from_file_location("train_lesson", REPOSITORY / "recipes/lesson/train_lesson.py")
assert _spec is not None
assert _spec.loader is not None
recipe = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(recipe)

SEED_WORDS = ["hello", "mundo", "world", "how", "?", "EOS", "SOS", "a", "hola", "c"]


@pytest.fixture(scope="module")
def model() -> tuple[Machine, Tokenizer]:
    config, _ = read_config(recipe.FOLDER)
    tokenizer = Tokenizer.load(recipe.FOLDER / "tokenizer.json", config.special)
    return build(config, read_parameters(recipe.FOLDER)), tokenizer


def test_the_documents_sizes_and_words(model: tuple[Machine, Tokenizer]) -> None:
    machine, tokenizer = model
    c = machine.config
    assert (c.d_model, c.n_heads, c.d_head, c.d_ff, c.n_encoder_layers, c.n_decoder_layers) == (4, 2, 3, 8, 6, 6)
    assert (c.norm, c.activation, c.positions) == ("post", "relu", "sinusoidal")
    assert tokenizer.vocabulary()[:10] == SEED_WORDS
    assert (c.special.start, c.special.end) == (6, 5)
    assert count(c) == 3088


def test_the_card_and_the_config_tell_the_truth(model: tuple[Machine, Tokenizer]) -> None:
    learned, unseen = recipe.sentences()
    assert not set(learned) & set(unseen)
    scores = {score["what"]: score["value"] for score in read_config(recipe.FOLDER)[1].scores}
    assert scores["learned"] == recipe.how_many(*model, learned) == f"{len(learned)} of {len(learned)}"
    assert scores["unseen, 3 words"] == recipe.how_many(*model, unseen)
    hello = ", ".join(f"{p:.3f}" for p in recipe.rightness(*model, "hello world"))
    assert scores["hola, mundo, EOS"] == hello
    card = (recipe.FOLDER / "README.md").read_text(encoding="utf-8")
    for value in scores.values():
        assert value in " ".join(card.split())


def test_its_ages_go_from_random_to_trained(model: tuple[Machine, Tokenizer]) -> None:
    ages = snapshots(recipe.FOLDER / "run")
    assert [step for step, _ in ages] == snapshot_steps(recipe.STEPS)
    _, tokenizer = model
    config, machines = model[0].config, [build(model[0].config, read_parameters(folder)) for _, folder in ages]
    random = random_parameters(config, np.random.default_rng(recipe.SEED))
    for name, value in machines[0].parameters.items():
        np.testing.assert_array_equal(value, np.round(random[name], recipe.DECIMALS), err_msg=name)
    first, *_, last = (min(recipe.rightness(machine, tokenizer, "hello world")) for machine in machines)
    assert first < 0.2
    assert last > 0.8
    ages_seen = ages_data(open_model("lesson"), "hello world")
    assert ages_seen is not None
    said = [age["says"] for age in ages_seen["ages"]]
    assert said[0] != "hola mundo"
    assert said[-2:] == ["hola mundo", "hola mundo"]
    assert sum(path.stat().st_size for path in (recipe.FOLDER / "run").rglob("*.safetensors")) < 400_000


@pytest.mark.slow
def test_the_recipe_makes_such_a_model(tmp_path: Path) -> None:
    """Machines round differently, so the models differ, but each one must translate "hello world" correctly."""
    recipe.main(tmp_path)  # refuses to write a model that has not learned
    assert json.loads((tmp_path / "config.json").read_text())["about"]["name"] == "hello-world"
