"""The eight exercises: each answer's claims hold in its experiment, on more than the draw that is shown."""

import io
import itertools
import sys
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pytest

from vidrio.cli import main
from vidrio.glass.numbers.stages import stages
from vidrio.lessons import exercise_attention, exercise_choosing, exercise_running
from vidrio.lessons.as_data import Measured
from vidrio.lessons.exercise_attention import WIDTHS, measure_attentions, measure_feed_forward, measure_positions
from vidrio.lessons.exercise_choosing import CORPUS, END, START, counted_model
from vidrio.lessons.exercises import EXPERIMENTS, answer
from vidrio.lessons.machines import random_machine
from vidrio.lessons.pages import pages
from vidrio.look.measures import entropy
from vidrio.look.writing import text_width

SEEDS = (0, 1, 2)


EXERCISES = pages("exercises")["exercise"]


@cache
def measured(number: int) -> Any:
    """What an exercise measures, once for all tests."""
    return EXPERIMENTS[number]()


@pytest.mark.parametrize("seed", SEEDS)
def test_1_without_positions_rows_only_move_with_their_words(seed: int) -> None:
    none, sine = measure_positions("none", seed), measure_positions("sinusoidal", seed)
    assert none.difference < 1e-12
    assert none.first_word_change < 1e-12
    assert sine.difference > 0.01
    assert sine.first_word_change > 1e-5


def test_1_the_trained_model_needs_its_positions() -> None:
    with_them, without = (measured(1).translated[kind] for kind in ("sinusoidal", "none"))
    assert (with_them.first, with_them.second) == ("hola mundo EOS", "mundo hola EOS")
    assert without.first == without.second != with_them.first


@pytest.mark.parametrize("seed", SEEDS)
def test_2_queries_from_the_target_keys_and_values_from_the_source(seed: int) -> None:
    seen = measure_attentions(seed)
    table = stages(seen.trace.machine.config)
    assert [table[f"dec.0.cross.{letter}.h0"].inputs[0] for letter in "KV"] == ["memory", "memory"]
    assert seen.trace.array("enc.0.self.weights.h0").shape == (3, 3)
    assert seen.trace.array("dec.0.self.weights.h0").shape == (5, 5)
    assert seen.trace.array("dec.0.cross.weights.h0").shape == (5, 3)
    assert np.triu(seen.trace.array("dec.0.self.weights.h0"), 1).max() == 0
    assert (seen.trace.array("dec.0.cross.weights.h0") > 0).all()
    moved = {name.split(".")[3]: value > 0 for name, value in seen.source_changed.items()}
    assert moved == {"Q": False, "K": True, "V": True, "weights": True}
    moved = {name.split(".")[3]: value > 0 for name, value in seen.target_changed.items()}
    assert moved == {"Q": True, "K": False, "V": False, "weights": True}


@pytest.mark.parametrize("seed", SEEDS)
def test_3_width_bounds_rank_and_orders_and_spreads_scores(seed: int) -> None:
    widths = [exercise_attention.measure_width(d_head, seed) for d_head in WIDTHS]
    for width in widths:
        assert width.rank == min(width.d_head, 16)
        assert width.spread == pytest.approx(width.d_head**0.5, rel=0.4)
        assert width.entropy_scaled > 2.5
    assert [width.orders for width in widths[:2]] == [2, 30]  # two orders on a line; 6 · 5 half-turns around a circle
    assert [width.orders for width in widths] == sorted(width.orders for width in widths)
    assert [width.entropy for width in widths] == sorted((width.entropy for width in widths), reverse=True)
    assert widths[-1].largest > 0.9 > 0.5 > widths[-1].largest_scaled


def test_3_entropy() -> None:
    assert entropy(np.full((2, 8), 1 / 8)) == pytest.approx([3, 3])
    assert entropy(np.eye(4)).tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("seed", SEEDS)
def test_4_each_row_by_itself_and_bent(seed: int) -> None:
    seen = measure_feed_forward(seed)
    assert seen.shapes == {
        **{"x": "4 × 4", "W1": "4 × 8", "b1": "8", "hidden": "4 × 8"},
        **{"active": "4 × 8", "W2": "8 × 4", "b2": "4", "out": "4 × 4"},
    }
    assert seen.same_rows < 1e-12
    assert seen.changed_moved > 0.1
    assert seen.others_moved < 1e-12
    assert 0 < seen.silenced < 1
    assert seen.bend > 1e-3
    assert seen.bend_without < 1e-12


def test_5_the_decoder_goes_step_by_step() -> None:
    seen = measured(5)
    assert seen.passes == {"encoder": 1, "decoder, all at once": 1, "decoder, kept": 24, "decoder, anew": 24}
    work = seen.multiplications
    assert work["decoder, anew"] > 5 * work["decoder, kept"]
    assert work["decoder, kept"] < work["decoder, all at once"]  # all at once also computes what the mask hides
    assert seen.seconds["decoder, kept"] > seen.seconds["encoder"]
    assert seen.disagreement < 1e-12


def test_6_gradients_reach_the_bottom_with_both() -> None:
    reaches = {name: depth.reaches for name, depth in measured(6).depth.items()}
    assert 0.05 < reaches["residual and norm"] < 20
    assert reaches["norm only"] < 0.5 * reaches["residual and norm"]
    assert reaches["residual only"] > 50
    assert reaches["neither"] < 0.02


def test_6_what_each_of_them_does() -> None:
    seen = measured(6)
    assert seen.nan["naive"] == {"residual and norm": 0, "norm only": 0, "residual only": 1, "neither": 1}
    assert set(seen.nan["stable"].values()) == {0}
    sizes = {name: depth.values[-1] for name, depth in seen.depth.items()}
    assert sizes["residual and norm"] == pytest.approx(1, abs=0.01)
    assert sizes["norm only"] == pytest.approx(1, abs=0.01)
    assert sizes["residual only"] > 10
    assert sizes["neither"] < 0.01
    apart = {name: medians[-1] for name, medians in seen.apart.items()}
    assert apart["norm only"] == apart["neither"] == 0  # without the way past attention the words are gone
    assert apart["residual and norm"] > 0.1


def test_6_the_gradient_is_the_gradient() -> None:
    """Against the slope along a random direction, with another step."""
    from vidrio.glass.paper.transformer import encoder_layer

    machine = random_machine(["word"], 3, n_encoder_layers=2)
    generator = np.random.default_rng(0)
    x, r, v = generator.standard_normal((3, 2, 8))

    def loss(rows: np.ndarray) -> float:
        for n in range(2):
            rows = encoder_layer(machine, rows, f"enc.{n}")
        return float((rows * r).sum())

    slope = (loss(x + 1e-4 * v) - loss(x - 1e-4 * v)) / 2e-4
    assert (exercise_running.gradient(machine, 0, x, r) * v).sum() == pytest.approx(slope, rel=1e-5)


def test_7_logits_become_probabilities() -> None:
    seen = exercise_choosing.measure_probabilities()
    assert seen.words[int(seen.prob_V.argmax())] == "hola"
    order = np.argsort(-seen.logits_V)
    for prob_V in seen.by_temperature.values():
        assert prob_V.sum() == pytest.approx(1)
        assert prob_V.argmax() == order[0]
    assert np.array_equal(seen.by_temperature[1.0], seen.prob_V)
    by_hand = np.exp(seen.logits_V) / np.exp(seen.logits_V).sum()
    assert np.allclose(by_hand, seen.prob_V)
    colder, hotter = seen.by_temperature[0.5], seen.by_temperature[2.0]
    assert colder.max() > seen.prob_V.max() > hotter.max()


def test_8_greedy_misses_the_likeliest_sentence() -> None:
    seen = measured(8).counted
    sentences = sorted(set(CORPUS), key=lambda line: -_probability(line))
    assert _sentence(seen, "greedy") != sentences[0]
    assert _sentence(seen, "beam 2") == sentences[0] == " ".join(seen.words[i] for i in seen.best.ids)
    for name in seen.found:
        assert np.exp(seen.found[name].log_prob) == pytest.approx(_probability(_sentence(seen, name)))
        assert seen.found[name].score == seen.found[name].log_prob  # compared as they are, without a length penalty
        assert seen.trees[name].nodes[seen.trees[name].best].fate == "finished"


def _sentence(seen: Measured, name: str) -> str:
    return " ".join(seen.words[i] for i in seen.found[name].ids)


def _probability(line: str) -> float:
    """Counted by hand: the product of how often each word follows the one before it."""
    rows = [[START, *other.split(), END] for other in CORPUS]
    product = 1.0
    words = [START, *line.split(), END]
    for before, after in itertools.pairwise(words):
        follows = [b for row in rows for a, b in itertools.pairwise(row) if a == before]
        product *= follows.count(after) / len(follows)
    return product


def test_8_the_counted_model_is_a_distribution() -> None:
    words, step = counted_model()
    rows = np.exp(step([(words.index(word),) for word in words]))
    assert np.allclose(rows.sum(axis=1), 1)


def test_8_wider_beams_miss_less() -> None:
    missed = measured(8).missed
    assert missed[1] > 0.1
    assert missed[1] > missed[2] >= missed[4]


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(1, 9))
def test_question_and_answer(number: int, capsys: pytest.CaptureFixture[str]) -> None:
    exercise = EXERCISES[number - 1]
    assert main(["lesson", "exercises", str(number)]) == 0
    question = capsys.readouterr()
    assert question.out.startswith(f"{number}. {exercise['question'][:40]}")
    assert f"vidrio lesson exercises {number} --answer" in question.out
    assert question.err == ""
    for precision in (0, 3, 5):
        lines = answer(number, measured(number), precision).splitlines()
        assert len(lines) > 20 > len(question.out.splitlines())
        assert max(map(text_width, lines)) <= 80


def test_the_answer_is_measured_and_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "exercises", "4", "--answer"]) == 0
    told = capsys.readouterr()
    assert told.err == ""
    assert answer(4, measured(4), 4) in told.out


def test_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "exercises"]) == 0
    out = capsys.readouterr().out
    assert len(EXERCISES) == len(EXPERIMENTS) == 8
    assert all(f"  {n}  {exercise['question'][:30]}" in out for n, exercise in enumerate(EXERCISES, 1))


class Typed(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("typed", "answered"), [("\n", True), ("", False)])
def test_a_terminal_waits_for_enter(
    typed: str, answered: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Typed(typed))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["lesson", "exercises", "4"]) == 0
    captured = capsys.readouterr()
    assert "press Enter" in captured.err
    assert ("Two linear maps" in captured.out) == answered


@pytest.mark.parametrize(
    ("arguments", "code"), [(["9"], 1), (["0"], 1), (["five"], 2), (["5", "--precision", "18"], 2)]
)
def test_nonsense_is_refused(arguments: Sequence[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lesson", "exercises", *arguments]) == code
    assert capsys.readouterr().err
