"""Test runs that record every value: the three model shapes, the search and the traced pass, and errors."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from small_models import write_model
from vidrio.errors import AddressError, ConfigError, ModelError
from vidrio.glass import changes
from vidrio.glass.declaration import stages_of
from vidrio.glass.positions import TABLES, WAVELENGTHS
from vidrio.glass.walk import translate_forced
from vidrio.hypothesis import Options, Sampling, default_options
from vidrio.look.measures import cosines, likeliest, neighbours
from vidrio.look.quantities import at
from vidrio.look.run import LoadedModel, look, open_model
from vidrio.look.writing import CommandLine
from vidrio.search import Tree

TEXT = "bala core diso fula !"


@pytest.fixture(scope="module")
def nonsense(tmp_path_factory: pytest.TempPathFactory) -> LoadedModel:
    folder = tmp_path_factory.mktemp("models") / "nonsense"
    write_model(folder, ends=True)
    return open_model(folder)


def opened(folder: Path, **changes: object) -> LoadedModel:
    write_model(folder, **changes)  # type: ignore[arg-type]
    return open_model(folder)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "options",
    [
        {"beam": 3, "length_penalty": 0.0, "no_repeat_ngram": 1},
        {"beam": 1, "sampling": Sampling(temperature=1.5, top_k=9, seed=3)},
    ],
)
def test_the_traced_pass_is_what_the_search_saw(nonsense: LoadedModel, dtype: type, options: dict[str, object]) -> None:
    model = open_model(nonsense.path, dtype)
    chosen = replace(default_options(model.config), **options)  # type: ignore[arg-type]
    seen = look(model, TEXT, options=chosen)
    assert seen.result
    traced = [float(seen.allowed(t, seen.options)[taken]) for t, taken in enumerate(seen.chosen_ids)]
    np.testing.assert_allclose(traced, seen.result.token_log_probs, rtol=0, atol=1e-5)
    assert seen.chosen_ids == [*seen.result.ids, *([model.config.special.end] if seen.result.ended else [])]
    assert list(seen.target_ids) == [model.config.special.start, *seen.chosen_ids[:-1]]


def test_the_trace_holds_all_that_is_declared(nonsense: LoadedModel) -> None:
    tree = Tree()
    seen = look(nonsense, TEXT, options=replace(default_options(nonsense.config), beam=4), tree=tree)
    assert list(tree.ids(tree.best)) == seen.chosen_ids
    declared = {name for name, stage in stages_of(nonsense.machine).items() if stage.kind != "parameter"}
    assert set(seen.trace.values) == declared
    prob_TV = translate_forced(nonsense.machine, seen.source_ids, seen.target_ids)
    assert np.array_equal(prob_TV, seen.trace.values["out.prob"])
    scores = seen.trace.values["out.score"]
    assert np.array_equal(scores, np.log(prob_TV[np.arange(len(scores)), seen.chosen_ids]))


def test_a_classifier(tmp_path: Path) -> None:
    shape = {"shape": "encoder", "n_classes": 3, "target_vocabulary": 0, "tying": "none"}
    model = opened(tmp_path / "classifier", **shape)
    labelled = replace(model, about=replace(model.about, labels=["good", "bad", "ugly"]))
    seen, bare = look(labelled, TEXT), look(model, TEXT)
    best = int(np.argmax(seen.trace.values["out.prob"]))
    assert seen.translation == ["good", "bad", "ugly"][best]
    assert bare.translation == f"class {best}"
    assert seen.result is None
    assert set(seen.trace.values) == {n for n, s in stages_of(model.machine).items() if s.kind != "parameter"}


def test_a_decoder_alone_goes_on_from_a_prompt(tmp_path: Path) -> None:
    model = opened(tmp_path / "decoder", shape="decoder", source_vocabulary=0)
    seen = look(model, "bala core")
    prompt = model.target_tokenizer.encode("bala core")
    assert seen.chosen_ids[:2] == prompt
    assert seen.translation.startswith("bala core ")
    assert not seen.trace.source_tokens
    from_nothing = look(model, "")
    assert from_nothing.translation
    assert not from_nothing.empty


def test_a_given_translation_is_traced_and_not_searched_for(nonsense: LoadedModel) -> None:
    ids = [*nonsense.target_tokenizer.encode("core bala"), nonsense.config.special.end]
    seen = look(nonsense, TEXT, target=ids)
    assert seen.forced
    assert seen.chosen_ids == ids
    assert seen.translation == "core bala"
    assert seen.result
    assert seen.result.log_prob == pytest.approx(float(seen.trace.values["out.score"].sum()), abs=1e-12)


def test_a_machine_that_comes_to_nan_stops_and_says_where(nonsense: LoadedModel) -> None:
    huge = changes.with_parameter(nonsense.machine, "src.embed", lambda table: table * 1e200)
    machine = changes.without(changes.with_row(huge, "softmax", changes.NAIVE_SOFTMAX), "layer-norm")
    with np.errstate(all="ignore"):
        seen = look(replace(nonsense, machine=machine), TEXT)
    assert seen.stopped
    assert seen.result is None
    assert any(np.isnan(array).any() for array in seen.trace.values.values())


def test_models_are_refused_with_a_reason(tmp_path: Path, nonsense: LoadedModel) -> None:
    with pytest.raises(ModelError, match="not a model"):
        open_model(tmp_path / "nowhere")
    write_model(tmp_path / "other", source_vocabulary=20, target_vocabulary=20)
    with pytest.raises(ModelError, match="31 tokens for 20 rows of the embedding"):
        open_model(tmp_path / "other")
    with pytest.raises(AddressError):
        list(at(look(nonsense, TEXT).trace, "enc.9", CommandLine(TEXT)))
    with pytest.raises(ConfigError):
        look(nonsense, TEXT, options=Options(beam=1, suppressed=tuple(range(nonsense.config.target_vocabulary))))


# --- measures ---------------------------------------------------------------------------------------------------------


def test_cosines_and_neighbours() -> None:
    rows = np.array([[1.0, 0.0], [2.0, 0.0], [0.0, 3.0], [-1.0, 0.0], [0.0, 0.0]])
    expected = [[1, 1, 0, -1, 0], [1, 1, 0, -1, 0], [0, 0, 1, 0, 0], [-1, -1, 0, 1, 0], [0, 0, 0, 0, 0]]
    assert cosines(rows, rows).tolist() == expected
    assert neighbours(rows, [0, 3], 2) == {0: [(1, 1.0), (2, 0.0)], 3: [(2, 0.0), (4, 0.0)]}


def test_the_likeliest_tokens_have_the_models_own_probabilities(nonsense: LoadedModel) -> None:
    options = replace(default_options(nonsense.config), beam=1, sampling=Sampling(temperature=0.7, top_k=3, seed=2))
    seen = look(nonsense, TEXT, options=options)
    for step, taken in enumerate(seen.chosen_ids):
        candidates = likeliest(seen, step, 40)
        prob_V = seen.trace.values["out.prob"][step]
        assert [c.p for c in candidates] == sorted(prob_V, reverse=True)[: len(candidates)]
        assert [c.id for c in candidates if c.taken] == [taken]


@pytest.mark.parametrize("kind", WAVELENGTHS)
def test_waves_are_as_long_as_is_told(kind: str) -> None:
    table_PD = TABLES[kind](50, 8)
    angle_PD = 2 * np.pi * np.arange(50)[:, None] / WAVELENGTHS[kind](8)
    for column_P, angle_P in zip(table_PD.T, angle_PD.T, strict=True):
        assert np.allclose(column_P, np.sin(angle_P)) or np.allclose(column_P, np.cos(angle_P))
