"""The NaN laboratory reproduces what was found with the document's own code, and says why."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from vidrio.cli import main
from vidrio.glass.paper.variants import naive_softmax
from vidrio.lessons.nan_draws import (
    E_SD,
    RECIPES,
    Draws,
    Learned,
    Outcome,
    Recipe,
    blocks,
    exp_limit,
    exp_vanishes,
    run,
)
from vidrio.lessons.runs import Lesson
from vidrio.lessons.values import trained
from vidrio.look.writing import text_width

Array = np.ndarray


@cache
def outcome(softmax: str, residual: bool, layer_norm: bool) -> Outcome:
    return run(Recipe(softmax, residual, layer_norm), Draws(1000))


@pytest.mark.parametrize("recipe", RECIPES, ids=str)
def test_who_becomes_nan(recipe: Recipe) -> None:
    expected = 1.0 if recipe.softmax == "naive" and not recipe.layer_norm else 0.0
    assert outcome(recipe.softmax, recipe.residual, recipe.layer_norm).nan_share == expected


def test_the_first_nan_is_in_block_two_mostly() -> None:
    shares = outcome("naive", False, False).first_nan
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == 0.0
    assert shares[1] == pytest.approx(0.862, abs=0.04)
    assert shares[2] == pytest.approx(0.130, abs=0.04)
    assert shares[3] + shares[4] == pytest.approx(0.009, abs=0.012)
    assert shares[5] == 0.0


def test_the_numbers_grow_elevenfold_by_block_without_nan() -> None:
    seen = outcome("stable", False, False)
    assert seen.medians("largest") == [pytest.approx(m, rel=0.35) for m in (67, 732, 8.4e3, 9.2e4, 1.0e6, 1.1e7)]
    assert seen.growth == pytest.approx(11, rel=0.1)
    assert outcome("stable", True, False).medians("largest")[-1] == pytest.approx(2.27e7, rel=0.35)


def test_layer_norm_keeps_the_numbers_small() -> None:
    for recipe in RECIPES:
        if recipe.layer_norm:
            seen = outcome(recipe.softmax, recipe.residual, recipe.layer_norm)
            assert seen.medians("largest")[-1] == pytest.approx(1.514, abs=0.02)


def test_the_rows_collapse() -> None:
    seen = outcome("stable", True, True)
    assert seen.medians("apart")[-1] == pytest.approx(9.5e-7, rel=0.5)
    low, high = seen.interval("apart")
    assert low < 9.5e-7 < high
    assert seen.close() == pytest.approx(0.996, abs=0.008)
    assert outcome("stable", False, True).medians("apart")[-1] == 0.0


def test_both_words_take_from_the_same_word_mostly() -> None:
    agree = outcome("stable", True, True).agree
    assert set(np.unique(agree)) == {0, 0.5, 1}
    assert agree[:, 0].mean() == pytest.approx(0.94, abs=0.02)
    assert agree[:, -1].mean() > 0.99


def test_the_interval_is_that_of_a_median() -> None:
    """Of n ordered values the median lies between places n/2 ± 1.96 √n / 2, in 95 % of samples."""
    seen = outcome("stable", True, True)
    assert replace(seen, apart=np.arange(1000.0)[:, None]).interval("apart") == (469, 531)
    generator = np.random.default_rng(0)
    samples = (replace(seen, apart=generator.standard_normal((400, 1))).interval("apart") for _ in range(300))
    assert sum(low <= 0 <= high for low, high in samples) / 300 == pytest.approx(0.95, abs=0.03)


def test_small_matrices_keep_the_words_only_with_residual_connections() -> None:
    small = Draws(200, spread=0.25)
    with_residual, without = (run(Recipe("stable", r, True), small).medians("apart")[-1] for r in (True, False))
    assert with_residual is not None
    assert with_residual > 0.1
    assert without == 0.0


def test_both_softmaxes_agree_where_nothing_overflows() -> None:
    naive, stable = outcome("naive", True, True), outcome("stable", True, True)
    assert np.allclose(naive.largest, stable.largest, rtol=1e-9)


def test_a_block_is_the_documents_block() -> None:
    """The document's own code, with a stable softmax and ε inside the root, on the same drawn matrices."""

    def softmax(x: Array) -> Array:
        e = np.exp(x - x.max(axis=1, keepdims=True))
        return e / e.sum(axis=1, keepdims=True)

    def norm(x: Array) -> Array:
        return (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)

    for recipe in (Recipe("stable", False, False), Recipe("stable", True, True)):
        draws = Draws(3, seed=5)
        for parameters in draws:
            x = E_SD
            for b, seen in blocks(recipe.machine(draws.plain), parameters, E_SD):
                p = {name.removeprefix(f"enc.{b}."): array for name, array in parameters.items()}
                heads = []
                for h in range(2):
                    Q, K, V = (x @ p[f"self.W{letter}"][h] for letter in "QKV")
                    heads.append(softmax(Q @ K.T / np.sqrt(3)) @ V)
                Z = np.concatenate(heads, axis=1) @ p["self.WO"]
                Z = norm(Z + x) if recipe.residual else Z
                x_ffn = np.maximum(0, Z @ p["ffn.W1"] + p["ffn.b1"]) @ p["ffn.W2"] + p["ffn.b2"]
                x = norm(x_ffn + Z) if recipe.residual else x_ffn
                assert np.allclose(seen.out_SD, x, rtol=1e-9)
                x = seen.out_SD  # rounding grows elevenfold a block too


def test_draws_are_the_same_for_every_recipe_and_begin_alike() -> None:
    few, many = list(Draws(2, seed=3)), list(Draws(4, seed=3))
    for one, other in zip(few, many, strict=False):
        assert all(np.array_equal(one[name], other[name]) for name in one)
    assert not np.array_equal(many[0]["enc.0.self.WQ"], many[1]["enc.0.self.WQ"])
    assert not np.array_equal(many[0]["enc.0.self.WQ"], next(iter(Draws(1, seed=4)))["enc.0.self.WQ"])
    assert not np.array_equal(many[0]["enc.0.self.WQ"], many[0]["enc.1.self.WQ"])
    assert abs(np.concatenate([d["enc.0.ffn.W1"].ravel() for d in Draws(300)]).std() - 1) < 0.02


@pytest.mark.parametrize(("dtype", "limit"), [("float64", 709.782713), ("float32", 88.722839)])
def test_the_limits_of_exp(dtype: str, limit: float) -> None:
    assert exp_limit(dtype) == pytest.approx(limit, abs=1e-6)
    kind = np.dtype(dtype).type
    with np.errstate(over="ignore"):
        assert np.isfinite(np.exp(kind(limit - 1e-4)))
        assert np.isinf(np.exp(kind(limit + 1e-4)))
    assert np.exp(kind(exp_vanishes(dtype) + 1e-3)) > 0
    assert np.exp(kind(exp_vanishes(dtype) - 1e-3)) == 0


def test_nan_comes_from_overflow_or_from_underflow() -> None:
    seen = outcome("naive", False, False)
    assert 0 < seen.overflowed < 1000
    assert np.isnan(naive_softmax(np.array([[-800.0, -900.0]]))).all()
    assert np.isnan(naive_softmax(np.array([[800.0, 0.0]]))).any()


def test_float32_overflows_the_softmax_sooner() -> None:
    single = run(Recipe("naive", False, False), Draws(200, dtype="float32"))
    assert single.nan_share == 1.0
    assert single.first_nan[0] > 0.1
    assert single.largest.dtype == np.float64  # the record; what ran was float32
    assert next(iter(Draws(1, dtype="float32")))["enc.0.self.WQ"].dtype == np.float32


def test_the_largest_score_is_that_of_both_heads_and_nan_counts_as_above() -> None:
    draws = Draws(5)
    machine = Recipe("stable", True, True).machine(draws.plain)
    for parameters in draws:
        (_, seen), *_ = blocks(machine, parameters, E_SD)
        both = [E_SD @ parameters["enc.0.self.WQ"][h] @ (E_SD @ parameters["enc.0.self.WK"][h]).T for h in (0, 1)]
        assert seen.score == pytest.approx(np.abs(both).max() / 3**0.5)
        assert seen.highest == pytest.approx(np.max(both) / 3**0.5)
    nan = replace(outcome("naive", False, False), score=np.array([[1.0, 800.0], [np.nan, 2.0]]))
    assert nan.over(709.78) == [0.5, 0.5]


def test_a_median_counts_nan_as_the_largest() -> None:
    seen = replace(outcome("stable", True, True), apart=np.array([[1.0], [2.0], [3.0], [np.nan], [np.nan]]))
    assert seen.medians("apart") == [3.0]
    assert replace(seen, apart=np.array([[1.0], [np.nan], [np.nan]])).medians("apart") == [None]


def test_a_median_of_mostly_nan_is_none() -> None:
    medians = outcome("naive", False, False).medians("largest")
    assert medians[0] is not None
    assert medians[1:] == [None] * 5
    assert outcome("naive", False, False).growth is None


# --- the command ------------------------------------------------------------------------------------------------------


def test_the_report(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "nan", "--draws", "60"]) == 0
    text = capsys.readouterr().out
    assert "Training keeps the words apart" in text
    assert max(map(text_width, text.splitlines())) <= 80
    rows = [line for line in text.splitlines() if line.startswith(("naive ", "stable "))]
    assert ["100 %" in row for row in rows[:4]] == [True, True, True, True]
    assert [" 0 % " in row for row in rows] == [False, True, False, True, True, True, True, True]
    assert "Slip 5" in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--softmax", "naive", "--no-residual", "--no-layer-norm"],
        ["--softmax", "stable", "--residual", "--layer-norm", "--precision", "10"],
        ["--softmax", "stable", "--no-layer-norm", "--dtype", "float32", "--blocks", "24"],
        ["--layer-norm", "--spread", "0.1"],
        ["--residual", "--blocks", "1"],
        ["--spread", "1e5"],
        ["--spread", "1e-9"],
        ["--softmax", "naive", "--precision", "0"],
    ],
)
def test_any_choice_is_told(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "nan", "--draws", "20", *arguments]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert len(captured.out.splitlines()) > 8


def test_learned_numbers_neither_explode_nor_forget(capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = {recipe: run(recipe, Learned()) for recipe in RECIPES}
    assert {seen.nan_share for seen in outcomes.values()} == {0.0}
    for recipe, seen in outcomes.items():
        assert (seen.apart[0, -1] > 1) == recipe.residual, recipe
    own = Lesson("trained", trained()).run("whole").array("memory")
    assert outcomes[Recipe("stable", True, True)].apart[0, -1] == np.abs(own[0] - own[1]).max()
    assert main(["lesson", "nan", "--as", "trained"]) == 0
    text = capsys.readouterr().out
    assert max(map(text_width, text.splitlines())) <= 80
    assert "the two rows differ by 1.72" in " ".join(text.split())
    for extra in (["--softmax", "naive", "--residual", "--layer-norm"], ["--dtype", "float32"]):
        assert main(["lesson", "nan", "--as", "trained", *extra]) == 0
    assert main(["lesson", "nan", "--as", "trained", "--draws", "5"]) == 2
    assert "--draws: of use with drawn matrices only" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments", [["--draws", "0"], ["--spread", "nan"], ["--softmax", "exact"], ["--spread", "0"], ["--blocks", "x"]]
)
def test_nonsense_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "nan", *arguments]) == 2
    assert "Error" in capsys.readouterr().err
